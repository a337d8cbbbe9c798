"""Hooks that a model has before the run, on modules and parameters, and hooks on nodes of autograd's graph.

The reference for gradients is the same loop in plain torch with the same hooks; for Jacobians the equation of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Trace

D, IN, H, T = torch.float64, 3, 4, 6
KEYS = ("states", "gradients", "gradient/vectors", "gradient/lag_map", "bptt", "truncation")
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # the first state needs no gradient
SPLIT = ("gradient/lag_map", "bptt", "truncation")


def half(_module: nn.Module, given: tuple[Any, ...], _made: Any = None) -> tuple[Any, ...]:
    return tuple(None if g is None else g * 0.5 for g in given)


def in_place(_module: nn.Module, given: tuple[Any, ...], _made: Any = None) -> None:
    for g in given:
        if g is not None:
            g.mul_(0.5)


def look(_module: nn.Module, given: tuple[Any, ...], _made: Any = None) -> None:
    assert all(g is None or g.isfinite().all() for g in given)


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(IN, H), nn.Linear(H, H)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.a(x) + self.b(h))


class Own(nn.Module):
    """A cell of one's own in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = Cell(), nn.Linear(H, H)
        self.states: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        h, self.states = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = self.cell(row, h)
            self.states.append(h)
        return self.out(torch.stack(self.states, 1))


