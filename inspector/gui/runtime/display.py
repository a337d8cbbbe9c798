"""Whether this machine has a display that answers, found out without loading Qt.

The name of a display outlives it: a terminal that was left open over night, a multiplexer, a tunnel that was closed. Qt
ends the process where nobody answers, also one that only draws into files.
"""

from __future__ import annotations

import atexit
import os
import re
import socket
import sys
from pathlib import Path

_X_DISPLAY = re.compile(r"(?:[a-z]+/)?(?P<host>[^:]*|\[?[0-9a-fA-F:]+\]?):(?P<number>\d{1,5})(?:\.\d+)?\Z")
_X_PORT, _PATIENCE = 6000, 2.0
"""The port of display 0; seconds for one that is reached over the network."""
_held: list[socket.socket] = []
"""What was asked stays connected: Xvfb starts anew when its last client leaves, and answers nobody meanwhile."""


@atexit.register
def _let_go() -> None:
    while _held:
        _held.pop().close()


def has_display() -> bool:
    """True when a window could be shown: always on Windows and macOS, with a display server that answers elsewhere."""
    plugin = os.environ.get("QT_QPA_PLATFORM", "")
    if plugin in ("offscreen", "minimal"):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    wayland, x = os.environ.get("WAYLAND_DISPLAY", ""), os.environ.get("DISPLAY", "")
    if plugin and not plugin.startswith(("xcb", "wayland")):  # it shows windows elsewhere, if anywhere
        return bool(wayland or x)
    return _wayland_answers(wayland) or _x_answers(x)


def _wayland_answers(name: str) -> bool:
    return bool(name) and _answers(str(Path(os.environ.get("XDG_RUNTIME_DIR", "/"), name)))


def _x_answers(name: str) -> bool:
    """A path is no place of its own (of macOS' servers): Qt may know more of it."""
    found = _X_DISPLAY.match(name)
    if found is None:
        return name.startswith("/")
    host, number = found["host"].strip("[]"), int(found["number"])
    if host in ("", "unix"):
        place = f"/tmp/.X11-unix/X{number}"
        if _answers(place) or (sys.platform == "linux" and _answers(f"\0{place}")):
            return True
    try:
        there = ("localhost" if host in ("", "unix") else host, _X_PORT + number)
        _held.append(socket.create_connection(there, _PATIENCE))
    except (OSError, OverflowError, UnicodeError):
        return False
    return True


def _answers(place: str) -> bool:
    """Whether somebody listens at a socket of this machine."""
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(_PATIENCE)
    try:
        one.connect(place)
    except (OSError, ValueError):  # also a name that is longer than a socket's may be
        one.close()
        return False
    _held.append(one)
    return True
