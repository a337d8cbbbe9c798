"""Recording: what a run says of itself stands once, a capture stays open between frames, and a watched loop trains on
as if nobody looked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from models import Squash
from torch import Tensor, nn

from inspector.capture import CaptureError, Writer, open_capture
from inspector.capture.store import Store
from inspector.engine.errors import CancelledError, InputError, ModelError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform, record
from inspector.records import Frame, RunStart, RunStop


class Tagger(nn.Module):
    """A fused layer, dropout, attention and a loop of its own, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.inner, self.outer, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.drop(self.rnn(x)[0])
        seen = seen + self.attention(seen, seen, seen, need_weights=False)[0]
        h = seen.new_zeros(len(seen), 4)
        out = []
        for t in range(seen.shape[1]):
            h = torch.tanh(self.inner(seen[:, t]) + self.outer(h))
            out.append(h)
        scores: Tensor = self.head(torch.stack(out, 1))
        return scores


def batches(count: int) -> Iterator[tuple[Tensor, Tensor]]:
    random = torch.Generator().manual_seed(1)
    for _ in range(count):
        yield torch.randn(2, 7, 3, generator=random), torch.randint(0, 2, (2, 7), generator=random)


def trained(folder: Path | None, every: int = 5) -> tuple[nn.Module, Tensor]:
    """Twenty steps of a training loop, and the random state behind them; with a folder every fifth is recorded."""
    torch.manual_seed(7)
    model = Tagger().train()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    options = RunOptions(
        only=("states", "gates", "gradients", "jacobian/lag", "attention/maps", "output/loss", "health")
    )
    with record(folder, model, block=False) if folder is not None else nullcontext() as recording:
        for step, (x, y) in enumerate(batches(20)):
            looked_at = recording is not None and step % every == 0
            with recording.call(model, x, options, step=step) if recording and looked_at else nullcontext() as seen:
                losses = nn.functional.cross_entropy(model(x).transpose(1, 2), y, reduction="none")
                losses.mean().backward()
                if seen is not None:
                    seen.losses(losses)
            optimizer.step()
            optimizer.zero_grad()
    return model, torch.get_rng_state()


def test_a_watched_loop_trains_to_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    plain, random = trained(None)
    watched, random_after = trained(tmp_path / "a.inspect")
    for (name, a), b in zip(watched.named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(a, b), name
    assert torch.equal(random, random_after)
    with open_capture(tmp_path / "a.inspect") as capture:
        assert [frame.step for frame in capture.frames] == [0, 5, 10, 15] and capture.status == "done"
        states = [capture.array("rnn.l0:h", n) for n in range(4)]
        assert all(one.shape == (7, 4) for one in states) and not np.array_equal(states[0], states[3])
        losses = [capture.array("output:loss", n).mean() for n in range(4)]
        assert losses[3] < losses[0] and "attention:attention" in capture.channels
        assert (capture.array("rnn.l0:gradient/state_norm", 3) > 0).all()


def test_what_the_caller_overwrites_afterwards_was_recorded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop reuses its buffers while the writer's thread is still busy."""
    busy = threading.Event()
    commit = Store.commit
    monkeypatch.setattr(Store, "commit", lambda self, records: (busy.wait(20), commit(self, records))[1])
    model, x = nn.RNN(3, 4, batch_first=True), torch.randn(1, 5, 3)
    given = x[0].clone()
    with record(tmp_path / "a.inspect", model) as recording, torch.no_grad():
        with recording.call(model, x, RunOptions(only=("input", "states"))):
            out = model(x)[0]
        shown = out[0].clone()
        out.zero_()
        x.zero_()
        busy.set()
    with open_capture(tmp_path / "a.inspect") as capture:
        np.testing.assert_array_equal(capture.array("rnn.l0:h"), shown.numpy())
        np.testing.assert_array_equal(capture.array("input:value"), given.numpy())


def test_a_call_that_raises_leaves_what_was_seen_and_says_so(tmp_path: Path) -> None:
    model = Tagger()
    x = torch.randn(2, 5, 3)
    recording = record(tmp_path / "a.inspect", model)
    with pytest.raises(ZeroDivisionError), recording, recording.call(model, x, RunOptions(only=("states",))):
        model(x)
        raise ZeroDivisionError("oh")
    with open_capture(tmp_path / "a.inspect") as capture:
        assert (
            capture.status == "failed" and capture.stop is not None and "ZeroDivisionError: oh" in capture.stop.message
        )
        assert capture.array("rnn.l0:h").shape == (5, 4)
    assert not any(module._forward_hooks for module in model.modules())


def test_checkpoints_one_after_the_other_are_frames_of_one_capture(tmp_path: Path) -> None:
    """A sweep: the model of another moment in every frame, vocabulary and run start written once."""
    model = nn.Sequential(nn.Embedding(3, 4), nn.RNN(4, 5, batch_first=True))
    subject = Subject(model=model, kind="tokens", vocabulary="abc", logits=lambda output: None)
    batch = Batch(torch.tensor([[0, 1, 2, 1]]), torch.tensor([4]), names=(("a", "b", "c", "b"),))
    with record(tmp_path / "a.inspect", subject) as recording:
        for n in range(3):
            perform(subject, batch, recording, RunOptions(only=("states",)), frame=Frame(index=n, label=f"{n}"))
            with torch.no_grad():
                model[0].weight.mul_(1.5)
    with open_capture(tmp_path / "a.inspect") as capture:
        assert [frame.label for frame in capture.frames] == ["0", "1", "2"]
        assert capture.labels("vocabulary") == tuple("abc")
        arrays = [capture.array("1.l0:h", n) for n in range(3)]
        assert not np.array_equal(arrays[0], arrays[1]) and not np.array_equal(arrays[1], arrays[2])
    assert notes(tmp_path / "a.inspect").count("vocabulary") == 1


def notes(folder: Path) -> list[str]:
    import sqlite3

    with sqlite3.connect(folder / "index.sqlite") as index:
        rows = index.execute("SELECT record FROM notes WHERE kind = 'Labels'").fetchall()
    return [name for (text,) in rows for name in ("vocabulary", '"step"') if name in text]


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        (None, "done", ""),
        (CancelledError(), "cancelled", "Cancelled; what was captured so far is stored."),
        (KeyboardInterrupt(), "cancelled", "Interrupted; what was captured so far is stored."),
        (ModelError("The model raised x.", "line 3"), "failed", "The model raised x."),
        (InputError("No such thing."), "failed", "No such thing."),
        (ZeroDivisionError("oh"), "failed", "The run ended with ZeroDivisionError: oh."),
    ],
)
def test_how_a_run_ended_is_told_by_what_was_raised(
    tmp_path: Path, fault: BaseException | None, status: str, said: str
) -> None:
    recording = record(tmp_path / "a.inspect", nn.RNN(2, 2))
    with pytest.raises(type(fault)) if fault is not None else nullcontext(), recording:
        if fault is not None:
            raise fault
    assert recording.stop is not None and (recording.stop.status, recording.stop.message) == (status, said)
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == status and capture.stop is not None and capture.stop.message == said
        assert [log.text for log in capture.logs] == (["line 3"] if isinstance(fault, ModelError) else [])


