"""Entry point: checks that the native core is there, then hands over to the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run lunscope; a missing native core is one line and exit 1, not a traceback."""
    try:
        import engine  # noqa: F401, PLC0415
    except ImportError as missing:
        sys.exit(str(missing))
    from tui.cli import run_cli  # noqa: PLC0415

    sys.exit(run_cli())
