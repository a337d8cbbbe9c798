"""Hidden variables of a run by step: estimates with their spread, samples, divergences and log-probabilities.

Everything is of the sequence that is shown. What its tensors do not tell apart by sequence is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, distributions
from torch.distributions import Distribution

from inspector.engine.errors import Unsupported
from inspector.engine.latent.calls import DistributionCalls, Divergence, Seen, Site
from inspector.engine.latent.layout import Axes, Laid, constant, laid_out
from inspector.engine.wording import error_text

Sort = Literal["estimate", "sample", "states", "divergence", "number", "parameter"]
CATEGORIES = (
    distributions.Categorical, distributions.OneHotCategorical, distributions.RelaxedOneHotCategorical,
)  # fmt: skip
MOST_STATES, MOST_UNITS = 256, 4096
TOO_MANY = "{} has {:,} {}; up to {} are shown"


@dataclass(frozen=True, slots=True)
class Line:
    """Numbers of a variable. values: "estimate" (…, unit, 2) mean and standard deviation; "sample", "divergence" and
    "parameter" (…, unit); "states" (…, state) probabilities; "number" (…). `domain`: the axis of the steps, "" without.
    """

    sort: Sort
    signal: str
    title: str
    formula: str
    values: Tensor
    domain: str


@dataclass(slots=True)
class Variable:
    """A hidden variable: the place in the model, its class, the variable of the code, and its lines."""

    place: str
    module: str
    name: str
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Variables:
    """All of a run; a finding of its trace."""

    found: list[Variable] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Channel → reason."""


def variables_of(calls: DistributionCalls, axes: Axes) -> Variables:
    """The variables of what was noted, in the order of the code's first calls."""
    made = Variables()
    calls.mark_parts()
    sites: dict[Site, list[Seen]] = {}
    for seen in calls.seen.values():
        if not seen.inner:
            sites.setdefault(seen.site, []).append(seen)
    second = {id(one.second) for one in calls.divergences} - {id(one.first) for one in calls.divergences}
    taken: set[tuple[str, str]] = set()
    for site, group in sites.items():
        group = [seen for seen in group if id(seen) not in second or seen.samples or seen.log_probs]
        if group:
            name = free_name(site.place, name_of(site, group[0].distribution, calls.divergences), taken)
            own = [one for one in calls.divergences if one.first.site is site and not one.first.inner]
            variable = Variable(site.place, site.module, name)
            _Builder(variable, axes, made.refused).build(group, own)
            if variable.lines:
                made.found.append(variable)
    return made


def name_of(site: Site, distribution: Distribution, divergences: Sequence[Divergence]) -> str:
    """The variable of the code that gets the distribution, or else the name of its class.

    In `kl = kl_divergence(Normal(…), Normal(…))` the variable is the divergence's.
    """
    of_divergence = any(site.same_statement(one.site) for one in divergences)
    return type(distribution).__name__ if of_divergence or not site.name else site.name


def free_name(place: str, name: str, taken: set[tuple[str, str]]) -> str:
    """The name, with a number behind it where it is taken at this place; it is taken from now on."""
    number, found = 2, name
    while (place, found) in taken:
        found, number = f"{name} {number}", number + 1
    taken.add((place, found))
    return found


