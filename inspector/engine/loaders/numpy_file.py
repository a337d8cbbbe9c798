"""Arrays of numpy by name: .npz, and .npy with the name of its file. Nothing is unpickled.

`suffixes` has none: a file so called that is dropped on the window is a sequence.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from torch import Tensor

from inspector.capture.regular import open_regular
from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.model.named_arrays import MOST_TENSORS, as_tensor, dotted, most_bytes, require_room
from inspector.engine.model.npy import MAGIC, read_npy
from inspector.engine.model.one_directory import require_plain
from inspector.engine.registries import LOADERS
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

MOST_QUOTED = 200
"""Characters of what a library says: it quotes a header, which may be of any length."""
BAD = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, IndexError, RuntimeError)


class NumpyFile:
    """Weights that numpy.savez or numpy.save wrote."""

    title = "numpy"
    summary = "Arrays by name in .npz, or one in .npy; nothing is unpickled."
    suffixes: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> bool:
        """The magic number of .npy, or a zip archive of nothing but .npy."""
        if head.startswith(MAGIC):
            return True
        if not head.startswith(b"PK"):
            return False
        try:
            with open_regular(path) as file, zipfile.ZipFile(file) as archive:
                names = archive.namelist()
        except BAD:
            return False
        return bool(names) and all(name.endswith(".npy") for name in names)

    def load(self, path: Path) -> State:
        """All arrays of numbers; text is left out. Raises InputError for damaged files, objects and double names."""
        try:
            with open_regular(path) as file:
                if file.read(len(MAGIC)) == MAGIC:
                    file.seek(0)
                    found = as_tensor(read_npy(file, path.stat().st_size, most_bytes(path)))
                    tensors = {path.stem.replace(".", "_"): found} if found is not None else {}
                else:
                    tensors = _members(path)
        except InputError:
            raise
        except BAD as problem:
            raise InputError(f"{path.name} is damaged or holds no plain arrays: {why_unreadable(problem)}.") from None
        if not tensors:
            raise InputError(f"{path.name} holds no arrays of numbers.")
        return State(tensors, "numpy arrays")


def _members(path: Path) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > MOST_TENSORS:
            raise InputError(f"{path.name} declares {len(members)} arrays; at most {MOST_TENSORS} are read.")
        require_plain(path, members)
        require_room(path, (one.file_size for one in members))
        for member in members:
            name = dotted(member.filename.removesuffix(".npy"))
            if name in tensors:
                raise InputError(f"{path.name} holds two arrays named {shortened(name, 80)!r}.")
            with archive.open(member) as stream:
                found = as_tensor(read_npy(stream, member.file_size, most_bytes(path)))
            if found is not None:
                tensors[name] = found
    return tensors


LOADERS.register("numpy")(NumpyFile())
