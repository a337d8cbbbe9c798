"""What training noted beside a checkpoint: columns as they are, or a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from kept import Kept
from torch import nn

from inspector.engine.model import training_log as history_file
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.values import training as training_file
from inspector.records import Axis, Channel


def seen(folder: Path, text: str | None) -> Kept:
    if text is not None:
        (folder / "history.json").write_text(text, encoding="utf-8")
    kept = Kept()
    subject = Subject(model=nn.Linear(2, 2), kind="vectors", width=2, checkpoint=str(folder / "last.pt"))
    perform(subject, Batch(torch.zeros(1, 3, 2), torch.tensor([3])), kept, RunOptions(only=("training",)))
    return kept


def test_columns_are_shown_as_they_were_noted(tmp_path: Path) -> None:
    table = {
        "clip": 1.0, "step": [0, 10, 20], "loss": [3, 2.5, None], "learning_rate": [1e-3, 1e-3, float("nan")],
        "measured": {"step": [0, 20], "σ(W): largest": [1.0, 2.0]}, "note": "by hand",
    }  # fmt: skip
    kept = seen(tmp_path, json.dumps(table))
    channel = kept.channel("parameters:training")
    assert channel.labels["statistic"] == ("loss", "learning rate") and not kept.reasons()
    np.testing.assert_array_equal(kept.array("parameters:training"), [[3, 2.5, np.nan], [1e-3, 1e-3, np.nan]])
    measured = kept.channel("parameters:training/measured")
    assert measured.labels["statistic"] == ("σ(W): largest",)
    np.testing.assert_array_equal(kept.array("parameters:training/measured"), [[1, 2]])
    for table, numbers in ((channel, [0, 10, 20]), (measured, [0, 20])):
        axis = next(axis for axis in kept.of(Axis) if axis.name == table.domain("iteration"))
        assert (axis.title, axis.length, axis.unit) == ("iteration", len(numbers), "iteration")
        (coordinate,) = [c for c in kept.of(Channel) if c.kind == "coordinate" and c.domain("iteration") == axis.name]
        np.testing.assert_array_equal(kept.array(coordinate.name), numbers)
    assert channel.domain("iteration") == "iteration" != measured.domain("iteration")


def test_without_steps_rows_are_numbered_and_without_columns_there_is_nothing(tmp_path: Path) -> None:
    kept = seen(tmp_path, '{"loss": [3, 2]}')
    assert kept.array("parameters:training").tolist() == [[3, 2]]
    assert kept.array("parameters:iteration").tolist() == [0, 1]
    for text in (None, "{}", '{"step": [], "loss": []}', '{"clip": 3, "measured": 4}'):
        kept = seen(tmp_path, text) if text is not None else seen(tmp_path / "elsewhere", None)
        assert not kept.names() and not kept.reasons()


@pytest.mark.parametrize(("text", "words"), [
    ("[1, 2]", "no named columns"),
    ("{", "cannot be read"),
    ('{"step": [0, 1], "loss": [3]}', "loss has 1 values for 2 steps"),
    ('{"loss": ["a"]}', "loss is not a list of numbers"),
    ('{"loss": [[1]]}', "loss is not a list of numbers"),
])  # fmt: skip
def test_what_is_not_a_table_is_refused_in_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    kept = seen(tmp_path, text)
    (reason,) = kept.reasons()
    assert words in reason and reason.startswith("history.json beside the checkpoint cannot be read")
    assert not kept.names()


def test_what_is_too_large_is_refused_and_many_columns_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_file, "MOST", 2)
    kept = seen(tmp_path, '{"a": [1], "b": [2], "c": [3]}')
    assert kept.array("parameters:training").shape == (2, 1)
    assert "first 2 of 3" in kept.channel("parameters:training").method
    monkeypatch.setattr(history_file, "LARGEST", 4)
    assert "larger than" in seen(tmp_path, '{"a": [1]}').reasons()[0]
