"""A kept iteration is run again, bit for bit, and shows what made its gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from trainings import MODELS, VOCABULARY, batches, loss_of

import inspector
from inspector.analysis.spike_origin import origin_verdict, read_origin
from inspector.engine.errors import InputError
from inspector.engine.model.subject import adopt
from inspector.engine.session.spike.kept_step import read_step
from inspector.engine.session.spike.replay import Replay, restored
from inspector.engine.session.spike.shares import shares_of

AT, BAD_SAMPLE, BAD_STEP = 27, 2, 3


def losses(model: nn.Module, ids: Tensor, blown: bool) -> Tensor:
    """Cross entropy of the next id; of one sample and step many times as much."""
    output = model(ids[:, :-1]).float()
    found = nn.functional.cross_entropy(output.transpose(1, 2), ids[:, 1:], reduction="none")
    if blown:
        weights = torch.ones_like(found)
        weights[BAD_SAMPLE, BAD_STEP] = 1e4
        found = found * weights
    return found.mean()


def trained(path: Path, kind: str, accumulate: int = 1, scaler: Any = None) -> dict[str, Tensor]:
    """Train with a spike; the gradients of its iteration."""
    torch.manual_seed(0)
    model = MODELS[kind]()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    expected: dict[str, Tensor] = {}
    with inspector.watch(model, optimizer, path, every=1) as watcher:
        for n, ids in enumerate(batches(30 * accumulate)):
            loss = losses(model, ids, blown=n == AT * accumulate)
            (loss if scaler is None else scaler.scale(loss)).backward()
            if (n + 1) % accumulate:
                continue
            if scaler is not None:
                scaler.unscale_(optimizer)
            if n // accumulate == AT:
                expected = {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}
            optimizer.step() if scaler is None else scaler.step(optimizer)
            if scaler is not None:
                scaler.update()
            optimizer.zero_grad()
        assert watcher.error is None
    return expected


@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_the_gradient_is_the_same_bits_and_its_parts_are_told(kind: str, tmp_path: Path) -> None:
    expected = trained(tmp_path / "run.inspect", kind)
    kept = tmp_path / "run.inspect" / "spikes" / "0001.safetensors"
    step = read_step(kept)
    assert step.iteration == AT + 1 and step.exact
    assert all(one.any() for name, one in expected.items() if "embedding" in name or "hh" in name or "attn" in name)
    torch.manual_seed(3)
    again = MODELS[kind]()
    before = {name: one.clone() for name, one in again.state_dict().items()}
    subject = restored(adopt(again), step)
    whole, of_sample = shares_of(Replay(subject, step, step.calls[0]), lambda: None)
    assert all(torch.equal(whole.gradients[name], one) for name, one in expected.items())
    assert whole.samples is not None and whole.samples.largest == BAD_SAMPLE
    assert float(whole.samples.share.sum()) == pytest.approx(1, abs=1e-4)
    assert float(whole.samples.share[BAD_SAMPLE]) > 0.9
    steps = of_sample(BAD_SAMPLE)
    assert steps is not None and steps.largest == BAD_STEP and float(steps.share.sum()) == pytest.approx(1, abs=1e-4)
    random = torch.get_rng_state()
    with inspector.run(again, spike=kept, out=tmp_path / "again.inspect") as capture:
        origin = read_origin(capture)
        assert capture.status == "done" and origin.sample == BAD_SAMPLE and origin.check < 1e-5
        verdict = origin_verdict(origin)
        assert verdict.word == "one" and verdict.numbers["step"] == BAD_STEP
        assert f"sample {BAD_SAMPLE} of 4" in verdict.sentence and f"loss step {BAD_STEP}" in verdict.sentence
        about = capture.start.meta["spike"]
        assert about["iteration"] == AT + 1 and about["chronology"].startswith("first the loss at iteration 28")
        assert capture.frames[0].step == AT + 1
        assert any(one.channel == "output:loss" and "targets" in one.reason for one in capture.refusals)
        assert "output:loss" not in capture.channels
        if kind == "rnn":
            gradient = capture.array("rnn.l1:gradient/state_norm")
            assert gradient.shape == (6,) and (gradient[BAD_STEP + 1 :] < 1e-3 * gradient[BAD_STEP]).all()
            assert "source" in verdict.numbers and verdict.numbers["source"] <= BAD_STEP
    assert torch.equal(random, torch.get_rng_state())  # and the model is as it was
    assert all(torch.equal(one, before[name]) for name, one in again.state_dict().items())


def test_calls_of_an_accumulated_and_scaled_iteration_add_up(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    trained(tmp_path / "run.inspect", "gru", accumulate=3, scaler=scaler)
    kept = tmp_path / "run.inspect" / "spikes" / "0001.safetensors"
    with inspector.run(MODELS["gru"](), spike=kept, out=tmp_path / "again.inspect") as capture:
        origin = read_origin(capture)
        assert origin.sample == BAD_SAMPLE and origin.check < 1e-5
        assert any("called 3 times" in log.text for log in capture.logs)


def test_a_part_of_the_loss_that_the_output_does_not_show_is_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for n in range(30):
            penalty = sum(one.square().sum() for one in model.parameters()) * 100
            ((model(torch.randn(2, 4, 2))[0].square().mean() + penalty) * (1e4 if n == 25 else 1)).backward()
            optimizer.step() if n != 25 else None
            optimizer.step() if n == 25 else None
            optimizer.zero_grad()
    kept = tmp_path / "run.inspect" / "spikes" / "0001.safetensors"
    with inspector.run(nn.RNN(2, 3, batch_first=True), spike=kept, out=tmp_path / "again.inspect") as capture:
        assert read_origin(capture).check > 0.1
        assert any("a penalty on weights" in log.text and log.level == "warning" for log in capture.logs)


def test_what_does_not_fit_is_refused_with_the_reason(tmp_path: Path) -> None:
    trained(tmp_path / "run.inspect", "gru")
    kept = tmp_path / "run.inspect" / "spikes" / "0001.safetensors"
    with pytest.raises(InputError, match="no iteration of RNN"):
        inspector.run(nn.RNN(2, 3), spike=kept)
    with pytest.raises(InputError, match="There is no file"):
        inspector.run(MODELS["gru"](), spike=tmp_path / "nothing.safetensors")
    with pytest.raises(InputError, match="no `sequence`, `data` or `edits` with it"):
        inspector.run(MODELS["gru"](), spike=kept, edits=["rnn.l0:h=0"])
    (tmp_path / "bad.safetensors").write_bytes(kept.read_bytes()[:300])
    with pytest.raises(InputError, match="no iteration that a watched training kept"):
        inspector.run(MODELS["gru"](), spike=tmp_path / "bad.safetensors")
    assert VOCABULARY and loss_of


GOOD = {"call 0/form": {"args": {"tuple": [{"tensor": None}]}, "kwargs": {"dict": {}}}}


@pytest.mark.parametrize(
    "calls",
    [
        [], {"1": []}, {"1": {"call 0/form": 3}}, {"1": {"call 0/form": {"args": {"list": "abc"}}}},
        {"1": {"call 0/form": {"args": {"tuple": [{"other": "object"}]}, "kwargs": {"dict": {}}}}},
        {"1": {**GOOD, "call 0/module": "no.such.module"}}, {"1": {**GOOD, "call 0/module": 7}},
        {"1": {**GOOD, "call 0/autocast": {"cpu": "save"}}}, {"1": {**GOOD, "call 0/autocast": {"moon": "bfloat16"}}},
    ],
)  # fmt: skip
def test_a_file_from_elsewhere_is_read_as_data(calls: Any, tmp_path: Path) -> None:
    """What it describes is done or refused; a failure of the model's ends with its sentence."""
    import json

    from safetensors.torch import save_file

    from inspector.engine.errors import ModelError

    model = nn.RNN(2, 3, batch_first=True)
    named = {f"before/{name}": one.detach().clone() for name, one in model.named_parameters()}
    named["iteration 1/call 0/args/0"] = torch.randn(2, 4, 2)
    named["iteration 1/call 0/output gradient"] = torch.randn(2, 4, 3)
    named["iteration 1/call 0/random"] = torch.zeros(3, dtype=torch.uint8)  # no state of a generator
    about = {"iteration": 1, "text": "x", "parameters before the step": True, "calls": calls, "strides": {"a": [1]}}
    save_file(named, tmp_path / "0001.safetensors", metadata={"inspector": json.dumps(about)})
    with pytest.raises((InputError, ModelError)) as refused:
        inspector.run(model, spike=tmp_path / "0001.safetensors", out=tmp_path / "again.inspect")
    assert len(str(refused.value).splitlines()) == 1


