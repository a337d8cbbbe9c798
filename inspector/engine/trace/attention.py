"""One call of attention, as it ran: what its maps and statistics are computed from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import reduce

from torch import Tensor

from inspector.engine.cells.check import Check
from inspector.engine.trace.heads import Heads
from inspector.engine.trace.products import Products
from inspector.records import STEP_DOMAIN

UNKNOWN_SOURCE = "key of unknown source"
"""Label domain of keys of which it is not known whether they are of the queries' sequence or of another one."""
SOURCE_NOT_KNOWN = "source of the keys not known"


@dataclass(frozen=True, slots=True, eq=False)
class KeyEnds:
    """What the keys of an attention were put together from, of the selected sample.

    Attributes:
        rows: (3, n) the first, the second and the last vector, before any layer.
        count: how many vectors there are.
        fixed: the first one is 0 whatever the model has been given, and the second is not.
    """

    rows: Tensor
    count: int
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Lineage:
    """Of which results of the attentions of a run one was computed, read off autograd's graph; calls are bits.

    Attributes:
        own: its calls.
        before: the calls nearest before it whose results its weights or its values were computed from; None where its
            result has no graph.
        of_values: those of them that its values were computed from.
        source: what its values were made of, position by position: the same of two that read one sequence; None where
            that is not known.
        unfollowed: whether that is numbers that autograd does not follow, alone.
    """

    own: int
    before: int | None
    of_values: int = 0
    source: Hashable = None
    unfollowed: bool = False

    def joined(self, other: Lineage) -> Lineage:
        """Of calls that are one attention."""
        unknown = self.before is None or other.before is None
        own = self.own | other.own
        before = None if self.before is None or other.before is None else (self.before | other.before) & ~own
        source = None if unknown or None in (self.source, other.source) else (self.source, other.source)
        of_values, unfollowed = (self.of_values | other.of_values) & ~own, self.unfollowed and other.unfollowed
        return Lineage(own, before, of_values, source, unfollowed)


@dataclass(slots=True)
class Attention:
    """One call of scaled dot-product attention, as it ran, stored as queries and keys rather than as maps.

    Attributes:
        place: module name (calls after the first in one module get ".1", ".2", …).
        module: class name.
        query: (b, a, q, d); key: (b, a, k, d), grouped heads already repeated.
        scale: factor on query·key.
        causal: True when row i may attend to keys j ≤ i only.
        mask: None, boolean (True = may attend) or additive, broadcastable to (b, a, q, k).
        keys_from: label domain of the keys ("step", or "source step" for cross-attention).
        weights: (b, a, q, k) where the model computed them itself; then query and key may be empty.
        kept: the one sample of the batch that is stored (the tensors' b is then 1), or None when all are.
        queries_from: label domain of the queries ("step"; "position" where their number is not that of the steps).
        note: what a reader must know about the weights ("shown without dropout"), or "".
        first_query: position of the first query among the keys: how many keys a cache had before it.
        called_with: queries of the call, padding included (rows of padding are cut off); 0 for as many as there are.
        without_padding: True where the call was given no padding although its input has some (nested tensors).
        margins: (b, a, q) where finite masks were applied: the least allowed score minus the largest masked one; NaN
            for rows without a masked key, −∞ for rows of which every key is masked.
        equivalent: of weights that the model never computes, what they stand for, as a formula; "" for attention. They
            may have either sign and need not sum to 1.
        finite_mask: the largest finite number by which `mask` or `causal` forbids keys, None where that is −∞.
        ends: what the keys were put together from, where that was seen.
        highest: (b, a, q) the largest score of each query, where the model computed the weights and the run keeps it.
        heads: what the heads pass on, where the run keeps it (`Trace.passing_on`).
        products: of each call whose rows these are, what its scores are made of, where the model computed the weights
            and the run keeps it (`Trace.products`); why that is not known.
        value_sums: (k,) the sum of the numbers of each value, of one query of attention that the model computed itself:
            calls with other values are told apart by it.
        source_asked: False where nothing has shown yet whether keys, as many as queries, are of the same sequence.
        memories: how many keys each memory has, where one softmax is over several whose values are weighed apart;
            one number where these are a part of the softmax.
        open_axes: which axis is the batch is not known yet: sizes alone do not say it.
        unclear: why it is not known yet which keys are masked; "" where it is.
        block: (number of a concatenation of results, place of the first query in it), where its result was put beside
            others along the queries; block_source: of which sequence the keys are, where there are more keys than
            queries, as `key_source` says it.
        lineage: of which earlier attentions it was computed, where the run asks for that (`Trace.lineages`).
        call: which call of its module it is, from 0; order: its number among the attentions of the run, as they ran.
    """

    place: str
    module: str
    query: Tensor
    key: Tensor
    scale: float
    causal: bool = False
    mask: Tensor | None = None
    keys_from: str = "step"
    weights: Tensor | None = None
    check: Check | None = None
    kept: int | None = None
    queries_from: str = "step"
    note: str = ""
    first_query: int = 0
    called_with: int = 0
    without_padding: bool = False
    margins: Tensor | None = None
    finite_mask: float | None = None
    ends: KeyEnds | None = None
    equivalent: str = ""
    highest: Tensor | None = None
    heads: Heads | None = None
    products: list[Products] | str = ""
    value_sums: Tensor | None = None
    source_asked: bool = True
    memories: tuple[int, ...] = ()
    open_axes: bool = False
    unclear: str = ""
    block: tuple[int, int] | None = None
    block_source: str | None = None
    lineage: Lineage | None = None
    call: int = 0
    order: int = 0

    @property
    def called(self) -> str:
        """The module's name: `place` without the number of the call."""
        return self.place.rpartition(".")[0] if self.call else self.place

    @property
    def source_known(self) -> bool:
        """Whether it is known of which sequence the keys are."""
        return self.keys_from != UNKNOWN_SOURCE

    @property
    def of_itself(self) -> bool:
        """Whether queries and keys are positions of one sequence."""
        if self.first_query:
            return True
        own = (STEP_DOMAIN, "position")
        return self.queries_from == self.keys_from or (self.queries_from in own and self.keys_from in own)


def joined_lineages(parts: Sequence[Lineage | None]) -> Lineage | None:
    """Of calls that are one attention; None where one of them is not known."""
    known = [one for one in parts if one is not None]
    return reduce(Lineage.joined, known) if known and len(known) == len(parts) else None
