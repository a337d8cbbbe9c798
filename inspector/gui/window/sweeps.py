"""Folders of checkpoints, run on the model that the user names: their dialog, and what it knows of the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from inspector.gui.dialogs.sweep_dialog import Prefilled, SweepDialog
from inspector.gui.window.parts import Parts
from inspector.records import SEQUENCES, WEIGHTS, InputSpec, Load

NOT_ONE = (SEQUENCES, "spike", WEIGHTS)
"""Kinds of a run that is no single sequence, so that a sweep cannot repeat it."""


class Sweeps(QObject):
    """Of one window. `show(path)` shows a capture, `open_one(path)` opens a checkpoint alone."""

    def __init__(self, window: Parts, show: Callable[[str], None], open_one: Callable[[str], None]) -> None:
        super().__init__(window)
        self.window, self.show, self.open_one = window, show, open_one
        self.dialog: SweepDialog | None = None

    def ask(self, paths: Sequence[str] = ()) -> None:
        """Show the dialog, with checkpoints where some are given; while a sweep runs it shows how far that is."""
        if self.dialog is None:
            self.dialog = SweepDialog(self.window.session.sweeping, self.window)
            self.dialog.opened.connect(self._show)
            self.dialog.one.connect(lambda path: self.open_one(path))
        self.dialog.fill(list(paths), self._known())
        self.dialog.show()
        self.dialog.raise_()

    def _show(self, path: str) -> None:
        assert self.dialog is not None
        self.window.settings.set_text("subject", self.dialog.request().load.subject)
        self.show(path)

    def _known(self) -> Prefilled:
        session, settings = self.window.session, self.window.settings
        runs = session.loaded is not None and session.loaded.kind != WEIGHTS
        load = session.models.load if runs else None
        catalog = session.catalog
        return Prefilled(
            load=load if load is not None else Load(subject=settings.text("subject")),
            captures=str(session.runs.parent / "captures"), shown=self._shown(), also=session.known_also(),
            devices=catalog.devices if catalog is not None else ("cpu",),
        )  # fmt: skip

    def _shown(self) -> InputSpec | None:
        made = self.window.session.again_possible
        return made.request.input if made is not None and made.request.input.kind not in NOT_ONE else None
