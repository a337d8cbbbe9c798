"""`python -m inspector` does what the command `inspector` does."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


def main() -> int:
    """Run the command. Python puts the working directory first in `sys.path`; no module is taken from there."""
    try:
        here = Path.cwd()
    except OSError:  # every relative path, and the worker, would fail with an error of its own
        with suppress(OSError, AttributeError):
            sys.stderr.write("The folder in which this was started is not there any more: change to another one.\n")
        return 2
    if not sys.flags.safe_path and Path(sys.path[0]) == here != Path(__file__).parents[1]:
        del sys.path[0]
    if sys.argv[1:] in ([], ["demo"]):
        _show_at_once(demo=len(sys.argv) > 1)
    from inspector.cli import main as command

    code = command()
    if "PySide6.QtWidgets" not in sys.modules:
        return code
    from inspector.transport.last_threads import end_with

    return end_with(code)


def _show_at_once(*, demo: bool) -> None:
    """The window is wanted: its card is shown before the commands are imported, where Qt can be."""
    from inspector.gui.runtime.signals import end_at_once

    end_at_once()
    try:
        from inspector.gui.window.first_frame import import_behind_it
    except ImportError:
        return  # the command says what is missing
    import_behind_it(demo=demo)


if __name__ == "__main__":
    sys.exit(main())
