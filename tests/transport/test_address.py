"""Where a window listens for its worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import CHECKOUT

PROGRAM = """
import os, stat, threading
from multiprocessing.connection import Client
from inspector.transport.address import listen

listener = listen(b"key")
at, heard = listener.address, []
accepts = threading.Thread(target=lambda: heard.append(listener.accept().recv()))
accepts.start()
with Client(at, authkey=b"key") as one:
    one.send("here")
    accepts.join(30)
private = not (os.stat(at).st_mode & 0o077) or not (os.stat(os.path.dirname(at)).st_mode & 0o077)
listener.close()
print(heard, private, os.path.exists(at), at)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a named pipe has no folder")
@pytest.mark.parametrize("letters", [1, 120])
def test_a_worker_is_met_whatever_the_length_of_the_folder_of_temporary_files(letters: int, tmp_path: Path) -> None:
    """Nobody else may use the socket, and it is gone at the end."""
    folder = tmp_path / ("t" * letters)
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=CHECKOUT,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(CHECKOUT)}, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith("['here'] True False ") and not done.stderr, (done.stdout, done.stderr)
    assert letters == 1 or str(folder) not in done.stdout
    assert not list(folder.iterdir())
