"""What one file defines for a family of recurrent modules, and how the family of a module is found.

A family is a file of this folder (or of another package, entry-point group `inspector.cells`): a `Cell` with the
equations of the step and an entry of the registry that reads modules. Everything else (states, gates, the check,
Jacobians, gradients, spectra, edits) follows from these two. `cells/module_family.py` has defaults for nearly all.

Letters: t step, b sample, i input, o output, p the entries of one part of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from inspector.engine.cells.base import Cell
from inspector.registry import DoubleKeyError, Registry


@dataclass(frozen=True, slots=True)
class Stack:
    """How a module that runs whole sequences is built.

    Attributes:
        layers, directions: layers from below, each with that many directions; the second one runs backwards. The
            outputs of the directions lie side by side, forward first; states are ordered by layer, then by direction.
        batch_first: (b, t, i) instead of (t, b, i).
        dropout: probability with which the module drops outputs of each layer but the last, in training.
    """

    layers: int = 1
    directions: int = 1
    batch_first: bool = False
    dropout: float = 0.0


class CellFamily(Protocol):
    """Everything about one family of recurrent modules. Stateless; a new one is made for each use.

    Attributes:
        summary: one line.
        modules: classes that run a whole sequence at a call; cells: classes that take one step a call.
        parts: names of the parts of the state, as modules take and return them: ("h",), ("h", "c").
        opaque: True where no Python of the module runs that a recording could follow (torch's own kernels). The steps
            of other modules are recorded twice, here and as a hand-written loop: the loop is then left out.
        kernels, operations: names of torch's functions that compute a sequence and a step of it, for recordings.
    """

    summary: str
    modules: tuple[type[nn.Module], ...]
    cells: tuple[type[nn.Module], ...]
    parts: tuple[str, ...]
    opaque: bool
    kernels: Mapping[str, Any]
    operations: tuple[str, ...]

    def stack(self, module: nn.Module) -> Stack:
        """How a module of `modules` is built."""

    def arguments(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, tuple[Any, ...]]:
        """(input, parts of the initial state, () where none is given) of a call, whatever names they have."""

    def results(self, module: nn.Module, returned: Any) -> tuple[Any, tuple[Any, ...]] | None:
        """(output, parts of the last state, () where it is not returned) of a call; None: an unexpected return value.

        Of a cell the output is None.
        """

    def returned(self, module: nn.Module, output: Any, final: tuple[Tensor, ...]) -> Any:
        """What the module returns: the inverse of `results`."""

    def weights(self, module: nn.Module) -> dict[str, Tensor]:
        """The effective weights of the call that has just been made, detached, by name."""

    def from_module(self, module: nn.Module, weights: Mapping[str, Tensor], layer: int = 0, direction: int = 0) -> Cell:
        """The step of one layer in one direction, of `weights` as above; of a cell its only one."""

    def live(self, module: nn.Module, layer: int = 0, direction: int = 0) -> Cell:
        """The same on the module's own weights, gradients and all, for `Cell.eager_step` alone."""

    def run(
        self, module: nn.Module, cell: Cell, weights: Sequence[Tensor], x: Tensor, start: Sequence[Tensor]
    ) -> list[Tensor]:
        """One layer in one direction, computed independently of the closed forms of `cell`: differentiable in x and
        start.

        x (t, b, i) from the parts `start` (b, p) → [the state after each step, or as many of its leading entries as are
        known, the main part among them (t, b, ≤ s), the parts of the last state (b, p) …]; `weights` are those of
        `layer_weights`, in the dtype of x.
        """

    def layer_weights(self, weights: Mapping[str, Tensor], layer: int, direction: int) -> list[Tensor]:
        """The weights of one layer in one direction, as `run` takes them."""

    def make(self, variant: str, weights: Sequence[Any], *, live: bool = False) -> Cell:
        """A step from the arguments of one of `operations` after input and state; `variant` is the operation's name."""


FAMILIES: Registry[type[CellFamily]] = Registry("cells", "inspector.engine.cells")
"""Every family by its key; a new instance is made for each use."""


def sequence_family(module: nn.Module) -> CellFamily | None:
    """The family of a module that runs whole sequences, that of the nearest class it derives from; else None."""
    return _nearest(module, [(kind, family) for _, family in families() for kind in family.modules])


def step_family(module: nn.Module) -> CellFamily | None:
    """The family of a module that takes one step a call; else None."""
    return _nearest(module, [(kind, family) for _, family in families() for kind in family.cells])


def families() -> Iterator[tuple[str, CellFamily]]:
    """Every family with its key."""
    for key, kind in FAMILIES.items():
        yield key, kind()


def family_of_operation(name: str) -> CellFamily | None:
    """The family that one of torch's step functions ("lstm_cell") belongs to."""
    return next((family for _, family in families() if name in family.operations), None)


def step_operations() -> frozenset[str]:
    """Names of torch's functions that compute one step."""
    return frozenset(name for _, family in families() for name in family.operations)


def sequence_operations() -> frozenset[str]:
    """Names of torch's functions that compute a whole sequence."""
    return frozenset(name for _, family in families() for name in family.kernels)


def is_opaque(module: nn.Module) -> bool:
    """True for a recurrent module in which no Python runs that a recording could follow."""
    family = sequence_family(module) or step_family(module)
    return family is not None and family.opaque


def class_names() -> tuple[str, ...]:
    """Names of all classes of all families."""
    return tuple(kind.__name__ for _, family in families() for kind in (*family.modules, *family.cells))


def _nearest(module: nn.Module, claimed: Sequence[tuple[type[nn.Module], CellFamily]]) -> CellFamily | None:
    for kind in type(module).__mro__:
        found = [family for claim, family in claimed if claim is kind]
        if len(found) > 1:
            both = " and ".join(f"{type(family).__module__}.{type(family).__name__}" for family in found[:2])
            raise DoubleKeyError(f"The modules of {kind.__name__} are claimed by both {both}.")
        if found:
            return found[0]
    return None
