"""Samples that the model's own code draws, z = μ + σ ε, from the recording of its operations.

ε comes from `randn_like`, `randn` or `normal_`; σ multiplies it and μ is added, both tensors, in any form of the two
operations; or `torch.normal(μ, σ)` draws z at once. What `torch.distributions` draws is noted elsewhere and left out.
Noise of a fixed size (x + 0.1 ε) is no hidden variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.latent.calls import DistributionCalls
from inspector.engine.latent.layout import Axes, axes_of, laid_out
from inspector.engine.latent.variables import MOST_UNITS, Line, Variable
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import given_to, name_of, results_of
from inspector.engine.recurrent.traced.record.places import place_of
from inspector.engine.recurrent.traced.record.source_names import assigned
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import error_text

NOISE = frozenset({torch.randn_like, torch.randn, torch.normal, Tensor.normal_})
TIMES = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"})
PLUS = frozenset({"add", "__add__", "__radd__", "add_", "__iadd__"})
NEAR = 64
"""Operations between the noise and the sample. Counter-example: noise that is drawn for a whole sequence before a loop
over its steps is not followed into the loop."""
MOST_SAMPLES = 100_000
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Drawn:
    """One sample: z = mean + deviation ε, and the call that made it."""

    made: int
    mean: Tensor
    deviation: Tensor
    sample: Tensor


@dataclass(slots=True)
class WrittenVariables:
    """What was found in the recording; a finding of the trace."""

    found: list[Variable] = field(default_factory=list)


def find_written(table: Table, trace: Trace, emit: Emitter, names: Mapping[int, str]) -> None:
    """Put the samples that the code draws itself into the trace. `names`: id of a module → its name.

    A fault in the search is reported; nothing else of the recording depends on it.
    """
    try:
        _find(table, trace, names)
    except Exception as fault:  # noqa: BLE001 - the search for recurrences goes on
        emit.refuse("model:latent", f"Looking for samples that the code draws failed ({error_text(fault)}).")


def _find(table: Table, trace: Trace, names: Mapping[int, str]) -> None:
    calls = trace.findings.get(DistributionCalls)
    known = {one.data_ptr() for seen in calls.seen.values() for one in seen.samples} if calls is not None else set()
    sites: dict[tuple[str, tuple[object, ...]], list[Drawn]] = {}
    for count, one in enumerate(_samples(table)):
        if count >= MOST_SAMPLES:
            break
        if one.sample.data_ptr() not in known:
            place, _ = place_of(table, one.made, names)
            chain = table.op(one.made).chain
            sites.setdefault((place, tuple((frame.f_code, at) for frame, at in chain)), []).append(one)
    axes = axes_of(trace)
    for (place, _), group in sites.items():
        variable = _variable(table, place, place_of(table, group[0].made, names)[1], group, axes)
        if variable is not None:
            trace.findings.of(WrittenVariables).found.append(variable)


def _samples(table: Table) -> Iterator[Drawn]:
    for n in [n for n, call in enumerate(table.calls) if call[0] in NOISE]:
        function, args, kwargs, out = table.calls[n][:4]
        if not isinstance(out, Tensor):
            continue
        given = [*args, *(kwargs or {}).values()]
        if function is torch.normal and len(given) > 1 and all(isinstance(one, Tensor) for one in given[:2]):
            if given[0].shape == given[1].shape == out.shape:
                yield Drawn(n, given[0], given[1], out)
            continue
        found = _shifted(table, n, out)
        if found is not None:
            yield found


def _shifted(table: Table, n: int, noise: Tensor) -> Drawn | None:
    """The sample that is made of some noise by the next operations."""
    scaled: Tensor | None = None
    deviation: Tensor | None = None
    for m in range(n + 1, min(n + 1 + NEAR, len(table))):
        call = table.calls[m]
        name, tensors, results = name_of(call[0]), given_to(call), results_of(call[3])
        if len(results) != 1:
            continue
        if name == "addcmul" and len(tensors) == 3 and any(one is noise for one in tensors[1:]):
            return checked(Drawn(m, tensors[0], _other(tensors[1:], noise), results[0]), noise)
        if scaled is None and name in TIMES and len(tensors) == 2 and any(one is noise for one in tensors):
            scaled, deviation = results[0], _other(tensors, noise)
        elif scaled is not None and name in PLUS and len(tensors) == 2 and any(one is scaled for one in tensors):
            assert deviation is not None
            return checked(Drawn(m, _other(tensors, scaled), deviation, results[0]), noise)
    return None


def _other(pair: tuple[Tensor, ...], one: Tensor) -> Tensor:
    return pair[1] if pair[0] is one else pair[0]


def checked(drawn: Drawn, noise: Tensor) -> Drawn | None:
    """The same where all have one shape, σ is not negative, and z = μ + σ ε where ε was not overwritten."""
    mean, deviation, sample = drawn.mean.detach(), drawn.deviation.detach(), drawn.sample.detach()
    if not mean.shape == deviation.shape == sample.shape or not sample.dim() or not sample.is_floating_point():
        return None
    if bool((deviation < 0).any()):
        return None
    overwritten = noise is drawn.sample or noise.data_ptr() == sample.data_ptr()
    if not overwritten and not torch.allclose(
        mean + deviation * noise.detach(), sample, TOLERANCE, TOLERANCE, equal_nan=True
    ):
        return None
    return drawn


def _variable(table: Table, place: str, module: str, group: list[Drawn], axes: Axes) -> Variable | None:
    """Mean and standard deviation, sample, and the divergence from N(0, 1); None where no axis is of the sequences."""
    names, _ = assigned(table.op(group[0].made).chain, stored=False)
    name = names[0] if len(names) == 1 else "z"
    try:
        parts = [
            laid_out(name, [getattr(one, what).detach() for one in group], axes)
            for what in ("mean", "deviation", "sample")
        ]
    except Unsupported:
        return None
    domain = parts[0].domain
    rows = parts[0].values.shape[:1] if domain else ()
    mean, deviation, sample = (part.values.reshape(*rows, -1).cpu() for part in parts)
    if mean.shape[-1] > MOST_UNITS:
        return None
    variance = deviation.square()
    divergence = (mean.square() + variance - 1 - variance.log()) / 2
    formula = "½ (μ² + σ² − 1 − ln σ²) of each unit, in nats: from a standard normal prior, if that is the model's"
    lines = [
        Line("estimate", name, f"{name}: μ, σ", "μ and σ of z = μ + σ ε", torch.stack((mean, deviation), -1), domain),
        Line("sample", "sample", f"{name}: sample", "z = μ + σ ε", sample, domain),
        Line("divergence", "kl", f"KL({name} ‖ N(0, 1)) by unit", formula, divergence, domain),
        Line("number", "kl_total", f"KL({name} ‖ N(0, 1))", formula, divergence.sum(-1), domain),
    ]
    return Variable(place, module, name, lines)
