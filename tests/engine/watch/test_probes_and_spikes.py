"""Frames of the app's own quantities during training, and what is kept when something happens."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional as F
from trainings import VOCABULARY, Case, batches, loss_of, train

import inspector
from inspector.engine.watch import probing
from inspector.engine.watch.gradients import GLOBAL
from inspector.engine.watch.kept.spikes import Spikes


def by_step(output: Tensor, batch: Any) -> Tensor:
    return F.cross_entropy(output.transpose(1, 2), batch.inputs, reduction="none")


PROBE = torch.randint(0, VOCABULARY, (2, 5), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("model", ["lstm", "transformer"])
@pytest.mark.parametrize("training", [False, True])
def test_probing_changes_nothing(model: str, training: bool, tmp_path: Path) -> None:
    case = Case(model=model)
    options = {"probe": PROBE, "probe_loss": by_step, "probe_training": training, "probe_every": 10}

    def attach(model: nn.Module, optimizer: Any) -> Any:
        return inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1, **options)

    assert train(case, 30, attach) == train(case, 30)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert [frame.step for frame in capture.frames] == [0, 10, 20, 30]
        assert [frame.label for frame in capture.frames][-1] == "iteration 30"
        assert capture.frame_of("training:loss") == 0 and len(capture.array("training:loss")) == 30
        assert capture.frame_of("output:loss") == 3
        if model == "lstm":
            assert capture.array("rnn.l0:h", 0).shape == (5, 8)
            assert not np.array_equal(capture.array("rnn.l0:h", 0), capture.array("rnn.l0:h", 3))
        assert not capture.damage


def test_frames_of_a_probe_are_further_and_further_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "SHARE", 1e9)
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    options = {"probe": torch.randn(1, 4, 2), "quantities": ("states",), "every": 50}
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", cost="light", **options):
        for _ in range(300):
            model(torch.randn(2, 4, 2))[0].square().mean().backward()
            optimizer.step()
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        steps = [frame.step for frame in capture.frames]
        assert steps[:6] == [0, 1, 2, 3, 4, 5] and len(steps) < 30
        gaps = np.diff(np.array(steps, dtype=float))
        assert (np.diff(gaps) >= 0).all() and gaps[-1] >= 40


@pytest.mark.parametrize("every", [10, None])
def test_what_events_and_pauses_add_moves_no_other_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int | None
) -> None:
    monkeypatch.setattr(probing, "SHARE", 1e9)

    def steps(name: str, added: tuple[int, ...]) -> list[int | None]:
        model = nn.RNN(2, 3, batch_first=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        options = {"probe": torch.randn(1, 4, 2), "quantities": ("states",), "probe_every": every}
        with inspector.watch(model, optimizer, tmp_path / name, every=5, cost="light", **options) as watcher:
            for iteration in range(1, 61):
                model(torch.randn(2, 4, 2))[0].square().mean().backward()
                optimizer.step()
                if iteration in added:
                    (watcher._prober.at_event if iteration % 2 else watcher._prober.at_pause)(iteration, "spike")
        with inspector.open_capture(tmp_path / name) as capture:
            return [frame.step for frame in capture.frames]

    alone = steps("alone.inspect", ())
    assert every is None or alone == list(range(0, 61, every))
    added = (13, 14, 27, 31, 42)
    assert not set(added) & set(alone)
    assert steps("added.inspect", added) == sorted([*alone, *added])


@pytest.mark.parametrize(("every", "count"), [(None, 1), (10, 4)])
def test_frames_take_a_tenth_of_the_time_unless_their_distance_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int | None, count: int
) -> None:
    monkeypatch.setattr(probing.Prober, "_perform", lambda self, frame: (self._sink.write(frame), time.sleep(0.2)))
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    began = time.monotonic()
    options = {"probe": torch.randn(1, 4, 2), "every": 1, "probe_every": every, "cost": "light"}
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", **options):
        for _ in range(31):
            model(torch.randn(2, 4, 2))[0].square().mean().backward()
            optimizer.step()
    most = count if every else 1 + int((time.monotonic() - began) / 2)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert count <= len(capture.frames) <= most


def test_a_probe_that_fails_is_the_last_one_and_watching_goes_on(tmp_path: Path) -> None:
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1, probe=torch.randn(1, 4, 7)) as watcher:
        for _ in range(5):
            model(torch.randn(2, 4, 2))[0].square().mean().backward()
            optimizer.step()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert len(capture.array("training:loss")) == 5 and len(capture.frames) == 1
        assert sum("probe" in log.text for log in capture.logs) == 1


def test_a_model_that_is_cast_while_it_trains_is_watched_further(tmp_path: Path) -> None:
    """Its states are channels of another dtype, which the capture of the first frames cannot hold."""
    model = nn.RNN(2, 3, batch_first=True)
    x = torch.randn(2, 4, 2)
    options: dict[str, Any] = {"every": 1, "probe": torch.randn(1, 4, 2), "probe_every": 1}
    with inspector.watch(model, None, tmp_path / "run.inspect", **options) as watcher:
        for n in range(6):
            if n % 3 == 0:
                model.to(torch.float64 if n else torch.float32)
                optimizer = torch.optim.SGD(model.parameters(), 0.01)
            model(x.to(model.weight_hh_l0.dtype))[0].square().mean().backward()
            optimizer.step()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert len(capture.array("training:loss")) == 6 and len(capture.frames) >= 3
        assert sum("there is no other" in log.text and "float64" in log.text for log in capture.logs) == 1


def test_a_norm_far_above_the_last_200_is_a_spike() -> None:
    spikes = Spikes()
    random = np.random.default_rng(0)
    told = [spikes.judge({GLOBAL: {0: float(value)}}) for value in random.normal(1, 0.1, 400)]
    assert not any(told)
    assert spikes.judge({GLOBAL: {0: 1.5}}) is None
    found = spikes.judge({GLOBAL: {0: 5.0}})
    assert found is not None and found[0] == "spike" and "5" in found[1]
    assert spikes.judge({GLOBAL: {0: float("nan")}}) == ("non-finite", "the gradient norm became NaN or infinite")
    assert spikes.judge({GLOBAL: {0: float("nan")}}) is None  # it lasts
    assert spikes.judge({GLOBAL: {0: 1.0}}) is None
    assert spikes.judge({GLOBAL: {0: float("inf")}}) is not None


def test_equal_norms_have_no_spikes_by_rounding() -> None:
    spikes = Spikes()
    assert not any(spikes.judge({GLOBAL: {0: 1.0 + 1e-6 * (n % 7 == 6)}}) for n in range(100))


def test_a_spike_is_kept_with_all_that_its_gradient_needs(tmp_path: Path) -> None:
    """From the file alone the gradient of the iteration is computed again, dropout and all."""
    from trainings import MODELS

    torch.manual_seed(0)
    model = MODELS["gru"]()  # of the LSTM nearly all states are below 0, and its gradients 0
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    expected: dict[str, Tensor] = {}
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1, probe=PROBE) as watcher:
        for n, ids in enumerate(batches(30)):
            loss = loss_of(model, ids) * (1e4 if n == 27 else 1.0)
            loss.backward()
            if n == 27:
                expected = {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}
            optimizer.step()
            optimizer.zero_grad()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        (event,) = capture.events
        assert event.kind == "spike" and event.iteration == 28 and "kept in spikes/0001.safetensors" in event.text
        assert capture.frames[event.frame].step == 28 and "spike" in capture.frames[event.frame].label
    with safe_open(tmp_path / "run.inspect" / "spikes" / "0001.safetensors", "pt") as file:
        kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        about = json.loads(file.metadata()["inspector"])
    assert about["iteration"] == 28 and about["parameters before the step"] is True and about["snapshot"] == 1
    assert expected["rnn.weight_hh_l0"].any()
    again = MODELS["gru"]()
    again.load_state_dict({name: kept[f"before/{name}"] for name in again.state_dict()})
    torch.set_rng_state(kept["iteration 28/call 0/random"])
    output = again(kept["iteration 28/call 0/args/0"])
    output.backward(kept["iteration 28/call 0/output gradient"])
    for name, one in again.named_parameters():
        assert one.grad is not None and torch.equal(one.grad, expected[name]), name


def test_equal_batches_have_equal_hashes(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    one, two = torch.randn(4, 3), torch.randn(4, 3)
    swapped = one[[1, 0, 2, 3]]
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for x in (one, two, one, swapped):
            model(x).sum().backward()
            optimizer.step()
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        a, b, again, other = capture.array("training:batch_hash")
        assert a == again and len({a, b, other}) == 3


def test_a_large_batch_is_left_out_of_the_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.engine.watch.kept.ring.BYTES", 1000)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1) as watcher:
        for n in range(25):
            (model(torch.randn(400, 3)).sum() * (1e6 if n == 24 else 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
        ring = watcher._ring
        assert ring is not None and all(kept.nbytes <= 1000 for kept in ring._ring)
    assert watcher.error is None


class Letters:
    """A subject: its model is another one than the one that is watched."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Embedding(4, 3))
        self.name, self.vocabulary = "letters", "abcd"
        self.examples = {"first": "dcba"}
        self.loss = lambda output, batch: by_step(output, batch)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(4, 3), nn.GRU(3, 5, batch_first=True), nn.Linear(5, 4)

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.head(self.rnn(self.embedding(ids))[0])
        return found


