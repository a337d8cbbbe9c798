"""The table of operators against torch itself: what it says of an operator is what its numbers and derivatives do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from watched import seen

from inspector.engine.recurrent.traced.record.operation import name_of, op_of
from inspector.engine.recurrent.traced.record.operator_traits import ALIASES, TABLE, Kind, operator_of, traits_of

D = torch.float64


@pytest.mark.parametrize("name", [
    "sub", "sub_", "rsub", "subtract", "__sub__", "__isub__", "__rsub__", "torch.sub", "torch.subtract", "Tensor.__rsub__",
    "torch.Tensor.sub_", "aten::sub", "aten::sub.Tensor", "aten::sub_.Scalar", "torch.ops.aten.sub.Tensor", "aten.rsub.Scalar",
])  # fmt: skip
def test_one_operator_has_many_names(name: str) -> None:
    found = operator_of(name)
    assert found.traits is TABLE["sub"]
    assert found.reflected == ("rsub" in name)
    assert found.in_place == ("sub_" in name.replace("__", "") or "isub" in name)


@pytest.mark.parametrize(("name", "expected"), [
    ("__idiv__", "div"), ("__rdiv__", "div"), ("true_divide", "div"), ("multiply", "mul"), ("__rmatmul__", "matmul"),
    ("special_expit", "sigmoid"), ("sigmoid_", "sigmoid"), ("concatenate", "cat"), ("special_softmax", "softmax"),
    ("split_with_sizes", "split"), ("swapaxes", "transpose"), ("data", "detach"), ("__getitem__", "getitem"),
    ("__setitem__", "setitem"), ("bernoulli_", "bernoulli"), ("copy_", "copy"), ("requires_grad_", "requires_grad"),
])  # fmt: skip
def test_names_of_other_operators(name: str, expected: str) -> None:
    assert operator_of(name).traits is TABLE[expected]


@pytest.mark.parametrize("name", ["exp", "__invert__", "__index__", "__rpow__", "__iter__", "addition", "", "_", "__"])
def test_what_is_not_in_the_table_is_unknown(name: str) -> None:
    traits = traits_of(name)
    assert traits.kind is Kind.OTHER and not traits.forgets and not traits.adds(0, {}) and 0 not in traits.entrywise


def test_other_names_lead_into_the_table() -> None:
    assert set(ALIASES.values()) <= set(TABLE) and not set(ALIASES) & set(TABLE)


class Calls(TorchFunctionMode):
    """Keeps (name, traits) of every call, as the recorder would."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        traits = traits_of(name_of(func))
        if traits.kind is not Kind.QUESTION:
            self.found.append(traits.name)
        return func(*args, **(kwargs or {}))


def test_the_names_are_those_that_torch_gives_its_functions() -> None:
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    with Calls() as calls:
        (a + b, 1 - a, a - b, 2 * a, a / 2, 1 / (a + 9), -a, +a, a @ b.T, a.mT)
        (a.sub(b), torch.subtract(a, b), a.multiply(b), torch.concat((a, b)), torch.special.expit(a), F.logsigmoid(a))
        (F.hardsigmoid(a), torch.sigmoid(a), F.softmax(a, 0), F.relu(a), F.leaky_relu(a), F.dropout(a), a[0], a.data)
        a.clone().sub_(b).mul_(2).detach_()
    assert calls.found == [
        "add", "sub", "sub", "mul", "div", "add", "div", "neg", "positive", "T", "matmul", "mT",
        "sub", "sub", "mul", "cat", "sigmoid", "log_sigmoid",
        "hardsigmoid", "sigmoid", "softmax", "relu", "leaky_relu", "dropout", "getitem", "detach",
        "clone", "sub", "mul", "detach",
    ]  # fmt: skip


