"""The attention of an encoder–decoder, as the chain that leads from each step of the answer to the steps of the source.

The decoder's layers are those in the stream of the queries of its cross attention; the encoder's those that the values
of that were computed from, over as many positions as it has keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from inspector.engine.analyses.attention.descent import BESIDE, Descent, Layer, heads_together, in_turn
from inspector.engine.analyses.attention.layers_of_attention import (
    LONGEST,
    TOO_LONG,
    Lineages,
    is_usable,
    rolled,
    unit_of,
)
from inspector.engine.attention.rows import Rows
from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Attention

NO_ENCODER = (
    "No layers that attend within one sequence over {} positions ran before {}, so what it attends to cannot be "
    "followed to the source."
)
SEVERAL = "{} reads what layers made that are beside each other ({}), so there is no single chain to follow."
NO_DECODER = "No layer before or behind {} attends within the answer, so there is no chain of layers to follow."
OTHER_SOURCES = "{} and {} attend to different sequences, so there is no single chain to follow."
PADDING = (
    "{} attends to positions of padding, and what these attended to was not recorded, so it cannot be followed to the "
    "source; mask padding there too."
)
Map = Callable[[Layer], Tensor]


class BothSides:
    """Encoder, and the decoder's layers in their order. Raises Unsupported; `cross` is empty where there is none."""

    def __init__(self, attentions: Sequence[Attention], sample: int, lineages: Lineages) -> None:
        usable = sorted((one for one in attentions if is_usable(one)), key=lambda one: one.order)
        cross = [one for one in usable if not one.of_itself and one.source_known]
        self.cross: list[Layer] = []
        self.encoder: list[Layer] = []
        self.decoder: list[Layer] = []
        if not cross:
            return
        first, queries, keys = cross[0], *_size(cross[0], sample)
        if max(queries, keys) > LONGEST:
            raise Unsupported(TOO_LONG.format(max(queries, keys), LONGEST))
        known = queries, keys, first.keys_from
        other = next((one for one in cross if (*_size(one, sample), one.keys_from) != known), None)
        if other is not None:
            raise Unsupported(OTHER_SOURCES.format(first.place, other.place))
        self._keys, own = keys, [one for one in usable if one.of_itself]
        if not own:
            raise Unsupported(NO_ENCODER.format(keys, first.place))
        descent = Descent(sorted(attentions, key=lambda one: one.order), lineages())
        self._set_encoder(descent, cross, own, sample)
        self._set_decoder(descent, cross, [one for one in own if _size(one, sample)[0] == queries])

    def _set_encoder(self, descent: Descent, cross: list[Attention], own: list[Attention], sample: int) -> None:
        first = cross[0]
        sources = [descent.lineage(one).source for one in cross]
        for other, source in zip(cross, sources, strict=True):
            if source is None or source != sources[0]:
                raise Unsupported(OTHER_SOURCES.format(first.place, other.place))
        behind = descent.of_values(first)
        before = [one for one in own if one.place in behind and self._keys in (_size(one, sample)[0], one.called_with)]
        if not before:
            raise Unsupported(NO_ENCODER.format(self._keys, first.place))
        self.encoder = heads_together(descent, before)
        attending = next((one for one in before if len(set(_size(one, sample))) > 1), None)
        if attending is not None:
            raise Unsupported(PADDING.format(attending.place))
        self.encoder = in_turn(descent, self.encoder, SEVERAL.format(first.place, "{} and {}"))

    def _set_decoder(self, descent: Descent, cross: list[Attention], own: list[Attention]) -> None:
        places = {one.place for layer in self.encoder for one in layer.heads}
        streams = frozenset().union(*(descent.stream(one) for one in cross))
        within = [
            one
            for one in own
            if one.place not in places and (one.place in streams or any(descent.follows(one, other) for other in cross))
        ]
        if not within:
            raise Unsupported(NO_DECODER.format(cross[0].place))
        self.decoder = in_turn(descent, heads_together(descent, [*within, *cross]), BESIDE)
        self.cross = [one for one in self.decoder if not one.first.of_itself]

    def rolled_out(self, map_of: Map) -> Iterator[Tensor]:
        """(answer, source) rollout behind each cross attention, `map_of` giving the mean map of a layer.

        The graph of Abnar & Zuidema 2020 with both sequences as its nodes: every layer keeps half of what it is given
        and takes half from where it attends. Rows sum to 1 together with those of the answer to itself.
        """
        source = self._with_padding(self._encoded(map_of))
        answer = torch.zeros(len(map_of(self.decoder[0])), len(source), dtype=source.dtype, device=source.device)
        for layer in self.decoder:
            map_ = self._known(layer, map_of)
            answer = 0.5 * answer + 0.5 * map_ @ (answer if layer.first.of_itself else source)
            if not layer.first.of_itself:
                yield answer

    def _encoded(self, map_of: Map) -> Tensor:
        found: Tensor | None = None
        for layer in self.encoder:
            found = rolled(map_of(layer), found)
        assert found is not None
        return found

    def _with_padding(self, source: Tensor) -> Tensor:
        """(k, k) what has reached each key, from that of the real positions, which come first.

        Nothing reaches padding that the encoder was not given: torch fills it with zeros, so it is its own source.
        """
        missing = self._keys - len(source)
        return source if not missing else torch.block_diag(source, unit_of(source.new_empty(missing, missing)))

    def _known(self, layer: Layer, map_of: Map) -> Tensor:
        """The map of a decoder's layer. Raises Unsupported where it reads padding whose own rows were cut off."""
        map_ = map_of(layer)
        encoder = [one for other in self.encoder for one in other.heads]
        cut = min((_rows(one) for one in encoder if not one.without_padding), default=self._keys)
        if not layer.first.of_itself and bool(map_[:, cut:].any()):
            raise Unsupported(PADDING.format(layer.name))
        return map_

    def relevant(self, map_of: Map) -> Iterator[Tensor]:
        """(answer, source) relevance behind each cross attention, `map_of` giving Ā = mean of (A ⊙ ∂y/∂A)⁺ of a layer.

        Chefer et al. 2021, eqs. 6 to 10: self attention R_ss += Ā R_ss, R_sq += Ā R_sq; cross attention
        R_sq += R̄_ssᵀ Ā R̄_qq, where R̄ = (R − I) divided by the sums of its rows, + I.
        """
        within = [map_of(one) for one in self.encoder]
        source = unit_of(within[0])
        for map_ in within:
            source = source + map_ @ source
        source = self._with_padding(source)
        own: Tensor | None = None
        across: Tensor | None = None
        for layer in self.decoder:
            map_ = self._known(layer, map_of)
            if own is None or across is None:
                own = unit_of(map_)
                across = map_.new_zeros(len(map_), len(source))
            if layer.first.of_itself:
                own, across = own + map_ @ own, across + map_ @ across
            else:
                across = across + normalised(own).T @ map_ @ normalised(source)
                yield across


def normalised(relevance: Tensor) -> Tensor:
    """R̄ of Chefer et al. 2021, eqs. 8 and 9; a row that took in nothing (0 / 0 there) is that of the unit matrix."""
    unit = unit_of(relevance)
    taken = relevance - unit
    sums = taken.sum(-1, keepdim=True)
    return torch.where(sums > 0, taken / sums.where(sums > 0, 1.0), 0.0) + unit


def _rows(attention: Attention) -> int:
    """How many queries of a layer are there."""
    return (attention.query if attention.weights is None else attention.weights).shape[-2]


def _size(attention: Attention, sample: int) -> tuple[int, int]:
    rows = Rows(attention, sample)
    return rows.queries, rows.keys
