"""The only path from torch to the capture: declares channels, writes pages, reports progress, notices a cancel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inspector.engine.errors import CancelledError
from inspector.records import LOSS_UNIT, Axis, Channel, Labels, Page, Refusal, Scalar

DERIVATIVES = (
    "jacobian/frobenius", "jacobian/spectral", "jacobian/carousel", "jacobian/eigenvalues", "jacobian/singular_values",
    "jacobian/isometry", "jacobian/lag", "lyapunov/", "path/", "mask/", "fixed_points",
)  # fmt: skip
"""Signals made of the derivatives of steps as functions, with the whole of what a model detaches."""


class Sink(Protocol):
    """Where the emitter writes: a capture writer, or a list in a test."""

    def write(self, record: Any) -> None:
        """Take one record (Channel, Page, Labels, Scalar, Refusal, Log, …)."""


def to_numpy(tensor: Tensor) -> npt.NDArray[Any]:
    """A detached tensor as a contiguous numpy array on the CPU; bfloat16 widened to float32 (exact)."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    return np.ascontiguousarray(tensor.cpu().numpy())


@dataclass(slots=True)
class Emitter:
    """Writes the channels of one frame. `cancelled` is called between pages; `progress` gets (done, total, text).

    With `copies` values are copied before they are written: the caller continues to use its tensors while pages wait.
    """

    sink: Sink
    frame: int = 0
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[float, float, str], None] = lambda _done, _total, _text: None
    copies: bool = False
    declared: dict[str, Channel] = field(default_factory=dict)
    step_domains: dict[str, str] = field(default_factory=dict)
    """Place → step axis of its channels, where that is not the input's (engine/trace/target_steps.py)."""
    axes: set[str] = field(default_factory=set)
    """Names of the axes that were described."""
    loss_unit: str = "1"
    """The unit of the loss (engine/trace/loss_unit.py), as soon as there is one."""
    across: dict[str, str] = field(default_factory=dict)
    """Place → what the method of derivatives of its steps ends with."""
    refused: set[tuple[str, str]] = field(default_factory=set)
    """(channel, reason) of what is missing: what was interrupted and is computed again gives it only once."""
    early: dict[str, Page] | None = field(default_factory=dict)
    """The first row of the newest page of each channel until axes are known; None once they are."""

    def channel(self, channel: Channel) -> None:
        """Declare a channel once, in the unit of the loss where that is its own; a second declaration of the same name
        is ignored."""
        if channel.name not in self.declared:
            self.describe(channel)

    def describe(self, channel: Channel) -> bool:
        """Declare a channel, or describe again one that was declared otherwise; whether that was so. A description
        applies to the pages that follow it."""
        before, now = self.declared.get(channel.name), self._completed(channel)
        if before == now:
            return False
        self.declared[now.name] = now
        domain = self.step_domains.get(now.place)
        self.sink.write(now if domain is None else now.over(domain))
        return before is not None

    def _completed(self, channel: Channel) -> Channel:
        """With the unit of the loss, and in the method of derivatives of steps what is said of them at their place."""
        if channel.unit == LOSS_UNIT:
            channel = replace(channel, unit=self.loss_unit)
        said = self.across.get(channel.place, "")
        if said and said not in channel.method and channel.signal.startswith(DERIVATIVES):
            channel = replace(channel, method=channel.method + said)
        return channel

    def moved_to_axes(self) -> None:
        """Describe again the channels that were written while the model ran, whose step axis is known only now.

        A description applies to the pages that follow it, so one row of each is written again.
        """
        early, self.early = self.early or {}, None
        for channel in self.declared.values():
            domain = self.step_domains.get(channel.place)
            if domain is not None and channel.step_domain not in ("", domain):
                self.sink.write(channel.over(domain))
                if channel.name in early:
                    self.sink.write(early[channel.name])

    def page(self, name: str, offset: Sequence[int], values: Tensor | npt.NDArray[Any]) -> None:
        """Write one block of a declared channel at `offset`. Raises CancelledError when the user has cancelled."""
        self.check()
        array = to_numpy(values) if isinstance(values, Tensor) else np.ascontiguousarray(values)
        array = self._as_declared(name, array.copy() if self.copies else array)
        self.sink.write(Page(name, self.frame, tuple(offset), array))
        early = self.early  # another thread may write while axes become known
        if early is not None and array.ndim:
            early[name] = Page(name, self.frame, tuple(offset), array[:1].copy())

    def _as_declared(self, name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Of the declared width where a script has changed torch's default dtype, which every new tensor then has."""
        declared = self.declared.get(name)
        if declared is None or torch.get_default_dtype() is torch.float32 or array.dtype.kind != "f":
            return array
        return array.astype(declared.dtype, copy=False)

    def array(self, channel: Channel, values: Tensor | npt.NDArray[Any]) -> None:
        """Declare a channel and write it whole, as one page."""
        self.channel(channel)
        self.page(channel.name, (0,) * len(channel.dims), values)

    def labels(self, domain: str, names: Sequence[str], *, every_frame: bool = False, first: int = 0) -> None:
        """Name the positions of a label domain from `first` on, in chunks that stay small in the index."""
        frame = -1 if every_frame else self.frame
        for start in range(0, len(names), 4096):
            self.sink.write(Labels(domain, tuple(names[start : start + 4096]), frame, first + start))

    def axis(self, axis: Axis) -> None:
        """Describe an axis of this frame; a second description of the same name is ignored."""
        if axis.name not in self.axes:
            self.axes.add(axis.name)
            self.sink.write(replace(axis, frame=self.frame))

    def scalar(self, name: str, value: float) -> None:
        """One number of this frame."""
        self.sink.write(Scalar(name, self.frame, value))

    def refuse(self, name: str, reason: str) -> None:
        """Report why a channel is missing, once."""
        if (name, reason) in self.refused:
            return
        self.refused.add((name, reason))
        self.sink.write(Refusal(name, reason, self.frame))

    def check(self) -> None:
        """Raise CancelledError when the user has cancelled."""
        if self.cancelled():
            raise CancelledError

    def tell(self, done: float, whole: float) -> None:
        """How far what is being computed is: `done` of `whole`, in any unit."""
        self.progress(done, whole, "")
