"""Calls of one module that are rows of one map: a decoder that attends to its source, or a cache of keys that grows.

A cache: every call brings some queries and as many new keys, and the keys of earlier calls stay. Its calls are
recognised by their numbers (each has as many more keys as it has queries), and, where a call of several queries is
among them, by their keys, which must be those of the call before with new ones after them. Wrongly taken for a cache:
one query a call at a source that grows by one key a call (simultaneous translation), unless the module's name says that
it attends to another sequence; one query over the p positions of the call before and one more, where a model computes
its softmax itself (class attention in the module that also did the self-attention), since no keys are known.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.attention.calls import crosses
from inspector.engine.attention.rows import RowBlock, Rows
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.trace.attention import joined_lineages
from inspector.engine.trace.heads import joined_heads
from inspector.engine.trace.products import joined_products
from inspector.engine.trace.trace import Attention

JOINED_BYTES = 2 << 30
"""Joined maps are stored as weights; calls whose map would be larger stay separate, with their positions."""


MOST_TURNS = 8
"""Memories to which the calls of one module attend in turns."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its rows, and how many keys are filled when it is over (all, but for a buffer of fixed length)."""

    attention: Attention
    rows: Rows
    filled: int

    @classmethod
    def of(cls, attention: Attention) -> Call:
        rows = Rows(attention, attention.kept or 0)
        return cls(attention, rows, _filled(rows))

    @property
    def first(self) -> int:
        """Position of the first query."""
        return self.filled - self.rows.queries


def joined_calls(selected: SelectedSample, attentions: list[Attention]) -> list[Attention]:
    """Attentions of one module, in order, those that are rows of one map as one Attention. Others are unchanged."""
    if len(attentions) < 2:
        return attentions
    turns = taking_turns(attentions)
    if turns > 1:
        each = [joined_calls(selected, attentions[n::turns]) for n in range(turns)]
        return [one for own in each for one in own]
    attentions = _heads_of_one_query(attentions)
    calls = _of_one_source([Call.of(attention) for attention in attentions])
    memories = {one.memories[:-1] for one in attentions}
    if not crosses(attentions[0].place) and memories == {()}:
        runs = _caches(calls)
        if len(runs) < len(calls):
            return [one for run in runs for one in _as_cache(selected, run)]
    same = {(call.rows.heads, call.rows.queries) for call in calls} == {(calls[0].rows.heads, 1)}
    if same and _are_layers(selected, calls):
        return attentions
    growing = all(after.rows.keys == before.rows.keys + 1 for before, after in itertools.pairwise(calls))
    growing = growing and len(memories) == 1  # where the last of several memories grows, keys keep their places
    if same and (growing or len({call.rows.keys for call in calls}) == 1):
        return [as_one(calls, f"one row of each of {len(calls)} calls", calls[-1].rows.keys, "position", None)]
    return attentions


