"""A plot without the form of controls that pyqtgraph hides in each of its own: it takes half the time to make."""

from __future__ import annotations

import atexit
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pyqtgraph as pg
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from inspector.gui.widgets.plots.quiet_axis import QuietAxis

_home: Any = importlib.import_module("pyqtgraph.graphicsItems.PlotItem.PlotItem")
"""The module whose names are other ones while a plot is made; a plot is made by the window's thread only."""


_MADE: WeakSet[BarePlot] = WeakSet()


@atexit.register
def _settle_all() -> None:
    """Qt destroys what is left of the plots at the end of the process. An axis that has not got the height that it
    wants would be laid out anew as its plot goes, and its method in Python be called: a crash ends the process then."""
    for plot in list(_MADE):
        if isValid(plot):
            plot.layout.activate()


class BarePlot(pg.PlotItem):  # type: ignore[misc]
    """A PlotItem whose menu cannot be opened, so that its 35 widgets and seven menus are not made.

    What the menu would choose stays as pyqtgraph has it at first. Counter-example: `showGrid` or `setDownsampling`
    write into that form and raise AttributeError here; an item has its own `setDownsampling`.
    """

    def __init__(self, **options: Any) -> None:
        with _without_forms():
            super().__init__(enableMenu=False, **options)
        _MADE.add(self)

    def resizeEvent(self, event: Any) -> None:
        """The label of the horizontal axis stands elsewhere in a low plot."""
        super().resizeEvent(event)
        bottom = self.axes["bottom"]["item"] if "bottom" in self.axes else None
        if isinstance(bottom, QuietAxis):
            bottom.fit_into(self)

    def updateParamList(self) -> None:
        """Nothing: it lists in the form what curves could be averaged by, for each new curve of all of them."""


class _Nothing:
    """Stands where a menu or a group of widgets would; whatever is done with it does nothing."""

    def __init__(self, *_of: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def _nothing(*_of: Any) -> _Nothing:
    return _Nothing()


class _Choice:
    """What one control of the form says as long as nobody touches it."""

    toggled = valueChanged = itemClicked = SimpleNamespace(connect=_nothing)

    def __init__(self, control: Any) -> None:
        for name in ("isChecked", "value", "maximum", "count"):
            if (read := getattr(control, name, None)) is not None:
                setattr(self, name, partial(_same, read()))


def _same(told: Any) -> Any:
    return told


class _Form:
    """The form: each control by its name."""

    def setupUi(self, _form: Any) -> None:
        self.__dict__.update(_choices())


@cache
def _choices() -> dict[str, _Choice]:
    """What every control says in a form of pyqtgraph's, which is made once for that."""
    form, page = _home.ui_template.Ui_Form(), QWidget()
    form.setupUi(page)
    return {name: _Choice(control) for name, control in vars(form).items()}


class _Widgets(_Nothing):
    """QtWidgets, with nothing for what a menu is made of."""

    QWidget = QMenu = QWidgetAction = _Nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __init__(self, real: Any) -> None:
        self._real = real


@contextmanager
def _without_forms() -> Iterator[None]:
    _choices()
    put = {
        "ui_template": SimpleNamespace(Ui_Form=_Form), "WidgetGroup": _Nothing, "AxisItem": QuietAxis,
        "QtWidgets": _Widgets(_home.QtWidgets),
    }  # fmt: skip
    kept = {name: getattr(_home, name) for name in put}
    try:
        vars(_home).update(put)
        yield
    finally:
        vars(_home).update(kept)
