"""The damage of a capture: which channel, which cells, and why, as one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.records import Channel

Box = tuple[tuple[int, int], ...]
"""(first, stop) along every axis."""
PLURAL = {"query": "queries", "class": "classes"}


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is damaged.

    Attributes:
        channel: the channel's name; "" for what belongs to none (a note), or to one that is not known.
        frame: the frame's index; -1 where it is not known or does not matter.
        region: the cells that are lost, (first, stop) along each axis of the channel; None where that is not known.
        sentence: what is damaged and why.
        anywhere: whether cells of any channel may be lost: a page whose channel cannot be told.
    """

    channel: str
    frame: int
    region: Box | None
    sentence: str
    anywhere: bool = False

    def concerns(self, name: str, frame: int) -> bool:
        """Whether cells of a channel in a frame are lost, or may be."""
        return self.anywhere or (self.channel == name and self.frame in (-1, frame))


def where(channel: Channel, region: Box, extent: Sequence[int], frame: int, frames: int) -> str:
    """The cells of a region in words, without the axes that it covers whole: "rnn.l0:h, steps 128–255"."""
    parts = [channel.name]
    if frames > 1:
        parts.append(f"frame {frame}")
    for dim, (first, stop), length in zip(channel.dims, region, extent, strict=True):
        if (first, stop) == (0, length) and dim != channel.dims[0]:
            continue
        many = PLURAL.get(dim, f"{dim}s")
        parts.append(f"{dim} {first}" if stop == first + 1 else f"{many} {first}–{max(first, stop - 1)}")
    return ", ".join(parts)


def summary(found: Sequence[Damage]) -> str:
    """One line about all damage: how much there is, and the first of it; "" where there is none."""
    if not found:
        return ""
    what = "page" if all(one.region is not None for one in found) else "part"
    count = f"{len(found)} damaged {what}{'' if len(found) == 1 else 's'}"
    more = f" … and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{count}: {found[0].sentence.rstrip('.')}{more}."


def listed(found: Iterable[Damage], most: int) -> list[str]:
    """A sentence for each, and how many are left out beyond `most`."""
    sentences = [one.sentence for one in found]
    left = len(sentences) - most
    return sentences if left <= 0 else [*sentences[:most], f"… and {left:,} more."]