SHAPES: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "add": (torch.add, ((3, 2), (3, 2))), "sub": (torch.sub, ((3, 2), (3, 2))), "neg": (torch.neg, ((3, 2),)),
    "mul": (torch.mul, ((3, 2), (3, 2))), "div": (torch.div, ((3, 2), (3, 2))),
    "lerp": (torch.lerp, ((3, 2),) * 3), "addcmul": (torch.addcmul, ((3, 2),) * 3),
    "addcdiv": (torch.addcdiv, ((3, 2),) * 3), "linear": (F.linear, ((3, 4), (2, 4), (2,))),
    "matmul": (torch.matmul, ((3, 4), (4, 2))), "mm": (torch.mm, ((3, 4), (4, 2))), "mv": (torch.mv, ((3, 4), (4,))),
    "bmm": (torch.bmm, ((1, 3, 4), (1, 4, 2))), "addmm": (torch.addmm, ((3, 2), (3, 4), (4, 2))),
    "addmv": (torch.addmv, ((3,), (3, 4), (4,))), "baddbmm": (torch.baddbmm, ((1, 3, 2), (1, 3, 4), (1, 4, 2))),
    "masked_fill": (lambda a: a.masked_fill(torch.eye(3, 2).bool(), 0.5), ((3, 2),)),
    "where": (lambda a, b: torch.where(torch.eye(3, 2).bool(), a, b), ((3, 2), (3, 2))),
    "view": (lambda a: a.view(2, 3), ((3, 2),)), "reshape": (lambda a: a.reshape(6), ((3, 2),)),
    "flatten": (torch.flatten, ((3, 2),)), "unflatten": (lambda a: a.unflatten(0, (3, 1)), ((3, 2),)),
    "ravel": (torch.ravel, ((3, 2),)), "contiguous": (lambda a: a.T.T.contiguous(), ((3, 2),)),
    "clone": (torch.clone, ((3, 2),)), "positive": (torch.positive, ((3, 2),)),
    "squeeze": (torch.squeeze, ((3, 1, 2),)), "unsqueeze": (lambda a: a.unsqueeze(1), ((3, 2),)),
    "to": (lambda a: a.to(torch.float64), ((3, 2),)), "double": (lambda a: a.double(), ((3, 2),)),
    "sum": (lambda a: torch.sum(torch.stack((a, a.detach())), 0), ((3, 2),)),
    "dropout": (lambda a: F.dropout(a, 0.5, True), ((3, 2),)),
    "alpha_dropout": (lambda a: F.alpha_dropout(a, 0.5, True), ((3, 2),)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_what_is_added_and_what_stays_entry_by_entry(name: str) -> None:
    """∂ result / ∂ operand: the identity where it is added, diagonal where it is entry by entry, neither elsewhere."""
    function, shapes = SHAPES[name]
    torch.manual_seed(0)
    operands = [torch.rand(shape, dtype=D) + 1 for shape in shapes]
    traits = TABLE[name]
    for n in range(len(operands)):

        def moved(value: Tensor, n: int = n) -> Tensor:
            torch.manual_seed(1)
            return function(*operands[:n], value, *operands[n + 1 :])

        size = operands[n].numel()
        found: Tensor = torch.autograd.functional.jacobian(moved, operands[n])
        matrix = found.reshape(-1, size)
        square = matrix.shape[0] == size
        number = n + 1 if name == "where" else n
        is_identity = square and torch.allclose(matrix, torch.eye(size, dtype=D))
        is_diagonal = square and torch.equal(matrix, torch.diag(matrix.diagonal()))
        assert traits.adds(number, {}) == is_identity
        if number in traits.entrywise:
            assert is_diagonal
        if is_diagonal and number not in traits.entrywise:
            assert name in ("div", "addcdiv", "sum", "addmm", "addmv", "baddbmm"), "a denominator, or a bias"


@pytest.mark.parametrize("name", sorted(n for n, traits in TABLE.items() if traits.kind is Kind.SQUASH))
def test_squashing_functions_lie_where_the_table_says_and_are_no_steeper(name: str) -> None:
    function = {"log_sigmoid": F.logsigmoid}.get(name) or getattr(F, name, None) or getattr(torch, name)
    traits = TABLE[name]
    values = torch.linspace(-6, 6, 4001, dtype=D, requires_grad=True)
    if traits.normalises:
        out = function(values[:40], -1)
        assert traits.unit and float(out.detach().sum()) == pytest.approx(1.0)
        return
    out = function(values)
    (slope,) = torch.autograd.grad(out.sum(), values)
    assert traits.unit == bool((out >= 0).all() and (out <= 1).all())
    if traits.gain is not None:
        assert float(slope.abs().max()) == pytest.approx(traits.gain, rel=5e-3)
    else:
        assert name in {"leaky_relu", "elu", "selu", "celu", "gelu", "silu"}, "their slope has parameters, or passes 1"


@pytest.mark.parametrize("name", ["detach_", "requires_grad_", "squeeze_", "unsqueeze_", "t_", "transpose_"])
def test_in_place_forms_that_change_no_entry_are_no_writing(name: str) -> None:
    value = torch.randn(2, 3)
    before = value.clone()
    arguments = {"unsqueeze_": (0,), "transpose_": (0, 1)}.get(name, ())
    assert getattr(value, name)(*arguments) is value
    assert sorted(value.flatten().tolist()) == sorted(before.flatten().tolist())
    assert not operator_of(name).in_place and operator_of("mul_").in_place and operator_of("__imul__").in_place


@pytest.mark.parametrize(
    "name", sorted(n for n, t in TABLE.items() if t.kind in (Kind.CREATION, Kind.CHOICE, Kind.RANDOM))
)
def test_what_forgets_has_no_gradient(name: str) -> None:
    value = torch.rand(2, 3, requires_grad=True)
    more: tuple[Any, ...] = {
        "full_like": (2.0,), "new_full": ((2,), 1.0), "new_zeros": (2,), "new_ones": (2,), "new_empty": (2,),
        "new_tensor": ([1.0],), "randint_like": (3,), "multinomial": (1,), "normal": (0.1,),
    }.get(name, ())  # fmt: skip
    function = getattr(torch, name, None)
    if not callable(function):
        function = getattr(Tensor, name, None) or getattr(Tensor, f"{name}_")
        value = value if hasattr(Tensor, name) else value.detach().clone()
    out = function(value, *more)
    assert TABLE[name].forgets
    if out.requires_grad and out.grad_fn is not None:
        assert not bool(torch.autograd.grad(out.sum(), value)[0].any())


class Acc(nn.Module):
    """A variable that something is done to at every step with what is made of the input."""

    def __init__(self, change: Callable[[Tensor, Tensor, int], Tensor]) -> None:
        super().__init__()
        self.map, self.change = nn.Linear(3, 4), change

    def forward(self, x: Tensor) -> Tensor:
        acc, out = x.new_zeros(len(x), 4), []
        for t, row in enumerate(x.unbind(1)):
            h = torch.tanh(self.map(row))
            acc = self.change(acc, h, t)
            out.append(acc)
        return torch.stack(out, 1)


SUMS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "acc + h": lambda acc, h, _: acc + h, "h + acc": lambda acc, h, _: h + acc, "acc - h": lambda acc, h, _: acc - h,
    "sub": lambda acc, h, _: torch.sub(acc, h), ".sub": lambda acc, h, _: acc.sub(h),
    "subtract": lambda acc, h, _: torch.subtract(acc, h), "rsub": lambda acc, h, _: torch.rsub(h, acc),
    "by name": lambda acc, h, _: torch.sub(other=h, input=acc), "alpha of h": lambda acc, h, _: acc.sub(h, alpha=0.3),
    "-h + acc": lambda acc, h, _: -h + acc, "sub_": lambda acc, h, _: acc.clone().sub_(h),
    "addcmul": lambda acc, h, _: torch.addcmul(acc, h, h), "stack": lambda acc, h, _: torch.stack((h, acc)).sum(0),
    "detached": lambda acc, h, t: acc.detach() - h if t % 3 == 0 else acc - h,
    "by turns": lambda acc, h, t: acc - h if t % 2 else acc + 2 * h,
    "at times": lambda acc, h, t: acc - h if t % 5 else acc + 2 * h,
    "view": lambda acc, h, _: (acc.view(-1) - h.view(-1)).view(acc.shape), "float": lambda acc, h, _: acc.double() + h,
}  # fmt: skip
RECURRENCES: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "h - acc": lambda acc, h, _: h - acc, "leaky": lambda acc, h, _: 0.9 * acc + h,
    "alpha": lambda acc, h, _: torch.add(h, acc, alpha=0.9), "mean": lambda acc, h, _: torch.stack((acc, h)).mean(0),
    "-acc": lambda acc, h, _: h + (-acc), "rolled": lambda acc, h, _: acc.roll(1, -1) + h,
    "halved in place": lambda acc, h, _: acc.clone().mul_(0.5) + h, "maximum": lambda acc, h, _: torch.maximum(acc, h),
    "product": lambda acc, h, _: torch.addcmul(h, acc, h), "divided": lambda acc, h, _: (acc + h) / 2,
    "at times": lambda acc, h, t: acc + h if t % 4 == 1 else torch.tanh(acc + h),
    "masked": lambda acc, h, t: acc * (t % 3 > 0) + h, "shifted": lambda acc, h, _: torch.cat((h[:, :1], acc[:, :-1]), 1),
    "beta": lambda acc, h, _: torch.addmm(acc, h, torch.eye(4, dtype=h.dtype), beta=0.5),
    "denominator": lambda acc, h, _: h / (2 + acc),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_a_running_sum_is_no_recurrence_whatever_its_sign_and_spelling(name: str) -> None:
    torch.manual_seed(0)
    found, kept, _ = seen(Acc(SUMS[name]).to(D), torch.randn(2, 7, 3, dtype=D))
    assert not found and not kept.reasons()


