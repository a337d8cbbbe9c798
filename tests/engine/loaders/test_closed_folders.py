"""Folders that nobody but their owner may look into, beside checkpoints and in the place of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.engine.errors import InputError
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.engine.session.sweep.candidates import checkpoints_in, nothing_in
from inspector.gui.state.offered import Offered
from inspector.records import Catalog, Load

SAID = "cannot be looked into: Permission denied."


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing can be looked for, whoever runs this (root may look everywhere)."""
    folder = tmp_path / "runs" / "closed"
    folder.mkdir(parents=True)
    torch.save({"weight": torch.zeros(2)}, folder.parent / "step-1.pt")
    stat, listdir, scandir = os.stat, os.listdir, os.scandir

    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", lambda path, **more: (refused if _within(path) else stat)(path, **more))
    monkeypatch.setattr(os, "listdir", lambda path=".": (refused if _is(path) else listdir)(path))
    monkeypatch.setattr(os, "scandir", lambda path=".": (refused if _is(path) else scandir)(path))

    def _is(path: Any) -> bool:
        return not isinstance(path, int) and os.fspath(path) == str(folder)

    def _within(path: Any) -> bool:
        return not isinstance(path, int) and os.path.dirname(os.fspath(path)) == str(folder)  # noqa: PTH120

    return folder


def test_one_beside_checkpoints_is_passed_over(closed: Path) -> None:
    assert [path.name for path in checkpoints_in([str(closed.parent)])] == ["step-1.pt"]


def test_one_that_is_named_says_why(closed: Path) -> None:
    with pytest.raises(InputError, match=SAID):
        checkpoints_in([str(closed)])
    with pytest.raises(InputError, match=SAID):
        read_checkpoint(closed)
    assert nothing_in([str(closed.parent)]).startswith("There is no checkpoint in ")


def test_one_in_the_place_of_a_model_is_one_sentence(closed: Path) -> None:
    with pytest.raises(InputError, match="is a folder; name the file in it"):
        open_subject(Load(subject=str(closed), trusted=True))


def test_a_window_that_looks_through_its_folder_goes_on(closed: Path) -> None:
    (closed.parent / "checkpoint-5").mkdir()
    (closed.parent / "checkpoint-5" / ".metadata").write_bytes(b"")
    offered = Offered(Catalog(torch="2", threads=1, devices=("cpu",)))
    assert not offered.is_checkpoint_folder(str(closed)) and offered.checkpoints_below(str(closed.parent))
