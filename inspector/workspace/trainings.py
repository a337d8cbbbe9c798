"""The registry of recorded trainings: captures of small models that were watched while they learned, or failed to.

Each is a file in `sample_models/trainings` with a literal card `TRAINING`, and its capture beside it. Nothing is
imported to list them. `python -m sample_models.record NAME` makes a capture again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inspector.capture.regular import is_there
from inspector.workspace.samples import card_texts, samples_folder

CARD = "TRAINING"


@dataclass(frozen=True, slots=True)
class Training:
    """One recorded training: its card, its file, and its capture."""

    name: str
    title: str
    task: str
    shows: str
    file: Path
    capture: Path


def list_trainings() -> list[Training]:
    """Every recorded training whose capture is there, by name."""
    folder = samples_folder()
    files = () if folder is None else (folder / "trainings").glob("*.py")
    found = [one for path in files if (one := read_training(path)) is not None and one.capture.is_dir()]
    return sorted(found, key=lambda one: one.name)


def read_training(path: Path) -> Training | None:
    """The recorded training in a file, or None when the file has no card."""
    try:
        texts = card_texts(path, CARD)
    except (OSError, SyntaxError, ValueError):
        return None
    if texts is None:
        return None
    said = {key: texts[key] for key in ("name", "title", "task", "shows")}
    return Training(**said, file=path, capture=path.with_suffix(".inspect"))


def find_training(name: str) -> Training | None:
    """The recorded training of a name."""
    return next((one for one in list_trainings() if one.name == name), None)


def path_or_training(word: str) -> str:
    """Where the recorded training of that name lies; the word itself where it is a path, or no such name."""
    found = None if is_there(word) else find_training(word)
    return word if found is None else str(found.capture)
