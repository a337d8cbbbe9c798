"""What is open in the worker: another model takes its place only once that is open, whole, and still wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.capture import open_capture
from inspector.engine import errors
from inspector.engine.session import service as module
from inspector.engine.session.service import Service
from inspector.records import Failure, Finished, InputSpec, Load, Loaded, Run

MODEL = """
from torch import nn
class Model(nn.Module):
    def __init__(self, hidden=3):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
    def forward(self, x):
        return self.rnn(x)[0]
"""


@pytest.fixture
def said() -> list[Any]:
    return []


@pytest.fixture
def serving(tmp_path: Path, said: list[Any]) -> Service:
    """A service with a model open."""
    (tmp_path / "m.py").write_text(MODEL)
    service = Service(said.append)
    service.serve(Load(subject=f"{tmp_path / 'm.py'}:Model", trusted=True, generation=1))
    assert isinstance(said.pop(), Loaded)
    return service


def runs(service: Service, said: list[Any], tmp_path: Path) -> None:
    """The model that was open first still runs."""
    spec = InputSpec(kind="generated", value="noise", options={"steps": 4})
    service.serve(Run(path=str(tmp_path / "a.inspect"), input=spec, generation=9))
    assert isinstance(said[-1], Finished) and said[-1].stop.status == "done"
    assert service.opened is not None and service.opened.title == "m.py:Model"


@pytest.mark.parametrize("how", ["import", "callable", "checkpoint"])
def test_a_failed_open_leaves_the_model_before(serving: Service, said: list[Any], tmp_path: Path, how: str) -> None:
    (tmp_path / "bad.py").write_text("1 / 0" if how == "import" else MODEL)
    (tmp_path / "bad.pt").write_bytes(b"nothing of the kind")
    checkpoint = str(tmp_path / "bad.pt") if how == "checkpoint" else ""
    name = "Model" if how != "callable" else "Other"
    serving.serve(Load(subject=f"{tmp_path / 'bad.py'}:{name}", checkpoint=checkpoint, trusted=True, generation=2))
    assert isinstance(said[-1], Failure) and said[-1].generation == 2
    runs(serving, said, tmp_path)


def test_a_checkpoint_that_waits_for_a_word_leaves_the_model_before(
    serving: Service, said: list[Any], tmp_path: Path
) -> None:
    partly = {"rnn.weight_ih_l0": torch.zeros(9, 2), "other.weight": torch.zeros(2)}
    torch.save(partly, tmp_path / "w.pt")
    load = Load(subject=f"{tmp_path / 'm.py'}:Model", checkpoint=str(tmp_path / "w.pt"), trusted=True)
    serving.serve(load)
    assert said[-1].needs_consent
    runs(serving, said, tmp_path)


def test_a_cancel_while_a_model_is_opened_forgets_it(
    serving: Service, said: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = module.open_subject

    def slowly(load: Load, code: Any) -> Any:
        opened = whole(load, code)
        serving.cancel()
        return opened

    monkeypatch.setattr(module, "open_subject", slowly)
    serving.serve(Load(subject=f"{tmp_path / 'm.py'}:Model", arguments={"hidden": 7}, trusted=True, generation=2))
    assert said[-1].kind == "cancelled" and said[-1].request == "Load" and said[-1].generation == 2
    runs(serving, said, tmp_path)
    assert serving.opened is not None and serving.opened.subject.model.rnn.hidden_size == 3


def test_a_cancel_counts_for_what_waits_and_not_for_what_comes_after(said: list[Any], tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    service = Service(said.append)
    load = Load(subject=f"{tmp_path / 'm.py'}:Model", trusted=True)
    spec = InputSpec(kind="generated", value="noise", options={"steps": 4})
    run = Run(path=str(tmp_path / "a.inspect"), input=spec, overwrite=True)
    service.received()
    service.serve(load)
    for _ in range(2):
        service.received()
    service.cancel()  # two runs wait
    service.received()  # and one comes after
    for status in ("cancelled", "cancelled", "done"):
        service.serve(run)
        assert said[-1].stop.status == status


@pytest.mark.parametrize(
    ("method", "line", "said_of_it"),
    [("def named_parameters(self, *a, **k): raise RuntimeError('none here')", 9, "none here"),
     ("def __getattr__(self, name):\n        if name in ('rnn', 'training') or name[0] == '_': return super().__getattr__(name)\n"
      "        raise LookupError(name)", 11, "input_size")],
)  # fmt: skip
def test_code_of_the_model_that_raises_where_it_is_only_looked_at_is_named(
    serving: Service, said: list[Any], tmp_path: Path, method: str, line: int, said_of_it: str
) -> None:
    (tmp_path / "odd.py").write_text(f"{MODEL}    {method}\n")
    serving.serve(Load(subject=f"{tmp_path / 'odd.py'}:Model", trusted=True, generation=2))
    failure = said[-1]
    assert isinstance(failure, Failure) and failure.kind == "model" and failure.generation == 2
    assert f"Error (odd.py, line {line})" in failure.message and said_of_it in failure.message
    runs(serving, said, tmp_path)


def test_a_fault_of_this_program_is_not_the_models(serving: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_subject", lambda *_: 1 / 0)
    monkeypatch.setattr(errors, "__file__", str(Path(__file__).parent / "inspector" / "errors.py"))  # its own files
    with pytest.raises(ZeroDivisionError):
        serving.serve(Load(subject="anything", trusted=True))


def test_a_state_of_no_numbers_is_refused_by_each_quantity_and_the_run_ends_well(
    serving: Service, said: list[Any], tmp_path: Path
) -> None:
    """torch lets a cell have no units; no work, limit or product may divide by them."""
    (tmp_path / "none.py").write_text(
        MODEL.replace("nn.GRU(2, hidden, batch_first=True)", "nn.GRUCell(2, 0)").replace(
            "        return self.rnn(x)[0]",
            "        h = x.new_zeros(len(x), 0)\n        for step in x.unbind(1):\n            h = self.rnn(step, h)\n        return h",
        )
    )
    serving.serve(Load(subject=f"{tmp_path / 'none.py'}:Model", trusted=True, generation=2))
    spec = InputSpec(kind="generated", value="noise", options={"steps": 6})
    serving.serve(Run(path=str(tmp_path / "none.inspect"), input=spec, generation=3))
    assert isinstance(said[-1], Finished) and said[-1].stop.status == "done"
    with open_capture(tmp_path / "none.inspect") as capture:
        assert "The state of rnn has no numbers." in {one.reason for one in capture.refusals}
