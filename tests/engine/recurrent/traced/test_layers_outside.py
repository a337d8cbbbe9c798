"""Layers outside and time inside, in many styles: every layer is a recurrence of its own over all steps."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from watched import seen

D = torch.float64
H, T = 4, 7
Step = Callable[[Tensor, Tensor], Tensor]


class Cell(nn.Module):
    def __init__(self, i: int = H, h: int = H) -> None:
        super().__init__()
        self.w, self.u, self.h = nn.Linear(i, h), nn.Linear(h, h), h

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.w(x) + self.u(h))


def over(cell: Step, x: Tensor, h: Tensor) -> Tensor:
    out = []
    for row in x.unbind(1):
        h = cell(row, h)
        out.append(h)
    return torch.stack(out, 1)


class Layer(Cell):
    """A whole layer, with its own loop; its first parameter has another name."""

    def forward(s, x: Tensor) -> Tensor:  # type: ignore[override]
        h = x.new_zeros(len(x), s.h)
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(s.w(x[:, t]) + s.u(h))
            out.append(h)
        return torch.stack(out, 1)


class Stepping(Cell):
    """As Layer, with a method for the step and a third name."""

    def step(this, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(this.w(x) + this.u(h))

    def forward(this, x: Tensor) -> Tensor:  # type: ignore[override]
        return over(this.step, x, x.new_zeros(len(x), this.h))


class Torchs(nn.Module):
    """A layer of torch's own cell."""

    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.cell, self.h = nn.RNNCell(i, h), h

    def forward(s, x: Tensor) -> Tensor:
        return over(s.cell, x, x.new_zeros(len(x), s.h))


class Model(nn.Module):
    """`kind` of `layers`; `step` is one layer's step as the reference computes it."""

    kind: type[nn.Module] = Cell

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(self.kind(i, h) for i, h in itertools.pairwise(widths))

    def weights(self) -> list[tuple[Tensor, ...]]:
        return [(c.w.weight, c.w.bias, c.u.weight, c.u.bias) for c in self.layers]

    def after(self, x: Tensor, out: Tensor) -> Tensor:
        """What the next layer gets."""
        return out

    def blend(self, h: Tensor, new: Tensor) -> Tensor:
        """The next state from the old one and what the cell makes."""
        return new

    def first(self, x: Tensor, h: int, before: Tensor | None) -> Tensor:
        """The state before the first step; `before`: the last one of the layer below."""
        return x.new_zeros(len(x), h)


class Nested(Model):
    def forward(self, x: Tensor) -> Tensor:
        for cell in self.layers:
            h, out = x.new_zeros(len(x), cell.h), []
            for t in range(x.shape[1]):
                h = cell(x[:, t], h)
                out.append(h)
            x = torch.stack(out, 1)
        return x


class Whiles(Model):
    def forward(s, x: Tensor) -> Tensor:
        k = 0
        while k < len(s.layers):
            w, u = s.layers[k].w, s.layers[k].u
            t, h, out = 0, x.new_zeros(len(x), s.layers[k].h), []
            while t < x.shape[1]:
                h = torch.tanh(w(x[:, t]) + u(h))
                out.append(h)
                t += 1
            x, k = torch.stack(out, 1), k + 1
        return x


class Preallocated(Model):
    def forward(self, x: Tensor) -> Tensor:
        for cell in self.layers:
            h, out = x.new_zeros(len(x), cell.h), x.new_zeros(len(x), x.shape[1], cell.h)
            for t in range(x.shape[1]):
                h = cell(x[:, t], h)
                out[:, t] = h
            x = out
        return x


class Attribute(Model):
    """The state is an attribute of each cell."""

    def forward(self, x: Tensor) -> Tensor:
        for cell in self.layers:
            cell.state, out = x.new_zeros(len(x), cell.h), []
            for t in range(x.shape[1]):
                cell.state = cell(x[:, t], cell.state)
                out.append(cell.state)
            x = torch.stack(out, 1)
        return x


class AllStatesFirst(Model):
    """One list has the states of all layers."""

    def forward(self, x: Tensor) -> Tensor:
        hs = [x.new_zeros(len(x), cell.h) for cell in self.layers]
        for k, cell in enumerate(self.layers):
            out = []
            for t in range(x.shape[1]):
                hs[k] = cell(x[:, t], hs[k])
                out.append(hs[k])
            x = torch.stack(out, 1)
        return x


