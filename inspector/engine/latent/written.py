"""Samples that the model's own code draws, z = μ + σ ε, from the recording of its operations.

ε comes from `randn_like`, `randn` or `normal_`; σ multiplies it and μ is added, both tensors, in any form of the two
operations; or `torch.normal(μ, σ)` draws z at once; `F.gumbel_softmax` draws categories. What `torch.distributions`
draws is noted elsewhere and left out. Noise that becomes none of these, as that of a fixed size (x + 0.1 ε), is listed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.latent.calls import DistributionCalls
from inspector.engine.latent.layout import Axes, axes_of, laid_out
from inspector.engine.latent.variables import MOST_STATES, MOST_UNITS, TOO_MANY, Line, Variable
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import given_to, name_of, results_of
from inspector.engine.recurrent.traced.record.places import place_of
from inspector.engine.recurrent.traced.record.source_names import assigned
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import error_text
from inspector.records import Log

Reason = str
NOISE = frozenset({torch.randn_like, torch.randn, torch.normal, Tensor.normal_})
DRAWS = NOISE | {F.gumbel_softmax}
NO_SAMPLE = (
    "Noise is drawn ({}) and becomes no z = μ + σ ε with μ and σ of its shape, so no hidden variable is shown of it. "
    "It may be noise of a fixed size, a first state, a sample with a covariance, or one in another form."
)
MOST_NAMED = 6
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


@dataclass(frozen=True, slots=True)
class Categories:
    """One sample of categories, their probabilities (…, k), and the call that made it."""

    made: int
    probabilities: Tensor
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
        _find(table, trace, emit, names)
    except Exception as fault:  # noqa: BLE001 - the search for recurrences goes on
        emit.refuse("model:latent", f"Looking for samples that the code draws failed ({error_text(fault)}).")


def _find(table: Table, trace: Trace, emit: Emitter, names: Mapping[int, str]) -> None:
    calls = trace.findings.get(DistributionCalls) or DistributionCalls()
    known = {one.data_ptr() for seen in calls.seen.values() for one in seen.samples}
    sites: dict[tuple[str, tuple[object, ...]], list[Drawn | Categories]] = {}
    unread: dict[str, None] = {}
    for n in _draws(table, calls):
        one = _sample_of(table, n)
        if one is None and (table.calls[n][2] or {}).get("generator") is not None:
            continue  # numbers that are the same in every run: a constant
        if one is None:
            place, _ = place_of(table, n, names)
            unread.setdefault(f"{place}:{_name(table, n, name_of(table.calls[n][0]))}")
        elif isinstance(one, str):
            place, _ = place_of(table, n, names)
            emit.refuse(f"{place}:latent/{_name(table, n, 'z')}", one)
        elif one.sample.data_ptr() not in known:
            place, _ = place_of(table, one.made, names)
            chain = table.op(one.made).chain
            sites.setdefault((place, tuple((frame.f_code, at) for frame, at in chain)), []).append(one)
    axes = axes_of(trace)
    for (place, _), group in sites.items():
        variable = _variable(table, place, place_of(table, group[0].made, names)[1], group, axes)
        if isinstance(variable, Variable):
            trace.findings.of(WrittenVariables).found.append(variable)
        else:
            emit.refuse(f"{place}:latent/{_name(table, group[0].made, 'z')}", variable)
    if unread:
        emit.sink.write(Log(NO_SAMPLE.format(", ".join(itertools.islice(unread, MOST_NAMED))), "info", "engine"))


def _draws(table: Table, calls: DistributionCalls) -> Iterator[int]:
    """The calls that draw noise in the model's own code; what torch.distributions draws is noted elsewhere."""
    found = (n for n, call in enumerate(table.calls) if call[0] in DRAWS and isinstance(call[3], Tensor))
    for n in itertools.islice(found, MOST_SAMPLES):
        chain = table.op(n).chain
        frame, at = chain[-1] if chain else (None, 0)
        of_a_distribution = frame is not None and (frame.f_code, at) in calls.lines
        if not of_a_distribution:
            yield n


