"""Makes a capture, lists it and exports numbers where importing Qt fails, as on a cluster node without its libraries.

Run with the interpreter that has inspector installed. Ends with 1 where any step needs Qt.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCKED = "raise ImportError('Qt is blocked here')\n"
COMMANDS = (
    ("run", "char-gru", "--out", "{folder}/a.inspect"),
    ("list", "{folder}/a.inspect"),
    ("export", "{folder}/a.inspect", "--channel", "rnn.l0:h", "--to", "{folder}/h.npy"),
    ("diagnose", "{folder}/a.inspect", "--to", "{folder}/a.html"),
    ("pack", "{folder}/a.inspect"),
)


def main() -> int:
    """Run the commands with packages in front of the path that refuse to be imported."""
    with tempfile.TemporaryDirectory() as folder:
        for package in ("PySide6", "shiboken6", "pyqtgraph"):
            blocked = Path(folder) / "blocked" / package
            blocked.mkdir(parents=True)
            (blocked / "__init__.py").write_text(BLOCKED, encoding="utf-8")
        path = os.pathsep.join(filter(None, (str(Path(folder) / "blocked"), os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": path}
        qt = subprocess.run([sys.executable, "-c", "import PySide6"], env=environment, capture_output=True)
        if qt.returncode == 0:
            sys.stderr.write("Qt was not blocked, so this shows nothing.\n")
            return 1
        for command in COMMANDS:
            words = [word.format(folder=folder) for word in command]
            done = subprocess.run([sys.executable, "-m", "inspector", *words], env=environment, check=False)
            if done.returncode:
                sys.stderr.write(f"inspector {' '.join(words)} ended with {done.returncode}.\n")
                return 1
        sys.stdout.write("A capture was made, listed, exported and packed without Qt.\n")
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