def test_a_model_that_answers_once_and_arguments_that_are_no_tensors(tmp_path: Path) -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2)

        def forward(self, x: Tensor, *, scale: float, parts: Any = None) -> Tensor:
            found: Tensor = self.head(self.rnn(x)[0][:, -1]) * scale + parts["shift"][0]
            return found

    torch.manual_seed(0)
    model = Last()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for n in range(30):
            x = torch.randn(4, 6, 3)
            x[1] *= 1000 if n == 25 else 1
            loss = model(x, scale=2.0, parts={"shift": [torch.ones(2), "word"]}).square()
            (loss * torch.tensor([1.0, 1e5 if n == 25 else 1.0, 1.0, 1.0])[:, None]).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    kept = tmp_path / "run.inspect" / "spikes" / "0001.safetensors"
    with inspector.run(Last(), spike=kept, out=tmp_path / "again.inspect") as capture:
        origin = read_origin(capture)
        assert origin.sample == 1 and origin.check < 1e-5
        assert origin.steps is not None and np.isnan(origin.steps[:-1]).all() and origin.steps[-1] == pytest.approx(1)


def test_samples_whose_gradient_is_not_finite_are_named(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for n in range(30):
            output = model(torch.randn(5, 4, 2))[0]
            root = (output - output.detach()).square().sum(-1)[3, 2].sqrt() if n == 29 else 0.0
            loss = output.square().mean() + root
            loss.backward()  # the root of 0 has no gradient
            optimizer.step()
            optimizer.zero_grad()
    kept = tmp_path / "run.inspect" / "spikes" / "0001.safetensors"
    with inspector.run(nn.RNN(2, 3, batch_first=True), spike=kept, out=tmp_path / "again.inspect") as capture:
        origin = read_origin(capture)
        assert capture.status == "done" and origin.sample == 3
        said = "the gradient is not finite in 1 of 5 samples: 3; of sample 3 at 1 loss step: 2"
        assert (origin_verdict(origin).word, origin_verdict(origin).sentence) == ("not finite", said)


def test_the_command_runs_a_kept_iteration_and_says_what_made_it(tmp_path: Path) -> None:
    from commands import called

    trained(tmp_path / "run.inspect", "gru")
    support = Path(__file__).parents[1] / "support" / "trainings.py"
    (tmp_path / "model.py").write_text(
        f"import sys; sys.path.insert(0, {str(support.parent)!r})\nfrom trainings import MODELS\nmake = MODELS['gru']\n"
    )
    done = called("run", "model.py:make", "--spike", "run.inspect/spikes/0001.safetensors", "--out", "again.inspect",
                  cwd=tmp_path)  # fmt: skip
    assert done.code == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert (
        first.startswith("Gradient: sample 2 of 4 (the first is 0) has ") and "recorded gradient norms are met" in first
    )
    assert second.startswith("Chronology: first the loss at iteration 28 (")
    done = called("run", "model.py:make", "--spike", "x", "--text", "y", cwd=tmp_path)
    assert (done.code, len(done.stderr.splitlines())) == (2, 1) and "one iteration" in done.stderr
