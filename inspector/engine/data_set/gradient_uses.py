"""Where a loss uses each parameter, read off autograd's graph, and the gradient of each sequence of a batch from it.

A batched backward pass sums the gradient of a parameter over the sequences. What it sums is known at the operation that
uses the parameter: for y = a Wᵀ the gradient of sequence b is the sum over its rows of δ ⊗ a, with δ the gradient at y
(per-example gradients: Goodfellow 2015, arXiv:1510.01799). Operations that are not listed here are reported as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from inspector.engine.devices.present import has_float64
from inspector.engine.errors import Unsupported

Layout = Literal["major", "minor"]
"""Of rows that are steps and sequences: those of one sequence lie together ("major"), or those of one step."""
LAYOUTS: tuple[Layout, ...] = ("major", "minor")
REARRANGED = ("T", "View", "UnsafeView", "Permute", "Alias", "Unsqueeze", "Squeeze", "Transpose", "Slice")
VIEWS = frozenset(f"{name}Backward0" for name in REARRANGED)
"""Operations between a parameter and its use that rearrange its entries, or choose some: norms are the same."""
PIECE = 1 << 24
"""Numbers of gradients by sequence that are in memory at once."""
FUSED = "MkldnnRnnLayerBackward0"
"""A fused kernel that torch uses on CPUs unless oneDNN is off; without it the same layer is written as plain steps."""


class UndecidedError(Unsupported):
    """Which rows are those of a sequence makes a difference, and has not been found out yet."""


class FusedKernelError(Unsupported):
    """A fused kernel uses a parameter; without oneDNN its steps would be in the graph."""


@dataclass(slots=True)
class Use:
    """One operation that uses a parameter. `read` is the other factor: (r, i) rows, ids (r,), or None for a sum."""

    name: str
    group: tuple[Any, ...]
    read: Tensor | None
    ids: bool = False
    whole: bool = False
    """The parameter has steps of its own (an encoding of positions): nothing is summed within a sequence."""
    scale: Tensor | None = None
    """What δ is multiplied by, entry by entry, before it is summed."""
    delta: Tensor | None = None


@dataclass(slots=True)
class Uses:
    """Every use of some parameters in one graph, by the node of the graph; `release` lets go of the nodes."""

    found: list[Use] = field(default_factory=list)
    nodes: dict[Any, list[Use]] = field(default_factory=dict)

    def edges(self) -> list[GradientEdge]:
        """Where the gradients are to be had, one for each node."""
        return [GradientEdge(node, 0) for node in self.nodes]

    def take(self, gradients: Sequence[Tensor | None]) -> None:
        """The gradients there, None where no loss depends on it."""
        for uses, gradient in zip(self.nodes.values(), gradients, strict=True):
            for use in uses:
                use.delta = gradient

    def release(self) -> None:
        """Release the graph."""
        self.nodes.clear()

    def names(self) -> list[str]:
        """The parameters that are used."""
        return list(dict.fromkeys(use.name for use in self.found))

    def squares(self, size: int, layouts: Mapping[str, Layout]) -> dict[str, Tensor]:
        """‖∂L/∂θ‖² of each of `size` sequences, (b,) float64, by parameter. Raises Unsupported, UndecidedError.

        L is the sum over sequences of which each depends on its own rows only; that, and the layout of the rows, is to
        be checked against sequences that are run alone.
        """
        groups: dict[tuple[Any, ...], list[Use]] = {}
        rows = _Rows(size)
        for use in self.found:
            if use.delta is not None:  # no loss depends on the others
                groups.setdefault((use.name, *use.group), []).append(use)
        sums: dict[str, Tensor] = {}
        for (name, *_), uses in groups.items():
            part = _decided(uses, rows, layouts.get(name))
            sums[name] = sums[name] + part if name in sums else part
        return sums


def uses_of(total: Tensor, parameters: Mapping[str, Tensor]) -> Uses:
    """Every operation of the graph of `total` that uses one of some parameters. Raises Unsupported."""
    odd = next((name for name, value in parameters.items() if value.is_complex()), None)
    if odd is not None:
        raise Unsupported(f"{odd} is complex")
    known = {id(value): name for name, value in parameters.items()}
    uses = Uses()
    try:
        for node in _nodes(total):
            for edge, (source, _) in enumerate(node.next_functions):
                path, source = _through_views(source)
                name = known.get(id(getattr(source, "variable", None)))
                if name is not None and node.name() not in VIEWS:
                    _add(uses, node, edge, name, path, parameters[name].dim())
    except BaseException:
        uses.release()
        raise
    return uses


def _nodes(total: Tensor) -> list[Any]:
    waiting: list[Any] = [total.grad_fn]
    seen: dict[int, Any] = {}
    while waiting:
        node = waiting.pop()
        if node is not None and id(node) not in seen:
            seen[id(node)] = node  # held, so that no other node gets its id
            waiting.extend(source for source, _ in node.next_functions)
    return list(seen.values())


def _through_views(node: Any) -> tuple[tuple[str, ...], Any]:
    path: list[str] = []
    while node is not None and node.name() in VIEWS:
        path.append(node.name())
        node = node.next_functions[0][0]
    return tuple(path), node


def _add(uses: Uses, node: Any, edge: int, name: str, path: tuple[str, ...], axes: int) -> None:
    kind = node.name()
    if kind == FUSED:
        raise FusedKernelError(f"{name} is used by a fused kernel")
    make = KINDS.get(kind)
    use = make(node, edge, name) if make is not None else None
    if use is None:
        raise Unsupported(f"{name} is used by {kind.removesuffix('0').removesuffix('Backward')}")
    use.group = (kind, edge, path)
    use.whole = axes > 1 and use.read is None and kind == "AddBackward0"

    uses.nodes.setdefault(node, []).append(use)
    uses.found.append(use)


def _addmm(node: Any, edge: int, name: str) -> Use | None:
    """β c + α a b: the bias c, or b."""
    if edge == 1 or node._saved_alpha != 1 or node._saved_beta != 1:
        return None
    return Use(name, (), None if edge == 0 else node._saved_mat1)


def _mm(node: Any, edge: int, name: str) -> Use | None:
    return Use(name, (), node._saved_self) if edge == 1 else None


def _add_use(node: Any, edge: int, name: str) -> Use | None:
    """A parameter that is added to every row; a subtracted one has the same norm."""
    return Use(name, (), None) if getattr(node, "_saved_alpha", 1) == 1 else None


def _multiplied(node: Any, edge: int, name: str) -> Use | None:
    """A parameter that every row is multiplied by, entry by entry."""
    return Use(name, (), None, scale=node._saved_other if edge == 0 else node._saved_self)


def _normalised(node: Any, edge: int, name: str) -> Use | None:
    """Scale and shift of a layer normalisation over the last axis."""
    if edge == 2:
        return Use(name, (), None)
    mean, inverse = node._saved_result1, node._saved_result2
    return Use(name, (), None, scale=(node._saved_input - mean) * inverse) if edge == 1 else None


def _embedding(node: Any, edge: int, name: str) -> Use | None:
    plain = node._saved_padding_idx in (-1, 2**64 - 1) and not node._saved_scale_grad_by_freq
    return Use(name, (), node._saved_indices.reshape(-1), ids=True) if plain else None


KINDS: dict[str, Callable[[Any, int, str], Use | None]] = {
    "AddmmBackward0": _addmm, "MmBackward0": _mm, "AddBackward0": _add_use, "SubBackward0": _add_use,
    "EmbeddingBackward0": _embedding, "ExpandBackward0": _add_use,
    "MulBackward0": _multiplied, "NativeLayerNormBackward0": _normalised,
}  # fmt: skip


class _Rows:
    """The rows of uses by sequence, (b, rows, …); a weight and its bias share them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._known: dict[tuple[Any, ...], tuple[list[Tensor], Tensor]] = {}
        """By the memory of the parts, which is kept so that no other tensor gets it."""
        self._summed: list[tuple[Tensor, Tensor]] = []
        """Rows, and ‖Σ rows‖² of each sequence: the two biases of a recurrent layer have the same."""

    def of(self, parts: list[Tensor], layout: Layout, what: str) -> Tensor:
        """Rows (r, …) of several uses. Raises Unsupported where they are not equally many for each sequence."""
        key = (layout, *((part.data_ptr(), part.shape, part.stride()) for part in parts))
        if key not in self._known:
            self._known[key] = parts, self._made(parts, layout, what)
        return self._known[key][1]

    def summed(self, rows: Tensor) -> Tensor:
        """‖Σ rows‖² of each sequence, (b,) float64. The sums are in the dtype of the rows, as autograd's are."""
        for known, found in self._summed:
            if known is rows:
                return found
        found = _square(rows.sum(1, dtype=rows.dtype if rows.dtype.itemsize >= 4 else torch.float32))
        self._summed.append((rows, found))
        return found

    def _made(self, parts: list[Tensor], layout: Layout, what: str) -> Tensor:
        if len(parts) > 1 and all(len(part) == self.size for part in parts):
            return torch.stack(parts, 1)
        return torch.cat([self._one(part, layout, what) for part in parts], 1)

    def _one(self, values: Tensor, layout: Layout, what: str) -> Tensor:
        rows, rest = values.shape[0], values.shape[1:]
        if rows % self.size:
            raise Unsupported(f"{what} is used by {rows} rows, of which it is not known which sequence each belongs to")
        if layout == "major":
            return values.reshape(self.size, rows // self.size, *rest)
        return values.reshape(rows // self.size, self.size, *rest).transpose(0, 1)


def _decided(uses: list[Use], rows: _Rows, layout: Layout | None) -> Tensor:
    return _by_layout(uses, rows, layout).cpu()


def _by_layout(uses: list[Use], rows: _Rows, layout: Layout | None) -> Tensor:
    if layout is not None or all(_is_one_step(use, rows.size) for use in uses):
        return _squares_of(uses, rows, layout or "major")
    major, minor = (_squares_of(uses, rows, one) for one in LAYOUTS)
    if not torch.allclose(major, minor, equal_nan=True):
        raise UndecidedError(f"{uses[0].name}: the rows of each sequence are not known")
    return major


def _is_one_step(use: Use, size: int) -> bool:
    """Whether a use has one row for each sequence, and no choice of a layout."""
    return use.delta is not None and use.delta.dim() == 2 and len(use.delta) == size


def _squares_of(uses: list[Use], rows: _Rows, layout: Layout) -> Tensor:
    """‖Σ δ ⊗ a‖² over all rows of all uses, (b,) float64."""
    first = uses[0]
    if first.whole:
        return _whole(uses, rows)
    delta = rows.of([_delta(use) for use in uses], layout, first.name)
    if first.read is None:
        return rows.summed(delta)
    read = rows.of([use.read.detach() for use in uses if use.read is not None], layout, first.name)
    steps, wide = delta.shape[1], delta.shape[2]
    if first.ids:
        same = (read[:, :, None] == read[:, None, :]).to(delta.dtype)
        return _wide(delta @ delta.mT * same).double().sum((1, 2)).clamp(min=0)
    if steps * (wide + read.shape[2]) < wide * read.shape[2]:  # steps × steps products are less than the gradient
        return _wide((delta @ delta.mT) * (read @ read.mT)).double().sum((1, 2)).clamp(min=0)
    many = max(1, PIECE // (wide * read.shape[2]))
    pieces = zip(delta.split(many), read.split(many), strict=True)
    return torch.cat([_square(d.mT @ a) for d, a in pieces])


def _whole(uses: list[Use], rows: _Rows) -> Tensor:
    """‖δ‖² of each sequence, where the parameter has every entry of a sequence's δ; the batch's axis is the first."""
    deltas = [use.delta.detach() for use in uses if use.delta is not None]
    if len({delta.shape for delta in deltas}) > 1 or len(deltas[0]) != rows.size:
        raise Unsupported(f"{uses[0].name} is added to something that has no axis of the batch in front")
    return _square(torch.stack(deltas).sum(0))


def _delta(use: Use) -> Tensor:
    """The gradient at a use as rows (r, n)."""
    assert use.delta is not None
    found = use.delta.detach() if use.scale is None else use.delta.detach() * use.scale.detach()
    return found.flatten(0, -2) if found.dim() > 1 else found[None]


def _square(values: Tensor) -> Tensor:
    """Σ x² of each of the first axis, in float64."""
    found: Tensor = torch.linalg.vector_norm(_wide(values).flatten(1), dim=1, dtype=torch.float64).square()
    return found


def _wide(values: Tensor) -> Tensor:
    """Where float64 is computed: on the device, or in main memory where the device has none."""
    return values if has_float64(values.device) else values.cpu()
