"""Questions about a run that has ended: answered from its trace, with the numbers that the run itself would have
given, and where that cannot be, with one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Capture, Writer, open_capture
from inspector.engine.registries import QUANTITIES
from inspector.engine.session import later
from inspector.engine.session import service as module
from inspector.engine.session.service import Service
from inspector.records import Analyse, Edit, Failure, Finished, InputSpec, Load, Loaded, Run, RunStop

SUBJECTS = """
import torch
from types import SimpleNamespace
from torch import nn

class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True), nn.Linear(10, 4)
    def forward(self, x):
        calls.append(1)
        return self.head(self.rnn(x)[0])

class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), nn.Linear(4, 4)
    def forward(self, x):
        calls.append(1)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layer(x, src_mask=mask, is_causal=True))

class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        calls.append(1)
        h, out = x.new_zeros(len(x), 4), []
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.inner(x[:, t]) - h)
            h = z * h + (1 - z) * torch.tanh(self.outer(h) + self.inner(x[:, t]))
            out.append(h)
        return self.head(torch.stack(out, 1))

calls = []

def make(kind):
    torch.manual_seed(2)
    model = {"fused": Fused, "attention": Attending, "loop": Loop}[kind]()
    width = 4 if kind == "attention" else 3
    def loss(output, batch):
        return output.square().sum(-1)
    return SimpleNamespace(model=model, width=width, kind="vectors", loss=loss, calls=calls)
"""
KINDS = ("fused", "attention", "loop")
SPEC = InputSpec(kind="generated", value="noise", options={"steps": 9})


class Asked:
    """A service with a model open, and what it said."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.said: list[Any] = []
        self.folder = folder
        (folder / "m.py").write_text(SUBJECTS)
        self.service = Service(self.said.append)
        self.open(kind)

    def open(self, kind: str) -> None:
        load = Load(subject=f"{self.folder / 'm.py'}:make", arguments={"kind": kind}, trusted=True)
        self.service.serve(load)
        assert isinstance(self.said[-1], Loaded), self.said[-1]

    def run(self, name: str, *quantities: str, edits: tuple[Edit, ...] = ()) -> Path:
        path = self.folder / f"{name}.inspect"
        self.service.serve(Run(path=str(path), input=SPEC, only=quantities, edits=edits, seed=4))
        assert isinstance(self.said[-1], Finished) and self.said[-1].stop.status == "done", self.said[-1]
        return path

    def ask(self, path: Path, *quantities: str) -> Any:
        self.service.serve(Analyse(path=str(path), quantities=quantities, generation=5))
        assert self.said[-1].generation == 5
        return self.said[-1]

    @property
    def calls(self) -> int:
        """How often the model was called."""
        assert self.service.opened is not None
        return len(self.service.opened.subject.model.forward.__globals__["calls"])


def held(capture: Capture) -> dict[tuple[str, int], tuple[tuple[int, ...], bytes]]:
    """The bytes of every channel in every frame."""
    found = {}
    for name in capture.channels:
        for frame in capture.frames:
            if capture.revision(name, frame.index):
                array = np.ma.getdata(capture.array(name, frame.index))
                found[name, frame.index] = (array.shape, array.tobytes())
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_asked_later_is_bit_identical_to_asked_at_once(tmp_path: Path, kind: str) -> None:
    asked = Asked(tmp_path, kind)
    everything = tuple(QUANTITIES)
    whole = asked.run("whole", *everything)
    path = asked.run("later", "states", "clipping")
    before = asked.calls
    again = {"influence", "depth/parameters"}  # which run the model on other inputs, whenever they are asked
    with open_capture(path) as live:
        few = set(live.channels)
        answer = asked.ask(path, *(key for key in everything if key not in again))
        assert isinstance(answer, Finished) and answer.stop.status == "done", answer
        assert asked.calls == before
        assert live.changed() and live.refresh() > frozenset()
        assert set(live.channels) > few, "an open capture does not see what was added"
    assert asked.ask(path, *again).stop.status == "done"
    with open_capture(whole) as first, open_capture(path) as second:
        expected, found = held(first), held(second)
        assert expected.keys() == found.keys() and len(expected) > 15
        assert [key for key in expected if expected[key] != found[key]] == []
        assert {c.name: c for c in first.channels.values()} == {c.name: c for c in second.channels.values()}
        scalars = [{(s.name, repr(s.value)) for s in one.scalars if "seconds" not in s.name} for one in (first, second)]
        assert scalars[0] == scalars[1]
        assert {(r.channel, r.reason) for r in first.refusals} == {(r.channel, r.reason) for r in second.refusals}
        assert second.status == "done" and not second.damage and len(second.frames) == 1


