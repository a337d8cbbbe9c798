"""A plain recurrence whose weight must lose the gradient before it reaches what the loss depends on: a bound."""

from __future__ import annotations

import math
from collections.abc import Iterable

from inspector.analysis.influence import SAID, Past
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust, scalar
from inspector.records import Finding

BOUND, REACH = "/bound", "input:influence/reach"


class ContractingWeight:
    """Reads γσ₁(W) of a plain recurrence: below 1, the gradient over k steps is at most its k-th power.

    Beside the lag at which the loss still depends on the input (influence) it is a warning; alone it is information,
    since a task may need no long lags, or have them by another way. A net that has learned nothing from the past
    depends on no long lag yet: where the loss is no better with the past than without, the bound is told as what may
    keep it so. Nothing is said of a bound that the whole sequence is too short for.
    """

    id = "IN205"
    title = "A recurrent weight that loses the gradient"
    summary = "The recurrent weight is so far from orthogonal that gradients must vanish within the lags that count."
    trust: Trust = "counterfactual"
    scope: Scope = "frame"
    reads = ("spectrum",)
    needs = ("weight/spectrum", "influence")
    limits = (
        Limit(
            "gradient",
            1e-3,
            "What is left of a gradient that has vanished; three powers of ten, as for its reach.",
            within=PART,
        ),
    )
    reference = "Pascanu, Mikolov & Bengio 2013, arXiv 1211.5063: σ₁(W) < 1/γ suffices for vanishing gradients"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each plain recurrence with a bound below 1."""
        needed = scalar(run, REACH, frame)
        past = Past.read(lambda name: scalar(run, name, frame))
        for one in [one for one in run.scalars if one.frame == frame and one.name.endswith(BOUND)]:
            name = one.name.removesuffix(BOUND) + "/singular_values"
            if name not in run.channels or not 0 <= one.value < 1:
                continue
            place = run.channels[name].place
            horizon = math.ceil(math.log(run.limit("gradient")) / math.log(one.value)) if one.value else 1
            beyond = needed > horizon  # false for NaN: not measured
            fits = horizon >= _steps(run, place, frame) > 0
            if not beyond and (fits or (math.isfinite(needed) and past.useful is not False)):
                continue
            yield Finding(
                rule="contracting-weight", severity="warning" if beyond else "info", place=place,
                message=f"γσ₁ = {one.value:.3g}: over {horizon:,} step{'' if horizon == 1 else 's'} the gradient "
                f"falls below {run.limit('gradient'):g} whatever the input{_beside(needed, past, beyond=beyond)}",
                evidence=(name, "input:influence/loss") if math.isfinite(needed) else (name,),
                sure="a bound, which holds for every input" + ("; the lag is measured on this run" if beyond else ""),
                unless="the state reaches later steps by another way than this weight"
                if beyond else "the task needs shorter lags only",
                remedy="Begin with an orthogonal recurrent matrix, or use gates, skip connections through time or "
                "attention.",
                code="nn.init.orthogonal_(rnn.weight_hh_l0)",
            )  # fmt: skip


def _beside(needed: float, past: Past, *, beyond: bool) -> str:
    """What was measured of the loss."""
    if beyond:
        return f", and the loss depends on inputs {int(needed):,} steps back"
    return f", and the loss {SAID[False]} {past.losses}: not learned" if past.useful is False else ""


def _steps(run: Run, place: str, frame: int) -> int:
    """How many steps the layer ran over; 0 where that is not captured."""
    names = [one.name for one in run.channels.values() if one.place == place and one.dims[:1] == ("step",)]
    return max((int(run.channel(name, frame).shape[0] or 0) for name in names if run.revision(name, frame)), default=0)


RULES.register("contracting-weight")(ContractingWeight())
