"""Where a window listens for its worker: in the folder of temporary files, or in a short one where its name is long.

The name of a local socket has some 108 bytes (`man 7 unix`); a folder of temporary files may be longer (`TMPDIR` of a
cluster's job, of a test).
"""

from __future__ import annotations

import secrets
import sys
from multiprocessing.connection import Listener
from pathlib import Path

SHORT = Path("/tmp")
"""The name of the socket there cannot be guessed, and its key is asked for."""


def listen(key: bytes) -> Listener:
    """A listener that only those with the key can talk to. Raises OSError where there is no place for it."""
    if sys.platform == "win32":
        return Listener(None, "AF_PIPE", authkey=key)
    try:
        return Listener(None, "AF_UNIX", authkey=key)
    except OSError:
        address = SHORT / f"inspector-{secrets.token_hex(16)}"
        listener = Listener(str(address), "AF_UNIX", authkey=key)
        address.chmod(0o600)
        return listener
