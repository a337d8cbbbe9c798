"""What can be opened and run, by the entries of the worker's registries; little until the worker has reported them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inspector.capture.regular import is_a_file
from inspector.capture.turns import give_way
from inspector.records import Catalog, Entry

TRAINER, PARTS = "trainer_state.json", ".metadata"
"""What trainers of Hugging Face's write beside weights, and torch.distributed.checkpoint beside its parts."""


@dataclass(frozen=True, slots=True)
class Offered:
    """Look-ups in the catalogue, without Qt. Nothing here refers to an entry by its name."""

    catalog: Catalog | None = None

    @property
    def sequences(self) -> tuple[str, ...]:
        """Suffixes of files that an input reads."""
        return _suffixes(self.catalog.inputs if self.catalog is not None else ())

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Suffixes of files that a loader reads."""
        return _suffixes(self.catalog.loaders if self.catalog is not None else ())

    def is_model(self, path: str) -> bool:
        """Whether a checkpoint is a model by itself, by its suffix: a program, or a graph."""
        known = self.catalog.loaders if self.catalog is not None else ()
        return Path(path).suffix.lower() in _suffixes(entry for entry in known if entry.form == "model")

    def kind_of(self, path: str) -> str:
        """ "sequence" or "checkpoint", by the suffix of a file and then by its first bytes; "" for neither."""
        suffix = Path(path).suffix.lower()
        for kind, known in (("sequence", self.sequences), ("checkpoint", self.checkpoints)):
            if suffix in known:
                return kind
        head = _head(path).hex()
        if self.catalog is not None and head:
            for kind, entries in (("sequence", self.catalog.inputs), ("checkpoint", self.catalog.loaders)):
                if any(head.startswith(magic) for entry in entries for magic in entry.magic):
                    return kind
        return ""

    def weights_in(self, folder: str) -> tuple[str, ...]:
        """The checkpoints of a folder of weights: it has no sequences, or it is a folder of Hugging Face's, which
        keeps texts beside the weights (merges.txt). Empty for every other folder.

        By suffixes alone: a folder of pictures saved as .pt would be taken for weights. Pictures beside weights are
        taken for plots of a training.
        """
        try:
            files = sorted((one for one in _listed(folder) if one.is_file()), key=str)
        except OSError:
            return ()
        suffixes = {one.suffix.lower() for one in files}
        known = self.catalog.inputs if self.catalog is not None else ()
        sequences = _suffixes(entry for entry in known if entry.reads != ("image",))
        if suffixes.intersection(sequences) and not is_of_transformers(folder):
            return ()
        return tuple(str(one) for one in files if one.suffix.lower() in self.checkpoints)

    def is_checkpoint_folder(self, folder: str) -> bool:
        """Whether a folder is one checkpoint: weights beside what describes them (`checkpoint-500`), or in parts of
        torch.distributed.checkpoint."""
        path = Path(folder)
        if is_a_file(path / PARTS):
            return True
        described = is_of_transformers(folder) or is_a_file(path / TRAINER)
        if not described:
            return False
        try:
            return any(one.suffix.lower() in self.checkpoints for one in path.iterdir())
        except OSError:  # whoever opens it is told why
            return False

    def checkpoints_below(self, folder: str) -> bool:
        """Whether a folder has folders that are checkpoints, as trainers write them."""
        try:
            below = [one for one in _listed(folder) if one.is_dir()]
        except OSError:
            return False
        return any(self.is_checkpoint_folder(str(one)) for one in below)

    def inputs_for(self, reads: str, examples: bool, typed: str = "") -> list[Entry]:
        """The inputs of a model that reads tokens or vectors, in the order in which they are offered; `typed` before
        the others that are typed."""
        known = self.catalog.inputs if self.catalog is not None else ()
        fitting = [entry for entry in known if entry.form and (not entry.reads or reads in entry.reads)]
        shown = [entry for entry in fitting if entry.form != "example" or examples]
        first = min((entry.order for entry in shown if entry.form == "line"), default=0)
        return sorted(shown, key=lambda e: (first if e.key == typed else e.order, e.key != typed, e.key))

    def input_of(self, path: str) -> Entry | None:
        """The input that reads a file, by its suffix."""
        suffix = Path(path.strip()).suffix.lower()
        known = self.catalog.inputs if self.catalog is not None else ()
        return next((entry for entry in known if suffix and suffix in entry.suffixes), None)


def _listed(folder: str) -> Iterator[Path]:
    """What is in a folder; in a thread that looks beside the window, with pauses for it."""
    for one in Path(folder).iterdir():
        give_way()
        yield one


def is_of_transformers(folder: str) -> bool:
    """Whether a folder describes its weights as those of Hugging Face's transformers do."""
    return is_a_file(Path(folder) / "config.json")


def name_filter(title: str, suffixes: Iterable[str]) -> str:
    """A filter for a file dialog: "Checkpoints (*.pt *.pth);;All files (*)"."""
    patterns = " ".join(f"*{suffix}" for suffix in suffixes)
    return f"{title} ({patterns});;All files (*)" if patterns else "All files (*)"


def _suffixes(entries: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(suffix for entry in entries for suffix in entry.suffixes))


def _head(path: str) -> bytes:
    """The first bytes of an ordinary file; a pipe or a device is not opened."""
    try:
        if not Path(path).is_file():
            return b""
        with Path(path).open("rb") as file:
            return file.read(16)
    except OSError:
        return b""
