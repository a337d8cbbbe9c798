"""Positions: what the model adds for each, how alike two are by distance, what scores make of a distance, rotary
frequencies."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import NOT_SEEN
from inspector.engine.analyses.positions.added import Encoding
from inspector.engine.analyses.positions.by_distance import by_distance, cosine, scores_by_distance
from inspector.engine.analyses.positions.one_token_runs import Runs, runs
from inspector.engine.analyses.positions.rotation import LEAST_STEPS, rotation
from inspector.engine.analyses.positions.tables import COMPUTED, Table, formula_of, table_of
from inspector.engine.attention.statistics import NOT_KNOWN, refusal
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import ANSWER_DOMAIN
from inspector.records.catalogue import ATTENTION

NAME = "positions"
MOST = 2048
"""Positions whose cosines are written, 16 MB of them."""
STATISTICS = ("mean", "least", "largest")
CONSTANT = "in a run on one token repeated"
NONE = (
    "Nothing was seen that the model adds to its stream, multiplies it by or puts beside it for a position alone: it "
    "has no positions, has them in its scores alone (rotary, a bias by distance), or makes them from what is read too "
    "(a convolution, a recurrent layer, a gate, times among the numbers of each step)."
)
ONE_STEP = "The sequence has one step, and what depends on the position is found by comparing steps."
TOO_SHORT = "Queries of {} are {}, and whether they turn by a fixed angle a step is seen from {} on."
STEPS = "{} has {} positions, of which the first {} are compared with each other."
OTHER = "{} attends to another sequence, so its queries and keys have no distance."
GENERATED = "Steps of {} are those of the output, whose tokens the model or its targets choose: not one token repeated."
NOT_ROTARY = (
    "Queries of {} are not turned by a fixed angle a step where all tokens are the same: nothing rotary was seen (what "
    "a norm makes of positions that are added besides would hide it)."
)
KNOWN_WEIGHTS = "{} computes its weights itself, and its queries were not seen as they are turned: {}."
BESIDE = "{} attends over {} positions, the input has {} steps, and its queries do not say which are the steps': {}."
ASIDE = "; {} of {} positions, which no token reaches, do not count"
TIMES = "; {} as given"
GROWS = "; their lengths change by a factor a step (xPos)"
BETWEEN_TOKENS = "; of the difference of two tokens' queries, in which positions that are added are not"
ENCODING = Describe(
    kind="positions", title="encoding of positions", scale="diverging", source="Vaswani et al. 2017, section 3.5",
    formula="p_i, which is added to the stream, multiplied onto it, or put beside it, at position i",
)  # fmt: skip
COSINE = Describe(
    kind="positions", title="cosine of two positions", formula="p_i·p_j / (‖p_i‖ ‖p_j‖)", scale="diverging",
    limits=(-1.0, 1.0), source="Wang and Chen 2020, What do position embeddings learn?",
)  # fmt: skip
SIMILARITY = Describe(
    kind="positions", title="similarity by distance", limits=(-1.0, 1.0), labels={"statistic": STATISTICS},
    formula="cosine of p_i and p_j: mean, least, largest over all i − j = distance", source=COSINE.source,
)  # fmt: skip
SCORES = Describe(
    kind="positions", title="score by distance", scale="diverging", method=CONSTANT,
    formula="mean over queries i of s_ij − s_ii, with i − j = distance; masked keys do not count",
    source="Press et al. 2022, ALiBi; Su et al. 2021, section 3.4.3",
)  # fmt: skip
SPREAD = replace(
    SCORES, title="score by distance: spread", scale="sequential",
    formula="standard deviation over queries i of s_ij − s_ii, with i − j = distance; 0: distance alone counts",
)  # fmt: skip
FREQUENCY = Describe(
    kind="positions", title="rotary frequency", unit="rad/step", scale="log",
    method=f"a line through its angles {CONSTANT}",
    formula="ω_j, by which pair j of the components of queries turns a step; 0 where it is not turned",
    source="Su et al. 2021, RoFormer",
)  # fmt: skip


@QUANTITIES.register(NAME)
@per_run(
    summary="positions: encodings, their similarity by distance, scores by distance, rotary frequencies", order=62,
    default=False, needs=(ATTENTION,), cost="two more calls of the model, four where it writes its attention itself",
    work=lambda run: run.call * 8,
)  # fmt: skip
def positions(trace: Trace, emit: Emitter) -> None:
    """Write, of each encoding, `PLACE:positions/encoding` (position, component), `…/cosine` (position, other) and
    `…/similarity` (statistic, distance); of each self-attention `PLACE:positions/scores` and `…/scores_spread` (head,
    distance) and, where its queries are rotated, `…/frequency` (head, pair).

    All are read off two runs in which every step has the same token; what differs between steps is their position's.
    """
    if not trace.attentions:
        return
    try:
        found = runs(trace)
    except Unsupported as reason:
        emit.refuse(f"{trace.attentions[0].place}:{NAME}", str(reason))
        return
    tables: list[tuple[Encoding, Table]] = []
    for one in found.encodings:
        table = table_of(trace.subject.model, one.rows, one.place, one.eps)
        known = any(_same(one, table, *other) for other in tables)
        if _is_one(one, table) and (table.kind == COMPUTED or not known):  # an encoder and a decoder may share one
            before = sum(other.place == one.place for other, _ in tables)
            tables.append((one, table))
            _write_encoding(emit, one, table, f"_{before}" if before else "", _times(found))
    if not tables:
        emit.refuse(
            f"model:{NAME}/encoding", NONE if trace.batch.length > 1 or not trace.batch.first.axis else ONE_STEP
        )
    again = {one.place: one for one in found.attentions}
    for attention in trace.attentions:
        shown = again.get(attention.place, attention)
        why = _reason(trace, shown, shown is not attention, found)
        if why is not None:
            emit.refuse(f"{attention.place}:{NAME}/scores", why)
        else:
            _write_attention(emit, shown, found)


def _times(found: Runs) -> str:
    return TIMES.format(" and ".join(map(repr, found.times))) if found.times else ""


def _is_one(found: Encoding, table: Table) -> bool:
    """Whether an operand whose axes leave it open is an encoding of positions: a table of the model has it, which does
    not have as many rows as components (a bias of scores may), or the usual formula gives it."""
    square = len(table.rows) == table.rows.shape[1]
    of_table = table.kind != COMPUTED and not square
    return found.certain or of_table or bool(formula_of(found.rows, found.eps))


def _same(one: Encoding, table: Table, other: Encoding, known: Table) -> bool:
    """Whether two encodings are one table, taken in the same way."""
    return (one.how, table.name, table.first, table.factor) == (other.how, known.name, known.first, known.factor)


def _write_encoding(emit: Emitter, found: Encoding, table: Table, number: str, times: str) -> None:
    whole, name = table.rows, f"{found.place}:{NAME}"
    about = f"{table.said}, {found.how}{times}" + (f"; step 0 has row {table.first}" if table.first else "")
    channel = ENCODING.channel(
        f"{name}/encoding{number}", ("position", "component"), tuple(whole.shape), "float32",
        method=f"{about}; {formula_of(whole[table.first :], table.eps) or 'no usual formula'}",
    )  # fmt: skip
    emit.array(channel, whole.float())
    compared = whole[:MOST]
    cut = f"; {STEPS.format(table.name, len(whole), MOST)}" if len(whole) > MOST else ""
    alike = cosine(compared)
    for signal, described, dims, values in (
        ("cosine", COSINE, ("position", "other"), alike),
        ("similarity", SIMILARITY, ("statistic", "distance"), by_distance(alike)),
    ):
        channel = described.channel(
            f"{name}/{signal}{number}", dims, tuple(values.shape), "float32", method=f"{about}{cut}"
        )  # fmt: skip
        emit.array(channel, values.float())


def _reason(trace: Trace, attention: Attention, seen: bool, found: Runs) -> str | None:
    """Why an attention has no scores by distance; None where it has."""
    reason = refusal(attention)
    if reason is not None:
        return reason
    if not seen:
        return f"{attention.place} was not seen when the model was called on one token repeated."
    if attention.queries_from == ANSWER_DOMAIN:
        return GENERATED.format(attention.place)
    if not attention.of_itself:
        return (OTHER if attention.source_known else NOT_KNOWN).format(attention.place)
    steps, own = trace.batch.first.steps, found.queries.get(attention.place, NOT_SEEN)
    positions = attention.weights.shape[2] if attention.weights is not None else steps
    if isinstance(own, str) and trace.batch.first.axis and positions > steps and found.tokens(attention) is None:
        return BESIDE.format(attention.place, positions, steps, own)
    return None


def _write_attention(emit: Emitter, attention: Attention, found: Runs) -> None:
    """Scores by distance, and frequencies, of one attention in the run on one token."""
    tokens = found.tokens(attention)
    try:
        _write_scores(emit, attention, tokens, _aside(tokens) + _times(found))
    except Unsupported as unknown:
        emit.refuse(f"{attention.place}:{NAME}/scores", str(unknown))
    queries = found.queries.get(attention.place, NOT_SEEN)
    if not isinstance(queries, str) and tokens is not None:
        queries = tuple(_in_a_row(one, tokens) for one in queries)
    _write_frequencies(emit, attention, f"{attention.place}:{NAME}", queries)


def _aside(tokens: Tensor | None) -> str:
    return "" if tokens is None or bool(tokens.all()) else ASIDE.format(int((~tokens).sum()), len(tokens))


def _in_a_row(queries: Tensor, tokens: Tensor) -> Tensor:
    """Queries (a, t, d) of the tokens, where these stand one after another."""
    at = tokens.nonzero()[:, 0]
    first, last = int(at[0]), int(at[-1]) + 1
    return queries[:, first:last] if last - first == len(at) else queries


def _write_scores(emit: Emitter, attention: Attention, tokens: Tensor | None, said: str) -> None:
    found, name = scores_by_distance(attention, 0, tokens), f"{attention.place}:{NAME}"
    count = found.mean.shape[1]
    domain = "distance" if found.least == 0 else f"distance from {found.least}"
    if found.least:
        emit.labels(domain, [str(found.least + at) for at in range(count)])
    for signal, about, values in (("scores", SCORES, found.mean), ("scores_spread", SPREAD, found.spread)):
        channel = about.channel(
            f"{name}/{signal}", ("head", "distance"), tuple(values.shape), "float32", module=attention.module,
            domains={"distance": domain}, method=about.method + said,
        )  # fmt: skip
        emit.array(channel, values.float())


def _write_frequencies(emit: Emitter, attention: Attention, name: str, queries: tuple[Tensor, ...] | str) -> None:
    if isinstance(queries, str):
        emit.refuse(f"{name}/frequency", KNOWN_WEIGHTS.format(attention.place, queries))
        return
    if queries[0].shape[1] < LEAST_STEPS:
        reason = TOO_SHORT.format(attention.place, queries[0].shape[1], LEAST_STEPS)
        emit.refuse(f"{name}/frequency", reason)
        return
    eps = torch.finfo(queries[0].dtype if attention.weights is not None else attention.query.dtype).eps
    found, said = rotation(queries[0], eps), ""
    if found is None and len(queries) > 1:
        found, said = rotation(queries[0].double() - queries[1].double(), eps), BETWEEN_TOKENS
    if found is None:
        emit.refuse(f"{name}/frequency", NOT_ROTARY.format(attention.place))
        return
    values = found.frequencies
    channel = FREQUENCY.channel(
        f"{name}/frequency", ("head", "pair"), tuple(values.shape), "float64", module=attention.module,
        method=f"{FREQUENCY.method}; {found.pairs}{GROWS if found.grows else ''}{said}",
    )  # fmt: skip
    emit.array(channel, values)
