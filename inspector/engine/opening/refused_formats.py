"""Files that no loader here reads, recognised by their first bytes or their names: what they are, and what to do
instead.

They are checked after the loaders, so that a loader for such a format is one new file and takes precedence.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from inspector.capture.regular import open_regular

PLAIN = "which is not read; save a state dict instead"
CODE = "not a checkpoint; opening it would run code. Save the state dict instead: torch.save(model.state_dict(), path)"


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is rejected.

    Attributes:
        what: with its article.
        suffixes, magic: names and first bytes of its files.
        member: the name of a file that a zip archive of this format contains.
        advice: why not, and what to do.
        loader: key of the loader that opens such files as models.
    """

    what: str
    suffixes: tuple[str, ...] = ()
    magic: tuple[bytes, ...] = ()
    member: str = ""
    advice: str = PLAIN
    loader: str = ""


FORMATS = (
    Format("a GGUF file", (".gguf",), (b"GGUF",)),
    Format("an HDF5 file", (".h5", ".hdf5"), (b"\x89HDF\r\n\x1a\n",)),
    Format("a Keras file", (".keras",)),
    Format("an ONNX graph", (".onnx",), loader="onnx"),
    Format(
        "a TorchScript program",
        (".jit", ".torchscript", ".ptl"),
        member="constants.pkl",
        advice=CODE,
        loader="torchscript",
    ),
    Format("a torch.export program", (".pt2",), member="archive_format", advice=CODE, loader="torch-export"),
    Format("a torch.export program", member="model_weights_config.json", advice=CODE, loader="torch-export"),
    Format("a torch.package program", member="extern_modules", advice=CODE),
)
ONNX = next(known for known in FORMATS if ".onnx" in known.suffixes)
ONNX_FIELDS = (b"\x12", b"\x1a", b"\x3a", b"\x42")
"""What may follow the version in an ONNX file: producer, its version, the graph, the operator sets."""


def by_content(path: Path, head: bytes) -> Format | None:
    """The format by a file's first bytes, whatever its name; None when it may be a checkpoint."""
    for known in FORMATS:
        if any(head.startswith(magic) for magic in known.magic):
            return known
    if head[:1] == b"\x08" and 1 <= (head[1] if len(head) > 1 else 0) <= 20 and head[2:3] in ONNX_FIELDS:
        return ONNX
    members = _members(path) if head.startswith(b"PK") else frozenset()
    return next((known for known in FORMATS if known.member and known.member in members), None)


def by_name(path: Path) -> Format | None:
    """The format by a file's name."""
    return next((known for known in FORMATS if path.suffix.lower() in known.suffixes), None)


def _members(path: Path) -> frozenset[str]:
    """Names in a zip archive, without their folders; none of a damaged one, which its loader will report."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return frozenset(name.rpartition("/")[2] for name in archive.namelist())
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, IndexError, NotImplementedError):
        return frozenset()
