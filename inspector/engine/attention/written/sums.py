"""Sums of products of weights and values: whether they are attention, and what is recorded of them then."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.ancestry import Ancestry
from inspector.engine.attention.calls import from_weights
from inspector.engine.attention.key_source import SELF
from inspector.engine.attention.projections import Projections
from inspector.engine.attention.results import Results
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written import judging, largest, linear, masking, scores
from inspector.engine.attention.written.blocks_of_keys import BlocksOfKeys
from inspector.engine.attention.written.contraction import (
    Contraction,
    Roles,
    of_einsum,
    of_matmul,
    with_factor,
)
from inspector.engine.attention.written.facts import Facts, FactTable, Origin
from inspector.engine.attention.written.how_computed import how_computed
from inspector.engine.attention.written.layout import Layout, lay_out, with_batch
from inspector.engine.attention.written.linear import LinearAttention
from inspector.engine.attention.written.mixed_heads import note_mixed
from inspector.engine.attention.written.own_keys import OWN_KEY
from inspector.engine.attention.written.parts import Parts, region, start
from inspector.engine.attention.written.pieces import Pieces
from inspector.engine.attention.written.product_nodes import Operands
from inspector.engine.attention.written.products import products_behind
from inspector.engine.attention.written.real_weights import with_real_weights
from inspector.engine.attention.written.shown_part import ShownPart
from inspector.engine.attention.written.value_ends import ends_of_values
from inspector.engine.attention.written.whose_keys import WhoseKeys
from inspector.engine.errors import Unsupported
from inspector.engine.trace.heads import Heads
from inspector.engine.trace.trace import Attention, KeyEnds

WINDOWS = "its keys were copied into windows that overlap"
OWN_KEYS = "each query has keys of its own"
SEVERAL = "its weights multiply several values, of which one was followed"
OWN_WEIGHTS_BYTES = 2 << 30
"""Of maps that the model itself computes, which stay in memory until they are written, at most in a run."""

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]
NOTHING = Facts()


@dataclass(slots=True)
class WeightedSums:
    """What looks at every sum of products. `found` gets each attention; `where()` gives (place, class) of the innermost
    module being called."""

    selected: SelectedSample
    where: Callable[[], tuple[str, str]]
    found: Callable[[Attention], None]
    projections: Projections = field(default_factory=Projections)
    result: Any = None
    """What the function that is looked at returned."""
    by_origin: dict[tuple[int, int], Attention] = field(default_factory=dict)
    """Part of an origin → its attention, where what heads pass on is kept."""
    origins: list[Origin] = field(default_factory=list)
    facts: FactTable = field(default_factory=FactTable)
    products: dict[int, tuple[weakref.ref[Tensor], Tensor, Tensor]] = field(default_factory=dict)
    pieces: Pieces = field(init=False)
    keys: WhoseKeys = field(init=False)
    linear: LinearAttention = field(default_factory=LinearAttention)
    operands: Operands = field(default_factory=Operands)
    parts: Parts = field(default_factory=Parts)
    results: Results = field(default_factory=Results)
    blocks: BlocksOfKeys = field(default_factory=BlocksOfKeys)
    bytes: int = 0
    ancestry: Ancestry = field(init=False)
    of_itself: list[KeyEnds] = field(default_factory=list)
    """What was put together and is queries and keys: both are moved on alike."""

    def __post_init__(self) -> None:
        self.pieces, self.keys = Pieces(self.facts), WhoseKeys(self.facts)
        self.ancestry = Ancestry(self.keys.graph)

    def descends(self, seen: Attention, values: Tensor, result: object) -> None:
        """Note of which earlier attentions one was computed that returned `result`."""
        if self.selected.lineages:
            self.ancestry.note(seen, values, result)

    def product(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """matmul, bmm and the like."""
        given = masking.arguments(args, kwargs, ("input", "other"))
        left, right = given.get("input"), given.get("other", given.get("mat2", given.get("vec")))
        if not isinstance(left, Tensor) or not isinstance(right, Tensor) or not isinstance(out, Tensor):
            return
        if judging.is_parameter(right) and not self._normalised(left):
            self.results.pass_on(left, out)
            features = out.shape[-1] if out.dim() and right.dim() > 1 else 0
            known = Facts(features=features, weight=id(right), given=self.facts.given(left))
            self.facts.note(out, replace(known, scored=self._additive(out, right)))
            return
        contraction = of_matmul(left, right, out)
        if self._any(left, right) and not linear.of_features(self.facts, self.linear, contraction):
            self.consider(contraction)
        else:
            self._sums_first(contraction)
        self.factored_sum(contraction)
        self._scores(contraction)

    def block_of_keys(self, contraction: Contraction, roles: Roles, known: Facts) -> None:
        """A product of exponentials and values; see `online.py`."""

    def factored_sum(self, contraction: Contraction) -> None:
        """A product of matrices; see `indirect.py`."""

    def undivided_sum(self, contraction: Contraction) -> None:
        """A sum of a product; see `indirect.py`."""

    def einsum(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """einsum in any order of letters and operands."""
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        if not isinstance(args[0], str) or (self.linear.sums and self._linear_at_once(args[0], operands, out)):
            return
        pair = of_einsum(args[0], operands, 0, out) if len(operands) == 2 else None
        if not self._any(*operands) or (pair and linear.of_features(self.facts, self.linear, pair)):
            if pair is not None and not any(judging.is_parameter(one) for one in operands):
                self._sums_first(pair)
                self.factored_sum(pair)
                self._scores(pair)
            return
        for at, operand in enumerate(operands):
            if self._weighs(operand):
                found = of_einsum(args[0], operands, at, out)
                if found is not None and self.weighs(found):
                    return
        if pair is not None:
            self.factored_sum(pair)
            self._scores(pair)

    def _scores(self, contraction: Contraction) -> None:
        """Note that a product may be of queries and keys, and whether these are put together of the same."""
        of_both = [self.facts.of(one.tensor) for one in (contraction.left, contraction.right)]
        both = [one.ends for one in of_both if one is not None and one.ends is not None]
        if len(both) == 2 and both[0] is both[1]:
            self.of_itself = [*self.of_itself[-3:], both[0]]
        known = self.facts.of(contraction.out.tensor)
        found = scores.of_product(self.selected, contraction) if known is None else None
        if found is not None:
            own = self.facts.alike(contraction.left.tensor, contraction.right.tensor)
            self.facts.note(contraction.out.tensor, replace(found, own=SELF if own else ""))

    def _additive(self, out: Tensor, weight: Tensor) -> str | None:
        """Whether one number was computed for each position."""
        count = out.shape[-1] if weight.dim() < 2 else out.shape[-2] if out.dim() > 1 and out.shape[-1] == 1 else 0
        return scores.ADDITIVE if count in (self.selected.padded, self.selected.length) else None

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
        contraction = with_real_weights(self.facts, contraction)
        if self.blocks.knows(contraction.left.tensor):
            self.block_of_keys(contraction, roles, known)
        origin = known.origin or self._by_values(contraction, roles) or self._by_scores(contraction, roles)
        if origin is None or judging.no_weights(origin, contraction, roles):
            return False
        known = self.facts.of(contraction.left.tensor.detach()) or NOTHING
        if origin.kind in ("sigmoid", "hard"):
            origin.place, origin.module = self.where()
        if origin.taken and self.parts.further(self.facts, contraction, roles, origin):
            return self._record(self._laid_out(contraction, roles, origin), known, origin)
        values = self.facts.of(contraction.right.tensor) or NOTHING
        reason = judging.verdict(self.selected, origin, contraction, roles, known, values)
        if reason:
            origin.take(reason)
            if reason == judging.ELSEWHERE:
                note_mixed(self.facts, contraction, known, origin)
            if reason == judging.PARAMETERS:
                self.parts.wait(self.facts, contraction, roles, known, origin)
            return False
        if origin.taken and not self.parts.apart(self.facts, contraction, origin):
            self._with_other_values(contraction, origin)
            return True
        return self._take(contraction, roles, known, origin)

    def _with_other_values(self, contraction: Contraction, origin: Origin) -> None:
        """The weights of an attention that is shown multiply other values too."""
        before = self.by_origin.get(region(self.facts, contraction, origin))
        if before is not None:
            before.heads = Heads([], incomplete=SEVERAL)
            self.ancestry.also(before, self.result)

    def _take(self, contraction: Contraction, roles: Roles, known: Facts, origin: Origin) -> bool:
        """Record an attention, and the parts of its softmax that waited for it."""
        origin.take()  # or refused with a reason of its own
        self.parts.apart(self.facts, contraction, origin)
        taken = self._record(self._laid_out(contraction, roles, origin), known, origin)
        for part, its_roles, facts in self.parts.waiting.pop(id(origin), ()) if taken else ():
            self._record(self._laid_out(part, its_roles, origin), facts, origin)
        return taken

    def _sums_first(self, contraction: Contraction) -> None:
        """A product of tensors of which neither holds weights: perhaps a part of linear attention."""
        for one in (contraction, contraction.swapped()):
            place, module = self.where() if self.linear.sums else ("", "")
            used = self.linear.used(one, Origin("linear", place, module, (), -1, reason=linear.NO_MAP))
            if used is not None:
                used.origin.shape, used.origin.axis = tuple(used.weights.tensor.shape), used.weights.tensor.dim() - 1
                self.origins.append(used.origin)
                return
        left, right, out = contraction.left, contraction.right, contraction.out
        if set(left.axes) | set(right.axes) == set(out.axes):  # an outer product at every position
            with torch.set_grad_enabled(any(one.tensor.requires_grad for one in (left, right))):  # whose keys they are
                wide = [one.tensor.reshape([one.size(axis) for axis in out.axes]) for one in (left, right)
                        if one.axes == "".join(axis for axis in out.axes if axis in one.axes)]  # fmt: skip
            if len(wide) == 2:
                self._remember(wide[0], wide[1], out.tensor)
            return
        self.linear.summed(contraction, (self.selected.padded, self.selected.length))

    def _linear_at_once(self, equation: str, operands: Sequence[Tensor], out: Tensor) -> bool:
        """φ(q)·(Σ φ(k)ᵀv) divided by the sum of the weights in the same einsum, whose third operand is one over that:
        whether it is that."""
        for product, factor in with_factor(equation, operands):
            self._sums_first(product)
            if self.divided(product.out.tensor, factor, out):
                return True
        return False

    def divided(self, source: object, factor: object, out: Any, *, by_product: bool = False) -> bool:
        """A result of linear attention divided by the sum of its weights: whether it is one. `by_product`: multiplied
        with one over that, which a gate is not."""
        if not self.linear.uses or not isinstance(source, Tensor) or not isinstance(factor, Tensor):
            return False
        found = self.linear.divided(source, factor, out)
        if found is None or (by_product and not linear.is_share(found[0].left, found[1], factor)):
            return False
        contraction, used = found
        used.origin.reason = ""
        self.facts.note(
            contraction.left.tensor,
            Facts(masked=used.masked, origin=used.origin, own=self.keys.of_pair(used.pair, used.keys)),
        )
        if self.weighs(contraction):
            self.linear.take(used)
        return used.taken

    def _remember(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        """Keep the factors of a product as long as it lives."""
        number = id(out)
        self.products[number] = (weakref.ref(out, lambda _: self.products.pop(number, None)), left, right)

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
        origin = Origin("", place, module, tuple(left.tensor.shape), at)
        self.facts.note(left.tensor, replace(self.facts.of(left.tensor) or NOTHING, origin=origin))
        return origin

    def _by_scores(self, contraction: Contraction, roles: Roles) -> Origin | None:
        """The origin of weights that were computed from scores in another way."""
        left = contraction.left.tensor.detach()
        known = self.facts.of(left) or NOTHING
        origin = scores.origin_of(self.selected, known, contraction, roles, self.where())
        if origin is None:
            return None
        masked = None if known.masked is None else known.masked & (left == 0)
        if origin.reason:
            self.origins.append(origin)
            self.linear.undivided(contraction, masked, origin)
            self.linear.list_power(left, origin)
            self.linear.summed(contraction, (self.selected.padded, self.selected.length))
        else:
            self.facts.note(left, replace(known, origin=origin, masked=masked))
        return origin

    def _laid_out(self, contraction: Contraction, roles: Roles, origin: Origin) -> Layout:
        of_each = with_batch(self.selected, contraction, roles)
        return lay_out(self.selected, *of_each, self.selected.choices.get(origin.place, 0))

    def _record(self, layout: Layout, known: Facts, origin: Origin) -> bool:
        of = ShownPart.of(self.selected, layout)
        given = layout.contraction.left.tensor.detach()
        part = of.part(given if known.clean is None else known.clean, 0.0)
        if not judging.may_be_map(origin, part):
            return False
        self._allow(part)
        seen = self._seen(of, part, known, origin)
        seen.unclear = next((one.unclear for one in (origin, *origin.parts) if one.unclear), known.unclear)
        self._describe(seen, of, part)
        if of.windows is None:
            self._note_largest(seen, of.shown, known, origin)
        first = start(self.facts, layout.contraction, layout.roles, origin) if of.as_given else None
        if first is not None and self.parts.joined(seen, first, origin):
            return True
        if of.windows is None:
            self._passed_on(seen, of.shown, known, origin)
        elif known.highest is not None and seen.weights is not None:
            each = of.part(known.highest.expand(given.shape), -torch.inf).amax(-1)
            seen.highest = each[..., : seen.weights.shape[2]]
        self.blocks.shown(layout.contraction.left.tensor, seen)
        self.found(seen)
        return True

    def _seen(self, of: ShownPart, part: Tensor, known: Facts, origin: Origin) -> Attention:
        """The attention of the sample's part of the weights, with what masks forbid in it."""
        weights, place = of.given.contraction.left.tensor, of.place(self.selected, part)
        masked = None if known.masked is None else known.masked.expand(weights.shape)
        if of.windows is not None and masked is None:
            masked = torch.zeros_like(weights, dtype=torch.bool)
        margins = None if known.margins is None else of.part(known.margins.expand(weights.shape), -torch.inf).amax(-1)
        seen = from_weights(
            self.selected, origin.place, origin.module, part[..., place.keys].clone(),
            "; ".join(filter(None, (how_computed(of.shown, known, origin, part), place.note))),
            masked=None if masked is None else of.part(masked, True)[..., place.keys],
            margins=None if margins is None else margins.double(),
            source=self.keys.of_map(part[..., place.keys], weights, of.windows is not None),
        )  # fmt: skip
        if 1 < part.shape[-2] < part.shape[-1]:
            seen.block_source = self.keys.of_weights(weights)
        return place.put(seen)

    def _describe(self, seen: Attention, of: ShownPart, part: Tensor) -> None:
        """What else is known of an attention, from its values and its result."""
        layout = of.given
        seen.ends = ends_of_values(self.selected, self.facts, layout, self.of_itself) if of.as_given else None
        seen.open_axes = layout.open
        self.descends(seen, layout.contraction.right.tensor, self.result)
        seen.check = of.whole.check()
        seen.value_sums = (
            layout.value_sums() if of.as_given and (part.shape[-2] == 1 or part.shape[-2] < part.shape[-1]) else None
        )
        if of.own_keys is not None:
            seen.keys_from = OWN_KEY
        if self.selected.passing_on and not of.as_given:
            seen.heads = Heads([], incomplete=WINDOWS if of.own_keys is None else OWN_KEYS)

    def _note_largest(self, seen: Attention, layout: Layout, known: Facts, origin: Origin) -> None:
        left = layout.contraction.left
        part = left.tensor if known.clean is None or known.clean.shape != left.tensor.shape else known.clean
        highest = largest.of_keys(self.facts, known, origin, part, left.axes.index(layout.roles.keys[0]))
        if highest is not None and seen.weights is not None:
            of_rows = layout.of_weights(highest.expand(left.tensor.shape))[..., 0]
            seen.highest = of_rows[..., : seen.weights.shape[2]]

    def _passed_on(self, seen: Attention, layout: Layout, known: Facts, origin: Origin) -> None:
        """Wait for what the heads' values are multiplied with."""
        if self.selected.products:
            seen.products = products_behind(layout, known, origin, self.operands)
        if self.selected.passing_on and seen.heads is None:
            self.by_origin[region(self.facts, layout.contraction, origin)] = seen
            self.projections.expect(seen, layout.passed_on(self.result), self.result)

    def _allow(self, part: Tensor) -> None:
        """Count the bytes of a map. Raises Unsupported where there are too many."""
        size = part.numel() * part.element_size()
        if self.bytes + size > OWN_WEIGHTS_BYTES:
            raise Unsupported(
                f"the model computes the maps itself and this one would take {size / 1e9:.2g} GB more than allowed; "
                "with scaled_dot_product_attention only queries and keys are stored"
            )
        self.bytes += size

    def _weighs(self, tensor: object) -> bool:
        known = self.facts.of(tensor)
        return known is not None and known.weighs

    def _normalised(self, tensor: object) -> bool:
        known = self.facts.of(tensor)
        return known is not None and (
            known.made or (known.origin is not None and known.origin.kind not in ("scaled", "mixed"))
        )

    def _any(self, *tensors: object) -> bool:
        return any(self._weighs(tensor) for tensor in tensors)
