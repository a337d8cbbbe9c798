"""Which two axes of a tensor are rows and columns, and where the other ones are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from PySide6.QtWidgets import QSpinBox, QWidget

from inspector.gui.widgets.controls import caption, chooser, set_options
from inspector.records.weights import MOST_AXES


class Slices:
    """Controls that are hidden for tensors of one or two axes. `changed()` after each choice."""

    def __init__(self, changed: Callable[[], object]) -> None:
        self._changed = changed
        self.axes = chooser([], "Axes of the tensor that are rows and columns")
        self.text = caption("Axes")
        self.spins = [QSpinBox() for _ in range(MOST_AXES - 2)]
        self.texts = [caption("") for _ in self.spins]
        for number, spin in enumerate(self.spins):
            spin.setAccessibleName(f"Place along cut axis {number + 1}")
            spin.valueChanged.connect(self._turned)
        self.axes.currentTextChanged.connect(self._turned)
        self.shape: tuple[int, ...] = ()
        self._silent = False
        self.show_shape(())

    @property
    def widgets(self) -> list[QWidget]:
        """In their order."""
        both = [widget for pair in zip(self.texts, self.spins, strict=True) for widget in pair]
        return [self.text, self.axes, *both]

    def show_shape(self, shape: Sequence[int]) -> None:
        """Offer the axes of a tensor of this shape."""
        shape = tuple(shape)
        if shape != self.shape:
            self._silent = True
            self.shape = shape
            pairs = [f"{rows} × {columns}" for rows, columns in combinations(range(len(shape)), 2)]
            set_options(self.axes, pairs[::-1] if len(shape) > 2 else [])
            self.axes.setCurrentIndex(0)
            self._silent = False
        self._arrange()

    def _arrange(self) -> None:
        """The axes that are cut, each with a place along it."""
        self.text.setVisible(len(self.shape) > 2)
        self.axes.setVisible(len(self.shape) > 2)
        others = self.others
        for number, (text, spin) in enumerate(zip(self.texts, self.spins, strict=True)):
            there = number < len(others)
            text.setVisible(there)
            spin.setVisible(there)
            if there:
                axis = others[number]
                text.setText(f"axis {axis} at")
                spin.setAccessibleName(f"Place along axis {axis}")
                spin.setToolTip(f"0 to {self.shape[axis] - 1:,}")
                self._silent = True
                spin.setRange(0, max(0, self.shape[axis] - 1))
                self._silent = False

    def _turned(self, *_: object) -> None:
        if not self._silent:
            self._arrange()
            self._changed()

    @property
    def pair(self) -> tuple[int, int]:
        """(axis of rows, axis of columns); rows are −1 where there is one axis."""
        if len(self.shape) < 2:
            return -1, 0
        if len(self.shape) == 2:
            return 0, 1
        rows, _, columns = self.axes.currentText().partition(" × ")
        return (int(rows), int(columns)) if columns else (len(self.shape) - 2, len(self.shape) - 1)

    @property
    def others(self) -> list[int]:
        """The axes that are cut."""
        return [axis for axis in range(len(self.shape)) if axis not in self.pair] if len(self.shape) > 2 else []

    @property
    def fixed(self) -> tuple[int, ...]:
        """The place along each of them."""
        return tuple(spin.value() for spin, _ in zip(self.spins, self.others, strict=False))
