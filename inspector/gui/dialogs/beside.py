"""Checkpoints that lie beside a model's file: in its folder, and in the folders below it, one deep."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from inspector.capture.layout import INDEX
from inspector.capture.regular import path_of
from inspector.records.dates import at_local

MOST, MOST_LOOKED_AT = 50, 5_000
"""Checkpoints that are listed, and files that are looked at: a data set may lie beside a model too."""


def checkpoints_beside(file: str, suffixes: Sequence[str]) -> list[tuple[Path, str]]:
    """Each with how it is listed (its path from the model's folder, and when it was written), newest first."""
    folder = path_of(file).parent
    found: list[tuple[float, Path]] = []
    left = MOST_LOOKED_AT
    for place in (folder, *_below(folder)):
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        break
                    if entry.name.lower().endswith(tuple(suffixes)) and entry.is_file():
                        found.append((entry.stat().st_mtime, Path(entry.path)))
        except OSError:
            continue
    found.sort(key=lambda one: (-one[0], one[1].name))
    return [(path, f"{path.relative_to(folder)}  {at_local(at)}") for at, path in found[:MOST]]


def _below(folder: Path) -> list[Path]:
    """Its folders, but for captures: their pages end as some checkpoints do."""
    try:
        folders = (one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
        return sorted(one for one in folders if not (one / INDEX).exists())[:MOST]
    except OSError:
        return []
