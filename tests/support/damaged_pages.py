"""Captures whose pages are harmed on purpose."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from inspector.capture.layout import INDEX


def pages_of(path: Path) -> dict[str, list[int]]:
    """Channel → the ids of its pages."""
    index = sqlite3.connect(path / INDEX)
    rows = index.execute(
        "SELECT c.name, p.id FROM pages p JOIN channels c ON c.id = p.channel ORDER BY p.id"
    ).fetchall()
    index.close()
    found: dict[str, list[int]] = {}
    for name, page in rows:
        found.setdefault(name, []).append(page)
    return found
