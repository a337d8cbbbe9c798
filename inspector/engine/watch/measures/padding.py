"""Whether the loss counts steps of padding: the gradient at the outputs of steps whose input is padding.

A loss that leaves padding out has no gradient there at all. What is padding is known where the model declares an id for
it (`padding_idx` of an embedding, `pad_token_id` of a configuration), and stands at the ends of its sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

from inspector.engine.model.tensors_within import tensors_within
from inspector.engine.watch.hooks import Passing
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.activations import at_least_float32
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import PLACE, About

STEPS, GRADIENT = f"{PLACE}:padding/steps", f"{PLACE}:padding/gradient"
EVERY, TIMES = 4, 8
"""Recorded iterations with padding from one time to the next, and how often it is looked at in all."""
ALSO = ("bos_token_id", "eos_token_id", "decoder_start_token_id")
"""Of a configuration: ids that mean something else too, where they are the one of padding."""
_METHOD = f"of the first call of the model, every {EVERY}th recorded iteration with padding, {TIMES} times at most"


class Padding(Measure):
    """Of a model that reads ids (b, t) and gives numbers for each step (b, t, …).

    Of several inputs of ids those count that have the steps of the output, a decoder's and not its source's; where more
    than one has, steps that are padding in each.
    """

    tables = (
        About(
            name=STEPS, title="steps that are padding", limits=(0, 1), method=_METHOD,
            formula="share of the steps of a batch whose input is the padding id, at the ends of sequences",
        ),
        About(
            name=GRADIENT, title="gradient of the loss at padding", limits=(0, 1), method=_METHOD,
            formula="Σ ‖∂L/∂y_t‖₂ over steps of padding / Σ over all, y_t the model's output at a step",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        self._ids = padding_ids(model)
        self._seen = self._made = 0
        self._padding: list[Tensor] = []

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Find the padding in what is read."""
        self._padding = []
        if not self._ids or self._made >= TIMES or STEPS in moment.extra:
            return
        ids = [one for one in tensors_within((*args, *kwargs.values())) if one.dim() == 2 and _whole(one)]
        found = [at_ends(one, self._ids) for n, one in enumerate(ids) if not n or _tokens(one)]
        if any(bool(one.any()) for one in found):
            moment.extra[STEPS] = True
            self._seen += 1
            self._padding = found if self._seen % EVERY == 1 else []

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """Read the gradient where it arrives."""
        padding, self._padding = self._padding, []
        for one in tensors_within(output) if padding else ():
            if one.requires_grad and one.dim() == 3:
                lies = _of_shape(padding, one.shape[:2])
                if lies is not None and bool(lies.any()):
                    self._made += 1
                    one.register_hook(Passing(partial(_arrived, ref(self), moment, lies)))
                    return

    def take_gradient(self, moment: Moment, padding: Tensor, gradient: Tensor) -> None:
        """Which part of the gradient at the outputs is at padding."""
        sizes = torch.linalg.vector_norm(gradient.detach(), dim=-1, dtype=at_least_float32(gradient))
        whole = float(sizes.sum())
        if whole > 0:  # NaN is none either
            moment.put(STEPS, 0, float(padding.float().mean()))
            moment.put(GRADIENT, 0, float(sizes[padding].sum()) / whole)


def _arrived(watching: ref[Padding], moment: Moment, padding: Tensor, gradient: Tensor) -> None:
    measure = watching()
    if measure is not None:
        measure.guard(measure.take_gradient, moment, padding, gradient)


def padding_ids(model: nn.Module) -> set[int]:
    """Ids that the model declares as padding and nothing else."""
    config = getattr(model, "config", None)
    declared = [one.padding_idx for one in model.modules() if isinstance(one, nn.Embedding)]
    declared.append(getattr(config, "pad_token_id", None))
    return {one for one in declared if isinstance(one, int)} - {getattr(config, name, None) for name in ALSO}


def at_ends(ids: Tensor, padding: set[int]) -> Tensor:
    """(b, t) True where a sequence has padding alone from there to its end, or from its beginning to there; none of a
    sequence of padding alone."""
    marked = torch.isin(ids, torch.tensor(sorted(padding), device=ids.device))
    behind = marked.flip(1).long().cumprod(1).flip(1).bool()
    return (behind | marked.long().cumprod(1).bool()) & ~marked.all(1, keepdim=True)


def _of_shape(padding: Sequence[Tensor], shape: Sequence[int]) -> Tensor | None:
    """What is padding in every input of that shape, as it is or turned; None where no input has it."""
    for lies in (list(padding), [one.T for one in padding]):
        fits = [one for one in lies if one.shape == shape]
        if fits:
            return torch.stack(fits).all(0)
    return None


def _tokens(one: Tensor) -> bool:
    """Whether a further input may be ids of tokens: a mask and segments are 0 and 1, positions rise by 1."""
    return int(one.max()) > 1 and not bool((one.diff() == 1).all())


def _whole(one: Tensor) -> bool:
    return one.dtype in (torch.int64, torch.int32) and one.shape[1] > 1
