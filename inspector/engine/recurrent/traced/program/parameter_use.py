"""The trained parameters of a hand-written step: how each step's own use of them affects its new state.

Beside the program from state to state there is a longer one that also has the parameters as inputs. Where a
parameter enters as weight or bias of F.linear, its gradient is an outer product: of the gradient at the product's
result and of the weight's other factor. For every other parameter the whole gradient is computed, one backward pass for
each.
Letters: t step, b sample, s state entry, g entry of a product's result, r entry of its input, n row.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import jacrev, vjp, vmap

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.program.instructions import Instruction, Program, Ref
from inspector.engine.recurrent.traced.program.state_layout import Layout, Steps, grouped

CHUNK = 64
"""Steps, or gradients, that are propagated back together."""
WHOLE_BYTES = 256 << 20
"""Memory for one gradient a step of all parameters whose whole gradient is computed; larger ones are rejected.
Counter-example: a cell of width 512 written with `@` instead of F.linear is rejected beyond 256 steps in float32."""
TOLERANCE = 64.0
"""Roundings, of the largest state, by which the longer program may differ from the recorded states: it runs the same
operations in batches, whose sums have another order. Counter-example: a product of 100,000 entries may differ by more
and is rejected although it is right."""


def key_of(name: str) -> Hashable:
    """The key of a parameter among a program's inputs."""
    return "parameter", name


@dataclass(frozen=True, slots=True)
class Product:
    """One call of F.linear: its instruction, the source of its input, the names of weight and bias."""

    instruction: int
    given: Ref
    weight: str
    bias: str | None


