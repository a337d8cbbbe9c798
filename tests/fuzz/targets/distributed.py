"""`.metadata` of torch.distributed checkpoints."""

from __future__ import annotations

from pathlib import Path

from checkpoints_read import read_all
from target import CORPUS, Target

from inspector.engine.errors import InputError

PARTS = CORPUS.parent / "beside" / "__0_0.distcp"


def attempt(data: bytes, scratch: Path) -> None:
    """Read the folder."""
    folder = scratch / "c"
    folder.mkdir()
    (folder / ".metadata").write_bytes(data)
    (folder / PARTS.name).write_bytes(PARTS.read_bytes())
    read_all(folder)


TARGET = Target(
    "folders of torch.distributed", ("inspector.engine.loaders", "inspector.engine.model"), attempt, (InputError,)
)
