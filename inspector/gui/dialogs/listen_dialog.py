"""Listens for trainings on other machines, and lists those that arrive."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDoubleSpinBox,
    QFormLayout,
    QLineEdit,
    QListWidget,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.state.listening import REACHED, Listening, Place
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.transport.network.address import DEFAULT_PORT, is_loopback

LOOK_MS = 500
HOW = (
    "A training sends its capture here with inspector.watch(model, optimizer, \"tcp://HOST:PORT/name\", secret=…). It "
    "listens until it is stopped or the window is closed, also while this dialog is not shown."
)  # fmt: skip
STATES = {True: "ended", False: "connected"}
GONE = "no connection, waited for"


class ListenDialog(QDialog):
    """Not modal. `opened(path)`: a capture is to be shown."""

    opened = Signal(str)

    def __init__(self, listening: Listening, folder: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Listen for trainings")
        self.listening = listening
        self._known: list[Path] = []
        self.folder, self.host, self.secret = QLineEdit(folder), QLineEdit("127.0.0.1"), QLineEdit()
        self.port, self.most = QSpinBox(), QDoubleSpinBox()
        self.port.setRange(0, 65535)
        self.port.setValue(DEFAULT_PORT)
        self.port.setToolTip("0: any that is free")
        self.most.setRange(0.1, 100_000)
        self.most.setValue(50.0)
        self.most.setSuffix(" GB")
        self.secret.setPlaceholderText("FOLDER/secret, made where it does not exist")
        self.switch, self.follow = QPushButton("Listen"), QCheckBox("Show each training that begins")
        self.follow.setChecked(True)
        self.said, self.warning = plain_label(""), plain_label("")
        self.list = QListWidget()
        self.list.setAccessibleName("Trainings that arrived")
        self._arrange()
        self.switch.clicked.connect(self._switch)
        self.host.textChanged.connect(self._warn)
        self.list.itemDoubleClicked.connect(lambda item: self._open(self.list.row(item)))
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        self._timer.start()
        self._show()

    def _arrange(self) -> None:
        how = plain_label(HOW)
        form = QFormLayout()
        self.fields: dict[str, QWidget] = {
            "Folder of the captures": self.folder, "Address": self.host, "Port": self.port,
            "File of the secret": self.secret, "Most in all": self.most,
        }  # fmt: skip
        for name, field in self.fields.items():
            field.setAccessibleName(name)
            form.addRow(name, field)
        layout = QVBoxLayout(self)
        layout.addWidget(how)
        layout.addLayout(form)
        for widget in (self.warning, self.switch, self.said, self.list, self.follow):
            layout.addWidget(widget)
        for label in (how, self.said, self.warning):
            label.setWordWrap(True)
        self.resize(620, 480)

    @property
    def place(self) -> Place:
        """What the fields say."""
        return Place(
            self.folder.text().strip(), self.host.text().strip() or "127.0.0.1", self.port.value(),
            self.secret.text().strip(), self.most.value(),
        )  # fmt: skip

    @Slot()
    def _switch(self) -> None:
        """Listen, or stop."""
        problem = ""
        if self.listening.on:
            self.listening.close()
        else:
            problem = self.listening.begin(self.place)
            self._known = []
        self._show()
        if problem:
            self.said.setText(clean(problem))

    def _show(self) -> None:
        on = self.listening.on
        self.switch.setText("Stop" if on else "Listen")
        for field in self.fields.values():
            field.setEnabled(not on)
        self.said.setText(clean(self.listening.sentence or "It does not listen."))
        self._warn()
        self.look()

    @Slot()
    def _warn(self) -> None:
        open_to_others = not is_loopback(self.host.text().strip() or "127.0.0.1")
        self.warning.setText(clean(REACHED) if open_to_others and not self.listening.on else "")
        self.warning.setVisible(bool(self.warning.text()))

    @Slot()
    def look(self) -> None:
        """What has arrived since."""
        found = self.listening.trainings()
        texts = [
            clean(f"{one.path.name}: {STATES[one.ended] if one.ended or one.connected else GONE}") for one in found
        ]
        if texts != [self.list.item(n).text() for n in range(self.list.count())]:
            row = self.list.currentRow()
            self.list.clear()
            self.list.addItems(texts)
            self.list.setCurrentRow(row)
        new = [one.path for one in found if one.path not in self._known]
        self._known += new
        if new and self.follow.isChecked():
            self.opened.emit(str(new[-1]))

    def _open(self, row: int) -> None:
        if 0 <= row < len(self._known):
            self.opened.emit(str(self._known[row]))
