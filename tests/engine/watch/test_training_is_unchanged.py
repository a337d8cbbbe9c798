"""A watched training ends with the same bits as one that is not watched: parameters, optimizer, losses, random state, and
what it raised on the way."""

from __future__ import annotations

import copy
import io
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import nn
from trainings import Case, Recurrent, batches, loss_of, train

import inspector

LONG = [
    *(Case(model=model, optimizer=optimizer) for model in ("rnn", "gru", "lstm", "transformer") for optimizer in ("sgd", "adam", "adamw")),
    Case(model="lstm", optimizer="adamw, fused"),
]  # fmt: skip
SHORT = [
    Case(model="gru", accumulate=3),
    Case(model="transformer", accumulate=3, optimizer="sgd"),
    Case(model="lstm", autocast=True, scaler=True),
    Case(model="transformer", autocast=True, scaler=True, optimizer="adam"),
    Case(model="transformer", scaler=True, optimizer="adamw, fused"),
    Case(model="lstm, checkpointed"),
    Case(model="transformer, checkpointed"),
    Case(model="gru", average=True),
    Case(model="transformer", average=True),
    Case(model="rnn", skip=True),
    Case(model="lstm", half=True),
    Case(model="transformer", evaluate=True),
    Case(model="cells"),
    Case(model="cells", optimizer="rmsprop"),
    Case(model="tied"),
    Case(model="normed"),
    Case(model="rnn", optimizer="rmsprop", schedule=True),
    Case(model="transformer", optimizer="adagrad", schedule=True),
    Case(model="gru", twice=True),
    Case(model="transformer", twice=True, optimizer="adam"),
    Case(model="lstm", hooks=True),
    Case(model="transformer", hooks=True, optimizer="sgd"),
    Case(model="gru", fails=True),
    Case(model="transformer", fails=True, scaler=True),
]  # fmt: skip
AIM = 36
"""Ways to train that have to end with the same bits (docs/faults-covered.md)."""


def attach(path: Path, **options: object) -> object:
    return lambda model, optimizer: inspector.watch(model, optimizer, path, **options)


CASES = [*((case, 120) for case in LONG), *((case, 40) for case in SHORT)]
"""With how many backward passes: every model with every optimizer beyond the snapshot after 100; other ways to train begin to differ at once."""


@pytest.mark.parametrize(("case", "passes"), CASES, ids=str)
def test_in_the_end_all_is_bit_identical(case: Case, passes: int, tmp_path: Path) -> None:
    iterations = passes // case.accumulate
    plain = train(case, iterations)
    watched = train(case, iterations, attach(tmp_path / "run.inspect", every=1, cost="full"))
    assert watched == plain
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "done" and not capture.damage
        steps = capture.array("training:iteration")
        assert len(steps) and steps[0] == 1 and len(capture.array("training:loss")) == len(steps)


def test_so_many_ways_to_train_are_tried_as_are_aimed_at() -> None:
    assert len({str(case) for case, _ in CASES}) == len(CASES) >= AIM


def test_a_change_of_one_bit_would_be_noticed() -> None:
    def attach_something_that_changes_it(model: nn.Module, _optimizer: object) -> object:
        with torch.no_grad():
            next(model.parameters()).view(-1)[0] += 1e-7
        return nullcontext()

    assert train(Case(), 3) == train(Case(), 3)
    assert train(Case(), 3) != train(Case(), 3, attach_something_that_changes_it)


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("model", ["lstm", "transformer"])
def test_a_compiled_model_too(model: str, tmp_path: Path) -> None:
    case = Case(model=model, compiled=True)
    torch._dynamo.reset()
    plain = train(case, 40)
    torch._dynamo.reset()
    before = torch._dynamo.utils.counters["graph_break"].copy()
    watched = train(case, 40, attach(tmp_path / "run.inspect", every=1, cost="full"))
    torch._dynamo.reset()
    assert watched == plain
    assert torch._dynamo.utils.counters["graph_break"] == before
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert len(capture.array("training:loss")) == 40


def test_sampling_by_time_changes_nothing_either(tmp_path: Path) -> None:
    case = Case(model="transformer")
    assert train(case, 100, attach(tmp_path / "run.inspect", share=0.5)) == train(case, 100)


def test_copies_and_files_of_a_watched_model_are_not_watched(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Recurrent(nn.GRU)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1) as watcher:
        ids = next(batches(1))
        twin = copy.deepcopy(model)
        file = io.BytesIO()
        torch.save(model, file)
        twin.train()
        loss_of(twin, ids).backward()
        assert watcher.iteration == 0
        assert not _handlers(twin) and _handlers(model)
        loss_of(model, ids).backward()
        optimizer.step()
        assert watcher.iteration == 1 and watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.array("training:backward_passes").tolist() == [1.0]


def _handlers(model: torch.nn.Module) -> list[object]:
    """What hooks on a model pass its calls on to."""
    hooks = [
        hook for part in model.modules() for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values())
    ]
    return [found for hook in hooks if (found := getattr(hook, "handler", None)) is not None]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    backward, scale = torch.autograd.backward, torch.amp.GradScaler.scale
    model = Recurrent(nn.RNN)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect"):
        assert torch.autograd.backward is not backward
    assert torch.autograd.backward is backward and torch.amp.GradScaler.scale is scale
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks
    assert all(one.grad is None for one in model.parameters())


# torch.compile itself asks a loss that is returned for its gradient, which warns
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_compiled_training_step_too(tmp_path: Path) -> None:
    def trained(watched: bool) -> list[torch.Tensor]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = model(x).square().mean()
            loss.backward()
            return loss

        compiled = torch.compile(step, backend="aot_eager")
        watcher = inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1) if watched else None
        for _ in range(10):
            compiled(torch.randn(5, 4))
            optimizer.step()
            optimizer.zero_grad()
        if watcher is not None:
            watcher.close()
            assert watcher.error is None and watcher.iteration == 10
        return [one.detach() for one in model.parameters()]

    pairs = zip(trained(False), trained(True), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    torch._dynamo.reset()
