"""Folders that Hugging Face's Trainer and `save_pretrained` write (`checkpoint-500`): weights and a trainer's state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.capture.regular import is_a_file, open_regular
from inspector.engine.contracts import MAX_STEP, State
from inspector.engine.model.inside_folder import require_inside
from inspector.engine.registries import LOADERS
from inspector.records.json_text import read_json

WEIGHTS = {
    "model.safetensors": "safetensors",
    "model.safetensors.index.json": "sharded",
    "pytorch_model.bin": "torch",
    "pytorch_model.bin.index.json": "sharded",
}
"""Name of the file → key of the loader that reads it, in the order in which Hugging Face looks for them."""
TRAINER, STEP = "trainer_state.json", "global_step"
MAX_TRAINER = 256 << 20


class HuggingFace:
    """The weights of a folder by the loader of their format; the step from the trainer's state beside them."""

    title = "Folder of Hugging Face's"
    summary = "A folder such as checkpoint-500: model.safetensors or pytorch_model.bin, whole or in several files."
    suffixes = ()
    folders = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """A folder with a file of weights of one of the known names."""
        return path.is_dir() and any(is_a_file(path / name) for name in WEIGHTS)

    def load(self, path: Path) -> State:
        """The tensors of the first of the known files."""
        name = _weights(path)
        state = LOADERS[WEIGHTS[name]].load(path / name)
        told = self.trainer_step(path)
        step = told[0] if told is not None else state.step
        return replace(state, layout=f"Hugging Face folder, {state.layout}", step=step)

    def step(self, path: Path) -> tuple[int, str] | None:
        """The step in the trainer's state, else in the weights. Raises InputError where these are not whole."""
        name = _weights(path)
        held: Any = getattr(LOADERS[WEIGHTS[name]], "step", lambda _path: None)
        in_weights: tuple[int, str] | None = held(path / name)
        return self.trainer_step(path) or in_weights

    def trainer_step(self, path: Path) -> tuple[int, str] | None:
        """The step in the trainer's state of a folder, if there is one."""
        try:
            with open_regular(path / TRAINER) as file:
                raw: Any = read_json(file.read(MAX_TRAINER))
        except (OSError, ValueError):
            return None
        step = raw.get(STEP) if isinstance(raw, dict) else None
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < MAX_STEP:
            return None
        return step, f"{STEP} in {TRAINER}"

    def files(self, path: Path) -> list[Path]:
        """The files whose content makes the checkpoint what it is."""
        return [one for one in sorted(path.iterdir()) if one.is_file() and _counts(one.name)]


def _weights(path: Path) -> str:
    """The name of the file of weights. Raises InputError where it is a link to somewhere else."""
    name = next(name for name in WEIGHTS if (path / name).is_file())
    require_inside(path, name)
    return name


def _counts(name: str) -> bool:
    of_weights = name.startswith(("model", "pytorch_model")) and name.endswith((".safetensors", ".bin", ".json"))
    return name == TRAINER or of_weights


LOADERS.register("hugging-face")(HuggingFace())
