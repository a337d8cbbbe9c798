"""Reading a MATLAB file in a process of its own: the readers of scipy and HDF5 end their process at some damaged files.

The child writes an .npz to its standard output, which is read as such; nothing is unpickled.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from inspector.capture.regular import open_regular
from inspector.engine.model.arrays_of_child import read_in_child

SCRIPT = """
import json
import sys
import numpy as np
import scipy.io
path, most = sys.argv[1], int(sys.argv[2])
sizes = {"double": 8, "single": 4, "int64": 8, "uint64": 8, "int32": 4, "uint32": 4, "int16": 2, "uint16": 2,
         "int8": 1, "uint8": 1, "logical": 1}
listed = scipy.io.whosmat(path)
claimed = 0
for _, shape, kind in listed:
    count = sizes.get(kind, 1)
    for size in shape:
        count *= max(0, int(size))
    claimed += count
if claimed > most:
    sys.exit(f"it asks for {claimed:,} bytes of memory, far more than it has")
plain = [name for name, _, kind in listed if kind in sizes]
found = scipy.io.loadmat(path, variable_names=plain, chars_as_strings=False) if plain else {}
arrays = {name: found[name] for name in plain if name in found}
if any(one.dtype.hasobject for one in arrays.values()):
    sys.exit("it holds objects")
with open(sys.argv[3], "wb") as file:
    np.savez(file, **{f"a{n}": one for n, one in enumerate(arrays.values())})
print(json.dumps(list(arrays)))
"""

HDF5 = b"MATLAB 7.3"
"""How files of `save -v7.3` begin: a block of text before the HDF5 file."""
HDF5_SCRIPT = """
import json
import sys
import h5py
import numpy as np
path, most = sys.argv[1], int(sys.argv[2])
NUMBERS = {"double", "single", "int64", "uint64", "int32", "uint32", "int16", "uint16", "int8", "uint8", "logical"}
arrays, claimed = {}, 0

def kind_of(one):
    said = one.attrs.get("MATLAB_class", b"")
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)

def value(one):
    if one.attrs.get("MATLAB_empty", 0):  # what is stored is its shape
        return np.zeros([int(size) for size in one[()].ravel()[:32]])
    found = one[()]
    if found.dtype.names == ("real", "imag"):
        found = found["real"] + 1j * found["imag"]
    return found.T  # MATLAB's arrays begin with the first axis, and HDF5's with the last

def visit(group, above, depth):
    global claimed
    for name in group:
        if name.startswith("#") or not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue  # what cells refer to, and links, which may lead to other files
        one, full = group[name], above + name
        if isinstance(one, h5py.Group):
            if kind_of(one) in ("struct", "") and "MATLAB_sparse" not in one.attrs and depth < 16:
                visit(one, full + ".", depth + 1)
            continue
        if not isinstance(one, h5py.Dataset) or one.external or one.is_virtual or one.shape is None:
            continue
        plain = one.dtype.kind in "biuf" or one.dtype.names == ("real", "imag")
        if not plain or (kind_of(one) or "double") not in NUMBERS:
            continue
        claimed += int(one.size) * int(one.dtype.itemsize)
        empty = one.attrs.get("MATLAB_empty", 0)
        if claimed > most:
            sys.exit(f"it asks for {claimed:,} bytes of memory, far more than it has")
        if full in arrays or (empty and 0 not in one[()]):
            sys.exit("it holds two arrays of one name, or an empty one that is not empty")
        if len(arrays) >= 50_000:
            sys.exit("it holds more than 50,000 arrays")
        arrays[full] = value(one)

with h5py.File(path, "r") as file:
    visit(file, "", 0)
with open(sys.argv[3], "wb") as file:
    np.savez(file, **{f"a{n}": one for n, one in enumerate(arrays.values())})
print(json.dumps(list(arrays)))
"""


def read_matlab(path: Path, target: IO[bytes]) -> list[str]:
    """Write the arrays of numbers of a file into `target`, an open file with a name, as an .npz (a0, a1, …), and return
    their names. Raises InputError for damaged files, or without scipy (for version 7.3: h5py)."""
    with open_regular(path) as raw:
        new = raw.read(len(HDF5)) == HDF5
    told = read_in_child(path, HDF5_SCRIPT if new else SCRIPT, "h5py" if new else "scipy", "a MATLAB file", target)
    return [str(name) for name in told]