class _Builder:
    """Puts the lines of one variable together; what cannot be laid out is refused."""

    def __init__(self, variable: Variable, axes: Axes, refused: dict[str, str]) -> None:
        self.variable, self.axes, self.refused = variable, axes, refused

    def build(self, group: Sequence[Seen], divergences: Sequence[Divergence]) -> None:
        """Estimate, divergences with what they are from, sample, log-probability."""
        name, kind = self.variable.name, type(group[0].distribution).__name__
        with torch.no_grad():
            if not constant(_some_parameter(group[0].distribution), self.axes):
                self._try(name, lambda: self._estimates(name, name, kind, [one.distribution for one in group]))
            self._try("kl", lambda: self._divergences(divergences))
            drawn = [(one, one.samples[0]) for one in group if one.samples]
            self._try("sample", lambda: self._samples(drawn))
            looked = [one.log_probs[0] for one in group if one.log_probs]
            self._try("log_prob", lambda: self._log_probs(looked))

    def _try(self, signal: str, make: Callable[[], None]) -> None:
        try:
            make()
        except Unsupported as reason:
            told = str(reason)
        except Exception as fault:  # noqa: BLE001 - properties of a class of the user's may raise anything
            told = f"{self.variable.name} could not be read ({error_text(fault)})."
        else:
            return
        self.refused[f"{self.variable.place}:latent/{self.variable.name}/{signal}"] = told

    def _add(self, sort: Sort, signal: str, title: str, formula: str, laid: Laid) -> None:
        self.variable.lines.append(Line(sort, signal, title, formula, laid.values.detach().cpu(), laid.domain))

    def _estimates(self, signal: str, name: str, kind: str, every: Sequence[Distribution]) -> None:
        if isinstance(every[0], CATEGORIES):
            laid = self._laid(f"The {kind} {name}", [_probabilities(one) for one in every])
            laid = Laid(laid.values.reshape(*_steps(laid), -1), laid.domain)
            _limit(f"The {kind} {name}", laid.values.shape[-1], "categories", MOST_STATES)
            return self._add("states", signal, f"{name}: {kind}", "p(z_t = k)", laid)
        moments = _moments(every)
        if moments is None and all(isinstance(one, distributions.TransformedDistribution) for one in every):
            bases: list[Any] = [one.base_dist for one in every]  # type: ignore[attr-defined]
            return self._estimates(f"{signal}/base", f"{name} before its transforms", type(bases[0]).__name__, bases)
        if moments is None:
            return self._parameters(signal, name, kind, every)
        parts = [self._units(f"The {kind} {name}", values) for values in moments]
        both = torch.stack([part.values for part in parts], -1)
        formula = f"mean and standard deviation of {kind}"
        return self._add("estimate", signal, f"{name}: {kind}", formula, Laid(both, parts[0].domain))

    def _parameters(self, signal: str, name: str, kind: str, every: Sequence[Distribution]) -> None:
        for parameter in every[0].arg_constraints:
            values = [getattr(one, parameter, None) for one in every]
            if all(isinstance(value, Tensor) for value in values):
                laid = self._units(f"{parameter} of the {kind} {name}", [v for v in values if isinstance(v, Tensor)])
                title = f"{name}: {parameter} of {kind}"
                self._add("parameter", f"{signal}/{parameter}", title, f"{parameter} as the code gives it", laid)

    def _divergences(self, every: Sequence[Divergence]) -> None:
        sites: dict[Site, list[Divergence]] = {}
        for one in every:
            sites.setdefault(one.site, []).append(one)
        for number, group in enumerate(sites.values()):
            tail = f" {number + 1}" if number else ""
            second = group[0].second
            other = name_of(second.site, second.distribution, group)
            other = "prior" if other in (self.variable.name, "kl") else other
            self._try(other, lambda o=other + tail, g=group: self._prior(o, g))  # type: ignore[misc]
            title = f"KL({self.variable.name} ‖ {other})"
            laid = self._laid(title, [one.value for one in group])
            if laid.values.dim() > len(_steps(laid)):
                units = Laid(laid.values.reshape(*_steps(laid), -1), laid.domain)
                self._add("divergence", f"kl{tail}", f"{title} by unit", "∫ q ln q/p of each unit, in nats", units)
            total = Laid(_summed(laid), laid.domain)
            self._add("number", f"kl_total{tail}", title, "∫ q ln q/p, summed over units, in nats", total)

    def _prior(self, other: str, group: Sequence[Divergence]) -> None:
        every, kind = [one.second.distribution for one in group], type(group[0].second.distribution).__name__
        shapes = [one.first.distribution.batch_shape for one in group]
        if any(one.batch_shape != shape for one, shape in zip(every, shapes, strict=True)):
            every = [one.expand(shape) for one, shape in zip(every, shapes, strict=True)]
        self._estimates(other, other, kind, every)

    def _samples(self, drawn: Sequence[tuple[Seen, Tensor]]) -> None:
        if not drawn:
            return
        values = []
        for seen, value in drawn:
            own = len(seen.distribution.batch_shape) + len(seen.distribution.event_shape)
            values.append(value[(0,) * max(0, value.dim() - own)])  # the first of several
        if constant(values[0], self.axes):
            return
        laid = self._units("The sample", [value.float() for value in values])
        self._add("sample", "sample", f"{self.variable.name}: sample", "what the run drew", laid)

    def _log_probs(self, looked: Sequence[Tensor]) -> None:
        if not looked or constant(looked[0], self.axes):
            return
        laid = self._laid("ln p", looked)
        name = self.variable.name
        formula = "ln p of the values that the code looked up, summed over units, in nats"
        self._add("number", "log_prob", f"ln p of {name}", formula, Laid(_summed(laid), laid.domain))

    def _units(self, what: str, values: Sequence[Tensor]) -> Laid:
        laid = self._laid(what, values)
        flat = laid.values.reshape(*_steps(laid), -1)
        _limit(what, flat.shape[-1], "numbers a step", MOST_UNITS)
        return Laid(flat, laid.domain)

    def _laid(self, what: str, values: Sequence[Tensor]) -> Laid:
        return laid_out(what, [value.detach() for value in values], self.axes)


def _steps(laid: Laid) -> tuple[int, ...]:
    return tuple(laid.values.shape[:1]) if laid.domain else ()


def _summed(laid: Laid) -> Tensor:
    found = laid.values.reshape(*_steps(laid), -1).sum(-1)
    return found


def _limit(what: str, count: int, word: str, most: int) -> None:
    if count > most:
        raise Unsupported(TOO_MANY.format(what, count, word, most) + ".")


def _moments(every: Sequence[Distribution]) -> tuple[list[Tensor], list[Tensor]] | None:
    """Means and standard deviations; None where a class of distributions does not say them."""
    try:
        means, deviations = [one.mean for one in every], [one.stddev for one in every]
    except (NotImplementedError, AttributeError):
        return None
    nowhere = all(bool(one.isnan().all()) for one in (*means, *deviations))
    return None if nowhere else (means, deviations)


def _probabilities(distribution: Any) -> Tensor:
    """(…, k) of a distribution over categories."""
    found: Tensor = distribution.probs
    return found


def _some_parameter(distribution: Distribution) -> Tensor:
    """A tensor of the shape of the distribution, to see its axes by."""
    return torch.empty(distribution.batch_shape + distribution.event_shape, device="meta")


def lines_of(variables: Sequence[Variable]) -> Iterator[tuple[Variable, Line]]:
    """Every line with its variable."""
    for variable in variables:
        for line in variable.lines:
            yield variable, line
