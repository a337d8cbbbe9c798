"""Attention that is computed block of keys by block of keys (online softmax: Milakov & Gimelshein 2018; Rabe & Staats
2021; Dao et al. 2022), where no whole row of weights ever exists.

A block multiplies exp(s − c) with its values, c one number for each query, and passes sums and largest scores on to the
next one. Its scores s are kept. Whatever is computed afterwards with the shape of its result is compared with
softmax(s of several blocks) · values: where it is that, these blocks are one attention. Only numbers say it, so no way
of passing the sums on is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from inspector.engine.attention.memory import storage_of
from inspector.engine.attention.written.contraction import Contraction, Operand
from inspector.engine.attention.written.facts import Facts, Known
from inspector.engine.attention.written.layout import Layout
from inspector.engine.attention.written.scores import for_each_row
from inspector.engine.cells.check import Check
from inspector.engine.trace.trace import Attention

NOTE = "its softmax was computed in {} blocks of keys, which are put together here{}"
IN_TURN = ", in the order in which they were computed"
MOST = 64
"""Blocks that wait for the rest of their softmax."""
MOST_BYTES = 1 << 30
"""Of their scores, masks and values, of the selected sequence; as much again of softmaxes that settled."""
RECENT = 8
"""Exponentials whose scores are kept until they are multiplied with values."""
MOST_NUMBERS = 1 << 24
"""Of several of these together."""
AT_ONCE = 1 << 22
"""Weights that are computed at once where a result is compared."""
ROUNDING = 64.0


@dataclass(slots=True, eq=False)
class Block:
    """Of the selected sequence: scores (1, a, q, k), masked (1, a, q, k), values (a, k, d)."""

    place: str
    module: str
    layout: Layout
    scores: Tensor
    masked: Tensor
    values: Tensor
    at: tuple[int, int]
    """The memory of the values, and where in it they begin."""
    given: Tensor
    """The values as they were given, of all sequences."""
    power: int
    """The number of the memory of the exponential."""
    source: str | None
    """Of which sequence the keys are, as `key_source` says it."""
    shifted: bool
    shown: list[Attention] = field(default_factory=list)
    """What was recorded of the block alone."""

    @property
    def shape(self) -> torch.Size:
        """Of what the product returned."""
        return self.layout.contraction.out.tensor.shape


@dataclass(slots=True, eq=False)
class Whole:
    """Blocks that are one softmax."""

    blocks: list[Block]
    attention: Attention | None = None
    released: bool = False
    """Its numbers are gone: nothing is added to it any more."""

    def release(self) -> None:
        """Keep what it was and where, without numbers."""
        self.blocks = [_shape_of(one) for one in self.blocks]
        self.released = True


@dataclass(slots=True)
class BlocksOfKeys:
    """Of the attentions of one run."""

    powers: list[tuple[StorageWeakRef, Known, bool]] = field(default_factory=list)
    differences: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    waiting: list[Block] = field(default_factory=list)
    wholes: list[Whole] = field(default_factory=list)
    withdrawn: set[int] = field(default_factory=set)
    """Attentions, by identity, that are part of another one."""

    def difference(self, scores: object, number: object, out: object) -> None:
        """scores − one number for each query."""
        if not isinstance(scores, Tensor) or not isinstance(out, Tensor) or not for_each_row(number, out):
            return
        if scores.shape == out.shape and scores.dim() > 1 and scores is not out:
            self.differences = [*self.differences[-1:], (out, scores)]

    def power(self, given: Tensor, out: Tensor) -> None:
        """exp of something: of such a difference, or of scores as they are."""
        shifted = next((scores for one, scores in self.differences if one is given), None)
        self.differences = [one for one in self.differences if one[0] is not given]
        if out.dim() > 1 and out.shape[-1] > 1 and out.is_floating_point() and out is not given:
            self._keep(given if shifted is None else shifted, out, shifted is not None)

    def softmax(self, scores: Tensor, out: Tensor) -> None:
        """A softmax, which may be that of a block alone."""
        if out.dim() > 1 and scores.shape == out.shape:
            self._keep(scores, out, False)

    def _keep(self, scores: Tensor, out: Tensor, shifted: bool) -> None:
        storage = storage_of(out)
        if storage is not None:
            alive = StorageWeakRef(storage)
            facts = Facts(entries=scores.detach())
            known = Known(alive, out.shape, out.stride(), int(out.storage_offset()), facts)
            before = self.powers[-RECENT + 1 :]
            while before and scores.numel() + sum(one[1].shape.numel() for one in before) > MOST_NUMBERS:
                before = before[1:]
            self.powers = [*before, (alive, known, shifted)]

    def passed(self, source: object, out: object) -> None:
        """A copy of an exponential, or a cast."""
        found = self._of(source)
        if found is not None and isinstance(out, Tensor) and out.shape == found[1].shape:
            self._keep(found[1], out, found[2])

    def scale(self, by: float) -> None:
        """The scores of the last exponential are to be multiplied: it was of another base."""
        if self.powers:
            alive, known, shifted = self.powers[-1]
            assert known.facts.entries is not None
            facts = Facts(entries=known.facts.entries * by)
            self.powers[-1] = alive, replace(known, facts=facts), shifted

    def _of(self, tensor: object) -> tuple[int, Tensor, bool] | None:
        """(number of the memory, scores, whether they were shifted) of an exponential or a view of it."""
        storage = storage_of(tensor) if self.powers and isinstance(tensor, Tensor) else None
        if storage is None or not isinstance(tensor, Tensor):
            return None
        for alive, known, shifted in reversed(self.powers):
            if alive.cdata == StorageWeakRef(storage).cdata:
                scores = known.seen_by(tensor).entries
                return None if scores is None else (storage._cdata, scores, shifted)
        return None

    def knows(self, tensor: Tensor) -> bool:
        """Whether it is such an exponential."""
        return self._of(tensor) is not None

    def product(self, layout: Layout, place: tuple[str, str], masked: Tensor | None, source: str | None) -> None:
        """An exponential is multiplied with values and summed over keys."""
        left, right = layout.contraction.left.tensor, layout.contraction.right.tensor
        found = self._of(left)
        if found is None or not layout.queries or left.numel() == 0:
            return
        scores = layout.of_weights(found[1].expand(left.shape))
        forbidden = scores == -torch.inf
        if masked is not None:
            forbidden = forbidden | (layout.of_weights(masked.expand(left.shape)) & (layout.of_weights(left) == 0))
        storage = storage_of(right)
        at = (0 if storage is None else storage._cdata, int(right.storage_offset()))
        values = layout.values().detach().clone()
        self.waiting = [one for one in self.waiting if one.place == place[0] or not one.shown]
        self.waiting.append(
            Block(
                *place,
                _without_numbers(layout),
                scores.detach().clone(),
                forbidden,
                values,
                at,
                right,
                found[0],
                source,
                found[2],
            )
        )
        while len(self.waiting) > MOST or sum(_bytes(one) for one in self.waiting) > MOST_BYTES:
            self.waiting.pop(0)

    def shown(self, weights: Tensor, seen: Attention) -> None:
        """An attention was recorded whose weights are an exponential, or were made of it in place."""
        storage = storage_of(weights)
        for block in self.waiting if storage is not None else ():
            if storage is not None and block.power == storage._cdata:
                block.shown.append(seen)

    def alone(self, out: Tensor, anywhere: bool) -> Block | None:
        """The last block, or any, where `out` is the attention of that alone; others may still be added to it."""
        for block in reversed(self.waiting if anywhere else self.waiting[-1:]):
            fits = not block.shown and out.shape == block.shape and out.is_floating_point()
            if fits and _is([block], _returned(block, out).detach()):
                return block
        return None

    def settled(self, out: Tensor, anywhere: bool) -> Whole | None:
        """The blocks of which `out` is the attention, more than one; None where it is of none. anywhere: others may
        have begun since."""
        last = self.waiting[-1] if self.waiting else None
        if last is None or out.shape != last.shape or not out.is_floating_point():
            return None
        result = _returned(last, out).detach()
        for blocks, before in self._candidates(last, anywhere):
            if _is(blocks, result):
                whole = Whole(_in_order(blocks))
                self.wholes = [one for one in self.wholes if one is not before]
                self.wholes = [*self.wholes[-MOST + 1 :], whole]
                self._release()
                if before is not None and before.attention is not None:
                    self.withdrawn.add(id(before.attention))
                self.withdrawn |= {id(one) for block in blocks for one in block.shown}
                self.waiting = [one for one in self.waiting if one not in blocks]
                return whole
        return None

    def _release(self) -> None:
        """Let go of the numbers of the oldest softmaxes to which blocks might still be added, beyond a limit."""
        size = 0
        for whole in reversed(self.wholes):
            size += 0 if whole.released else sum(_bytes(one) for one in whole.blocks)
            if size > MOST_BYTES and not whole.released:
                whole.release()

    def _candidates(self, last: Block, anywhere: bool) -> Iterator[tuple[list[Block], Whole | None]]:
        """Blocks that may be one softmax with the last one: those directly before it, all of which or some; those of
        an earlier softmax, to which it is added; one that came earlier."""
        alike = [one for one in self.waiting if _alike(one, last)]
        for first in range(len(alike) - 1):
            yield alike[first:], None
        for whole in self.wholes:
            if not whole.released and _alike(whole.blocks[0], last):
                yield [*whole.blocks, last], whole
        for one in alike[:-2]:
            yield [one, last], None
        for end in range(len(alike) - 1, 1, -1) if anywhere else ():
            for first in range(end - 1):
                yield alike[first:end], None

    def unsettled(self) -> list[Block]:
        """Blocks of which it was not seen what they became, and of which nothing is shown; a softmax to which they
        seem to belong is not shown either."""
        found = [one for one in self.waiting if not one.shown and one.shifted]
        for whole in self.wholes:
            if whole.attention is not None and any(_alike(one, whole.blocks[0]) for one in found):
                self.withdrawn.add(id(whole.attention))
        return found


def _without_numbers(layout: Layout) -> Layout:
    """A layout whose tensors have shapes alone."""
    both = layout.contraction
    left, right, out = (
        replace(one, tensor=one.tensor.detach().to("meta")) for one in (both.left, both.right, both.out)
    )
    return replace(layout, contraction=Contraction(left, right, out))


def _bytes(block: Block) -> int:
    return sum(one.numel() * one.element_size() for one in (block.scores, block.masked, block.values))


def _shape_of(block: Block) -> Block:
    """A block without its numbers and those that it was given."""
    shapes = {name: getattr(block, name).to("meta") for name in ("scores", "masked", "values", "given")}
    return replace(block, shown=[], **shapes)


def _alike(one: Block, other: Block) -> bool:
    return one.place == other.place and one.shape == other.shape and one.scores.shape[:3] == other.scores.shape[:3]


def _returned(block: Block, out: Tensor) -> Tensor:
    """(a, q, d) the sample's part of a tensor with the shape of what a product returned."""
    contraction = block.layout.contraction
    return replace(block.layout, contraction=replace(contraction, out=Operand(out, contraction.out.axes))).returned()


