"""Folders of Hugging Face's: the index of the shards, the trainer's state and the description, and what is refused of them."""

from __future__ import annotations

from pathlib import Path

import torch
from checkpoints_read import read_all
from made_checkpoints import weights
from safetensors.torch import save
from target import Target

from inspector.engine.errors import InputError
from inspector.engine.opening.hugging_face.description import is_model_folder, read_description
from inspector.engine.session.sweep.candidates import checkpoints_in

NAMES = ("model.safetensors.index.json", "trainer_state.json", "config.json", "tokenizer_config.json")
SHARD = save({name: torch.clone(one) for name, one in weights().items()})


def attempt(data: bytes, scratch: Path) -> None:
    """The four files stand in the input one after the other, with a zero byte between."""
    folder = scratch / "checkpoint-5"
    folder.mkdir()
    for name, content in zip(NAMES, data.split(b"\0"), strict=False):
        (folder / name).write_bytes(content)
    (folder / "one.safetensors").write_bytes(SHARD)
    problem: InputError | None = None
    for read in (read_all, _described, _listed):
        try:
            read(folder)
        except InputError as refusal:
            problem = refusal
    if problem is not None:
        raise problem


def _described(folder: Path) -> None:
    if is_model_folder(folder):
        read_description(folder)


def _listed(folder: Path) -> None:
    checkpoints_in([str(folder.parent)])


TARGET = Target(
    "folders of Hugging Face's: index, state, description",
    ("inspector.engine.loaders", "inspector.engine.opening", "inspector.engine.session.sweep"),
    attempt,
    (InputError,),
)
