"""Attention whose softmax a model computes in blocks of keys: where blocks begin, and where they are a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from inspector.engine.attention.calls import from_weights
from inspector.engine.attention.written import masking
from inspector.engine.attention.written.blocks_of_keys import Block, PutTogether
from inspector.engine.attention.written.contraction import Contraction, Operand, Roles
from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.other_ways import OtherWays
from inspector.engine.attention.written.parts import start
from inspector.engine.attention.written.scores import BLOCKS, UNDIVIDED
from inspector.engine.attention.written.sums import Args, Kwargs
from inspector.engine.errors import Unsupported
from inspector.engine.trace.heads import Heads, PassedOn, edge_of
from inspector.engine.trace.trace import Attention

NO_PRODUCTS = "its scores are computed in blocks of keys"


class Online(OtherWays):
    """What `OtherWays` sees, and softmaxes that are computed in blocks of keys."""

    __slots__ = ()

    def block_of_keys(self, contraction: Contraction, roles: Roles, known: Facts) -> None:
        """Keep a block; not where the axis of the batch is not known, nor a part of one softmax (see `parts.py`)."""
        if known.origin is not None and start(self.facts, contraction, roles, known.origin) is not None:
            return
        place = self.where()
        try:
            layout = self._laid_out(contraction, roles, Origin("exp", *place, (), -1))
        except Unsupported:
            return
        source = self.keys.of_weights(contraction.left.tensor, windows=True)
        self.blocks.product(layout, place, known.masked, source)

    def subtracted(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """scores − the largest so far of each query."""
        super().subtracted(args, kwargs, out)
        if len(args) > 1:
            self.blocks.difference(args[0], args[1], out)

    def quotient(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """sums / sums of exponentials, the last step."""
        super().quotient(args, kwargs, out)
        self._settled(out, anywhere=True)

    def multiplied(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """The same as a product."""
        super().multiplied(args, kwargs, out)
        if len(args) > 1 and self.blocks.powers and masking.zeros_and_ones(args[1]):
            self.blocks.passed(args[0], out)
        self._settled(out)

    def masked(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """Zeros among exponentials."""
        super().masked(args, kwargs, out)
        if args:
            self.blocks.passed(args[0], out)

    def powers_of_two(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """exp2(scores · log2 e)."""
        before = len(self.blocks.powers), self.blocks.powers[-1:]
        self.powers(args, kwargs, out)
        if (len(self.blocks.powers), self.blocks.powers[-1:]) != before:
            self.blocks.scale(math.log(2.0))

    def summed(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """The same as one sum over a stack of blocks."""
        super().summed(args, kwargs, out)
        self._settled(out)

    def added(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """Blocks that are divided each and then added with the share of each."""
        super().added(args, kwargs, out)
        self._settled(out)

    def _settled(self, out: Any, *, anywhere: bool = False) -> None:
        if self.blocks.waiting and isinstance(out, Tensor):
            block = self.blocks.alone(out, anywhere)
            before = self.results.of(out)
            whole = self.blocks.settled(out, anywhere) if block is None else None
            if block is not None:
                block.shown.append(before or self._whole([block], out))
            elif whole is not None:
                if before is not None:
                    self.blocks.withdrawn.add(id(before))
                whole.attention = self._whole(whole.blocks, out)

    def _whole(self, blocks: Sequence[Block], out: Tensor) -> Attention:
        """Record the attention of some blocks, of which `out` is the result."""
        first, made = blocks[0], PutTogether.of(blocks, out)
        self._allow(made.weights)
        sources = {one.source for one in blocks}
        source = sources.pop() if len(sources) == 1 else ""
        square = made.weights.shape[-1] == made.weights.shape[-2]
        seen = from_weights(
            self.selected, first.place, first.module, made.weights, made.note, masked=made.masked,
            source=source if square else None,
        )  # fmt: skip
        rows = slice(seen.weights.shape[2] if seen.weights is not None else 0)
        seen.highest, seen.check, seen.block_source = made.highest[..., rows], made.check, source
        seen.value_sums, seen.open_axes = made.values.double().sum((0, 2)), first.layout.open
        seen.products = NO_PRODUCTS
        self.descends(seen, blocks[-1].given, out)
        for one in self.origins:
            if one.place == first.place and one.kind == "exp" and one.reason in (BLOCKS, UNDIVIDED):
                one.taken = True
        if self.selected.passing_on:
            contraction = first.layout.contraction

            def take(gradient: Tensor) -> Tensor:
                given = Operand(gradient, contraction.out.axes)
                return replace(first.layout, contraction=replace(contraction, out=given)).returned()

            call = PassedOn(made.values, made.weights.shape[2], edge_of(out), take, first.layout._put)
            self.projections.expect(seen, Heads([call]), out)
        self.found(seen)
        return seen

    def finished(self) -> None:
        """List the blocks of which it was not seen what they became."""
        listed = {one.place for one in self.origins if one.kind == "exp" and one.reason and not one.taken}
        for one in self.blocks.unsettled():
            if one.place not in listed:
                left = one.layout.contraction.left
                at = left.axes.index(one.layout.roles.keys[0])
                shape = tuple(left.tensor.shape)
                self.origins.append(Origin("exp", one.place, one.module, shape, at, reason=BLOCKS))