def _is(blocks: Sequence[Block], result: Tensor) -> bool:
    """Whether (a, q, d) is the attention of some blocks: its first row, then all."""
    wide = result.shape[0] * sum(one.scores.shape[-1] for one in blocks)
    step = max(1, AT_ONCE // max(1, wide))
    for rows in (slice(1), *(slice(at, at + step) for at in range(0, result.shape[1], step))):
        ours = _weights(blocks, rows)[0].double() @ torch.cat([one.values for one in blocks], 1).double()
        if not bool(((ours - result[:, rows].double()).abs() <= allowed(blocks)).all()):
            return False
    return True


def allowed(blocks: Sequence[Block]) -> float:
    """How far sums in another order may be apart."""
    size = max(float(one.values.abs().max()) for one in blocks)
    largest = max(float(one.scores.masked_fill(one.masked, 0.0).nan_to_num().abs().max()) for one in blocks)
    eps = max(torch.finfo(one.values.dtype).eps for one in blocks)
    return eps * (ROUNDING + 4.0 * largest) * max(size, 1e-30)


def _weights(blocks: Sequence[Block], rows: slice = slice(None)) -> Tensor:
    """(1, a, q, k) the softmax over the keys of some blocks."""
    parts = [one.scores[:, :, rows].masked_fill(one.masked[:, :, rows], -torch.inf) for one in blocks]
    wide = torch.cat(parts, -1)
    return torch.softmax(wide if wide.dtype == torch.float64 else wide.float(), -1)


def _in_order(blocks: Sequence[Block]) -> list[Block]:
    """In the order of the keys, where the values are parts of one tensor."""
    parts = len({one.at[0] for one in blocks}) == 1 and blocks[0].at[0] > 0
    return sorted(blocks, key=lambda one: one.at[1]) if parts else list(blocks)


@dataclass(frozen=True, slots=True)
class PutTogether:
    """What is shown of several blocks: weights and masked (1, a, q, k), values (a, k, d), highest (1, a, q)."""

    weights: Tensor
    masked: Tensor
    values: Tensor
    highest: Tensor
    check: Check
    note: str

    @classmethod
    def of(cls, blocks: Sequence[Block], out: Tensor) -> PutTogether:
        """Of the blocks of which `out` is the attention."""
        weights = _weights(blocks)
        values = torch.cat([one.values for one in blocks], 1)
        ours = weights[0].nan_to_num().double() @ values.double()
        error = float((ours - _returned(blocks[0], out).detach().double()).abs().nan_to_num().max())
        ordered = len({one.at[0] for one in blocks}) == 1
        note = NOTE.format(len(blocks), "" if ordered else IN_TURN) if len(blocks) > 1 else ""
        masked = torch.cat([one.masked for one in blocks], -1)
        scores = torch.cat([one.scores for one in blocks], -1).masked_fill(masked, -torch.inf)
        return cls(weights, masked, values, scores.amax(-1), Check(error, allowed(blocks)), note)
