"""Whose code may run: a user's Python file is asked about once, and remembered by the hash of its content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import platformdirs


def store() -> Path:
    """The file that remembers, in the user's configuration folder."""
    return Path(platformdirs.user_config_dir("inspector", appauthor=False)) / "trusted.json"


def digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_trusted(path: Path) -> bool:
    """True when the user has agreed to run exactly this content before."""
    try:
        return digest(path) in _read()
    except OSError:
        return False


def trust(path: Path) -> None:
    """Remember that the user agreed to run this content; the name is kept only for people who read the file."""
    known = _read()
    known[digest(path)] = str(path)
    target = store()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".part")
    partial.write_text(json.dumps(known, indent=1), encoding="utf-8")
    partial.replace(target)


def _read() -> dict[str, str]:
    try:
        known = json.loads(store().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}
