"""How far back a backward pass goes: against a walk over autograd's nodes that knows which were made when, and in loops
of many kinds, some of which hand a state on as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import inspector
from inspector.diagnosis.series import table_of
from inspector.engine.watch.states.earlier_graphs import MOST_NODES, holders, reached
from inspector.records import Finding

N = 48


class ByHand(torch.optim.Optimizer):
    """Steps that torch does not see, so that it does not refuse graphs of earlier weights."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for one in self.param_groups[0]["params"]:
            one.data = one.data if one.grad is None else one.data - 0.01 * one.grad


class Net(nn.Module):
    """(b, t, 4) and a state → (b, t, 4) and the state, by a cell; `keeps` it in an attribute, as a tuple."""

    def __init__(self, keeps: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head, self.kept = nn.LSTMCell(4, 6), nn.Linear(6, 4), None
        self.keeps = keeps

    def forward(self, x: Tensor, state: Any = None) -> Any:
        state, said = self.kept if self.keeps else state, []
        for step in x.unbind(1):
            state = self.cell(step, state)
            said.append(self.head(state[0]))
        self.kept = state if self.keeps else None
        return torch.stack(said, 1), state


def found_in(path: Path) -> list[Finding]:
    found = inspector.diagnose(path)
    assert not found.broken
    return [one for one in found.findings if one.id == "IN137"]


def nodes_below(node: Any) -> set[Any]:
    waiting, seen = [node], set[Any]()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(one for one, _ in node.next_functions)
    return {one for one in seen if "AccumulateGrad" not in one.name()}


def test_nodes_are_those_of_a_walk_that_remembers_what_was_there_before(tmp_path: Path) -> None:
    model = Net()
    state: Any = None
    expected, earlier = [], dict[Any, int]()
    with inspector.watch(model, optimizer := ByHand(model.parameters()), tmp_path / "a.inspect", every=1):
        for n in range(13):
            said, state = model(torch.randn(2, 3, 4), state)
            loss = said.square().mean()
            here = nodes_below(loss.grad_fn)
            if n % 4 == 0:
                old = [earlier[one] for one in here if one in earlier]
                expected.append([len(here), len(old), len(set(old))])
            earlier |= dict.fromkeys(here - earlier.keys(), n)
            loss.backward(retain_graph=True)
            optimizer.step()
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        table = table_of(capture, "training:graph/nodes")
    assert table is not None
    assert table.iterations.tolist() == [1, 5, 9, 13]
    assert table.values.tolist() == expected and expected[-1][2] == 12
    (told,) = found_in(tmp_path / "a.inspect")
    assert told.severity == "warning" and f"{expected[-1][1]} of its {expected[-1][0]} nodes" in told.message
    assert "argument 2 of the call" in told.message


def test_a_graph_without_an_end_is_not_walked_to_its_end() -> None:
    y = torch.ones((), requires_grad=True)
    for _ in range(MOST_NODES + 100):
        y = y + 1
    before = torch._C._autograd._get_sequence_nr()
    found = reached([y * 2], [0, before])
    assert len(found.nodes) == MOST_NODES and found.old == MOST_NODES - 1 and found.iterations == 1
    assert reached([torch.ones(())], [0]).nodes == frozenset()


def test_what_holds_a_graph_is_named() -> None:
    model = nn.Sequential(nn.Linear(2, 2), Net())
    made = torch.ones(2, requires_grad=True) * 2
    inner: Any = model[1]
    inner.kept = {"a": [torch.ones(2), made]}
    model[0].register_buffer("mean", made + 1)
    held = holders(model, (torch.ones(2), (made,)), {"memory": made})
    assert held.keys() == {"0.mean", "1.kept", "argument 2 of the call", "argument memory of the call"}


@pytest.mark.parametrize(("keeps", "where"), [(True, "held by kept"), (False, "held by argument 2 of the call")])
@pytest.mark.parametrize(
    ("retain", "why"), [(False, "had freed is needed again"), (True, "have been changed by the step")]
)
@pytest.mark.parametrize("every", [1, None])
def test_a_pass_that_torch_refuses(
    tmp_path: Path, keeps: bool, where: str, retain: bool, why: str, every: int | None
) -> None:
    model, state = Net(keeps), None
    optimizer = torch.optim.Adam(model.parameters())
    with (
        pytest.raises(RuntimeError, match=r"second time|inplace"),
        inspector.watch(model, optimizer, tmp_path / "a.inspect", every=every, cost="light") as watcher,
    ):
        for _ in range(3):
            said, state = model(torch.randn(2, 3, 4), state)
            said.square().mean().backward(retain_graph=retain)
            optimizer.step()
    assert watcher.error is None
    (told,) = found_in(tmp_path / "a.inspect")
    assert told.severity == "error" and told.iterations == (2,)
    assert where in told.message or every is None  # that call was not recorded
    assert why in told.message and "1 earlier iteration:" in told.message


def test_a_pass_that_fails_for_another_reason_is_left_alone(tmp_path: Path) -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loss() -> Tensor:
        return model(torch.randn(3, 4)).square().mean()  # type: ignore[no-any-return]

    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=1) as watcher:
        for _ in range(12):
            optimizer.zero_grad()
            one = loss()
            one.backward()
            with pytest.raises(RuntimeError, match="second time"):
                one.backward()  # twice in one iteration
            with pytest.raises(RuntimeError, match="does not require grad"):
                torch.ones(()).backward()
            optimizer.step()
    assert watcher.error is None and not found_in(tmp_path / "a.inspect")


