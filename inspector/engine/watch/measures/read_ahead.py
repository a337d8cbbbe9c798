"""Whether a model that is trained to say its next input, or that of the very step, can read it: asked only where its
loss says so.

The model is called again then, in evaluation mode and changed back afterwards, on the batch of the iteration with the
ids of its second half exchanged between sequences: outputs of the first half must stay as they are. Where targets are
the inputs of the very steps, the first output that may change does so in a model that copies: one that shifts its input
inside leaves it as it is, and in an autoencoder earlier ones change too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from inspector.engine.hooks.attributes import attributes_kept
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.tensors_within import tensors_within
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.watch.measure import Found, Measure, Moment
from inspector.engine.watch.measures.loss_targets import AHEAD, OF_INPUT, OWN, ids_of
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.processes.ranks import several
from inspector.engine.watch.tables import PLACE, About

READS, AT = f"{PLACE}:asked/reads_ahead", f"{PLACE}:asked/reads_ahead_step"
COPIES = f"{PLACE}:asked/reads_same"
MOVED = 1e-4
"""Of the largest output: less is rounding."""
SUSPECT = 0.25
"""Nats a token: hardly a text is predicted so well, and one that can be read is."""
TIMES = 2
"""Of a training; the model is called three times each."""


class ReadAhead(Measure):
    """Of models that read ids (b, t) and are asked for the next one."""

    tables = (
        About(
            name=READS, title="change of outputs when later inputs are replaced", scale="log",
            formula="max |y_s − y'_s| / max |y| over steps s before the first input that was replaced",
            method=f"the model itself in evaluation mode, where the loss is below {SUSPECT:g} nats and the targets are "
            f"the next inputs; {TIMES} times at most",
        ),
        About(
            name=COPIES, title="change of an output when the input of its own step is replaced", scale="log",
            formula="max |y_s − y'_s| / max |y| at the first step s of each sequence whose input differs; 0 where "
            "earlier outputs change too",
            method=f"the same, where the targets are the inputs of the very steps; {TIMES} times at most",
        ),
        About(name=AT, title="the furthest that such an output lies ahead", unit="step", formula="first input − s"),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._made = 0
        self._suspect, self._same, self._number = False, False, 0
        self._call: tuple[nn.Module, Any, Any, Tensor] | None = None

    def derive(self, moment: Moment, found: Found) -> None:
        """Whether the last numbers of the loss are suspicious."""
        own, ahead = found.get(OWN, {}).get(0), found.get(AHEAD, {})
        if own is not None and ahead and self._made < TIMES and not several():
            self._same = ahead.get(0) == 1.0 and ahead.get(1) != 1.0
            self._suspect = own < SUSPECT and 1.0 in (ahead.get(0), ahead.get(1))
            self._number = int(found.get(OF_INPUT, {}).get(0, 0))

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Remember the call."""
        if self._suspect and self._call is None:
            ids = next(iter(ids_of(args, kwargs)[self._number :]), None)
            if ids is not None and len(ids) > 1 and ids.shape[1] > 3:
                self._call = model, args, dict(kwargs), ids

    def ends(self, moment: Moment) -> None:
        """Ask, once gradients and weights are no longer in use."""
        call, self._call = self._call, None
        if call is None or not self._suspect:
            return
        self._made, self._suspect = self._made + 1, False
        try:
            found = changes(*call)
        except Exception as fault:  # noqa: BLE001 - a model of the user's may raise anything when it is called again
            self.say(f"Whether outputs depend on later inputs was not seen: {type(fault).__name__} in the model.")
            self._made = TIMES
            return
        if found is not None and self._same:
            moment.put(COPIES, 0, found.here if found.before <= MOVED else 0.0)
        elif found is not None:
            moment.put(READS, 0, found.before)
            moment.put(AT, 0, float(found.ahead))

    def over(self) -> None:
        """Hold nothing of the batch."""
        self._call = None


class Changes(NamedTuple):
    """The largest relative change of an output before the first input that is replaced, how many steps before it the
    first such output lies (0 for none), and the largest change at the step of the first input that differs."""

    before: float
    ahead: int
    here: float


def changes(model: nn.Module, args: Any, kwargs: Any, ids: Tensor) -> Changes | None:
    """None where outputs have no such steps, or differ from call to call."""
    first = ids.shape[1] // 2
    other = ids.clone()
    other[:, first:] = ids.roll(1, 0)[:, first:]
    answers = []
    for given in (ids, ids, other):
        exchanged = [_with(one, ids, given) for one in (args, kwargs)]
        with unchanged(model, 0), attributes_kept(model), uncompiled(model), as_in_training(), torch.no_grad():
            model.eval()
            answers.append(_answer(model(*exchanged[0], **exchanged[1]), ids))
    one, again, changed = answers
    if one is None or again is None or changed is None or not torch.equal(one, again):
        return None
    each = (one - changed).abs().flatten(2).amax(2) / one.abs().max().clamp(min=1e-30)
    moved = each[:, :first].amax(0)
    reached = torch.nonzero(moved > MOVED).flatten().tolist()
    differs = ids != other  # a separator may stand at the same step of all sequences
    begins = differs & (differs.cumsum(1) == 1)
    here = float(each[begins].max()) if bool(begins.any()) else 0.0
    return Changes(float(moved.max()), first - int(reached[0]) if reached else 0, here)


@contextmanager
def as_in_training() -> Iterator[None]:
    """torch's attention computed as it is in training. Its fast path of evaluation gives NaN for a row without keys,
    and of that, a layer later, for all rows: under an inverted mask nothing would be seen."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _with(value: Any, ids: Tensor, given: Tensor) -> Any:
    """The same arguments with other ids."""
    if value is ids:
        return given
    if type(value) in (list, tuple):
        return type(value)(_with(one, ids, given) for one in value)
    return {key: _with(one, ids, given) for key, one in value.items()} if type(value) is dict else value


def _answer(output: Any, ids: Tensor) -> Tensor | None:
    """The first output (b, t, …) along the ids."""
    fits = (one for one in tensors_within(output) if one.dim() > 2 and one.shape[:2] == ids.shape)
    found = next((one for one in fits if one.is_floating_point()), None)
    return None if found is None else found.double() if found.device.type != "mps" else found.float()