def taking_turns(attentions: list[Attention]) -> int:
    """Over how many memories calls of one query attend in turns, each call with keys of the one so many before it and
    none of those between; 1 where that is not seen."""
    found = [_keys_or_values(one) for one in attentions]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or any(one.called_with != 1 for one in attentions):
        return 1
    for turns in range(2, min(MOST_TURNS, len(known) // 2) + 1):
        pairs = zip(known[:-turns], known[turns:], strict=True)
        first = itertools.combinations(known[: turns + 1], 2)
        apart = (not _alike(*pair) for n, pair in enumerate(first) if n != turns - 1)  # that is the first and its next
        if len(known) % turns == 0 and all(apart) and all(_alike(old, new) for old, new in pairs):
            return turns
    return 1


def _are_layers(selected: SelectedSample, calls: list[Call]) -> bool:
    """Whether calls of one query each are those of layers in one module, which have keys of their own, and not the
    rows of a decoder, whose calls have the keys of one source or of a window that moves over it.

    As many calls as steps are rows whatever their keys are (a memory that is written in each). Counter-examples: as
    many layers as steps; a memory that is written in each step of a decoder with another number of them.
    """
    if len(calls) in (selected.padded, selected.length) or len({call.rows.keys for call in calls}) > 1:
        return False
    return not any(share_keys(before.attention, after.attention) for before, after in itertools.pairwise(calls))


def share_keys(before: Attention, after: Attention) -> bool:
    """Whether a key (or, where keys are not known, a value) of the later call is, up to rounding, at the same place of
    the earlier one or at the next. True where neither is known."""
    old, new = _keys_or_values(before), _keys_or_values(after)
    return old is None or new is None or _alike(old, new)


def _alike(old: Tensor, new: Tensor) -> bool:
    """Whether one of (…, k, d) is, up to rounding, at the same place of the earlier ones or at the next."""
    if old.shape[:-2] != new.shape[:-2] or old.shape[-1] != new.shape[-1]:
        return False
    size = float(old.abs().max()) if old.numel() else 0.0
    for a, b in ((old, new), (old[..., 1:, :], new)):
        many = min(a.shape[-2], b.shape[-2])
        same = (a[..., :many, :] - b[..., :many, :]).abs() <= 16 * torch.finfo(old.dtype).eps * size
        if bool(same.all(-1).any()):
            return True
    return False


def _keys_or_values(attention: Attention) -> Tensor | None:
    """(…, k, d), or (k, 1) of the sums of values."""
    if attention.weights is None:
        return attention.key
    return None if attention.value_sums is None else attention.value_sums[:, None]


def _of_one_source(calls: list[Call]) -> list[Call]:
    """Calls over equally many keys, one of which may not attend to the first ones, have all keys filled: what they may
    attend to is a window that moves over one source, and not a buffer that is filled from its beginning."""
    moving = {call.rows.keys for call in calls if call.filled == call.rows.keys and not _begins(call.rows)}
    return [replace(call, filled=call.rows.keys) if call.rows.keys in moving else call for call in calls]


def _begins(rows: Rows) -> bool:
    """Whether the last row of every head may attend to the first key."""
    return bool(rows.allowed(rows.queries - 1, rows.queries)[:, 0, 0].all())


def _heads_of_one_query(attentions: list[Attention]) -> list[Attention]:
    """Calls (h, k) of several rows whose keys grow by one a call: the rows are heads that share their keys and values
    (multi-query attention with a cache), since a cache gets as many keys as there are queries."""
    shapes = [None if one.weights is None else one.weights.shape for one in attentions]
    first = shapes[0]
    if first is None or first[1] != 1 or first[2] < 2 or any(one is None for one in shapes):
        return attentions
    growing = all(
        after is not None and after[1:] == (1, first[2], first[3] + number) for number, after in enumerate(shapes)
    )
    return [_turned(one) for one in attentions] if growing else attentions


def _turned(attention: Attention) -> Attention:
    """Queries as heads."""
    assert attention.weights is not None and attention.mask is not None
    mask = attention.mask.expand(attention.weights.shape)
    margins = None if attention.margins is None else attention.margins.transpose(1, 2)
    return replace(
        attention, weights=attention.weights.transpose(1, 2), mask=mask.transpose(1, 2), margins=margins,
        queries_from="position", keys_from="position", called_with=1, heads=None, highest=None, products="",
    )  # fmt: skip


def _caches(calls: list[Call]) -> list[list[Call]]:
    """The calls in runs, each of them one sequence with a cache; a call by itself is a run of one."""
    runs = [[calls[0]]]
    for call in calls[1:]:
        if _continues(runs[-1], call):
            runs[-1].append(call)
        else:
            runs.append([call])
    return runs


def _continues(run: list[Call], call: Call) -> bool:
    """Whether a call adds its queries, and nothing else, to the keys of the run."""
    before = run[-1]
    if call.rows.heads != before.rows.heads or call.first != before.filled or run[0].first < 0:
        return False
    single = all(one.rows.queries == 1 for one in (run[0], before, call))
    return single or (_same_keys(before, call) and (call.rows.queries == 1 or _lower_triangle(call)))


def _same_keys(before: Call, after: Call) -> bool:
    """Whether the later call has the keys of the earlier one, up to rounding;
    True where a model's keys are not known."""
    if before.attention.weights is not None or after.attention.weights is not None:
        return True
    old = before.attention.key[..., : before.filled, :]
    new = after.attention.key[..., : before.filled, :]
    size = float(old.abs().max()) if old.numel() else 0.0
    return bool(((old - new).abs() <= 16 * torch.finfo(old.dtype).eps * size).all())


def _lower_triangle(call: Call) -> bool:
    """Whether no row attends to a key after its own position."""
    grid = call.rows.allowed(0, call.rows.queries)
    positions = torch.arange(call.rows.keys, device=grid.device)
    return not bool((grid & (positions > call.first + torch.arange(len(grid[0]), device=grid.device)[:, None])).any())


def _filled(rows: Rows) -> int:
    """How many keys the last row may attend to where they are the first ones, else the number of keys."""
    last = rows.allowed(rows.queries - 1, rows.queries)[:, 0]
    count = int(last[0].sum()) if bool((last == last[:1]).all()) else 0
    return count if count and bool(last[0, :count].all()) else rows.keys


def _as_cache(selected: SelectedSample, run: list[Call]) -> list[Attention]:
    """One map of a run of more than one call; its calls with their positions where the map would be too large."""
    if len(run) == 1:
        return [run[0].attention]
    first, keys = run[0].first, run[-1].filled
    queries = keys - first
    if run[0].rows.heads * queries * keys * 8 > JOINED_BYTES:
        return [
            replace(call.attention, first_query=call.first, queries_from="position", keys_from="position")
            for call in run
        ]
    one = as_one(run, f"joined from {len(run)} calls that add to one cache of keys", keys, "position", first)
    return [_by_steps(selected, one) if first == 0 else one]


def _by_steps(selected: SelectedSample, attention: Attention) -> Attention:
    """A square map whose rows are the steps of the input, without those that are padding."""
    assert attention.weights is not None and attention.mask is not None
    queries, length = attention.weights.shape[-2], selected.length
    if queries not in (selected.padded, length) or selected.over_answer(attention.place):
        return attention
    rows = slice(min(queries, length))
    keys = slice(None) if bool(attention.mask[..., rows, length:].any()) else rows
    return replace(
        attention, queries_from="step", keys_from="step",
        weights=attention.weights[..., rows, keys], mask=attention.mask[..., rows, keys],
        margins=None if attention.margins is None else attention.margins[..., rows],
        highest=None if attention.highest is None else attention.highest[..., rows],
    )  # fmt: skip


def as_one(calls: list[Call], note: str, keys: int, domain: str, first: int | None) -> Attention:
    """All rows as one Attention over so many keys; `first`: position of the first query, None for another sequence."""
    blocks = [call.rows.block(0, call.rows.queries) for call in calls]
    parts = [(block.full(), call.rows.allowed(0, call.rows.queries)) for block, call in zip(blocks, calls, strict=True)]
    weights = torch.cat([_fitted(part, keys) for part, _ in parts], dim=1)
    mask = torch.cat([_fitted(part.expand(len(weights), -1, -1), keys) for _, part in parts], dim=1)
    margins = [call.attention.margins for call in calls]
    tops = [one for call, block in zip(calls, blocks, strict=True) if (one := _highest(call, block)) is not None]
    known = [one[0] for one in margins if one is not None]
    start, checks = calls[0].attention, [call.attention.check for call in calls]
    failed = [check for check in checks if check is not None and not check.passed]
    lineages = [call.attention.lineage for call in calls]
    return replace(
        start, weights=weights[None], mask=mask[None], note="; ".join(filter(None, (start.note, note))), causal=False,
        queries_from=domain, keys_from=start.keys_from if first is None else domain, first_query=first or 0,
        margins=torch.cat(known, dim=1)[None] if len(known) == len(calls) else None,
        open_axes=any(call.attention.open_axes for call in calls),
        unclear=next((call.attention.unclear for call in calls if call.attention.unclear), ""),
        ends=calls[-1].attention.ends, lineage=joined_lineages(lineages),
        heads=joined_heads([call.attention.heads for call in calls]),
        products=joined_products([call.attention.products for call in calls]),
        highest=torch.cat(tops, dim=1)[None] if len(tops) == len(calls) else None,
        check=failed[0] if failed else start.check, called_with=sum(call.attention.called_with for call in calls),
    )  # fmt: skip


def _highest(call: Call, block: RowBlock) -> torch.Tensor | None:
    """(a, q) the largest score of each query of a call, as far as scores are known; NaN where no key is allowed."""
    if block.scores is not None:
        return block.scores.amax(-1).masked_fill(block.count == 0, torch.nan)
    return None if call.attention.highest is None else call.attention.highest[0]


def _fitted(tensor: Tensor, keys: int) -> Tensor:
    """Rows over the first `keys` keys, with zeros where there were fewer."""
    tensor = tensor[..., :keys]
    return torch.nn.functional.pad(tensor, (0, keys - tensor.shape[-1]))