Steps = Callable[[Net, torch.optim.Optimizer], Iterator[None]]


def sum_of_a_weight(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    total: Any = 0.0
    for _ in range(N):
        total = total + model.head.bias  # saves nothing that a pass frees: torch refuses none
        (model(torch.randn(2, 3, 4))[0].square().mean() + total.sum()).backward()
        optimizer.step()
        yield


def memory_that_is_joined(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    memory = torch.zeros(2, 1, 4)
    for _ in range(N):
        memory = torch.cat((memory, model(torch.randn(2, 3, 4))[0].mean(1, keepdim=True)), 1)
        memory.square().mean().backward(retain_graph=True)
        optimizer.step()
        yield


def kept_in_an_attribute(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    model.keeps = True
    for n in range(N):
        if n % 24 == 0:
            model.kept = None  # each epoch
        F.mse_loss(model(torch.randn(2, 3, 4))[0], torch.randn(2, 3, 4)).backward(retain_graph=True)
        optimizer.step()
        yield


def detached(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    state = None
    for n in range(N):
        said, state = model(torch.randn(2, 3 + n, 4), state)  # longer and longer, so slower and slower
        state = tuple(one.detach() for one in state)
        said.square().mean().backward()
        optimizer.step()
        yield


def two_losses_of_one_graph(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    for _ in range(N):
        said = model(torch.randn(2, 3, 4))[0]
        said.square().mean().backward(retain_graph=True)
        said.abs().mean().backward()
        optimizer.step()
        yield


def accumulated(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    for _ in range(N // 2):
        state = None  # one text in four pieces, and then a step
        for _ in range(4):
            said, state = model(torch.randn(2, 3, 4), state)
            said.square().mean().backward(retain_graph=True)
        optimizer.step()
        yield


def gradient_penalty(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    for _ in range(N):
        x = torch.randn(2, 3, 4, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x)[0].sum(), x, create_graph=True)
        (slope.square().sum() - 1).square().backward()
        optimizer.step()
        yield


def checkpointed(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    for _ in range(N):
        said: Any = checkpoint(lambda x: model(x)[0], torch.randn(2, 3, 4, requires_grad=True), use_reentrant=False)
        said.square().mean().backward()
        optimizer.step()
        yield


def sum_of_losses_that_is_printed(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    total: Any = 0.0
    for _ in range(N):
        loss = model(torch.randn(2, 3, 4))[0].square().mean()
        total = total + loss  # keeps graphs in memory, and no pass goes through them
        loss.backward()
        optimizer.step()
        yield


def two_that_take_turns(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    judge = nn.Linear(4, 1)
    other = torch.optim.SGD(judge.parameters(), 0.01)
    for _ in range(N):
        made = model(torch.randn(2, 3, 4))[0]
        judge(made.detach()).mean().backward()
        other.step()
        judge(made).mean().backward()
        optimizer.step()
        yield


def first_state_made_once(model: Net, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    first = model.head.bias.expand(2, 4)
    for _ in range(N):
        (model(torch.randn(2, 3, 4))[0] + first[:, None]).square().mean().backward()
        optimizer.step()
        yield


@pytest.mark.parametrize(
    ("loop", "ill"),
    [
        (sum_of_a_weight, True), (memory_that_is_joined, True), (kept_in_an_attribute, True), (detached, False),
        (two_losses_of_one_graph, False), (accumulated, False), (gradient_penalty, False), (checkpointed, False),
        (sum_of_losses_that_is_printed, False), (two_that_take_turns, False), (first_state_made_once, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("every", [1, 3])
def test_loops_of_many_kinds(tmp_path: Path, loop: Steps, ill: bool, every: int) -> None:
    model = Net()
    with inspector.watch(
        model, optimizer := ByHand(model.parameters()), tmp_path / "a.inspect", every=every
    ) as watcher:
        for _ in loop(model, optimizer):
            optimizer.zero_grad()
    assert watcher.error is None
    assert [one.severity for one in found_in(tmp_path / "a.inspect")] == ["warning"] * ill


def test_a_loop_without_an_optimizer_says_when_a_step_ends(tmp_path: Path) -> None:
    model, state = Net(), None
    with inspector.watch(model, None, tmp_path / "a.inspect", every=1) as watcher:
        for _ in range(N):
            said, state = model(torch.randn(2, 3, 4), state)
            (loss := said.square().mean()).backward(retain_graph=True)
            for one in model.parameters():
                assert one.grad is not None
                one.data = one.data - 0.01 * one.grad
                one.grad = None
            watcher.step(loss=loss)
    assert [one.severity for one in found_in(tmp_path / "a.inspect")] == ["warning"]


def test_looks_become_rare_where_they_find_nothing_and_not_where_they_find_something(tmp_path: Path) -> None:
    looked = {}
    for name in ("detached", "kept"):
        model = Net()
        state: Any = None
        with inspector.watch(model, optimizer := ByHand(model.parameters()), tmp_path / name, every=1):
            for _ in range(70):
                said, state = model(torch.randn(2, 3, 4), state)
                said.square().mean().backward(retain_graph=name == "kept")
                optimizer.step()
                state = tuple(one.detach() for one in state) if name == "detached" else state
        with inspector.open_capture(tmp_path / name) as capture:
            table = table_of(capture, "training:graph/nodes")
        assert table is not None
        looked[name] = table.iterations.tolist()
    assert looked == {"detached": [1, 5, 9, 13, 17, 21, 25, 29, 33, 49, 65], "kept": list(range(1, 70, 4))}
