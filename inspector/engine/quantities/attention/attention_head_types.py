"""Head types: where each head looks, as scores of known patterns, on the given input and on a repeated random one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import on_other_input
from inspector.engine.analyses.attention.head_maps import write_heads
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import NOT_KNOWN, refusal
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Option
from inspector.records.catalogue import ATTENTION

TYPES, RANDOM, WHICH = "attention/head_types", "attention/head_types_repeated", "attention/head_type"
NAMES = ("previous token", "duplicate token", "induction", "first token", "uniform", "local", "positional")
NONE = "none"
TIERS = (NAMES[:4], NAMES[4:6], NAMES[6:])
"""Specific patterns, general ones that contain them, and what is true of any head that ignores its input."""
NAMES_AND_NONE, DOMAIN = (*NAMES, NONE), "head type"
LEAST = 0.4
"""Score from which a head is named: the bar of Gu et al. for sinks is 0.3, TransformerLens' for its patterns 0.2 to
0.4. Counter-example: a head below it on this input may be of the type on other inputs."""
ALIKE = 0.8
"""Uniform and positional compare whole rows, of which unlike ones have half of their weight in common."""
EQUIVALENT = "{} does not attend: its map is what a recurrence is equal to, and its rows are no shares."
NEAR = 3
"""Local: keys at most so many positions away."""
FORMULA = (
    "mean over queries of the weight on: the key before (previous token), earlier keys with the same token (duplicate "
    f"token), keys behind those (induction), key 0 (first token), keys within {NEAR} positions (local); of queries "
    "that have such a key and another one. uniform: 1 − total variation distance from an even spread over the "
    "allowed keys; positional: 1 − that distance between the maps of the given and of another random input"
)
SOURCE = "Olsson et al. 2022, In-context learning and induction heads; Clark et al. 2019; scores as in TransformerLens"
ABOUT = Describe(
    kind="attention_statistic", title="head types", formula=FORMULA, source=SOURCE, limits=(0.0, 1.0),
    method="on the given input; NaN where no query has such a key",
)  # fmt: skip
ABOUT_RANDOM = Describe(
    kind="attention_statistic", title="head types on a repeated random sequence", formula=FORMULA, source=SOURCE,
    limits=(0.0, 1.0),
    method="on random tokens, seeded, the second half equal to the first; over queries of the second half",
)  # fmt: skip
ABOUT_WHICH = Describe(
    kind="attention_statistic", title="head type", source=SOURCE,
    formula=f"the pattern with the largest score, of those of {LEAST} and more that an even spread over the keys does "
    f"not explain: score ≥ ½ (1 + that of the even spread); uniform and positional from {ALIKE}",
    method="on the repeated random sequence where there is one, else on the given input",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scores:
    """(statistic, head) of the patterns, and the same of an even spread over the allowed keys."""

    heads: Tensor
    even: Tensor


@QUANTITIES.register(TYPES)
@per_run(
    summary="head types: previous token, duplicate, induction, first token, uniform, local, positional", order=60,
    default=False, needs=(ATTENTION,), cost="two more calls of the model", work=lambda run: run.call * 4,
    options=(Option(name="seed", type="int", default=0, low=0, help="Of the random tokens."),),
)  # fmt: skip
def head_types(trace: Trace, emit: Emitter, seed: int = 0) -> None:
    """Write `PLACE:attention/head_types` (head, statistic), the same on a repeated random sequence where the input is
    tokens, `PLACE:attention/head_type` (head,), the number of one type in the label domain "head type", and its score,
    `PLACE:attention/head_type_score`.

    Self-attention only. A label is a summary of one or two inputs: a head that copies on other text is "none" here.
    """
    attentions: list[Attention] = []
    others: list[Attention] = []
    for one in trace.attentions:
        (attentions if one.of_itself and not one.equivalent and refusal(one) is None else others).append(one)
    for one in others:
        said = EQUIVALENT if one.equivalent else "{} attends to another sequence." if one.source_known else NOT_KNOWN
        emit.refuse(f"{one.place}:{TYPES}", refusal(one) or said.format(one.place))
    if not attentions:
        return
    ids = tokens_of(trace)
    repeated, again = _random(trace, emit, seed) if ids is not None else ({}, {})
    for one in attentions:
        other = again.get(one.place)
        own = scores(one, trace.look_at, ids, None if other is None else other[0])
        write_heads(emit, one, TYPES, ABOUT, own.heads, NAMES)
        judged = own
        if one.place in repeated:
            found, tokens = repeated[one.place]
            judged = scores(found, trace.look_at, tokens, None, len(tokens) // 2)
            judged = Scores(torch.cat([judged.heads[:-1], own.heads[-1:]]), judged.even)
            write_heads(emit, one, RANDOM, ABOUT_RANDOM, judged.heads, NAMES)
        _write_label(emit, one, judged)


def tokens_of(trace: Trace) -> Tensor | None:
    """(t,) the tokens of the selected sequence; None where the input is not tokens."""
    row = trace.batch.inputs[trace.look_at, : trace.batch.length]
    return None if row.is_floating_point() or row.dim() != 1 else row


Found = dict[str, tuple[Attention, Tensor]]


def _random(trace: Trace, emit: Emitter, seed: int) -> tuple[Found, Found]:
    """Attentions by place, with their tokens: on a repeated random sequence, and on one without repetition."""
    ids = tokens_of(trace)
    assert ids is not None
    length, draws = len(ids), torch.Generator().manual_seed(seed)
    if length < 4:
        return {}, {}
    kinds = ids.unique()
    highest = max(int(trace.batch.inputs.max()) + 1, len(trace.subject.vocabulary or ()))
    kinds = torch.arange(highest) if trace.subject.vocabulary is not None else kinds
    half = kinds[torch.randint(len(kinds), (-(-length // 2),), generator=draws)]
    other = kinds[torch.randint(len(kinds), (length,), generator=draws)]
    found: list[Found] = []
    for row in (torch.cat([half, half])[: length // 2 * 2], other):
        padded = torch.cat([row, row[: length - len(row)]]) if len(row) < length else row[:length]
        try:
            seen = on_other_input(trace, padded)
            found.append({one.place: (one, padded) for one in seen if one.of_itself and refusal(one) is None})
        except Unsupported as reason:
            emit.refuse(f"{trace.attentions[0].place}:{RANDOM}", str(reason))
            found.append({})
    return found[0], found[1]


def scores(attention: Attention, sample: int, ids: Tensor | None, other: Attention | None, first: int = 0) -> Scores:
    """The scores of one attention over the queries from `first` on; `ids`: the tokens at the keys."""
    rows = Rows(attention, sample)
    same = ids is not None and len(ids) == rows.keys
    sums = {name: _Mean(rows.heads) for name in NAMES}
    even = {name: _Mean(rows.heads) for name in NAMES}
    compared = None if other is None else Rows(other, sample)
    if compared is not None and (compared.queries, compared.keys) != (rows.queries, rows.keys):
        compared = None
    for heads, q0, q1 in rows.blocks():
        if q1 <= first:
            continue
        weights = rows.block(q0, q1, heads).full().nan_to_num(nan=0.0).double()
        allowed = rows.allowed(q0, q1, heads).expand_as(weights)
        spread = allowed / allowed.sum(-1, keepdim=True).clamp_min(1)
        there = allowed.sum(-1) > 1
        there &= torch.arange(q0, q1, device=there.device) >= first
        for name, pattern in patterns(rows, q0, q1, ids if same else None, attention.first_query).items():
            with_key = there & (allowed & pattern).any(-1) & (allowed & ~pattern).any(-1)
            sums[name].add(heads, (weights * pattern).sum(-1), with_key)
            even[name].add(heads, (spread * pattern).sum(-1), with_key)
        sums["uniform"].add(heads, 1 - (weights - spread).abs().sum(-1) / 2, there)
        if compared is not None:
            before = compared.block(q0, q1, heads).full().nan_to_num(nan=0.0).double()
            sums["positional"].add(heads, 1 - (weights - before).abs().sum(-1) / 2, there)
    return Scores(*(torch.stack([of[name].value for name in NAMES]) for of in (sums, even)))


def patterns(rows: Rows, q0: int, q1: int, ids: Tensor | None, before: int) -> dict[str, Tensor]:
    """(q, k) True at the keys of each pattern; `before`: keys before the first query."""
    queries = (torch.arange(q0, q1, device=rows.device) + before)[:, None]
    keys = torch.arange(rows.keys, device=rows.device)[None]
    found = {
        "previous token": keys == queries - 1,
        "first token": (keys == 0).expand(q1 - q0, -1),
        "local": (keys - queries).abs() <= NEAR,
    }
    if ids is not None and rows.queries == rows.keys:
        tokens = ids.to(rows.device)
        equal = (tokens[q0:q1, None] == tokens[None]) & (keys < queries)
        found["duplicate token"] = equal
        found["induction"] = torch.nn.functional.pad(equal[:, :-1], (1, 0)) & (keys <= queries)
    return found


class _Mean:
    """The mean over queries, by head; NaN where there are none."""

    def __init__(self, heads: int) -> None:
        self.total, self.count = (torch.zeros(heads, dtype=torch.float64) for _ in range(2))

    def add(self, heads: slice, values: Tensor, there: Tensor) -> None:
        """(a, q) values of the queries that count."""
        self.total[heads] += torch.where(there, values, 0.0).sum(-1).cpu()
        self.count[heads] += there.sum(-1).cpu()

    @property
    def value(self) -> Tensor:
        return self.total / self.count


def _write_label(emit: Emitter, attention: Attention, judged: Scores) -> None:
    number, score = labels(judged)
    emit.labels(DOMAIN, NAMES_AND_NONE)
    for signal, values, domain in ((WHICH, number.to(torch.int32), DOMAIN), (f"{WHICH}_score", score, "")):
        about = ABOUT_WHICH if domain else replace(ABOUT_WHICH, title="score of the head type", limits=(0.0, 1.0))
        channel = about.channel(
            f"{attention.place}:{signal}", ("head",), tuple(values.shape), dtype_name(values), value_domain=domain,
            module=attention.module,
        )  # fmt: skip
        emit.array(channel, values)


def labels(judged: Scores) -> tuple[Tensor, Tensor]:
    """((a,) number of the type, (a,) its score or NaN). Specific types win over general ones that contain them."""
    count = judged.heads.shape[1]
    found, score = torch.full((count,), len(NAMES)), torch.full((count,), math.nan)
    for head in range(judged.heads.shape[1]):
        own, even = judged.heads[:, head], judged.even[:, head].nan_to_num(nan=0.0)
        least = torch.tensor([ALIKE if name in ("uniform", "positional") else LEAST for name in NAMES])
        enough = (own >= least) & (own >= (1 + even) / 2)
        best = [n for n in range(len(NAMES)) if bool(enough[n])]
        tiers = ([n for n in best if NAMES[n] in tier] for tier in TIERS)
        chosen = next((tier for tier in tiers if tier), [])
        if chosen:
            found[head] = max(chosen, key=lambda n: float(own[n]))
            score[head] = own[found[head]]
    return found, score.double()
