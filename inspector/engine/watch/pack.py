"""The numbers of one recorded iteration: stacked on the device, copied to the host once, read when they are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Values = npt.NDArray[np.float64]
Finish = Callable[[Values, Sequence[int]], Values]


@dataclass(slots=True)
class Part:
    """Numbers of a table in some of its columns; `finish` turns sums into what the table shows, on the host."""

    table: str
    columns: Sequence[int]
    values: Tensor
    finish: Finish | None


class Pack:
    """Parts that were measured; the last one for a table and set of columns counts."""

    def __init__(self) -> None:
        self.parts: dict[tuple[str, tuple[int, ...]], Part] = {}
        self._sent: list[tuple[list[Part], Tensor]] = []
        self._event: torch.cuda.Event | None = None

    def add(self, table: str, columns: Sequence[int], values: Tensor, finish: Finish | None = None) -> None:
        """Numbers (n,) for n columns of a table, in place of earlier ones for the same columns."""
        if len(columns):
            self.parts[table, tuple(columns)] = Part(table, columns, values.detach().reshape(-1), finish)

    def send(self) -> None:
        """Begin the copy: one for each device."""
        by_device: dict[torch.device, list[Part]] = {}
        for part in self.parts.values():
            by_device.setdefault(part.values.device, []).append(part)
        for device, parts in by_device.items():
            wide = torch.float32 if device.type == "mps" else torch.float64
            flat = torch.cat([part.values.to(wide) for part in parts])
            if device.type == "cuda":
                kept = torch.empty(flat.shape, dtype=wide, pin_memory=True)
                flat = kept.copy_(flat, non_blocking=True)
                self._event = torch.cuda.Event()
                self._event.record()
            self._sent.append((parts, flat))
        self.parts.clear()

    @property
    def immediate(self) -> bool:
        """Whether reading waits for no device."""
        return all(flat.device.type == "cpu" for _, flat in self._sent) and self._event is None

    def read(self) -> dict[str, dict[int, float]]:
        """By table and column, finished. Waits for the copy where it has not arrived."""
        if self._event is not None:
            self._event.synchronize()
        found: dict[str, dict[int, float]] = {}
        for parts, flat in self._sent:
            numbers = flat.cpu().numpy().astype(np.float64)
            at = 0
            for part in parts:
                values = numbers[at : at + len(part.columns)]
                at += len(part.columns)
                shown = values if part.finish is None else part.finish(values, part.columns)
                found.setdefault(part.table, {}).update(zip(part.columns, shown.tolist(), strict=True))
        return found
