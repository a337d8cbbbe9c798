"""No code of a program runs before it was agreed to, and what runs is what was agreed to."""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from asking import Asking
from torch import Tensor, nn
from workers import Parent

from inspector.engine.errors import InputError
from inspector.engine.opening.open_subject import open_subject
from inspector.records import Failure, Load, Loaded, NeedsTrust
from tests.support.programs import Tagger, exported, made, numbers


class Canary:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


class Writes(nn.Module):
    """Makes a file when it runs, as TorchScript can."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def forward(self, x: Tensor) -> Tensor:
        """What it was given."""
        return x + torch.from_file(self.path, True, 1)[0] * 0


def script(folder: Path) -> Path:
    path = folder / "m.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(Writes(str(folder / "ran"))), path)
    return path


def export(folder: Path) -> Path:
    """A program whose example inputs run code when they are read."""
    path = exported(made(Tagger("tanh")), numbers(), folder / "plain.pt2")
    evil = io.BytesIO()
    torch.save({"x": Canary(folder / "ran")}, evil, pickle_module=pickle)
    with zipfile.ZipFile(path) as read, zipfile.ZipFile(folder / "m.pt2", "w") as written:
        for one in read.infolist():
            data = evil.getvalue() if "sample_inputs" in one.filename else read.read(one)
            written.writestr(one.filename, data)
    return folder / "m.pt2"


MAKE = {"TorchScript": script, "torch.export": export}


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    made = Parent()
    yield made
    made.worker.close()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MAKE)
def test_nothing_runs_before_the_question(kind: str, tmp_path: Path, parent: Parent) -> None:
    path, ran = MAKE[kind](tmp_path), tmp_path / "ran"
    asking = Asking(tmp_path, parent)
    answer = asking.load(str(path))
    assert isinstance(answer, NeedsTrust) and asking.asked(answer) == {path.name: "new"} and not ran.exists()
    asking.agree(answer)
    later = asking.load(str(path))
    assert isinstance(later, (Loaded, Failure)) and ran.exists(), "the canary shows code that runs"


@pytest.mark.filterwarnings("ignore")
def test_a_program_that_changed_is_asked_about_again(tmp_path: Path, parent: Parent) -> None:
    path = exported(made(Tagger("tanh")), numbers(), tmp_path / "m.pt2")
    asking = Asking(tmp_path, parent)
    asking.agree(asking.load(str(path)))
    assert isinstance(asking.load(str(path)), Loaded)
    exported(made(Tagger("tanh"), 2), numbers(), path)
    assert asking.asked(asking.load(str(path))) == {"m.pt2": "changed"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MAKE)
def test_as_a_checkpoint_or_without_trust_it_is_refused_and_not_run(kind: str, tmp_path: Path) -> None:
    path, ran = MAKE[kind](tmp_path), tmp_path / "ran"
    with pytest.raises(InputError, match="it runs only after you have agreed to trust it"):
        open_subject(Load(subject=str(path)))
    with pytest.raises(InputError, match="not a checkpoint"):
        open_subject(Load(subject="char-lstm", checkpoint=str(path)))
    assert not ran.exists()