def _sample_of(table: Table, n: int) -> Drawn | Categories | Reason | None:
    """The sample that some noise becomes; None where none was found."""
    function, args, kwargs, out = table.calls[n][:4]
    given = [*args, *(kwargs or {}).values()]
    if function is F.gumbel_softmax:
        return _categories(n, args, kwargs or {}, out)
    if function is torch.normal and len(given) > 1 and all(isinstance(one, Tensor) for one in given[:2]):
        return Drawn(n, given[0], given[1], out) if given[0].shape == given[1].shape == out.shape else None
    return _shifted(table, n, out)


def _categories(n: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Tensor) -> Categories | Reason:
    """A sample of categories, `F.gumbel_softmax(scores, tau, hard, eps, dim)`."""
    scores, axis = kwargs.get("logits", args[0] if args else None), kwargs.get("dim", args[4] if len(args) > 4 else -1)
    if not isinstance(scores, Tensor) or axis not in (-1, scores.dim() - 1):
        return "A sample of categories along another axis than the last is not shown."
    return Categories(n, scores.detach().softmax(-1), out)


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


def _name(table: Table, n: int, otherwise: str) -> str:
    """The variable of the code that gets what a call makes."""
    names, _ = assigned(table.op(n).chain, stored=False)
    return names[0] if len(names) == 1 else otherwise


def _variable(table: Table, place: str, module: str, group: list[Drawn | Categories], axes: Axes) -> Variable | Reason:
    """A hidden variable of the samples of one line; the reason where it cannot be shown."""
    name = _name(table, group[0].made, "z")
    gaussian = [one for one in group if isinstance(one, Drawn)]
    categories = [one for one in group if isinstance(one, Categories)]
    try:
        lines = _gaussian(name, gaussian, axes) if gaussian else _categorical(name, categories, axes)
    except Unsupported as reason:
        return str(reason)
    return Variable(place, module, name, lines)


def _rows(name: str, values: list[Tensor], axes: Axes) -> tuple[Tensor, str]:
    """(steps, unit) or (unit,) of the sequence that is shown, and its axis. Raises Unsupported."""
    laid = laid_out(f"The sample {name}", [one.detach() for one in values], axes)
    found = laid.values.reshape(*(laid.values.shape[:1] if laid.domain else ()), -1).cpu()
    if found.shape[-1] > MOST_UNITS:
        raise Unsupported(TOO_MANY.format(f"The sample {name}", found.shape[-1], "numbers a step", MOST_UNITS) + ".")
    return found, laid.domain


def _gaussian(name: str, group: list[Drawn], axes: Axes) -> list[Line]:
    """Mean and standard deviation, sample, and the divergence from N(0, 1)."""
    mean, domain = _rows(name, [one.mean for one in group], axes)
    deviation, _ = _rows(name, [one.deviation for one in group], axes)
    sample, _ = _rows(name, [one.sample for one in group], axes)
    variance = deviation.square()
    divergence = (mean.square() + variance - 1 - variance.log()) / 2
    formula = "½ (μ² + σ² − 1 − ln σ²) of each unit, in nats: from a standard normal prior, if that is the model's"
    return [
        Line("estimate", name, f"{name}: μ, σ", "μ and σ of z = μ + σ ε", torch.stack((mean, deviation), -1), domain),
        Line("sample", "sample", f"{name}: sample", "z = μ + σ ε", sample, domain),
        Line("divergence", "kl", f"KL({name} ‖ N(0, 1)) by unit", formula, divergence, domain),
        Line("number", "kl_total", f"KL({name} ‖ N(0, 1))", formula, divergence.sum(-1), domain),
    ]


def _categorical(name: str, group: list[Categories], axes: Axes) -> list[Line]:
    """Probabilities and sample."""
    probabilities, domain = _rows(name, [one.probabilities for one in group], axes)
    sample, _ = _rows(name, [one.sample for one in group], axes)
    if probabilities.shape[-1] > MOST_STATES:
        raise Unsupported(
            TOO_MANY.format(f"The sample {name}", probabilities.shape[-1], "categories", MOST_STATES) + "."
        )
    return [
        Line("states", name, f"{name}: categories", "p(z_t = k) = softmax of the scores", probabilities, domain),
        Line("sample", "sample", f"{name}: sample", "softmax of (scores + Gumbel noise) / τ", sample, domain),
    ]
