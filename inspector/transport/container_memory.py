"""What a container leaves: the tightest limit of memory of the control groups that this process is in.

Source: Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current, memory.stat) and cgroup-v1/memory.rst of
Linux. Pages of files that were not used lately (inactive_file) are given back before a limit is reached.
"""

from __future__ import annotations

from pathlib import Path

GROUPS = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")
NEW = ("memory.max", "memory.current", "inactive_file")
OLD = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
NO_LIMIT = 1 << 60
"""Version 1 says a number as large as this where there is none."""


def left_in_container() -> int | None:
    """Bytes that may still be taken before a limit is reached; None where there is none, or no control groups."""
    try:
        lines = GROUPS.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    left = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        base, names = (ROOT / "memory", OLD) if controllers else (ROOT, NEW)
        own = base / path.lstrip("/")
        folders = [own, *(parent for parent in own.parents if parent.is_relative_to(base))]
        left += [found for folder in folders if (found := _left(folder, names)) is not None]
    return min(left, default=None)


def _left(folder: Path, names: tuple[str, str, str]) -> int | None:
    limit, used = (_number(folder / name) for name in names[:2])
    if limit is None or used is None or limit >= NO_LIMIT:
        return None
    return max(0, limit - used + _in_table(folder / "memory.stat", names[2]))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # there is none, or it says "max"
        return None


def _in_table(path: Path, name: str) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)
    except (OSError, ValueError, IndexError):
        return 0
