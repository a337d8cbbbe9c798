"""Arrays of MATLAB by name: .mat up to version 7 by scipy, 7.3 by h5py. Cells, text and sparse arrays are left out, and
structures up to version 7; those of 7.3 are read by the names of their fields."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.model.arrays_of_child import arrays_in, own_file
from inspector.engine.model.matlab_child import read_matlab
from inspector.engine.registries import LOADERS


class MatlabFile:
    """Arrays as MATLAB's save and scipy.io.savemat write them; every one has two axes at least."""

    title = "MATLAB"
    summary = "Arrays by name in .mat, 7.3 too (extra [formats])."
    suffixes = (".mat",)
    magic = (b"MATLAB 5.0", b"MATLAB 7.3")

    def sniff(self, path: Path, head: bytes) -> bool:
        """The text at the beginning of version 5 to 7, and of 7.3."""
        return head.startswith(self.magic)

    def load(self, path: Path) -> State:
        """All arrays of numbers. Raises InputError for a damaged file, or without scipy or h5py."""
        tensors: dict[str, Tensor] = {}
        with own_file() as target:
            names = read_matlab(path, target)
            for name, found in zip(names, arrays_in(target, len(names), path), strict=True):
                if found is not None:
                    tensors[name] = found
        if not tensors:
            raise InputError(f"{path.name} holds no arrays of numbers.")
        return State(tensors, "MATLAB arrays")


LOADERS.register("matlab")(MatlabFile())
