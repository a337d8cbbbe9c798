"""What is painted by the widgets here, in words: screen readers and other programs ask Qt for it.

A widget that paints itself has a role of its own here, its present value and what it is about. Qt asks a factory for
the interface of a widget when somebody asks for it, not before; nothing is computed while no program does.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QAccessible, QAccessibleInterface, QAccessibleValueChangeEvent
from PySide6.QtWidgets import QAccessibleWidget, QWidget

Role, Text = QAccessible.Role, QAccessible.Text


class InWords:
    """Mixed into a widget that paints itself; the class is what the factory looks for."""

    accessible_role: QAccessible.Role = Role.Graphic

    def value_in_words(self) -> str:
        """What it shows now: the place of the cursor and the numbers there."""
        return ""

    def about_in_words(self) -> str:
        """What it is about, and how it is used."""
        return ""


class Described(QAccessibleWidget):
    """The interface of such a widget. Qt deletes it with the widget, or at the end of the application."""

    def text(self, kind: QAccessible.Text) -> str:
        """Name, value and description; where a program reads no values, the description begins with it."""
        widget: Any = self.object()
        if not isinstance(widget, InWords):
            return ""
        if kind == Text.Value:
            return widget.value_in_words()
        if kind == Text.Description:
            return ". ".join(filter(None, (widget.value_in_words(), widget.about_in_words())))
        return str(super().text(kind))


def describe_widgets() -> None:
    """Tell Qt of the interfaces; a second call changes nothing."""
    QAccessible.installFactory(_interface_of)


_given: list[Described] = []
"""PySide lets go of all interfaces at the end of the application. Where Qt has made one of its own before the factory
was installed, that is before Qt deletes them, and Python would delete what Qt then deletes again: a crash. PySide keeps
each until then too, so this costs one pointer for each."""


def _interface_of(_kind: str, asked: Any) -> QAccessibleInterface | None:
    if isinstance(asked, InWords) and isinstance(asked, QWidget):
        _given.append(made := Described(asked, asked.accessible_role, asked.accessibleName()))
        return made
    return None


def value_changed(widget: Any) -> None:
    """Tell programs that read the screen that a widget shows another value, if there are any."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleValueChangeEvent(widget, widget.value_in_words()))
