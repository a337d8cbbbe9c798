"""The loop with which copies of a model are trained: that of its training as far as it is known."""

from __future__ import annotations

import math
from typing import Any
from urllib.parse import unquote

from inspector.engine.analyses.trial.lessons import own_training
from inspector.engine.analyses.trial.own_optimizer import OwnOptimizer, optimizer_of, recorded_optimizer
from inspector.engine.analyses.trial.trial_steps import Trial, stand_ins
from inspector.engine.analyses.trial.trial_training import Loop
from inspector.engine.errors import Unsupported
from inspector.records.json_text import read_json

USUAL = 0.001
"""The learning rate where neither the request nor the training says one: Adam's own default."""


def loop_of(trial: Trial, optimizer: str, rate: float | None, decay: float | None, recorded: str) -> Loop:
    """The loop that was asked for.

    optimizer: adam, adamw, sgd, or own: the one that `recorded` tells of, else the subject's, else adam.
    recorded: what a capture of the training knows, JSON in which %, @ and = are quoted; "" for nothing:
        {"optimizers": [{class, groups}], "clip": number or null, "source": words}.
    Raises Unsupported where that is no such text.
    """
    told = _read(recorded)
    training = own_training(trial.subject)
    said, clip = getattr(training, "rate", None), getattr(training, "clip", None)
    clip = clip if told.get("clip") is None else told["clip"]
    loop = Loop(clip=math.inf if clip is None else float(clip))
    if optimizer == "own":
        loop.own, loop.note = _own(trial, told)
    else:
        loop.optimizer = optimizer
    own = loop.own
    usual = own.rate if own is not None else USUAL if said is None else float(said)
    loop.rate = usual if rate is None else rate
    loop.decay = decay if decay is not None else own.decay if own is not None else 0.0
    if own is not None:
        loop.betas, loop.optimizer = own.betas or loop.betas, own.kind.__name__.lower()
    return loop


def _read(recorded: str) -> dict[str, Any]:
    try:
        found = read_json(unquote(recorded)) if recorded else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unsupported("What was recorded of the training's optimizer is no JSON object.")
    return found


def _own(trial: Trial, told: dict[str, Any]) -> tuple[OwnOptimizer | None, str]:
    """The training's own; or None, and why another one is taken where one is known that cannot be used."""
    names = {id(one): name for name, one in zip(trial.names, trial.parameters, strict=True)}
    try:
        if told.get("optimizers"):
            found = recorded_optimizer(told["optimizers"], trial.names, str(told.get("source", "")))
        elif trial.subject.optimizer is not None:
            found = optimizer_of(trial.subject.optimizer, names, "of the subject")
        else:
            return None, ""
        found.over(dict(zip(trial.names, stand_ins(trial.parameters), strict=True)))
    except Unsupported as reason:
        return None, f"in the place of the training's own: {reason}"
    except (KeyError, TypeError, ValueError, AttributeError):
        return None, "in the place of the training's own: what was recorded of it is damaged"
    return found, ""
