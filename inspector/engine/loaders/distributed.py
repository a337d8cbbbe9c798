"""Folders of torch.distributed.checkpoint, which are refused: the description of their tensors is a pickle.

`.metadata` says which file of the folder holds which part of each tensor. torch writes it with Python's own pickle, in
a protocol that torch's unpickler for weights (`weights_only`) does not read, and torch's reader unpickles it without
any restriction. So no way to read one is safe from running code.
"""

from __future__ import annotations

from pathlib import Path

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.registries import LOADERS

METADATA = ".metadata"


class Distributed:
    """Recognised, so that the message says what to do."""

    title = "Folder of torch.distributed.checkpoint"
    summary = "Refused: its .metadata is a pickle that torch cannot read weights-only; convert it to one file first."
    suffixes = ()
    folders = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """A folder with the description of a distributed checkpoint."""
        return path.is_dir() and (path / METADATA).is_file()

    def load(self, path: Path) -> State:
        """Raises InputError with the command that converts it."""
        raise InputError(
            f"{path.name} is a torch.distributed checkpoint: its {METADATA} is a pickle that torch reads only by "
            "running what it says, so it is refused. Convert one that you trust: python -m "
            f"torch.distributed.checkpoint.format_utils dcp_to_torch {path.name} {path.name}.pt"
        )


LOADERS.register("distributed")(Distributed())
