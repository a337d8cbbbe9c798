"""Who writes a capture: a lease of process id and start time, so that "running" and "unfinished" can be
distinguished."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

MOST_PID = 1 << 31
"""No system numbers its processes beyond it; a forged one may have 400 digits."""
_GIVEN_UP: set[str] = set()
"""Tokens of this process' leases whose rows could not be removed, because the disk is full to the last byte. Other
processes take such a capture for one that is written, until this process ends."""


def own_lease() -> tuple[int, str, str]:
    """(pid, mark, random token) for a lease row; the mark is the start mark of this process, "#" and the token."""
    token = secrets.token_hex(8)
    return os.getpid(), f"{start_mark(os.getpid())}#{token}", token


def give_up(token: str) -> None:
    """A lease of this process does not hold any more, though its row is still there."""
    _GIVEN_UP.add(token)


def start_mark(pid: int) -> str:
    """Something that differs when a pid is used again: boot id and start ticks on Linux, "" elsewhere."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except (OSError, IndexError):
        return ""
    return f"{boot}:{ticks}"


def is_elsewhere(mark: str) -> bool:
    """Whether a lease was taken on another machine, whose processes cannot be seen here; only Linux knows."""
    boot, own = mark.partition("#")[0].partition(":")[0], start_mark(os.getpid()).partition(":")[0]
    return bool(boot and own) and boot != own


def is_alive(pid: int, mark: str) -> bool:
    """True when the process that took the lease still runs; a mark of format 1 has no token."""
    mark, _, token = mark.partition("#")
    if not 0 < pid < MOST_PID or token in _GIVEN_UP:
        return False
    if mark:
        return start_mark(pid) == mark and not _is_zombie(pid)
    return _exists(pid)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True


def _exists(pid: int) -> bool:
    if sys.platform == "win32":
        return _exists_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _exists_on_windows(pid: int) -> bool:
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    handle = kernel.OpenProcess(0x1000, False, pid)
    if not handle:
        return False
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == 259
