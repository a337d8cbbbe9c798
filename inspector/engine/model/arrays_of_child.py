"""Reading a file in a process of its own: some readers end their process at damaged files, and others never end.

The child gets the file, the bytes that its arrays may take, and the file into which it writes them as an .npz (a0, a1,
…); it prints what else it has to say as JSON. Both are read as such; nothing is unpickled.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.named_arrays import MISSING, as_tensor, most_bytes
from inspector.engine.model.npy import read_npy
from inspector.records.json_text import read_json
from inspector.records.unreadable import in_plain_words

LEAST_SECONDS, BYTES_A_SECOND = 30.0, 5e6
"""How long a child may take: the first, and a second for so many bytes. HDF5 never ends at some damaged files."""


def read_in_child(
    path: Path, script: str, library: str, what: str, target: IO[bytes], *, read: Path | None = None
) -> Any:
    """Run `script` on a file, or on `read`, a part of it, and return what it printed; its arrays are in `target`.

    Raises InputError for damaged files, and without the library.
    """
    if importlib.util.find_spec(library) is None:
        raise InputError(MISSING.format(path.name, what, library))
    seconds = LEAST_SECONDS + path.stat().st_size / BYTES_A_SECOND
    asked = [
        sys.executable, "-I", "-c", script, str((read or path).resolve()), str(most_bytes(path)), target.name,
    ]  # fmt: skip
    try:
        done = subprocess.run(asked, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise InputError(f"{path.name} could not be read as {what} in {seconds:.0f} seconds; it is damaged.") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = in_plain_words(said[-1]) if said and done.returncode > 0 else f"the reader of {library} ended at it"
        raise InputError(f"{path.name} is damaged or no {what.partition(' ')[2]}: {why}.")
    return read_json(done.stdout)


def arrays_in(target: IO[bytes], count: int, path: Path) -> Iterator[Tensor | None]:
    """The arrays that a child wrote for a file, in its order; None for those that are no numbers."""
    with zipfile.ZipFile(target.name) as archive:
        for number in range(count):
            member = archive.getinfo(f"a{number}.npy")
            with archive.open(member) as stream:
                yield as_tensor(read_npy(stream, member.file_size, most_bytes(path)))


def own_file() -> IO[bytes]:
    """A file of its own for the arrays, removed when it is closed."""
    return tempfile.NamedTemporaryFile(suffix=".npz")
