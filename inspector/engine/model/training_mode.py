"""What is said of a model at the beginning of its runs: that it was rebuilt, and which mode it runs in where its
numbers depend on that (dropout and batch norm in training mode)."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from inspector.engine.model.subject import Subject
from inspector.records import Log

MOST_NAMES = 4
IN_TRAINING = (
    "The model runs in training mode, as it was given: dropout draws its masks and batch norm uses the batch's own "
    "statistics ({}); call model.eval() before the run for evaluation mode."
)
SET_TO_EVAL = (
    "The model was made in training mode and runs in evaluation mode: no dropout, and batch norm with its running "
    "statistics ({}); to see training mode, give the model itself to inspector.run in Python."
)


def in_training(model: nn.Module) -> tuple[str, ...]:
    """The modules that compute something else in training mode, and are in it; a flag that code of the model's own
    reads is not seen."""
    return tuple(name or "model" for name, part in model.named_modules() if part.training and depends(part))


def depends(part: nn.Module) -> bool:
    """Whether a module computes something else in training mode."""
    if isinstance(part, _DropoutNd):
        return part.p > 0
    if isinstance(part, nn.RNNBase):
        return part.dropout > 0 and part.num_layers > 1
    return isinstance(part, _BatchNorm) or (isinstance(part, nn.MultiheadAttention) and part.dropout > 0)


def said_first(subject: Subject) -> list[Log]:
    """The first lines of the log of a run."""
    rebuilt = [Log(subject.rebuilt, "warning", "engine")] if subject.rebuilt else []
    return rebuilt + said_of_mode(subject)


def said_of_mode(subject: Subject) -> list[Log]:
    """One line for the log of a run whose numbers depend on the mode, with the modules; none of other runs."""
    found = in_training(subject.model)
    if found:
        return [Log(IN_TRAINING.format(_few(found)), "warning", "engine")]
    if subject.set_to_eval:
        return [Log(SET_TO_EVAL.format(_few(subject.set_to_eval)), "info", "engine")]
    return []


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")