def test_a_run_without_numbers_leaves_the_capture_that_was_there_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "a.inspect"
    with record(folder, nn.RNN(2, 2), title="first"):
        pass
    second = record(folder, nn.RNN(2, 2), title="second", overwrite=True)
    with pytest.raises(ModelError), second:
        raise ModelError("The model raised x.")
    assert second.stop is not None
    assert second.stop.message == f"The model raised x. Nothing was captured; {folder} is as it was."
    with open_capture(folder) as capture:
        assert capture.start.title == "first" and capture.status == "done"


def test_a_disk_that_fails_is_not_called_the_end_of_the_run(tmp_path: Path) -> None:
    recording = record(tmp_path / "a.inspect", nn.RNN(2, 2))
    with pytest.raises(CaptureError), recording:
        raise CaptureError("The disk is full.")
    assert recording.stop is None
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "unfinished"


@pytest.mark.parametrize("given", [torch.zeros(3), torch.zeros(2, 3), "abc"])
def test_inputs_that_are_no_batch_are_told(tmp_path: Path, given: object) -> None:
    said = r"The inputs have .*; expected ids \(batch, step\)"
    with record(tmp_path / "a.inspect", nn.RNN(2, 2)) as recording, pytest.raises(InputError, match=said):
        recording.call(nn.RNN(2, 2), given)


def ended(folder: Path, title: str = "one") -> RunStart:
    start = RunStart(run=title, title=title, subject="m")
    with Writer(folder, start) as writer:
        writer.write(RunStop("done"))
    return start


def test_a_capture_is_added_to_only_by_its_own_run(tmp_path: Path) -> None:
    folder = tmp_path / "a.inspect"
    start = ended(folder)
    with pytest.raises(CaptureError, match="holds the capture of another run by now"):
        Writer(folder, RunStart(run="two", title="two", subject="m"), again=True)
    with pytest.raises(CaptureError, match="does not hold the capture of this run any more"):
        Writer(tmp_path / "b.inspect", start, again=True)
    assert not (tmp_path / "b.inspect").exists()
    with Writer(folder, start, again=True), pytest.raises(CaptureError, match="being written by another run"):
        Writer(folder, start, again=True)


class WithOwnFunction(nn.Module):
    """A loop whose step cannot be run again, for nobody sees the function in it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.inner(x[:, 0]))
        out = [h]
        for t in range(1, x.shape[1]):
            squashed: Tensor = Squash.apply(self.inner(x[:, t]) + self.outer(h))  # type: ignore[no-untyped-call]
            h = squashed * 0.9 + h * 0.1
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("retain", [False, True])
def test_a_graph_that_the_callers_backward_pass_let_go_is_said(tmp_path: Path, retain: bool) -> None:
    model, x = WithOwnFunction(), torch.randn(1, 5, 4)
    options = RunOptions(only=("states", "jacobian/frobenius_norm"))
    with record(tmp_path / "a.inspect", model) as recording, recording.call(model, x, options):
        model(x).square().sum().backward(retain_graph=retain)
    with open_capture(tmp_path / "a.inspect") as capture:
        refused = {one.channel for one in capture.refusals if "use backward(retain_graph=True)" in one.reason}
        assert refused == (set() if retain else {"model:gradient", "model:jacobian/frobenius_norm"})
        assert ("model:jacobian/frobenius_norm" in capture.channels) is retain
        assert capture.array("model:h").shape == (4, 4)
