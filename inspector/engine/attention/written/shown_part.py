"""Which part of a sum of products is shown: that of the selected sample, over all keys where they lay in windows."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.layout import Layout
from inspector.engine.attention.written.own_keys import with_own_keys
from inspector.engine.attention.written.windows import WHOLE, Place, Windows, place_of, windows_of


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A layout as it is shown.

    Attributes:
        given: as the model computes it; whole: over all keys.
        windows: of its keys, None where they lie in none; own_keys: where each query has keys of its own.
    """

    given: Layout
    whole: Layout
    windows: Windows | None = None
    own_keys: Layout | None = None

    @classmethod
    def of(cls, selected: SelectedSample, layout: Layout) -> ShownPart:
        """Of a layout. Raises Unsupported for windows that cannot be shown."""
        windows = windows_of(layout)
        if windows is not None:
            return cls(layout, windows.over_all(selected), windows)
        return cls(layout, layout, None, with_own_keys(selected, layout))

    @property
    def shown(self) -> Layout:
        """That whose rows and columns are drawn."""
        return self.own_keys or self.whole

    @property
    def as_given(self) -> bool:
        """Whether it is shown as the model computes it."""
        return self.shown is self.given

    def part(self, one: Tensor, fill: float) -> Tensor:
        """(1, a, q, k) of the weights or a companion of them; `fill` outside windows."""
        return self.shown.of_weights(one if self.windows is None else self.windows.spread(one, fill))

    def place(self, selected: SelectedSample, part: Tensor) -> Place:
        """Which of its keys are steps."""
        return WHOLE if self.windows is None else place_of(self.windows, selected, part)
