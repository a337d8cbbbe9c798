"""What each preset of `watch` measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from inspector.engine.watch.gradients import ClippedNorms, GradientNorms
from inspector.engine.watch.kept.ring import Ring
from inspector.engine.watch.measure import Measure
from inspector.engine.watch.measures.activations import Activations, States
from inspector.engine.watch.measures.adam import AdamState
from inspector.engine.watch.measures.attending import Attending
from inspector.engine.watch.measures.broken_loss import BrokenLoss
from inspector.engine.watch.measures.checksums import Checksums
from inspector.engine.watch.measures.effective_rank import EffectiveRank
from inspector.engine.watch.measures.fingerprints import Fingerprints
from inspector.engine.watch.measures.gate_saturation import Gates
from inspector.engine.watch.measures.headroom import Headroom
from inspector.engine.watch.measures.hidden_keys import HiddenKeys
from inspector.engine.watch.measures.kept_gradients import KeptGradients
from inspector.engine.watch.measures.loss_targets import BEGINNING, LossTargets
from inspector.engine.watch.measures.modes import Modes
from inspector.engine.watch.measures.module_calls import ModuleCalls
from inspector.engine.watch.measures.now_and_then import Exponents, Spectra
from inspector.engine.watch.measures.padding import Padding
from inspector.engine.watch.measures.pairs import Pairs
from inspector.engine.watch.measures.read_ahead import ReadAhead
from inspector.engine.watch.measures.score_facts import ScoreFacts
from inspector.engine.watch.measures.unused_rows import UnusedRows
from inspector.engine.watch.measures.updates import Updates
from inspector.engine.watch.orders import Test
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.probing import Wanted
from inspector.engine.watch.states.carried import CarriedSteps
from inspector.engine.watch.states.continuing import Continuing
from inspector.engine.watch.states.earlier_graphs import EarlierGraphs
from inspector.engine.watch.states.fresh_states import FreshStates
from inspector.engine.watch.turns import APART, Turns
from inspector.records import parse_condition

COSTS = ("light", "normal", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a watcher. Raises ValueError for what is out of range."""

    every: int | None = None
    share: float = 0.02
    cost: str = "normal"
    modules: tuple[str, ...] = ()
    probe: Wanted | None = None
    break_on: str | Test | None = None
    pause_timeout: float = 3600.0
    fingerprints: bool = False

    def __post_init__(self) -> None:
        if self.cost not in COSTS:
            raise ValueError(f"cost is {self.cost!r}; expected one of {', '.join(COSTS)}.")
        if self.every is not None and (not isinstance(self.every, int) or self.every < 1):
            raise ValueError(f"every is {self.every!r}; expected a whole number of iterations, at least 1.")
        if not 0 < self.share <= 1:
            raise ValueError(f"share is {self.share!r}; expected a share of the wall time above 0 and up to 1.")
        if not 0 < self.pause_timeout < float("inf"):
            raise ValueError(f"pause_timeout is {self.pause_timeout!r}; expected a number of seconds above 0.")
        if isinstance(self.break_on, str):
            parse_condition(self.break_on)
        elif self.break_on is not None and not callable(self.break_on):
            raise ValueError(f"break_on is {type(self.break_on).__name__}; expected a condition or a function.")

    def described(self) -> dict[str, Any]:
        """For the run's meta."""
        return {
            "every": self.every,
            "share": self.share,
            "cost": self.cost,
            "modules": list(self.modules),
            "fingerprints": self.fingerprints,
        }


def measures_of(settings: Settings, parameters: Parameters, model: nn.Module) -> list[Measure]:
    """The groups of series of a preset, in the order in which they run."""
    known = _preset(settings, parameters, model)
    return [*known, Fingerprints(parameters)] if settings.fingerprints else known


def _preset(settings: Settings, parameters: Parameters, model: nn.Module) -> list[Measure]:
    light: list[Measure] = [
        GradientNorms(parameters), KeptGradients(parameters), Modes(parameters, model),
        EarlierGraphs(parameters, model), BrokenLoss(parameters),
    ]  # fmt: skip
    if settings.cost == "light":
        return light
    turns = Turns(1 if settings.cost == "full" else APART)
    hidden = HiddenKeys(parameters, model)
    attending = Attending(parameters, model, turns, hidden)
    headroom = Headroom(parameters)
    readers = [
        Activations(parameters), EffectiveRank(parameters), States(parameters), CarriedSteps(parameters), headroom,
        Gates(parameters), FreshStates(parameters), hidden, attending,
    ]  # fmt: skip
    calls = ModuleCalls(parameters, model, settings.modules, readers, turns)
    updates = Updates(parameters)
    ring = Ring(parameters, model, updates)
    known = [
        *light,
        ring,
        ClippedNorms(parameters),
        updates,
        Checksums(parameters),
        Pairs(parameters, model),
        AdamState(parameters),
        calls,
        *readers,
        Padding(parameters, model),
        Continuing(parameters, model),
        LossTargets(parameters, Turns(1) if settings.cost == "full" else Turns(APART, BEGINNING)),
        UnusedRows(parameters, model),
        ReadAhead(parameters),
        ScoreFacts(parameters),
    ]
    return known if settings.cost == "normal" else [*known, Exponents(parameters), Spectra(parameters, model)]