class ParameterUse:
    """How the steps use their parameters.

    Attributes:
        values: {name: the parameter, detached, in main memory}.
        signals: {name: name of the weight whose product carries it}, for those that enter by F.linear.
        products: for each group the products, by the weight's name.
    """

    def __init__(self, layout: Layout, groups: Sequence[Steps], values: Mapping[str, Tensor], states: Tensor) -> None:
        self.layout, self.groups = layout, list(groups)
        self.values = {name: value.cpu() for name, value in values.items()}
        self._devices = {name: value.device for name, value in values.items()}
        self.which, self.index = grouped(groups, len(states) - 1)
        found = [{p.weight: p for p in _products(group.program, values) if self._a_row(group, p, states)}
                 for group in groups]  # fmt: skip
        uses = [_uses(group.program, values) for group in groups]
        self.signals = _by_products(list(values), found, uses)
        self.products = [{w: p for w, p in one.items() if self.signals.get(w) == w} for one in found]
        self.whole = [name for name in values if name not in self.signals]
        self._widths = {name: len(values[name]) for name, signal in self.signals.items() if name == signal}

    def with_values(self, values: Mapping[str, Tensor]) -> ParameterUse:
        """The same steps with other tensors."""
        other = copy.copy(self)
        other.values = dict(values)
        return other

    def row_cost(self, entries: int) -> int:
        """Multiplications for one gradient of so many entries."""
        return entries * sum(self._widths.values()) + sum(self.values[name].numel() for name in self.whole)

    def check_items(self, length: int) -> None:
        """Raises Unsupported where one whole gradient a step does not fit into memory."""
        needed = length * sum(self.values[name].nbytes for name in self.whole)
        if needed > WHOLE_BYTES:
            raise Unsupported(
                f"The gradients of {', '.join(self.whole[:3])}{' and others' * (len(self.whole) > 3)} at each of "
                f"{length:,} steps take {needed / 2**20:,.0f} MB; the limit is {WHOLE_BYTES >> 20} MB, so use a "
                "shorter sequence."
            )

    def step(self, t: int, whole: Tensor, state: Tensor, column: int) -> Tensor:
        """Step t of one sample, (s,) from (s,), the others of the batch in `whole` (b, s) held fixed."""
        group = self.groups[int(self.which[t])]
        rows = _put(whole, state, column)
        return self._advance(group.program, rows, group.one(int(self.index[t])))[column]

    def matches(self, states: Tensor) -> bool:
        """True where the longer programs reproduce the recorded states (t + 1, b, s)."""
        worst = 0.0
        for n, group in enumerate(self.groups):
            with torch.no_grad():
                made = self._map(n, group.numbers, partial(self._advance, group.program), states[group.numbers])
            error = (made - states[group.numbers + 1]).abs().nan_to_num(0.0, 0.0, 0.0)
            worst = max(worst, float(error.max()))
        finite = states[torch.isfinite(states)]
        size = max(1.0, float(finite.abs().max())) if finite.numel() else 1.0
        return worst <= TOLERANCE * torch.finfo(states.dtype).eps * size

    def sensitivities(self, start: int, whole: Tensor, column: int) -> dict[str, Tensor]:
        """{weight: (t, s, g)}: how one sample's new state changes with the result of the weight's product."""
        found = {name: whole.new_zeros(len(whole), whole.shape[2], width) for name, width in self._widths.items()}
        for n, rows in self._runs(start, len(whole)):
            products = self.products[n]
            if not products:
                continue
            widths = [self._widths[name] for name in products]
            step = partial(self._moved, n, column, widths)
            with torch.enable_grad():
                made = self._map(n, start + rows, jacrev(step), whole.new_zeros(len(rows), sum(widths)), whole[rows])
            for name, piece in zip(products, made.detach().split(widths, -1), strict=True):
                found[name][rows] = piece
        return found

    def factors(self, start: int, whole: Tensor, columns: Tensor) -> dict[str, tuple[str, Tensor]]:
        """{parameter: (signal, (t, c, r))}, see `StepBlock.factors`: for chosen samples of whole (t, b, s)."""
        t, count = len(whole), len(columns)
        given = {name: whole.new_zeros(t, count, self.values[name].shape[1]) for name in self._widths}
        there = {name: whole.new_zeros(t, count, 1) for name in self._widths}
        for n, rows in self._runs(start, t):
            products = self.products[n]
            if not products:
                continue
            reading = replace(self.groups[n].program, results=[product.given for product in products.values()])
            with torch.no_grad():
                values = self._map(n, start + rows, partial(self._read, reading), whole[rows])
            for name, value in zip(products, values, strict=True):
                given[name][rows] = value.reshape(len(rows), whole.shape[1], -1)[:, columns].to(whole)
                there[name][rows] = 1
        one = whole.new_ones(t, count, 1)
        return {
            name: (name, one) if (signal := self.signals.get(name)) is None
            else (signal, given[name] if signal == name else there[signal])
            for name in self.values
        }  # fmt: skip

    def gradients(self, states: Tensor, delta: Tensor) -> dict[str, Tensor]:
        """Σ_t Σ_b δᵀ ∂⁺s_t/∂θ of gradients (t, b, s) at the new states, states (t + 1, b, s): autograd, all steps."""
        leaves = {name: value.detach().clone().requires_grad_() for name, value in self.values.items()}
        other, total = self.with_values(leaves), {name: torch.zeros_like(value) for name, value in self.values.items()}
        for n, group in enumerate(self.groups):
            for numbers in group.numbers.split(CHUNK):
                with torch.enable_grad():
                    made = other._map(n, numbers, partial(other._advance, group.program), states[numbers])
                    if not made.requires_grad:  # steps that use no parameter
                        continue
                    found = torch.autograd.grad(
                        made, list(leaves.values()), delta[numbers].to(made.dtype), allow_unused=True,
                        materialize_grads=True,
                    )  # fmt: skip
                for name, gradient in zip(leaves, found, strict=True):
                    total[name] += gradient
        return total

    def pull(self, rows: Tensor, t: int, whole: Tensor, column: int) -> dict[str, Tensor]:
        """Gradients (n, s) after step t → {parameter: (n, its entries)} of those whose whole gradient is computed."""
        if not self.whole:
            return {}

        def step(values: dict[str, Tensor]) -> Tensor:
            return self.with_values({**self.values, **values}).step(t, whole, whole[column], column)

        with torch.enable_grad():
            back: Any = vjp(step, {name: self.values[name] for name in self.whole})[1]
            found = vmap(back, chunk_size=CHUNK)(rows)[0]
        return {name: value.detach().reshape(len(rows), -1) for name, value in found.items()}

    def _given(self) -> dict[Hashable, Tensor]:
        return {key_of(name): value.to(self._devices[name]) for name, value in self.values.items()}

    def _advance(
        self, program: Program, rows: Tensor, outside: Sequence[Tensor], added: Mapping[int, Tensor] | None = None
    ) -> Tensor:
        return self.layout.advance(program, rows, outside, given=self._given(), added=added)

    def _read(self, program: Program, rows: Tensor, outside: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return tuple(program.run({**self.layout.given(rows), **self._given()}, outside))

    def _moved(
        self, n: int, column: int, widths: list[int], moves: Tensor, whole: Tensor, outside: Sequence[Tensor]
    ) -> Tensor:
        """One sample's new state when `moves`, side by side, are added to its products' results."""
        pieces = zip(self.products[n].values(), moves.split(widths), strict=True)
        added = {
            p.instruction: _put(piece.new_zeros(len(whole), len(piece)), piece, column).to(self._devices[p.weight])
            for p, piece in pieces
        }
        return self._advance(self.groups[n].program, whole, outside, added)[column]

    def _runs(self, start: int, count: int) -> Iterator[tuple[int, Tensor]]:
        """(group, its steps among `count` from `start` on)."""
        which = self.which[start : start + count]
        for n in which.unique().tolist():
            yield n, torch.nonzero(which == n)[:, 0]

    def _map(self, n: int, steps: Tensor, function: Callable[..., Any], *stacked: Tensor) -> Any:
        """function(*stacked, tensors from outside) for steps of group n, together where the program writes nothing."""
        group, index = self.groups[n], self.index[steps]
        if group.program.writes:
            return torch.stack([function(*(s[r] for s in stacked), group.one(int(i))) for r, i in enumerate(index)])
        axes = (*(0 for _ in stacked), group.axes)
        return vmap(function, in_dims=axes, chunk_size=CHUNK)(*stacked, group.at(index))

    def _a_row(self, group: Steps, product: Product, states: Tensor) -> bool:
        """True where a product's input has one row a sample and nothing is written in place."""
        program = group.program
        if program.writes:
            return False
        reading = replace(program, results=[product.given])
        with torch.no_grad():
            given = self._read(reading, states[int(group.numbers[0])], group.one(0))[0]
        samples, width = states.shape[1], self.values[product.weight].shape[1]
        return tuple(given.shape) == (samples, width) or (samples == 1 and given.numel() == width)


def _put(whole: Tensor, row: Tensor, column: int) -> Tensor:
    return torch.cat((whole[:column], row[None], whole[column + 1 :]))


def _uses(program: Program, values: Mapping[str, Tensor]) -> dict[str, int]:
    """How often each parameter is read."""
    leaves = [(kind, what) for one in program.instructions for kind, what, _ in one.leaves]
    return {name: leaves.count(("given", key_of(name))) for name in values}


def _products(program: Program, values: Mapping[str, Tensor]) -> Iterator[Product]:
    names = {key_of(name): name for name in values}

    def name_of(one: Instruction, place: int) -> str | None:
        leaf = one.leaves[place] if place < len(one.leaves) else ("is", None, 0)
        return names.get(leaf[1]) if leaf[0] == "given" else None

    for number, one in enumerate(program.instructions):
        weight = name_of(one, 1) if one.name == "linear" and one.spec is None else None
        if weight is not None and one.leaves[0][0] != "is":
            yield Product(number, one.leaves[0], weight, name_of(one, 2))


def _by_products(
    names: Sequence[str], products: Sequence[Mapping[str, Product]], uses: Sequence[Mapping[str, int]]
) -> dict[str, str]:
    """{parameter: weight of its product}: those that only F.linear reads, once, and a bias with one weight only."""
    signals: dict[str, str] = {}
    for name in names:
        if all(use[name] == (name in found) for found, use in zip(products, uses, strict=True)):
            signals[name] = name
    for name in names:
        weights = {p.weight for found in products for p in found.values() if p.bias == name}
        if len(weights) != 1 or name in signals:
            continue
        weight = weights.pop()
        together = all(
            use[name] == (weight in found and found[weight].bias == name) == use[weight]
            for found, use in zip(products, uses, strict=True)
        )
        if together and signals.get(weight) == weight:
            signals[name] = weight
    return signals
