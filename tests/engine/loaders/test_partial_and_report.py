"""What a checkpoint did to a model is told and kept; one of which nothing fits is refused, also where a part would do."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import inspector
from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.engine.session.service import Service
from inspector.records import CheckpointReport, Failure, Load, Loaded, Mismatch, RunStart, report
from inspector.records.bounds import encoded

MODEL = """
import torch
from torch import nn
class M(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, size, batch_first=True), nn.Linear(size, 2)
    def forward(self, x): return self.head(self.rnn(x)[0])
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.py"
    path.write_text(MODEL)
    return path


def made(size: int = 4) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    model = nn.ModuleDict({"rnn": nn.GRU(3, size), "head": nn.Linear(size, 2)})
    return dict(model.state_dict())


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize(
    ("state", "holds"),
    [
        ({"encoder.a": torch.zeros(2, 3), "encoder.b": torch.zeros(1), "c": torch.zeros(5), "d": torch.zeros(5)}, r"encoder\.a \(2, 3\), encoder\.b \(1,\), c \(5,\) …"),
        (made(7), r"rnn\.weight_ih_l0 \(21, 3\)"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_which_nothing_fits_is_refused(
    tmp_path: Path, file: Path, state: dict[str, torch.Tensor], holds: str, partial: bool
) -> None:
    state.pop("head.bias", None)
    torch.save(state, tmp_path / "c.pt")
    load = Load(subject=f"{file}:M", checkpoint=str(tmp_path / "c.pt"), trusted=True, partial=partial)
    said = rf"none of the model's 6 tensors.*{holds}.*the model has rnn\.weight_ih_l0 \(12, 3\)"
    with pytest.raises(InputError, match=said) as told:
        open_subject(load)
    assert "\n" not in str(told.value) and "partial" not in str(told.value)
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    Service(answers.put).serve(load)
    answer = answers.get()
    assert isinstance(answer, Failure) and answer.kind == "input" and answer.message == str(told.value)


def test_a_model_without_tensors_is_refused_too(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(2)}, tmp_path / "c.pt")
    with pytest.raises(InputError, match=r"none of the model's 0 tensors.*the model has none"):
        fit(nn.Identity(), read_checkpoint(tmp_path / "c.pt"), tmp_path / "c.pt")


def test_one_tensor_that_fits_is_a_part(tmp_path: Path, file: Path) -> None:
    torch.save({"head.bias": torch.ones(2), "strange": torch.ones(1)}, tmp_path / "c.pt")
    opened = open_subject(Load(subject=f"{file}:M", checkpoint=str(tmp_path / "c.pt"), trusted=True, partial=True))
    assert not opened.pending and opened.report is not None and opened.report.matched == 1


def a_checkpoint(path: Path) -> Path:
    """An averaged model under "ema" with a prefix, beside a smaller dict of another name; one weight in halves."""
    ema = {f"module.{name}": value for name, value in made().items()}
    ema["module.head.weight"] = ema["module.head.weight"].half()
    del ema["module.head.bias"]
    ema["module.extra"] = torch.zeros(3)
    torch.save({"ema": ema, "params": {"head.bias": torch.zeros(2)}, "step": 12}, path)
    return path


def test_the_report_is_kept_in_the_capture(tmp_path: Path, file: Path) -> None:
    path = a_checkpoint(tmp_path / "c.pt")
    with inspector.run(f"{file}:M", torch.randn(5, 3), checkpoint=str(path), partial=True) as capture:
        kept = report.from_meta(capture.start.meta)
    assert kept is not None and kept.path == str(path) and (kept.matched, kept.total, kept.step) == (5, 6, 12)
    assert kept.removed_prefix == "module." and kept.others == ("params",) and "'ema'" in kept.layout
    assert {(m.name, m.problem) for m in kept.mismatches} == {
        ("extra", "unexpected"), ("head.bias", "missing"), ("head.weight", "dtype"),
    }  # fmt: skip
    told = report.lines(kept)
    assert told[0] == "c.pt (torch, nested under 'ema'; the file also holds params): 5 of 6 tensors loaded."
    assert told[1:] == [
        "prefix removed from the names: module.",
        "missing: 1 (head.bias (model (2,)))", "unexpected: 1 (extra (shape (3,)))",
        "dtype: 1 (head.weight (checkpoint torch.float16, model torch.float32))",
    ]  # fmt: skip
    assert "not loaded, though the file holds it too: 1 (params)" in report.lines(kept, whole=True)
    assert report.line(kept).endswith("5 of 6 tensors loaded, prefix module. removed, 1 missing, 1 unexpected, 1 dtype")
    with inspector.run(f"{file}:M", torch.randn(5, 3)) as capture:
        assert report.from_meta(capture.start.meta) is None


def test_folded_weights_are_named(tmp_path: Path) -> None:
    theirs, ours = nn.Linear(3, 2), nn.Linear(3, 2)
    nn.utils.parametrizations.weight_norm(theirs)
    torch.save(theirs.state_dict(), tmp_path / "c.pt")
    told, _ = fit(ours, read_checkpoint(tmp_path / "c.pt"), tmp_path / "c.pt")
    assert told.folded == ("weight",) and "folded into plain weights: 1 (weight)" in report.lines(told, whole=True)
    assert "1 parametrised weights folded" in report.lines(told)[0]


def test_few_lines_unless_all_are_asked_for_and_nothing_unprintable() -> None:
    mismatches = tuple(Mismatch(name=f"layer{number}\x1b[31m\n", problem="missing") for number in range(50))
    told = CheckpointReport(path="/x/\x1b]0;evil\x07.pt", layout="plain", matched=1, total=51, mismatches=mismatches)
    few, whole = report.lines(told), report.lines(told, whole=True)
    assert len(few) == len(whole) == 2 and "and 47 more" in few[1] and "layer49" in whole[1] and "layer49" not in few[1]
    assert all(character.isprintable() for line in (*few, *whole, report.line(told)) for character in line)


def test_a_report_of_very_many_tensors_fits_into_the_capture() -> None:
    mismatches = tuple(Mismatch(name=f"layers.{number}.weight", problem="missing") for number in range(50_000))
    told = CheckpointReport(path="c.pt", matched=1, total=50_001, fits=False, mismatches=mismatches)
    (data,) = encoded(RunStart(run="r", title="t", meta=report.to_meta(told)), 1 << 20)
    assert len(data) < 1 << 19
    kept = report.from_meta(report.to_meta(told))
    assert kept is not None and kept.mismatches[-1].name == "49,000 others" and kept.total == 50_001
    assert "more: 1 (49,000 others)" in report.lines(kept)


@pytest.mark.parametrize(
    "meta", [{}, {"checkpoint": 3}, {"checkpoint": {"record": "Log"}}, {"checkpoint": {"record": "CheckpointReport"}}]
)
def test_whatever_a_capture_holds_there_reading_it_fails_quietly(meta: dict[str, Any]) -> None:
    assert report.from_meta(meta) is None


@pytest.mark.parametrize("step", [2**200, -3, True, 2**60], ids=["huge", "negative", "truth", "large"])
def test_a_number_that_is_no_training_step_is_left_out(tmp_path: Path, file: Path, step: int) -> None:
    torch.save({"model": made(), "step": step}, tmp_path / "c.pt")
    with inspector.run(f"{file}:M", torch.randn(5, 3), checkpoint=str(tmp_path / "c.pt")) as capture:
        assert capture.frames[0].step is None and capture.status == "done"


@pytest.mark.parametrize("step", ["9" * 5_000, "²", "-1"], ids=["huge", "raised", "negative"])
def test_nor_is_one_in_the_metadata_of_safetensors(tmp_path: Path, step: str) -> None:
    save_file(made(), tmp_path / "c.safetensors", {"step": step})
    assert read_checkpoint(tmp_path / "c.safetensors").step is None


def test_the_window_is_told_the_same_report(tmp_path: Path, file: Path) -> None:
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    path = a_checkpoint(tmp_path / "c.pt")
    Service(answers.put).serve(Load(subject=f"{file}:M", checkpoint=str(path), trusted=True))
    answer = answers.get()
    assert isinstance(answer, Loaded) and answer.needs_consent and answer.report is not None
    assert answer.report.matched == 5 and answer.report.others == ("params",)
