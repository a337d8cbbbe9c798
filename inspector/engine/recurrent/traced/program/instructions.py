"""A recorded step as a program: calls in order, with references in the place of tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_unflatten

from inspector.engine.recurrent.traced.program.cell_functions import carried

Ref = tuple[str, Any, int]
"""("given", name of an input, 0), ("made", instruction, output), ("outside", number, 0) or ("is", value, 0)."""


@dataclass(slots=True)
class Instruction:
    """One call: its function, and its arguments with references instead of tensors (`spec` None: all in order).

    `direct`: those of the leaves through which the direct path of a state goes.
    """

    name: str
    function: Callable[..., Any]
    spec: Any
    leaves: list[Ref]
    direct: frozenset[int] = frozenset()

    def __call__(
        self, given: Mapping[Hashable, Tensor], made: list[Any], outside: Sequence[Tensor], *, direct: bool = False
    ) -> Any:
        """Run it; with `direct` everything that is not on the direct path counts as constant."""
        leaves = []
        for kind, what, n in self.leaves:
            if kind == "given":
                leaves.append(given[what])
            elif kind == "made":
                leaves.append(made[what][n])
            else:
                leaves.append(outside[what] if kind == "outside" else what)
        if direct and self.name in carried():
            args, kwargs = (leaves, {}) if self.spec is None else tree_unflatten(leaves, self.spec)
            return carried()[self.name](*args, **kwargs)
        if direct:
            leaves = [
                one.detach() if isinstance(one, Tensor) and k not in self.direct else one
                for k, one in enumerate(leaves)
            ]
        if self.spec is None:
            return self.function(*leaves)
        args, kwargs = tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


@dataclass(slots=True)
class Program:
    """Instructions in order, what they return, and how tensors from outside are numbered.

    `signature` is equal for steps that run the same operations on other numbers.
    """

    instructions: list[Instruction]
    results: list[Ref]
    signature: tuple[Hashable, ...]
    writes: bool
    cut: bool

    def run(
        self,
        given: Mapping[Hashable, Tensor],
        outside: Sequence[Tensor],
        *,
        direct: bool = False,
        added: Mapping[int, Tensor] | None = None,
    ) -> list[Tensor]:
        """The results for these inputs and tensors from outside; nothing that was recorded is written to.

        With `direct` derivatives go through sums and elementwise products only: everything else counts as constant.
        `added`: number of an instruction → what is added to its result (0, to differentiate with respect to it).
        """
        if self.writes:
            given = {name: value.clone() for name, value in given.items()}
        made: list[Any] = []
        for instruction in self.instructions:
            out = instruction(given, made, outside, direct=direct)
            if added and len(made) in added:
                out = out + added[len(made)].reshape(out.shape)
            made.append((out,) if isinstance(out, Tensor) else _flat(out))
        return [given[what] if kind == "given" else made[what][n] if kind == "made" else outside[what]
                for kind, what, n in self.results]  # fmt: skip


def _flat(out: Any) -> tuple[Tensor, ...]:
    found: list[Tensor] = []
    for item in out if isinstance(out, (tuple, list)) else ():
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, (tuple, list)):
            found.extend(_flat(item))
    return tuple(found)
