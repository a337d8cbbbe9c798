"""Which iterations a watched training kept to be run again: the files in the folder `spikes` of a capture.

Only the header of a file is read here: eight bytes with its length, then JSON (the safetensors format).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.capture.regular import open_regular
from inspector.records.json_text import read_json

FOLDER = "spikes"
SUFFIX = ".safetensors"
KEY = "inspector"
"""The entry of the header's metadata that has the rest, as JSON."""
MOST_HEADER = 32 << 20
MOST_FILES = 200


@dataclass(frozen=True, slots=True)
class SpikeFile:
    """One kept iteration: its number, and why it was kept."""

    path: Path
    iteration: int
    text: str = ""


def spike_files(capture: Path) -> list[SpikeFile]:
    """Those that can be read, in the order in which they were written."""
    found = []
    for path in sorted((capture / FOLDER).glob(f"*{SUFFIX}"))[:MOST_FILES]:
        try:
            about = metadata_of(path)
        except (OSError, ValueError):
            continue
        found.append(SpikeFile(path, about["iteration"], str(about.get("text", ""))[:500]))
    return found


def spike_file_of(capture: Path, iteration: float) -> SpikeFile | None:
    """The file that kept an iteration; None where none did."""
    return next((one for one in spike_files(capture) if one.iteration == iteration), None)


def metadata_of(path: Path) -> dict[str, Any]:
    """What the file says of the iteration, which has a number. Raises OSError, and ValueError for any other file."""
    with open_regular(path) as file:
        lead = file.read(8)
        (length,) = struct.unpack("<Q", lead) if len(lead) == 8 else (0,)
        if not 2 <= length <= MOST_HEADER:
            raise ValueError(f"{path.name} is no file of a kept iteration")
        header = file.read(length)
    try:
        told = read_json(header)["__metadata__"][KEY]
        about = read_json(told)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path.name} is no file of a kept iteration") from None
    iteration = about.get("iteration") if isinstance(about, dict) else None
    if type(iteration) is not int or not 0 <= iteration < 1 << 53:
        raise ValueError(f"{path.name} names no iteration")
    found: dict[str, Any] = about
    return found
