"""Reading a MATLAB file in a process of its own: scipy's reader ends its process at some damaged files.

The child writes an .npz to its standard output, which is read as such; nothing is unpickled.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from inspector.engine.errors import InputError
from inspector.engine.model.named_arrays import MISSING, most_bytes

SECONDS = 300
SCRIPT = """
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
sys.stdout.buffer.write("\\n".join(arrays).encode())
"""


def read_matlab(path: Path, target: IO[bytes]) -> list[str]:
    """Write the arrays of numbers of a file into `target`, an open file with a name, as an .npz (a0, a1, …), and return
    their names. Raises InputError for damaged files, or without scipy."""
    if importlib.util.find_spec("scipy") is None:
        raise InputError(MISSING.format(path.name, "a MATLAB file", "scipy"))
    asked = [sys.executable, "-I", "-c", SCRIPT, str(path.resolve()), str(most_bytes(path)), target.name]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise InputError(f"{path.name} could not be read as a MATLAB file in {SECONDS} seconds.") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1][:200].rstrip(".") if said and done.returncode > 0 else "scipy's reader ended at it"
        raise InputError(f"{path.name} is damaged or no MATLAB file: {why}.")
    return done.stdout.decode(errors="replace").split("\n") if done.stdout else []


def own_file() -> IO[bytes]:
    """A file of its own for the arrays, removed when it is closed."""
    return tempfile.NamedTemporaryFile(suffix=".npz")
