"""Arrays of MATLAB by name: .mat up to version 7, by scipy. Cells, structures and text are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.model.named_arrays import as_tensor, needed, require_room
from inspector.engine.registries import LOADERS

SIZES = {"double": 8, "single": 4, "int64": 8, "uint64": 8, "int32": 4, "uint32": 4, "int16": 2, "uint16": 2}
"""Bytes of a number, by MATLAB's name of its type; others have one."""


class MatlabFile:
    """Arrays as MATLAB's save and scipy.io.savemat write them; every one has two axes at least."""

    title = "MATLAB"
    summary = "Arrays by name in .mat up to version 7 (extra [formats])."
    suffixes = (".mat",)
    magic = (b"MATLAB 5.0",)

    def sniff(self, path: Path, head: bytes) -> bool:
        """The text at the beginning of version 5 to 7."""
        return head.startswith(self.magic)

    def load(self, path: Path) -> State:
        """All arrays of numbers. Raises InputError for a damaged file, or without scipy."""
        io: Any = needed(path, "a MATLAB file", "scipy.io")
        try:
            listed = io.whosmat(str(path))
            require_room(path, (_bytes(shape, kind) for _, shape, kind in listed))
            plain = [name for name, _, kind in listed if kind in SIZES or kind in ("int8", "uint8", "logical")]
            found = io.loadmat(str(path), variable_names=plain, chars_as_strings=False)
        except InputError:
            raise
        except Exception as problem:  # noqa: BLE001 - scipy raises many kinds for damaged files
            said = " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
            raise InputError(f"{path.name} is damaged or no MATLAB file: {said}.") from None
        tensors = {name: as_tensor(found[name]) for name in plain if name in found}
        return State({name: one for name, one in tensors.items() if one is not None}, "MATLAB arrays")


def _bytes(shape: tuple[int, ...], kind: str) -> int:
    count = SIZES.get(kind, 1)
    for size in shape:
        count *= max(0, int(size))
    return count


LOADERS.register("matlab")(MatlabFile())
