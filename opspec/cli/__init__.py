"""The command line. Each command lives in its own file and imports what it needs when it runs."""

from __future__ import annotations

import gc
import sys
from argparse import Namespace
from collections.abc import Sequence

from opspec.diagnostics import Failure


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command: 0 yes, 1 a check says no, 2 the input is wrong, 130 interrupted."""
    if argv is None:
        gc.set_threshold(200_000, 20, 50)  # a command is short, and most of what it makes stays
    from opspec.cli.parser import build_parser

    parser = build_parser()
    options = parser.parse_args(argv)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return int(options.run(options))
    except Failure as failure:
        return _refuse(failure, options)
    except (RecursionError, MemoryError) as error:
        from opspec.cli.exhausted import exhausted

        return _refuse(exhausted(error), options)
    except KeyboardInterrupt:
        print("interrupted; files written so far are whole", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    finally:
        if argv is None:
            gc.freeze()  # the process ends here: what is left need not be searched for cycles


def _refuse(failure: Failure, options: Namespace) -> int:
    """Say what is wrong with the input, in the format that was asked for."""
    from opspec.diagnostics.render import render_github, render_json, render_text

    show = {"json": render_json, "github": render_github}.get(getattr(options, "format", "text"), render_text)
    print(show(failure.diagnostics), file=sys.stderr)
    return 2
