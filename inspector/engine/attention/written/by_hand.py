"""Handlers of the torch functions of which people write attention; see the package's docstring."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.calls import WITHOUT_DROPOUT, from_weights
from inspector.engine.attention.rows import margins
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written import judging, masking, picked
from inspector.engine.attention.written.contraction import (
    Contraction,
    Operand,
    Roles,
    of_einsum,
    of_matmul,
    of_sum,
    of_tensordot,
)
from inspector.engine.attention.written.facts import Facts, FactTable, Origin
from inspector.engine.attention.written.layout import Layout, lay_out
from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Attention

OWN_WEIGHTS_BYTES = 2 << 30
"""Maps that the model itself computes stay in memory until they are written; at most this many bytes of them in a
run."""

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]
NOTHING = Facts()


@dataclass(slots=True)
class ByHand:
    """The attention of one run that its model computes itself. `found` gets each one; `where()` gives (place, class) of
    the innermost module being called."""

    selected: SelectedSample
    where: Callable[[], tuple[str, str]]
    found: Callable[[Attention], None]
    origins: list[Origin] = field(default_factory=list)
    facts: FactTable = field(default_factory=FactTable)
    products: dict[int, tuple[weakref.ref[Tensor], Tensor, Tensor]] = field(default_factory=dict)
    bytes: int = 0

    # --- what makes weights

    def softmax(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """A softmax over any axis."""
        if not out.is_floating_point() or not out.dim() or out.is_meta:
            return
        dim = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else -1)
        self.weights("softmax", args[0] if args else kwargs["input"], out, -1 if dim is None else dim)

    def gumbel(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """gumbel_softmax(logits, tau, hard, eps, dim): the weights are those that were drawn."""
        self.weights("softmax", args[0] if args else kwargs["logits"], out, kwargs.get("dim", -1))

    def softmin(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """A softmax of the negative scores."""
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        self.weights("softmax", -(args[0] if args else kwargs["input"]).detach(), out, dim)

    def sigmoid(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """A sigmoid: most are gates, of which nothing is said."""
        scores = args[0] if args else kwargs["input"]
        known = self.facts.of(scores)
        origin = Origin("sigmoid", "", "", tuple(out.shape), -1)
        masked = masking.forbidden(known, scores, out) if out.is_floating_point() and known is not None else None
        self.facts.note(out, Facts(masked=masked, origin=origin))

    def weights(self, kind: str, scores: Tensor, out: Tensor, dim: int) -> None:
        """Note that a result may be weights, with the masks of its scores."""
        place, module = self.where()
        known, axis = self.facts.of(scores), dim % out.dim()
        size = out.shape[axis]
        last = known is not None and known.features == size and axis == out.dim() - 1
        origin = Origin(
            kind, _of_outer(place, module), module, tuple(out.shape), axis, last, judging.is_parameter(scores)
        )
        self.origins.append(origin)
        masked = masking.forbidden(known, scores, out)
        after = Facts(masked=masked, origin=origin)
        if known is not None and known.masked is not None and masking.finite(known, scores):
            applied = known.masked.expand(scores.shape)
            least = margins(scores.detach().movedim(axis, -1), applied.movedim(axis, -1))
            after = replace(after, margins=least.unsqueeze(-1).movedim(-1, axis))
        self.facts.note(out, after)

    def made(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A quotient, an exponential, a clamp: their results may be weights by their values."""
        source = args[0] if args else kwargs.get("input")
        if isinstance(out, Tensor) and out.is_floating_point() and out.dim():
            known = self.facts.of(source) or NOTHING
            if isinstance(source, Tensor) and known.worth:
                self.facts.pass_on(source, out, replace(known, made=True))
            else:
                self.facts.note(out, Facts(made=True))

    def one_hot(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """one_hot of the keys with the largest scores."""
        picked.one_hot(self.facts, args[0] if args else kwargs["tensor"], out)

    def scattered(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """scatter(zeros, dim, index, value), in place or not."""
        given = masking.arguments(args, kwargs, ("input", "dim", "index", "src"))
        if given["dim"] in (-1, out.dim() - 1) and masking.constant(given.get("src", given.get("value"))) is not None:
            picked.one_hot(self.facts, given["index"], out)

    def largest(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """argmax or max along an axis: perhaps the index of a key."""
        picked.largest(self.facts, args, kwargs, out)

    # --- what passes them on

    def passed(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """A cast, a copy, a reshape, a difference with the largest score."""
        if args and isinstance(args[0], Tensor):
            self.facts.pass_on(args[0], out)

    def dropped(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """A dropout: the weights are shown as they were before."""
        known = self.facts.of(args[0]) if args else None
        if known is None or out is args[0] or not (known.made or known.origin is not None):
            return
        source = args[0].detach()
        changed = not torch.equal(source, out.detach())
        clean = known.clean if known.clean is not None else source if changed else None
        self.facts.pass_on(args[0], out, replace(known, clean=clean))

    def masked(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """masked_fill(x, mask, value), in place or not."""
        given = masking.arguments(args, kwargs, ("input", "mask", "value"))
        source = given["input"] if "input" in given else given.get("self")
        known = masking.filled(self.facts.of(source), given["mask"], given["value"], out.shape)
        if known is not None:
            self.facts.note(out, known)

    def chosen(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """where(condition, a, b), one of both a constant that forbids."""
        given = masking.arguments(args, kwargs, ("condition", "input", "other"))
        if len(given) < 3 or not isinstance(out, Tensor):
            return
        condition, one, other = given["condition"], given["input"], given["other"]
        for source, fill, mask in ((one, other, ~condition), (other, one, condition)):
            known = masking.filled(self.facts.of(source), mask, fill, out.shape)
            if known is not None and known.worth:
                self.facts.note(out, replace(known, features=0))
                return

    def assigned(self, args: Args, _kwargs: Kwargs, _out: Any) -> None:
        """scores[mask] = −∞."""
        target, at, value = args[:3]
        if isinstance(at, Tensor) and at.dtype == torch.bool and at.shape == target.shape:
            known = masking.filled(self.facts.of(target), at, value, target.shape)
            if known is not None:
                self.facts.note(target, known)

    def added(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A sum: one of both may be a mask."""
        if not isinstance(out, Tensor) or not out.is_floating_point() or len(args) < 2:
            return
        self._plus(args[0], args[1], out)

    def subtracted(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A difference: of scores and their largest, or with a mask of large numbers."""
        if isinstance(out, Tensor) and out.is_floating_point() and len(args) > 1:
            other = args[1]
            plain = isinstance(other, Tensor) and (other.requires_grad or other.dim() < 1)
            self._plus(args[0], other if plain or not isinstance(other, Tensor) else -other.detach(), out)

    def _plus(self, one: Any, two: Any, out: Tensor) -> None:
        for source, mask in ((one, two), (two, one)):
            known = self.facts.of(source)
            if not isinstance(source, Tensor):
                continue
            after = masking.added(known, mask, out)
            if after is not known and after is not None:
                self.facts.note(out, moved_masks(after, source, out))
                return
            if known is not None:
                self.facts.pass_on(source, out, known)

    def multiplied(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A product: with a mask of zeros and ones; or of weights and values, which a sum follows."""
        if len(args) < 2 or not isinstance(out, Tensor) or not out.dim():
            return
        left, right = args[0], args[1]
        for source, other in ((left, right), (right, left)):
            known = self.facts.of(source)
            if known is not None and known.worth and isinstance(source, Tensor):
                after = masking.multiplied(known, other, out) if known.made or known.origin is not None else known
                if not isinstance(other, Tensor) or other.dim() == 0 or after is not known:
                    self.facts.pass_on(source, out, after)
                elif known.made or known.origin is not None:
                    self._multiplies(known, left, right, out)

    def _multiplies(self, known: Facts, left: Any, right: Any, out: Tensor) -> None:
        if known.origin is not None and not known.origin.reason:
            known.origin.reason = judging.GATE if left.shape == right.shape else judging.PIECES
        number = id(out)
        self.products[number] = (weakref.ref(out, lambda _: self.products.pop(number, None)), left, right)

    def layer(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A linear layer: its last axis has a weight of its own for each position."""
        weight = kwargs.get("weight", args[1] if len(args) > 1 else None)
        if isinstance(out, Tensor) and out.dim():
            self.facts.note(out, Facts(features=out.shape[-1], weight=id(weight)))

    def stacked(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """stack or cat: of results of layers with different weights, or of one layer at several positions."""
        parts = kwargs.get("tensors", args[0] if args else ())
        known = [self.facts.of(part) for part in parts]
        weights = {one.weight for one in known if one is not None and one.weight}
        if len(parts) > 1 and len(weights) == len(parts):
            self.facts.note(out, Facts(experts=True))

    def routed(self, args: Args, _kwargs: Kwargs, _out: Any) -> None:
        """topk of weights."""
        known = self.facts.of(args[0]) if args else None
        if known is not None and known.origin is not None:
            known.origin.reason = judging.ROUTED

    # --- what uses them

    def product(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """matmul, bmm and the like."""
        given = masking.arguments(args, kwargs, ("input", "other"))
        left, right = given.get("input"), given.get("other", given.get("mat2", given.get("vec")))
        if not isinstance(left, Tensor) or not isinstance(right, Tensor) or not isinstance(out, Tensor):
            return
        if judging.is_parameter(right) and not self._weighs(left):
            self.facts.note(out, Facts(features=out.shape[-1] if out.dim() else 0, weight=id(right)))
        elif self._any(left, right):
            self.consider(of_matmul(left, right, out))

    def einsum(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """einsum in any order of letters and operands."""
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        if not isinstance(args[0], str) or not self._any(*operands):
            return
        for at, operand in enumerate(operands):
            if self._weighs(operand):
                found = of_einsum(args[0], operands, at, out)
                if found is not None and self.weighs(found):
                    return

    def tensordot(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """tensordot with lists of axes."""
        if self._any(*args[:2]):
            found = of_tensordot(args[0], args[1], kwargs.get("dims", args[2] if len(args) > 2 else 2), out)
            if found is not None:
                self.consider(found)

    def summed(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A sum over some axes of a product that may be of weights and values."""
        found = self.products.get(id(args[0])) if self.products and args else None
        if found is None or found[0]() is not args[0]:
            return
        dims = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
        axes: Sequence[int] = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
        keepdim = bool(kwargs.get("keepdim", args[2] if len(args) > 2 else False))
        self.consider(of_sum(found[1], found[2], axes, keepdim, out))

    def gathered(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """gather(values, dim, index)."""
        given = masking.arguments(args, kwargs, ("input", "dim", "index"))
        if self.facts.of(given["index"]) is not None:
            self._picks(picked.gathered(self.facts, given["input"], given["dim"], given["index"], out))

    def along(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """take_along_dim(values, index, dim)."""
        given = masking.arguments(args, kwargs, ("input", "indices", "dim"))
        if self.facts.of(given["indices"]) is not None and isinstance(given.get("dim"), int):
            index = given["indices"]
            wide = index.expand(*given["input"].shape[: given["dim"]], *out.shape[given["dim"] :])
            self._picks(picked.gathered(self.facts, given["input"], given["dim"], wide, out))

    def indexed(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """values[arange, index]."""
        if isinstance(args[1], tuple) and any(self.facts.of(one) is not None for one in args[1]):
            self._picks(picked.indexed(self.facts, args[0], args[1], out))

    def _picks(self, contraction: Contraction | None) -> None:
        if contraction is not None:
            self.weighs(contraction)

    def consider(self, contraction: Contraction) -> None:
        """A sum of products in which either operand may be the weights."""
        if not (self._weighs(contraction.left.tensor) and self.weighs(contraction)):
            other = contraction.swapped()
            if self._weighs(other.left.tensor):
                self.weighs(other)

    def weighs(self, contraction: Contraction) -> bool:
        """Whether the left operand holds the weights of attention, which is then recorded.

        Raises Unsupported for attention that cannot be shown.
        """
        known = self.facts.of(contraction.left.tensor.detach()) or NOTHING
        roles = contraction.roles()
        if roles is None:
            return False
        if not contraction.left.tensor.is_floating_point():  # one_hot gives whole numbers
            left = Operand(contraction.left.tensor.to(contraction.out.tensor.dtype), contraction.left.axes)
            contraction = replace(contraction, left=left)
        origin = known.origin or self._by_values(contraction, roles)
        if origin is None:
            return False
        if origin.kind in ("sigmoid", "hard"):
            origin.place, origin.module = self.where()
        values = self.facts.of(contraction.right.tensor) or NOTHING
        reason = judging.verdict(self.selected, origin, contraction, roles, known, values)
        if reason:
            origin.reason = reason
            return False
        if origin.taken:
            return True  # other values with the same weights
        origin.taken = True  # or refused with a reason of its own
        return self._record(lay_out(self.selected, contraction, roles), known, origin)

    def _by_values(self, contraction: Contraction, roles: Roles) -> Origin | None:
        """The origin of weights that come from no softmax: each row sums to 1."""
        left = contraction.left
        at = left.axes.index(roles.keys[0])
        if len(roles.keys) == 1 and not judging.may_sum_to_one(left.tensor, at):
            return None
        rest = "".join(axis for axis in left.axes if axis not in roles.keys)
        if not judging.sums_to_one(left.ordered(rest + roles.keys).flatten(len(rest))):
            return None
        place, module = self.where()
        return Origin("", place, module, tuple(left.tensor.shape), at)

    def _record(self, layout: Layout, known: Facts, origin: Origin) -> bool:
        weights = layout.contraction.left.tensor.detach() if known.clean is None else known.clean
        part = layout.of_weights(weights)
        if origin.kind == "softmax" and not judging.at_most_one(part):
            origin.taken, origin.reason = False, origin.reason or judging.ELSEWHERE
            return False
        size = part.numel() * part.element_size()
        self.bytes += size
        if self.bytes > OWN_WEIGHTS_BYTES:
            self.bytes -= size
            raise Unsupported(
                f"the model computes the maps itself and this one would take {size / 1e9:.2g} GB more than allowed; "
                "with scaled_dot_product_attention only queries and keys are stored"
            )
        masked = None if known.masked is None else layout.of_weights(known.masked.expand(known_shape(layout)))
        rows = None if known.margins is None else layout.of_weights(known.margins.expand(known_shape(layout)))
        seen = from_weights(
            self.selected, origin.place, origin.module, part.clone(), _note(layout, known, origin),
            masked=masked, margins=None if rows is None else rows[..., 0].double(),
        )  # fmt: skip
        seen.check = layout.check()
        self.found(seen)
        return True

    def _weighs(self, tensor: object) -> bool:
        known = self.facts.of(tensor)
        return known is not None and (known.made or known.origin is not None)

    def _any(self, *tensors: object) -> bool:
        return any(self._weighs(tensor) for tensor in tensors)


def known_shape(layout: Layout) -> torch.Size:
    """The shape of the weights as the operation got them."""
    return layout.contraction.left.tensor.shape


def moved_masks(facts: Facts, source: Tensor, out: Tensor) -> Facts:
    """Facts of a sum, whose mask may have more axes than the scores."""
    return facts if facts.masked is None or source.shape == out.shape else replace(facts, margins=None, clean=None)


def _of_outer(place: str, module: str) -> str:
    """The place of the module in which a softmax module is."""
    return place.rpartition(".")[0] or place if module in ("Softmax", "Softmin", "Softmax2d") else place


def _note(layout: Layout, known: Facts, origin: Origin) -> str:
    parts = [layout.note(), WITHOUT_DROPOUT if known.clean is not None else "", _KINDS.get(origin.kind, "")]
    return "; ".join(part for part in parts if part)


_KINDS = {
    "sigmoid": "sigmoid of each score: rows need not sum to 1",
    "hard": "hard: each query takes one key",
    "": "recognised by its values: each row sums to 1",
}