class Comprehension(Model):
    def forward(self, x: Tensor) -> Tensor:
        rows = list(x.unbind(1))
        for cell in self.layers:
            h = rows[0].new_zeros(len(x), cell.h)
            rows = [h := cell(row, h) for row in rows]
        return torch.stack(rows, 1)


class Residual(Model):
    def forward(self, x: Tensor) -> Tensor:
        for cell in self.layers:
            x = self.after(x, over(cell, x, x.new_zeros(len(x), cell.h)))
        return x

    def after(self, x: Tensor, out: Tensor) -> Tensor:
        return x + out if x.shape == out.shape else out


class Helper(Model):
    """A method of the model goes over time, given the cell."""

    def run(self, cell: nn.Module, x: Tensor) -> Tensor:
        return over(cell, x, x.new_zeros(len(x), cell.h))

    def forward(self, x: Tensor) -> Tensor:
        for cell in self.layers:
            x = self.run(cell, x)
        return x


class Static(Model):
    @staticmethod
    def run(cell: nn.Module, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), cell.h), []
        for row in x.unbind(1):
            h = torch.tanh(cell.w(row) + cell.u(h))
            out.append(h)
        return torch.stack(out, 1)

    def forward(self, x: Tensor) -> Tensor:
        for cell in self.layers:
            x = self.run(cell, x)
        return x


class Closures(Model):
    def forward(s, x: Tensor) -> Tensor:
        def make(cell: nn.Module) -> Callable[[Tensor], Tensor]:
            return lambda x: over(cell, x, x.new_zeros(len(x), cell.h))

        for run in [make(cell) for cell in s.layers]:
            x = run(x)
        return x


def by_weights(w: nn.Module, u: nn.Module, x: Tensor) -> Tensor:
    h, out = x.new_zeros(len(x), u.in_features), []
    for row in x.unbind(1):
        h = torch.tanh(w(row) + u(h))
        out.append(h)
    return torch.stack(out, 1)


class Partials(Model):
    def forward(self, x: Tensor) -> Tensor:
        for run in [functools.partial(by_weights, cell.w, cell.u) for cell in self.layers]:
            x = run(x)
        return x


class Zoneout(Model):
    """The cell is a part of the step."""

    def forward(self, x: Tensor) -> Tensor:
        for cell in self.layers:
            h, out = x.new_zeros(len(x), cell.h), []
            for t in range(x.shape[1]):
                h = 0.5 * h + 0.5 * cell(x[:, t], h)
                out.append(h)
            x = torch.stack(out, 1)
        return x

    def blend(self, h: Tensor, new: Tensor) -> Tensor:
        return 0.5 * h + 0.5 * new


class Continued(Model):
    """Each layer begins with the last state of the one below."""

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), H)
        for cell in self.layers:
            out = []
            for t in range(x.shape[1]):
                h = cell(x[:, t], h)
                out.append(h)
            x = torch.stack(out, 1)
        return x

    def first(self, x: Tensor, h: int, before: Tensor | None) -> Tensor:
        return x.new_zeros(len(x), h) if before is None else before


class Chained(Model):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Sequenced(Chained):
    def forward(self, x: Tensor) -> Tensor:
        return nn.Sequential(*self.layers)(x)


class Reduced(Chained):
    def forward(self, x: Tensor) -> Tensor:
        return functools.reduce(lambda value, layer: layer(value), self.layers, x)


class Recursive(Chained):
    def forward(self, x: Tensor, k: int = 0) -> Tensor:
        return x if k == len(self.layers) else self.forward(self.layers[k](x), k + 1)


