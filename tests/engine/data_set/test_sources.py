"""Where many sequences come from, what cannot be read or run, and what is left when a run is cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.data_set import run_data_set
from inspector.engine.errors import CancelledError, InputError, ModelError
from inspector.engine.model.subject import adopt
from inspector.engine.pipeline import RunOptions, record
from inspector.engine.pipeline.starting import start_of
from inspector.engine.sources import items, numbered
from inspector.records import Frame, data_spec, input_spec, is_data_set


class Plain(nn.Module):
    def __init__(self, width: int = 2) -> None:
        super().__init__()
        self.rnn, self.head = nn.RNN(width, 3, batch_first=True), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        if bool((x == 7).any()):
            raise ValueError("seven is not allowed")
        return self.head(self.rnn(x)[0])


def vectors(**more: Any) -> SimpleNamespace:
    torch.manual_seed(0)
    return SimpleNamespace(model=Plain(), width=2, loss=lambda out, _batch: out.square()[..., 0], **more)


def names(subject: Any, source: str, **options: Any) -> list[tuple[str, str]]:
    return [(item.name, item.problem) for item in items(adopt(subject), data_spec(source, **options), 0)]


def test_a_folder_in_natural_order_with_what_it_cannot_read(tmp_path: Path) -> None:
    np.save(tmp_path / "part10.npy", np.zeros((4, 2)))
    np.save(tmp_path / "part2.npy", np.ones((3, 5, 2)))
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00junk")
    (tmp_path / "notes.xyz").write_text("?", encoding="utf-8")
    (tmp_path / ".hidden.npy").write_bytes(b"")
    (tmp_path / "inner").mkdir()
    found = names(vectors(), str(tmp_path))
    assert [name for name, _ in found] == [
        "bad.npy", "notes.xyz", "part2.npy[0]", "part2.npy[1]", "part2.npy[2]", "part10.npy",
    ]  # fmt: skip
    assert [bool(problem) for _, problem in found] == [True, True, False, False, False, False]
    capture = inspector.run(vectors(), data=tmp_path)
    assert capture.array("sequences:length").tolist()[2:] == [5, 5, 5, 4]
    assert np.isnan(capture.array("sequences:length")[:2]).all()


def test_lines_are_read_as_typed(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"1 2; 3 4\r\n\n5 6\nfive six\n")
    assert [bool(problem) for _, problem in names(vectors(), str(path), lines=True)] == [False, False, True]
    batch = numbered(adopt(vectors()), data_spec(str(path), lines=True), 0, 1)
    assert batch.inputs.tolist() == [[[5, 6]]]
    with pytest.raises(InputError, match="no sequence 3"):
        numbered(adopt(vectors()), data_spec(str(path), lines=True), 0, 3)
    assert len(names(vectors(), str(path), lines=True, most=1)) == 1


def test_the_subjects_own_data() -> None:
    def many() -> Iterator[Any]:
        yield torch.zeros(3, 2)
        yield torch.zeros(3, 5)
        raise RuntimeError("the disk is gone")

    found = names(vectors(data=many), "subject")
    assert [bool(problem) for _, problem in found] == [False, True, True]
    assert "the disk is gone" in found[-1][1] and "No further one" in found[-1][1]
    assert names(vectors(data={"first": torch.zeros(3, 2)}), "subject") == [("first", "")]
    with pytest.raises(InputError, match="once only"):
        names(vectors(data=many()), "subject")
    with pytest.raises(InputError, match="gives no data"):
        names(vectors(), "subject")
    assert names(vectors(examples={"a": np.zeros((2, 2))}), "examples") == [("a", "")]
    with pytest.raises(InputError, match="has no examples"):
        names(vectors(), "examples")
    with pytest.raises(InputError, match="no file or folder"):
        names(vectors(), "/nowhere/at/all")


def test_targets_travel_with_their_sequences() -> None:
    """A loss that compares with a target of each sequence, in batches of equally long ones."""
    torch.manual_seed(0)
    model = Plain()
    data = [(torch.randn(6, 2), float(n)) for n in range(20)]

    def loss(out: Tensor, batch: Any) -> Tensor:
        return (out[..., 0] - batch.targets[:, None]).square()

    capture = inspector.run(SimpleNamespace(model=model, width=2, loss=loss), data=data)
    expected = [float((model(x[None])[0, :, 0] - y).square().mean().detach()) for x, y in data]
    assert "batches" in capture.channels["sequences:loss"].method
    assert np.allclose(capture.array("sequences:loss"), expected, rtol=1e-5)


def test_sequences_on_which_the_model_raises_are_listed() -> None:
    data = [torch.randn(5, 2) for _ in range(30)]
    data[11][2, 0] = data[25][0, 0] = 7.0
    capture = inspector.run(vectors(), data=data)
    problems = capture.labels("problem of the sequence")
    assert [n for n, problem in enumerate(problems) if problem] == [11, 25]
    assert "seven is not allowed" in problems[11]
    assert np.isfinite(np.delete(capture.array("sequences:loss"), [11, 25])).all()
    assert capture.stop is not None and capture.stop.status == "done"


def test_nothing_that_runs_is_a_failure() -> None:
    with pytest.raises(ModelError, match="None of 2 sequences could be run"):
        inspector.run(vectors(), data=[torch.full((3, 2), 7.0), torch.full((4, 2), 7.0)])
    with pytest.raises(InputError, match="not both"):
        inspector.run(vectors(), torch.zeros(3, 2), data="examples")


def test_a_cancel_keeps_what_is_done(tmp_path: Path) -> None:
    subject = adopt(vectors())
    data = [torch.randn(length, 2) for length in (4, 4, 5, 5, 6, 6)]
    subject.data = data
    calls = []

    def cancelled() -> bool:
        calls.append(1)
        return len(calls) > 9  # six are read, the first two are run

    recording = record(tmp_path / "a.inspect", start_of(subject))
    with pytest.raises(CancelledError), recording:
        run_data_set(subject, data_spec("subject"), recording, RunOptions(cancelled=cancelled), Frame(index=0))
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "cancelled"
        losses = capture.array("sequences:loss")
        assert 0 < np.isfinite(losses).sum() < 6 and len(capture.labels("sequence")) == 6
        assert capture.array("sequences:summary").shape[1] == 8


def test_the_model_is_left_as_it_was() -> None:
    subject = vectors()
    before = {name: value.clone() for name, value in subject.model.state_dict().items()}
    random, enabled = torch.get_rng_state(), torch._C._get_mkldnn_enabled()
    inspector.run(subject, data=[torch.randn(5, 2, generator=torch.Generator().manual_seed(1)) for _ in range(20)])
    assert all(torch.equal(value, before[name]) for name, value in subject.model.state_dict().items())
    assert all(parameter.grad is None for parameter in subject.model.parameters())
    assert torch.equal(random, torch.get_rng_state()) and torch._C._get_mkldnn_enabled() is enabled
    assert not subject.model.rnn._forward_hooks and subject.model.training is True


def test_without_a_loss_there_are_lengths_and_units() -> None:
    subject = vectors()
    del subject.loss
    capture = inspector.run(subject, data=[torch.randn(5, 2) for _ in range(12)])
    assert "sequences:loss" not in capture.channels and capture.array("sequences:length").tolist() == [5] * 12
    assert any(c.signal == "sequences/horizon" for c in capture.channels.values())
    assert "12 sequences, 60 steps" in next(c.method for c in capture.channels.values() if c.signal == "h/units")


def test_a_spec_of_many_is_told_from_one_of_one() -> None:
    assert is_data_set(data_spec("x")) and not is_data_set(data_spec("x", number=3))
    assert not is_data_set(input_spec({"text": ["x"]}, {}))


def test_a_folder_of_weights_and_a_configuration_holds_no_sequences(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"\x00")
    with pytest.raises(InputError, match=r"folder of Hugging Face's with a model's weights \(model.safetensors\)"):
        inspector.run(vectors(), data=tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert [name for name, _ in names(vectors(), str(tmp_path))] == ["config.json"], "one of one's own sequences"
