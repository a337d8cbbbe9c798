"""A sink that is a list of what it got, with what tests ask of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.records import Channel, Labels, Page, Refusal, Scalar


class Listed(list[Any]):
    """Every record in order."""

    def write(self, record: Any) -> None:
        """Keep a record."""
        self.append(record)

    def of(self, kind: type[Any]) -> list[Any]:
        """All records of a class."""
        return [record for record in self if isinstance(record, kind)]

    def names(self) -> set[str]:
        """Names of the channels."""
        return {channel.name for channel in self.of(Channel)}

    def channel(self, name: str) -> Channel:
        """The channel of a name."""
        return next(channel for channel in self.of(Channel) if channel.name == name)

    def array(self, name: str) -> npt.NDArray[Any]:
        """A channel in its own type, put together from its pages; its fill where there is none."""
        channel, pages = self.channel(name), [page for page in self.of(Page) if page.channel == name]
        shape = tuple(max(p.offset[n] + p.array.shape[n] for p in pages) for n in range(len(channel.dims)))
        whole = tuple(own if size is None else size for own, size in zip(shape, channel.shape, strict=True))
        fill = channel.fill if channel.fill is not None else np.nan if "float" in channel.dtype else 0
        out = np.full(whole, fill, channel.dtype)
        for page in pages:
            out[tuple(slice(o, o + n) for o, n in zip(page.offset, page.array.shape, strict=True))] = page.array
        return out

    def labels(self, domain: str) -> tuple[str, ...]:
        """Names along a domain."""
        return tuple(name for record in self.of(Labels) if record.domain == domain for name in record.names)

    def refusals(self) -> dict[str, str]:
        """Why, by channel."""
        return {record.channel: record.reason for record in self.of(Refusal)}

    def scalars(self) -> dict[str, float]:
        """Numbers by name."""
        return {record.name: record.value for record in self.of(Scalar)}
