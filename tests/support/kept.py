"""A sink that keeps what a run writes, and finds it again by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.records import Channel, Page, Refusal, Scalar


class Kept:
    """What was written, in order."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def write(self, record: Any) -> None:
        """Keep a record."""
        self.records.append(record)

    def of(self, kind: type[Any]) -> list[Any]:
        """All records of a class."""
        return [record for record in self.records if isinstance(record, kind)]

    def channels(self) -> dict[str, Channel]:
        """Every channel by its name."""
        return {channel.name: channel for channel in self.of(Channel)}

    def channel(self, name: str) -> Channel:
        """The channel of a name, as it was declared first."""
        return next(channel for channel in self.of(Channel) if channel.name == name)

    def names(self) -> set[str]:
        """Names of the channels."""
        return set(self.channels())

    def array(self, name: str, frame: int = 0) -> npt.NDArray[Any]:
        """A channel put together from its pages; NaN where there is none."""
        pages = [page for page in self.of(Page) if page.channel == name and page.frame == frame]
        shape = [max(p.offset[n] + p.array.shape[n] for p in pages) for n in range(pages[0].array.ndim)]
        declared = self.channel(name).shape
        out = np.full([size if size is not None else n for size, n in zip(declared, shape, strict=True)], np.nan)
        for page in pages:
            out[tuple(slice(s, s + n) for s, n in zip(page.offset, page.array.shape, strict=True))] = page.array
        return out

    def scalar(self, name: str) -> float:
        """The first value of a scalar."""
        return float(next(scalar.value for scalar in self.of(Scalar) if scalar.name == name))

    def refusals(self) -> list[Refusal]:
        """What was refused."""
        return self.of(Refusal)

    def reasons(self) -> list[str]:
        """Why."""
        return [refusal.reason for refusal in self.refusals()]


def uncut(kept: Kept) -> list[str]:
    """Why something was refused, without the notes of where a model cuts the gradient of a state."""
    return [
        one.reason
        for one in kept.refusals()
        if not one.channel.endswith(("gradient/past_cuts", "gradient/detached_parts"))
    ]
