"""The registry of sample models, read without importing one: their cards are literals, their checkpoints are files.

Samples of other packages come through the entry-point group `inspector.samples`, whose values name a module each; its
checkpoints lie beside it as here: `checkpoints/MODULE/step-000400.safetensors`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from inspector.capture.regular import is_there

CARD = "SAMPLE"
OWN = "sample_models"


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
    module: str = ""
    """The name by which it is imported."""

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
    """Every sample model, by row of the systems table, then by name; those of other packages follow."""
    own = own_samples()
    return [*own, *samples_elsewhere(own)[0]]


def own_samples() -> list[Sample]:
    """The sample models that came with this package."""
    return _own(lambda _name: True)


def _own(wanted: Callable[[frozenset[str]], bool]) -> list[Sample]:
    """Those of the package whose names, as on the card and as the file's stem, are wanted; in order."""
    folder = samples_folder()
    if folder is None:
        return []
    found = []
    for path in sorted(folder.glob("*.py")):
        texts = _texts_in(path)
        if texts is not None and wanted(frozenset((texts["name"], path.stem))):
            found.append(_made(path, OWN, texts))
    return sorted(found, key=lambda sample: (int(sample.row.lstrip("S") or 0), sample.name))


def samples_elsewhere(own: Sequence[Sample] | None = None) -> tuple[list[Sample], list[str]]:
    """Samples of other packages, and a message for each entry point that has none, or has a name that is taken.

    `own`: what `own_samples` gave, where that is known.
    """
    found: dict[str, Sample] = {}
    broken: list[str] = []
    points = _points()
    taken = {sample.name for sample in (own_samples() if own is None else own)} if points else set()
    for point in points:
        file = _file_of(point.module)
        sample = read_sample(file, point.module.rpartition(".")[0]) if file is not None else None
        if sample is None:
            why = f"there is no module {point.module}" if file is None else f"{file} has no card {CARD}"
            broken.append(f"The sample {point.name} cannot be used: {why}.")
        elif sample.name in taken:
            broken.append(f"The sample {sample.name} of {point.module} is not listed: there is another of that name.")
        else:
            taken.add(sample.name)
            found[sample.name] = sample
    return list(found.values()), broken


def _points() -> Sequence[EntryPoint]:
    """The entry points of samples. Which there are is looked up again only where a package may have come or gone, which
    changes its folder: a window asks at each picture, and to read what all packages offer takes 10 ms."""
    folders = tuple((path, _changed(path)) for path in sys.path)
    known = _KNOWN.get(folders)
    if known is None:
        _KNOWN.clear()
        known = _KNOWN[folders] = tuple(entry_points(group="inspector.samples"))
    return known


_KNOWN: dict[tuple[tuple[str, int], ...], tuple[EntryPoint, ...]] = {}


def _changed(path: str) -> int:
    """When something came into a folder, or an archive was written; 0 where there is none."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def _file_of(module: str) -> Path | None:
    """Where a module lies, without importing it or a package above it."""
    places: Sequence[str] | None = None
    parts = module.split(".")
    try:
        for depth in range(1, len(parts) + 1):
            spec = PathFinder.find_spec(".".join(parts[:depth]), places)
            if spec is None:
                return None
            places = spec.submodule_search_locations
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def read_sample(path: Path, package: str = "") -> Sample | None:
    """The sample in a file of a package, or None when the file has no card."""
    texts = _texts_in(path)
    return None if texts is None else _made(path, package, texts)


def _texts_in(path: Path) -> dict[str, str] | None:
    """What the card of a file says; None where it has none, or cannot be read."""
    try:
        return card_texts(path, CARD)
    except (OSError, SyntaxError, ValueError):
        return None


def _made(path: Path, package: str, texts: dict[str, str]) -> Sample:
    """The sample of a card, with the checkpoints that lie beside it."""
    files = tuple(sorted((path.parent / "checkpoints" / path.stem).glob("*.safetensors")))
    return Sample(file=path, checkpoints=files, module=f"{package}.{path.stem}".lstrip("."), **texts)


def card_texts(path: Path, card: str) -> dict[str, str] | None:
    """What the literal of that name in a file says, or None where there is none; the file is not imported.

    Raises OSError, SyntaxError or ValueError.
    """
    found = path.stat()
    return _texts(path, card, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1000)
def _texts(path: Path, name: str, _changed: int, _size: int) -> dict[str, str] | None:
    """A file that has not changed is parsed once: all samples are listed whenever one is opened."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    card = next((card for node in tree.body if (card := _card(node, name)) is not None), None)
    return None if card is None else {key: str(card.get(key, "")) for key in ("name", "row", "title", "task", "shows")}


def _card(node: ast.stmt, name: str) -> dict[str, Any] | None:
    target: ast.expr | None = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    if not isinstance(target, ast.Name) or target.id != name:
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
    own = _own(lambda names: name in names)
    if own:
        return own[0]
    others = samples_elsewhere()[0]  # asks for the entry points of all that is installed
    return next((sample for sample in others if name in (sample.name, sample.file.stem)), None)


def sample_at(path: Path) -> Sample | None:
    """The sample whose file is that path; None for every other file."""
    sample = find_sample(path.stem) if path.suffix == ".py" else None
    return sample if sample is not None and sample.file.resolve() == path.resolve() else None


def path_or_sample(word: str) -> str:
    """The file of the sample of that name; the word itself where it is a path, or no such name."""
    found = None if is_there(word) else find_sample(word)
    return word if found is None else str(found.file)