@pytest.mark.parametrize(
    ("probe", "steps"),
    [("text:abba", "abba"), ("example:first", "dcba"), (inspector.sequence("ids", "2 1"), "cb")],
    ids=["text", "example", "ids"],
)
def test_a_probe_may_be_an_input_of_a_subject(probe: Any, steps: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    subject = Letters()
    before = torch.get_rng_state()
    with inspector.watch(
        model, optimizer, tmp_path / "run.inspect", every=1, probe=probe, probe_subject=subject, probe_every=1
    ) as watcher:
        assert torch.equal(before, torch.get_rng_state())
        for _ in range(2):
            model(torch.randint(0, 4, (2, 6))).square().mean().backward()
            optimizer.step()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert not [log.text for log in capture.logs if "probe" in log.text]
        assert capture.labels("step", 2) == tuple(steps) and len(capture.frames) == 3
        assert capture.array("rnn.l0:h", 2).shape == (len(steps), 5)
        assert not np.array_equal(capture.array("rnn.l0:h", 0), capture.array("rnn.l0:h", 2))  # the model is watched
        assert capture.array("rnn.l0:gradient/state_norm", 0).all() and "output:loss" in capture.channels


def test_a_named_subject_gives_its_conventions_and_draws_nothing(tmp_path: Path) -> None:
    (tmp_path / "letters.py").write_text(
        "import torch\nfrom torch import nn\nclass S:\n    model = nn.Embedding(4, 3)\n    vocabulary = 'abcd'\n"
        "def make():\n    torch.rand(3)\n    return S()\n"
    )
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before = torch.get_rng_state()
    name = f"{tmp_path / 'letters.py'}:make"
    inspector.watch(model, optimizer, tmp_path / "run.inspect", probe="text:ab", probe_subject=name).close()
    assert torch.equal(before, torch.get_rng_state())
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.labels("step", 0) == ("a", "b")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"probe": "hello"}, "KIND:VALUE"), ({"probe": "txt:hello"}, "KIND:VALUE"),
        ({"probe": "text:hello"}, "vocabulary"), ({"probe_subject": Letters()}, "without a probe"),
        ({"probe": "text:xyz", "probe_subject": Letters()}, "x"),
    ],
)  # fmt: skip
def test_a_probe_that_cannot_be_made_is_refused(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(inspector.engine.errors.InputError, match=said):  # type: ignore[attr-defined]
        inspector.watch(model, optimizer, tmp_path / "run.inspect", **options)
    assert not (tmp_path / "run.inspect").exists()
