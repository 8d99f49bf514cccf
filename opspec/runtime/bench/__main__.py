"""``python -m opspec.runtime.bench``: measure generated packages."""

from opspec.runtime.bench.suite import main

raise SystemExit(main())
