"""The words that open the model of a capture on the command line."""

from __future__ import annotations

from pathlib import Path

from inspector.records import RunStart
from inspector.workspace.its_model import words_of


def start(checkpoint: Path, **meta: object) -> RunStart:
    return RunStart(run="r", title="t", subject="char-gru", checkpoint=str(checkpoint), meta=meta)


def test_a_run_names_its_checkpoint(tmp_path: Path) -> None:
    assert words_of(start(tmp_path)) == ("char-gru", "--checkpoint", str(tmp_path))


def test_a_sweep_of_a_folder_names_none_of_its_checkpoints(tmp_path: Path) -> None:
    assert words_of(start(tmp_path, sweep={})) == ("char-gru", "--checkpoint", "CHECKPOINT")


def test_a_model_without_a_name_is_left_open(tmp_path: Path) -> None:
    assert words_of(RunStart(run="r", title="t")) == ("SUBJECT",)
