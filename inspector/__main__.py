"""`python -m inspector` does what the command `inspector` does."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Run the command. Python puts the working directory first in `sys.path`; no module is taken from there."""
    here = Path.cwd()
    if not sys.flags.safe_path and Path(sys.path[0]) == here != Path(__file__).parents[1]:
        del sys.path[0]
    from inspector.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