class OneTensor(nn.Module):
    """All layers' weights are in one parameter each, taken out by index."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        n = len(widths) - 1
        self.w, self.u = (nn.Parameter(torch.randn(n, H, H) / 2) for _ in range(2))

    def weights(self) -> list[tuple[Tensor, ...]]:
        return [(w, torch.zeros(H, dtype=D), u, torch.zeros(H, dtype=D)) for w, u in zip(self.w, self.u, strict=True)]

    after, blend, first = Model.after, Model.blend, Model.first

    def forward(self, x: Tensor) -> Tensor:
        for k in range(len(self.w)):
            h, out = x.new_zeros(len(x), H), []
            for t in range(x.shape[1]):
                h = torch.tanh(x[:, t] @ self.w[k].T + h @ self.u[k].T)
                out.append(h)
            x = torch.stack(out, 1)
        return x


class Einsum(OneTensor):
    """The parameters are gone through themselves, and everything outside the steps is a list."""

    def forward(self, x: Tensor) -> Tensor:
        rows, zero = list(x.unbind(1)), x.new_zeros(len(x), H)
        for w, u in zip(self.w, self.u, strict=True):
            h, out = zero, []
            for row in rows:
                h = torch.tanh(torch.einsum("bi,ji->bj", row, w) + torch.einsum("bi,ji->bj", h, u))
                out.append(h)
            rows = out
        return torch.stack(rows, 1)


class ByTorch(Model):
    """Mixed into a style, for layers of torch's own cell."""

    def weights(self) -> list[tuple[Tensor, ...]]:
        return [(c.weight_ih, c.bias_ih, c.weight_hh, c.bias_hh) for c in (getattr(m, "cell", m) for m in self.layers)]


class OwnCell(nn.RNNCell):
    h = property(lambda self: self.hidden_size)


def _with(style: type[Model], kind: type[nn.Module], *more: type) -> type[Model]:
    return type(f"{style.__name__}{kind.__name__}", (*more, style), {"kind": kind})


STYLES: dict[str, Any] = {
    style.__name__: style
    for style in (
        Nested, Whiles, Preallocated, Attribute, AllStatesFirst, Comprehension, Residual, Helper, Static, Closures,
        Partials, Zoneout, Continued, OneTensor, Einsum,
        *(_with(style, kind) for style in (Chained, Sequenced, Reduced, Recursive) for kind in (Layer, Stepping)),
        *(_with(style, OwnCell, ByTorch) for style in (Nested, Comprehension, Helper, Closures, Zoneout)),
        *(_with(style, Torchs, ByTorch) for style in (Chained, Sequenced)),
    )
}  # fmt: skip
EQUAL = (Continued, OneTensor)
IN_THE_MODEL = (OneTensor, Whiles, Zoneout)  # operations of the step that no layer makes
WIDTHS = {"two": (H, H, H), "three": (H, H, H, H), "changing": (H, 5, 6, 3), "five": (H, 3, H, 5, 6, 3)}


def reference(model: Any, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(states (t, b, h), their step Jacobians (t, b, h, h)) of every layer."""
    found: list[tuple[Tensor, Tensor]] = []
    for w, bw, u, bu in model.weights():

        def step(row: Tensor, h: Tensor, own: tuple[Tensor, ...] = (w, bw, u, bu)) -> Tensor:
            return model.blend(h, torch.tanh(own[0] @ row + own[1] + own[2] @ h + own[3]))

        h = model.first(x, len(u), found[-1][0][-1] if found else None)
        states, jacobians = [], []
        for t in range(x.shape[1]):
            pairs = list(zip(x[:, t], h, strict=True))
            jacobians.append(
                torch.stack([torch.autograd.functional.jacobian(lambda s, r=r: step(r, s), s) for r, s in pairs])
            )
            h = torch.stack([step(row, state) for row, state in pairs]).detach()
            states.append(h)
        found.append((torch.stack(states), torch.stack(jacobians)))
        x = model.after(x, found[-1][0].transpose(0, 1))
    return found


@pytest.mark.parametrize("widths", sorted(WIDTHS))
@pytest.mark.parametrize("style", sorted(STYLES))
def test_every_layer_is_a_recurrence_of_its_own(style: str, widths: str) -> None:
    kind = STYLES[style]
    if issubclass(kind, EQUAL) and len(set(WIDTHS[widths])) > 1:
        pytest.skip("its layers are of one width")
    torch.manual_seed(len(style))
    b = 1 + len(widths) % 2
    model, x = kind(WIDTHS[widths]).to(D), torch.randn(b, T, H, dtype=D)
    found, kept, _ = seen(model, x)
    expected = reference(model, x)
    assert not kept.reasons() and [one.steps for one in found] == [T] * len(expected)
    if not issubclass(kind, IN_THE_MODEL):
        assert [one.place.split(".")[:2] for one in found] == [["layers", str(n)] for n in range(len(expected))]
    for one, (states, jacobians) in zip(found, expected, strict=True):
        torch.testing.assert_close(one.states[1:], states)
        torch.testing.assert_close(one.block(0, T).jacobian(), jacobians)
