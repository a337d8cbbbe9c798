"""Whether this machine has a display, found out without loading Qt."""

from __future__ import annotations

import os
import sys


def has_display() -> bool:
    """True when a window could be shown: always on Windows and macOS, with a display server elsewhere."""
    if os.environ.get("QT_QPA_PLATFORM", "") in ("offscreen", "minimal"):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