def test_both_frames_of_an_edited_run_are_answered(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    edits = (Edit(place="rnn.l0", signal="gate/forget", unit=1, value=0.0, start=3, stop=6),)
    whole = asked.run("whole", "states", "gates", "jacobian/lag", "influence", edits=edits)
    path = asked.run("later", "states", edits=edits)
    assert isinstance(asked.ask(path, "gates", "jacobian/lag", "influence"), Finished)
    with open_capture(whole) as first, open_capture(path) as second:
        assert held(first) == held(second) and len(first.frames) == 2
        assert not np.array_equal(second.array("rnn.l0:gate/forget", 0), second.array("rnn.l0:gate/forget", 1))


def test_what_was_computed_is_not_computed_twice(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    asked.ask(path, "states", "gates")
    with open_capture(path) as capture:
        pages = held(capture)
    assert asked.ask(path, "gates").stop.message == "gates: computed in this run already."
    with open_capture(path) as capture:
        assert held(capture) == pages and not capture.damage


def needs_run(answer: Any) -> str:
    assert isinstance(answer, Failure) and answer.kind == "needs run", answer
    return answer.message


def test_why_a_new_run_is_needed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    said = needs_run(asked.ask(path, "clipping", "gates"))
    assert said == (
        "clipping needs the gradients of all parameters, which a run stores only if it is requested from the start."
    )
    assert isinstance(asked.ask(path, "gates", "gradient/vectors@0:2"), Finished)
    said = needs_run(asked.ask(path, "gradient/vectors@0:3"))
    assert said.startswith("gradient/vectors@0:3 was computed in this run with other options")
    another = tmp_path / "another.inspect"
    assert (
        needs_run(asked.ask(another, "jacobian/lag"))
        == "The run that is stored in memory is that of a.inspect, so jacobian/lag needs a new run."
    )
    unknown = asked.ask(path, "nonsense")
    assert isinstance(unknown, Failure) and unknown.kind == "input" and "no quantity 'nonsense'" in unknown.message
    asked.open("loop")
    assert (
        needs_run(asked.ask(path, "jacobian/lag"))
        == "No run of this model is stored in memory, so jacobian/lag needs a new run."
    )
    monkeypatch.setattr(later, "MOST_BYTES", 1000)
    path = asked.run("b", "states")
    assert "too large to be stored in memory" in needs_run(asked.ask(path, "jacobian/lag", "gates"))
    assert needs_run(asked.ask(path, "jacobian/lag", "gates")).endswith("so jacobian/lag, gates need a new run.")


def test_options_of_a_quantity_count_and_one_capture_holds_it_once(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    whole = asked.run("whole", "states", "gradient/vectors@2:5")
    path = asked.run("later", "states")
    assert isinstance(asked.ask(path, "gradient/vectors@2:5"), Finished)
    with open_capture(whole) as first, open_capture(path) as second:
        assert held(first) == held(second) and len(held(first)) > 6
    assert "already" in asked.ask(path, "gradient/vectors@2:5").stop.message
    said = "gradient/vectors@5:7 was computed in this run with other options, and one capture holds it once."
    assert needs_run(asked.ask(path, "gradient/vectors@5:7")) == said
    wrong = asked.ask(path, "gradient/vectors@5:2")
    assert isinstance(wrong, Failure) and wrong.kind == "input"


def test_a_question_that_is_cancelled_leaves_the_run_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    gates = QUANTITIES["gates"]

    def stopped(trace: Any, emit: Any) -> None:
        gates.run(trace, emit)
        asked.service.cancel()

    monkeypatch.setitem(QUANTITIES._entries, "gates", module.replace(gates, run=stopped))
    asked.service.received()
    answer = asked.ask(path, "gates", "jacobian/lag")
    assert isinstance(answer, Finished) and answer.stop.status == "cancelled"
    with open_capture(path) as capture:
        assert capture.status == "done" and "rnn.l0:gate/forget" in capture.channels and not capture.damage
        assert "rnn.l0:jacobian/lag" not in capture.channels
    assert "No run" in needs_run(asked.ask(path, "jacobian/lag"))


def test_a_run_that_was_replaced_on_disk_is_not_added_to(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    with open_capture(path) as capture:
        start = capture.start
    with Writer(path, module.replace(start, run="another"), overwrite=True) as writer:
        writer.write(RunStop("done"))
    answer = asked.ask(path, "gates")
    assert isinstance(answer, Failure) and "holds the capture of another run by now" in answer.message
    with open_capture(path) as capture:
        assert capture.start.run == "another" and not capture.channels


def test_another_run_lets_go_of_the_one_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    asked.run("a", "states")
    assert asked.service._kept.frames
    kept: list[int] = []
    monkeypatch.setattr(module, "batch_of_spec", lambda *_: kept.append(len(asked.service._kept.frames)) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        asked.service.serve(Run(path=str(tmp_path / "b.inspect"), input=SPEC))
    assert kept == [0]


def test_tensors_are_counted_once_however_often_they_are_reached() -> None:
    import torch
    from torch import nn

    one = torch.zeros(1000)
    assert later.tensor_bytes([one, {"a": one[10:20]}, (one, nn.Linear(50, 50))]) == 4000
