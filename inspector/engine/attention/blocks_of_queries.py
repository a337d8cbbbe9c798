"""Calls whose results were put beside each other along their queries, over the same keys: one map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from inspector.engine.attention.caches import Call, as_one
from inspector.engine.attention.calls import crosses, keys_named, noted, source_of
from inspector.engine.attention.key_source import SELF
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.trace.attention import SOURCE_NOT_KNOWN
from inspector.engine.trace.trace import Attention

NOTE = "put together from {} blocks of its queries"


def joined_blocks(selected: SelectedSample, attentions: list[Attention]) -> list[Attention]:
    """Attentions of one module, in order, those that are blocks of the queries of one map as one Attention."""
    found: dict[int, list[Attention]] = {}
    for one in attentions:
        if one.block is not None:
            found.setdefault(one.block[0], []).append(one)
    together = {id(some[0]): _joined(selected, some) for some in found.values() if _is_one(some)}
    inside = {id(one) for some in found.values() if id(some[0]) in together for one in some}
    return [together.get(id(one), one) for one in attentions if id(one) in together or id(one) not in inside]


def _is_one(blocks: Sequence[Attention]) -> bool:
    """Whether blocks follow each other without a gap, at least one of them of several queries, over the same keys."""
    first = blocks[0]
    if len(blocks) < 2 or all(one.called_with == 1 for one in blocks):
        return False
    end = 0
    for one in sorted(blocks, key=_at):
        if _at(one) != end or one.open_axes or one.memories or not _same_keys(first, one):
            return False
        end += one.called_with
    return True


def _at(attention: Attention) -> int:
    return attention.block[1] if attention.block is not None else 0


def _same_keys(one: Attention, other: Attention) -> bool:
    """Whether two attend to the same keys (where these are not known, to the same values), with as many heads."""
    if (one.weights is None) != (other.weights is None):
        return False
    if one.weights is None:
        return one.key.shape == other.key.shape and torch.equal(one.key, other.key)
    assert other.weights is not None
    heads_and_keys = one.weights.shape[1] == other.weights.shape[1] and one.weights.shape[3] == other.weights.shape[3]
    both = one.value_sums, other.value_sums
    return heads_and_keys and both[0] is not None and both[1] is not None and torch.equal(both[0], both[1])


def _joined(selected: SelectedSample, blocks: list[Attention]) -> Attention:
    calls = [Call.of(one) for one in sorted(blocks, key=_at)]
    whole = as_one(calls, NOTE.format(len(calls)), calls[0].rows.keys, "position", None)
    assert whole.weights is not None and whole.mask is not None
    queries, keys = whole.weights.shape[-2:]
    sources = {one.block_source for one in blocks}
    source = sources.pop() if len(sources) == 1 else ""
    alike = queries == keys
    asked = source is not None or not alike or crosses(whole.place)
    source = source_of(whole.place, source, alike)
    steps = queries in (selected.padded, selected.length) and not selected.over_answer(whole.place)
    named = "step" if steps else "position"
    note = "; ".join(one for one in whole.note.split("; ") if one != SOURCE_NOT_KNOWN)
    whole = replace(
        whole, queries_from=named, keys_from=keys_named(source, named), source_asked=asked, value_sums=None,
        note=noted(note, source), first_query=0, order=min(one.order for one in blocks),
    )  # fmt: skip
    return _without_padding(whole, selected.length, source == SELF) if steps and selected.length < queries else whole


def _without_padding(whole: Attention, length: int, own: bool) -> Attention:
    """Without the queries that are padding, and the keys that no other query attends to."""
    assert whole.weights is not None and whole.mask is not None
    rows = slice(length)
    keys = rows if own and not bool(whole.weights[..., rows, length:].any()) else slice(None)
    return replace(
        whole, weights=whole.weights[..., rows, keys], mask=whole.mask[..., rows, keys],
        margins=None if whole.margins is None else whole.margins[..., rows],
        highest=None if whole.highest is None else whole.highest[..., rows],
    )  # fmt: skip