class Gru(Own):
    """torch's cell in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(IN, H)  # type: ignore[assignment]


class Node(Own):
    """A hook on the node that makes the state; `pre`: before that node."""

    pre = False

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = self.cell(row, h)
            if self.pre:
                h.grad_fn.register_prehook(lambda given: tuple(g * 0.5 for g in given))
            elif h.grad_fn is not None:
                h.grad_fn.register_hook(lambda sent, _: tuple(None if g is None else g * 0.5 for g in sent))
            out.append(h)
        return self.out(torch.stack(out, 1))


class NodeBefore(Node):
    pre = True


def made(kind: Callable[[], Own]) -> tuple[Own, Tensor]:
    torch.manual_seed(0)
    return kind().to(D), torch.randn(1, T, IN, dtype=D)


def run(model: nn.Module, x: Tensor) -> tuple[Kept, Trace]:
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    return kept, perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(only=KEYS))


def reasons(kept: Kept) -> dict[str, str]:
    return {one.channel.partition(":")[2]: one.reason for one in kept.refusals()}


def put(model: Own, where: str, hook: Any, pre: bool) -> None:
    module = model.get_submodule(where)
    (module.register_full_backward_pre_hook if pre else module.register_full_backward_hook)(hook)


@pytest.mark.parametrize(("kind", "where", "pre", "hook"), [
    (Own, "cell", False, half), (Own, "cell", True, half), (Own, "cell.b", False, half), (Own, "cell", True, in_place),
    (Gru, "cell", False, half), (Gru, "cell", True, half), (Gru, "cell", True, in_place),
])  # fmt: skip
def test_a_hook_of_a_module_of_the_step_that_changes_the_gradient_is_told(
    kind: type[Own], where: str, pre: bool, hook: Any
) -> None:
    model, x = made(kind)
    put(model, where, hook, pre)
    kept, trace = run(model, x)
    assert not [name for name in kept.names() for key in SPLIT if f":{key}" in name]
    found = reasons(kept)
    assert all(f"A backward hook of the module {where} changed the gradient" in found[key] for key in SPLIT)
    assert f"of the module {where}" in found["gradient/hooks"]
    if kind is Own:  # the step is still known, and its derivative has nothing of the hook
        (recurrence,) = trace.recurrences
        assert recurrence.place == "cell" and recurrence.check is not None and recurrence.check.passed
        state = recurrence.states[3, 0]
        with torch.no_grad():
            slope = 1 - torch.tanh(model.cell.a(x[0, 3]) + model.cell.b(state)).square()
            expected = slope[:, None] * model.cell.b.weight
        torch.testing.assert_close(recurrence.block(3, 4).jacobian()[0, 0], expected)


def test_the_gradients_at_the_states_are_those_of_the_run() -> None:
    model, x = made(Own)
    put(model, "cell.b", half, False)
    shown = run(model, x)[0].array("cell:gradient/h")
    out = model(x)
    expected = torch.autograd.grad(out.square().sum(), model.states)
    np.testing.assert_allclose(shown, torch.cat(expected), rtol=1e-12)


@pytest.mark.parametrize("kind", [Own, Gru])
@pytest.mark.parametrize(("where", "pre"), [("cell", False), ("cell", True), ("", False), ("out", True)])
def test_a_hook_that_only_looks_changes_nothing(kind: type[Own], where: str, pre: bool) -> None:
    plain, x = made(kind)
    without, _ = run(plain, x)
    model, x = made(kind)
    put(model, where, look, pre)
    kept, _ = run(model, x)
    assert not kept.reasons() and kept.names() == without.names()
    for name in sorted(without.names()):
        np.testing.assert_allclose(kept.array(name), without.array(name), rtol=1e-12, atol=1e-14, err_msg=name)


def test_a_hook_elsewhere_is_said_and_items_are_those_of_what_came_back() -> None:
    model, x = made(Own)
    put(model, "out", half, False)
    kept, _ = run(model, x)
    assert set(reasons(kept)) == {"gradient/hooks"}
    out = model(x)
    expected = torch.autograd.grad(out.square().sum(), model.states)
    np.testing.assert_allclose(kept.array("cell:gradient/h"), torch.cat(expected), rtol=1e-12)
    assert kept.scalar("cell:bptt/cell.b.weight/check_error") < 1e-12


@pytest.mark.parametrize(("kind", "name"), [(Own, "cell.b.weight"), (Gru, "cell.weight_hh")])
def test_a_hook_on_a_parameter_before_the_run_is_told(kind: type[Own], name: str) -> None:
    model, x = made(kind)
    model.get_parameter(name).register_hook(lambda g: g * 0.5)
    kept, _ = run(model, x)
    found = reasons(kept)
    weight = name if kind is Own else "weight_hh"
    assert f"a hook (register_hook) changed the gradient of {name}" in found[f"bptt/{weight}"]
    assert f"on the parameter {name}" in found["gradient/hooks"]
    assert not any(f"bptt/{weight}" in one for one in kept.names()) and any("bptt/" in one for one in kept.names())


@pytest.mark.parametrize("kind", [Node, NodeBefore])
def test_a_hook_on_a_node_of_the_graph_is_told(kind: type[Node]) -> None:
    model, x = made(kind)
    kept, _ = run(model, x)
    assert not [name for name in kept.names() for key in SPLIT if f":{key}" in name]
    found = reasons(kept)
    assert all("takes nodes of autograd's graph (grad_fn) and registers hooks" in found[key] for key in SPLIT)


def test_a_hook_does_not_reach_jacobians_that_are_read_off_the_graph() -> None:
    """And is not called for them: it belongs to the model's own backward pass."""
    calls: list[int] = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            (x,) = ctx.saved_tensors
            return 2 * x * g

    class Custom(Own):
        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(len(x), H), []
            for row in x.unbind(1):
                h = torch.tanh(Square.apply(self.cell.a(row)) + self.cell.b(h))
                h.register_hook(lambda g: calls.append(1) or g * 0.5)  # type: ignore[func-returns-value]
                out.append(h)
            return self.out(torch.stack(out, 1))

    model, x = made(Custom)
    _, trace = run(model, x)
    (recurrence,) = trace.recurrences
    before = len(calls)
    found = recurrence.block(3, 4).jacobian()[0, 0]
    with torch.no_grad():
        slope = 1 - recurrence.states[4, 0].square()
    torch.testing.assert_close(found, slope[:, None] * model.cell.b.weight.detach())
    assert before and len(calls) == before


def test_hooks_are_the_models_own_again_after_the_run() -> None:
    model, x = made(Own)
    put(model, "cell", look, False)
    hook = model.cell.b.weight.register_hook(lambda g: g)
    own = (dict(model.cell._backward_hooks), dict(model.cell.b.weight._backward_hooks or {}))
    run(model, x)
    assert (dict(model.cell._backward_hooks), dict(model.cell.b.weight._backward_hooks or {})) == own
    hook.remove()
