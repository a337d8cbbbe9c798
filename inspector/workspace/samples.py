"""The registry of sample models, read without importing one: their cards are literals, their checkpoints are files."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CARD = "SAMPLE"


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample model: its card, its file, and its checkpoints in the order of training."""

    name: str
    row: str
    title: str
    task: str
    shows: str
    file: Path
    checkpoints: tuple[Path, ...]

    def checkpoint(self, which: str) -> Path | None:
        """A checkpoint by file name, by stem, by training step, or by position ("0", "-1"); "" is the last."""
        if not self.checkpoints:
            return None
        if not which:
            return self.checkpoints[-1]
        for path in self.checkpoints:
            if which in (path.name, path.stem) or step_of(path) == _number(which):
                return path
        number = _number(which)
        if number is not None and -len(self.checkpoints) <= number < len(self.checkpoints):
            return self.checkpoints[number]
        return None


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def step_of(path: Path) -> int | None:
    """The training step in a checkpoint's file name, `step-000400.safetensors` → 400."""
    return _number(path.stem.rpartition("-")[2])


def samples_folder() -> Path | None:
    """Where the package sample_models lies that came with this one; None when it is not installed."""
    beside = Path(__file__).parents[2] / "sample_models"  # never one in the folder that Python was started in
    return beside if (beside / "__init__.py").is_file() else None


def list_samples() -> list[Sample]:
    """Every sample model, by row of the systems table, then by name."""
    folder = samples_folder()
    if folder is None:
        return []
    found = [sample for path in sorted(folder.glob("*.py")) if (sample := read_sample(path)) is not None]
    return sorted(found, key=lambda sample: (int(sample.row.lstrip("S") or 0), sample.name))


def read_sample(path: Path) -> Sample | None:
    """The sample in a file, or None when the file holds no card."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    for node in tree.body:
        card = _card(node)
        if card is not None:
            files = tuple(sorted((path.parent / "checkpoints" / path.stem).glob("*.safetensors")))
            texts = {key: str(card.get(key, "")) for key in ("name", "row", "title", "task", "shows")}
            return Sample(file=path, checkpoints=files, **texts)
    return None


def _card(node: ast.stmt) -> dict[str, Any] | None:
    target: ast.expr | None = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    if not isinstance(target, ast.Name) or target.id != CARD:
        return None
    assert isinstance(node, (ast.Assign, ast.AnnAssign))
    if node.value is None:
        return None
    try:
        value = ast.literal_eval(node.value)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "name" in value else None


def find_sample(name: str) -> Sample | None:
    """The sample of a name: as on its card, or its file's stem."""
    for sample in list_samples():
        if name in (sample.name, sample.file.stem):
            return sample
    return None
