"""Progress of what the window does itself: between two panels it is painted, and can be cancelled."""

from __future__ import annotations

from types import TracebackType

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QProgressDialog, QWidget


class StoppedError(Exception):
    """Cancel was pressed."""


class BetweenPanels:
    """A dialog with Cancel while the block runs; nothing else of the window can be pressed meanwhile."""

    def __init__(self, window: QWidget, title: str, total: int) -> None:
        self.dialog = QProgressDialog("", "Cancel", 0, total, window)
        self.dialog.setWindowTitle(title)
        self.dialog.setWindowModality(Qt.WindowModality.WindowModal)
        self.dialog.setMinimumDuration(0)
        self.dialog.setAutoReset(False)
        self.dialog.setAutoClose(False)
        self._total, self._done = total, 0

    def __enter__(self) -> BetweenPanels:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.dialog.close()
        self.dialog.deleteLater()

    def next(self, text: str) -> None:
        """One more begins.

        Raises StoppedError.
        """
        self.dialog.setLabelText(f"{text}: {self._done:,} of {self._total:,}")
        self.dialog.setValue(self._done)
        QApplication.processEvents()  # the first value is that of before, for which none would come
        self._done += 1
        if self.dialog.wasCanceled():
            raise StoppedError(text)
