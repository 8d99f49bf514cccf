"""``python -m opspec``."""

from opspec.cli import main

raise SystemExit(main())
