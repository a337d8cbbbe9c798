"""What attention costs at this length and at others: parameters, multiplications, memory, time."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from inspector.engine.analyses.attention.attended import values_again
from inspector.engine.analyses.attention.attention_cost import (
    ALL,
    FLOP_PARTS,
    KEYS_AND_VALUES,
    MEMORY_PARTS,
    PARTS,
    Shape,
    parameters,
    told,
)
from inspector.engine.analyses.attention.attention_time import TIMES, between, measured_rates, shortest
from inspector.engine.analyses.attention.head_maps import known, with_heads
from inspector.engine.analyses.attention.own_scores import as_queries_and_keys, products_of
from inspector.engine.analyses.module_calls import ModuleCall, module_calls
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.attention.rows import Rows
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records.catalogue import ATTENTION

NAME = "attention/cost"
OTHERS = (256, 1024, 4096, 16384)
GUESSED = "; keys are taken to be as wide as values"
CALLED = "; times the {} calls of this run"
NOT_COUNTED = "{} Multiplications, memory and time of other scores are not counted."
NUMBERS = Describe(
    kind="attention_cost", title="parameters of attention", formula="numbers of each part, by the names of its layers",
    method="counted", compare="separate",
)  # fmt: skip
FLOPS = Describe(
    kind="attention_cost", title="multiplications and additions of attention", scale="log", compare="ratio",
    formula="Q 2Te·ad, K 2Se·gd, V 2Se·gv, O 2T·av·e', scores 2aTSd, sums of values 2aTSv, for one sequence",
    source="Kaplan et al. 2020, Scaling laws, section 2.1", method="counted; softmax and masks (some 5aTS) left out",
)  # fmt: skip
MEMORY = Describe(
    kind="attention_cost", unit="byte", title="memory of attention", scale="log", compare="ratio",
    formula="rows: numbers of q, k, v and z; maps: aTS, held only by kernels that keep them", method="counted",
)  # fmt: skip
TIME = Describe(
    kind="attention_cost", unit="s", title="time of attention", scale="log", compare="separate",
    formula="the module called again on what it was given; at other lengths in proportion to the multiplications, or "
    "what more of them take on this machine besides",
    method=f"measured at this length, the shortest of {TIMES} calls without gradients; estimated at the others, with "
    "products of these widths that were measured: the least and the most of three estimates",
)  # fmt: skip


@QUANTITIES.register(NAME)
@per_run(
    summary="what attention costs: parameters by part, multiplications, memory and time at this and other lengths",
    order=60, default=False, needs=(ATTENTION,), cost="two more calls, and three of each module that attends",
    work=lambda run: run.call * 6,
    before=lambda subject, batch: told(subject.model, batch.length),
)  # fmt: skip
def cost(trace: Trace, emit: Emitter) -> None:
    """Write, of every attention, `PLACE:attention/parameters` (part,), `…/flops` and `…/memory` (part, length) and
    `…/seconds` (statistic, length). Lengths: that of this run, then 256 to 16,384 for queries and keys alike. What can
    be foreseen from the model alone is said before it runs."""
    if not trace.attentions:
        return
    try:
        again, calls = values_again(trace), _calls(trace)
    except Unsupported as reason:
        emit.refuse(f"{trace.attentions[0].place}:{NAME}", str(reason))
        return
    for attention in with_heads(again, emit, NAME, gradient=False):
        call = calls.get(attention.place) or calls.get(attention.place.rpartition(".")[0])
        if call is None:
            emit.refuse(f"{attention.place}:{NAME}", f"{attention.place} is no module of its own.")
            continue
        _write(trace, emit, attention, call)


def _key_width(trace: Trace, attention: Attention, numbers: Mapping[str, int]) -> tuple[int, str]:
    """(components of a query and a key; what is to be said of that), from the products that scores are where a model
    computes its weights itself. numbers: its parameters by part.

    Raises Unsupported where scores are no products of queries and keys, or may not be, since layers of other names
    make them.
    """
    if attention.weights is None:
        return int(attention.query.shape[-1]), ""
    try:
        products_of(trace, attention)
    except Unsupported:
        if numbers["other"] and not (numbers["Q"] or numbers["K"] or numbers[ALL]):
            raise
        return int(known(attention).calls[0].value.shape[-1]), GUESSED
    return int(as_queries_and_keys(trace, attention).query.shape[-1]), ""


def _calls(trace: Trace) -> dict[str, ModuleCall]:
    """The first call of every module, by name; the model itself is "model"."""
    subject = trace.subject
    with undisturbed(subject.model, trace.seed), torch.no_grad():
        batch = subject.placed(trace.batch)
        try:
            _, calls = module_calls(subject.model, lambda: subject.run(batch))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, "The model, called again,"))) from None
    return {call.name or "model": call for call in reversed(calls)}


def shape_of(attention: Attention, call: ModuleCall, key: int) -> Shape:
    """The sizes of an attention, with `key` components of a key; without its own projections the stream is what the
    module was given."""
    heads = known(attention)
    count, _, value = heads.calls[0].value.shape
    numbers = parameters(call.module)
    out = 0 if heads.weight is None else int(heads.weight.shape[2])
    width = out if call.given is None else int(call.given.shape[-1])
    groups = count
    if numbers["V"] and width:  # a weight (groups · value, e), and a bias
        groups = max(1, min(count, numbers["V"] // (width * value)))
    elif width and numbers[KEYS_AND_VALUES]:
        groups = max(1, min(count, numbers[KEYS_AND_VALUES] // width // (key + value)))
    elif width and numbers[ALL]:
        groups = max(1, min(count, (numbers[ALL] // width - count * key) // (key + value)))
    projected = bool(numbers["Q"] or numbers[ALL])
    return Shape(count, groups, width, key, value, out, projected)


def _write(trace: Trace, emit: Emitter, attention: Attention, call: ModuleCall) -> None:
    rows, place = Rows(attention, trace.look_at), attention.place
    numbers = parameters(call.module)
    parts = torch.tensor([numbers[part] for part in PARTS], dtype=torch.int64)
    channel = NUMBERS.channel(
        f"{place}:attention/parameters", ("part",), (len(PARTS),), "int64", labels={"part": PARTS}
    )
    emit.array(channel, parts)
    try:
        key, said = _key_width(trace, attention, numbers)
    except Unsupported as reason:
        emit.refuse(f"{place}:attention/flops", NOT_COUNTED.format(str(reason)))
        return
    shape = shape_of(attention, call, key)
    lengths = [(rows.queries, rows.keys), *((n, n) for n in OTHERS)]
    labels = {"length": ("this run", *(f"{n:,} steps" for n in OTHERS))}
    entry = 4 if call.result is None else call.result.element_size()
    flops = torch.tensor([shape.flops(*one) for one in lengths], dtype=torch.float64).T
    memory = torch.tensor([shape.memory(*one, entry) for one in lengths], dtype=torch.float64).T
    for signal, about, values, names in (
        ("flops", FLOPS, flops, FLOP_PARTS), ("memory", MEMORY, memory, MEMORY_PARTS),
    ):  # fmt: skip
        channel = about.channel(
            f"{place}:attention/{signal}", ("part", "length"), tuple(values.shape), "float64",
            labels={**labels, "part": names}, method=f"{about.method}{said}",
        )  # fmt: skip
        emit.array(channel, values)
    like = next(one for one in (call.result, attention.weights, attention.query) if one is not None)
    times = len(known(attention).calls)  # a decoder calls it once for each query
    seconds = between(shape, times * _seconds(trace, call, like.device), lengths, measured_rates(shape, like))
    channel = TIME.channel(
        f"{place}:attention/seconds", ("statistic", "length"), tuple(seconds.shape), "float64",
        labels={**labels, "statistic": ("from", "to")},
        method=TIME.method + (CALLED.format(times) if times > 1 else ""),
    )  # fmt: skip
    emit.array(channel, seconds)


def _seconds(trace: Trace, call: ModuleCall, device: torch.device) -> float:
    """Of one call of the module for one sequence."""
    with undisturbed(trace.subject.model, trace.seed), torch.no_grad():
        return shortest(call.again, device) / trace.batch.size