@pytest.mark.parametrize("name", RECURRENCES)
def test_a_state_that_is_more_than_added_to_is_one(name: str) -> None:
    torch.manual_seed(0)
    model, x = Acc(RECURRENCES[name]).to(D), torch.randn(2, 7, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and found.check is not None and found.check.passed
    jacobians = found.block(0, 7).jacobian()
    for t in range(1, 7):
        h = torch.tanh(model.map(x[1, t])).detach()
        exact = torch.autograd.functional.jacobian(
            lambda acc, t=t, h=h: model.change(acc[None], h[None], t)[0], found.states[t, 1].clone()
        )
        torch.testing.assert_close(jacobians[t, 1], exact)


def test_operands_are_numbered_as_they_stand_in_the_expression() -> None:
    a, b, c = torch.randn(3), torch.randn(3), torch.randn(3)
    where: Any = ((), None)

    def numbers(function: Any, *args: Any, **kwargs: Any) -> list[tuple[int, str]]:
        names = {id(a): "a", id(b): "b", id(c): "c"}
        op = op_of((function, args, kwargs, function(*args, **kwargs), where, 0), None)
        return [(n, names[id(tensor)]) for n, tensor in op.operands()]

    assert numbers(torch.sub, a, b) == [(0, "a"), (1, "b")]
    assert numbers(torch.rsub, a, b) == [(1, "a"), (0, "b")]
    assert numbers(Tensor.__rsub__, a, 1.0) == [(1, "a")]
    assert numbers(torch.sub, other=a, input=b) == [(1, "a"), (0, "b")]
    assert numbers(torch.addcmul, a, tensor2=b, tensor1=c) == [(0, "a"), (2, "b"), (1, "c")]
    assert numbers(torch.cat, (a, b)) == [(0, "a"), (0, "b")]
    assert numbers(torch.atan2, a, other=b) == [(0, "a"), (1, "b")]
