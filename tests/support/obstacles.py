"""What may stand in the place of a file, and would hang, crash or fill the memory of a program that opens it."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import commands

SAID = {
    "pipe": "it is a named pipe, not an ordinary file",
    "socket": "it is a socket, not an ordinary file",
    "device": "it is a device, not an ordinary file",
    "folder": "it is a folder, not an ordinary file",
    "circle": "Too many levels of symbolic links",
}
"""Kind → what is said of it."""


def put(kind: str, path: Path) -> None:
    """Put something of a kind in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        holder = socket.socket(socket.AF_UNIX)
        with contextlib.chdir(path.parent):  # names of sockets are at most 107 bytes long
            holder.bind(path.name)
        holder.close()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)


def call(*arguments: str, cwd: Path, expect: int) -> str:
    """What a command that must not hang says: one sentence on stderr, and what stands on stdout."""
    done = commands.call(*arguments, cwd=cwd, expect=expect)
    told = done.stderr.strip()
    assert len(told.splitlines()) <= 1 and "Traceback" not in told, told
    return told + done.stdout
