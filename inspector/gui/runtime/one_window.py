"""A second call with files hands them to the window that is open, which it raises, instead of opening another.

Each window has a local socket and a note beside it, in a folder of this user: on which display it is, in which version,
and which Python runs its models. A call that agrees in all three is taken by the window that was used last. What
arrives is read as paths and a position, nothing else; files that hold code ask before any of it runs, as dropped ones
do.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs
from PySide6.QtCore import QByteArray, QObject, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtNetwork import QLocalServer, QLocalSocket
from PySide6.QtWidgets import QApplication, QWidget

from inspector.capture.regular import read_text
from inspector.records import BadRecordError, ViewAt, decode, encode
from inspector.records.json_text import read_json
from inspector.transport.interpreter import chosen
from inspector.version import __version__

NOTE = ".window"
ANSWER_MS = 2000
"""How long a call waits for a window that may be busy; then it opens its own."""
LARGEST = 1 << 20
"""Bytes of one call."""
AGAIN_MS = 300
"""How often a window with a dialog open looks whether the files can be opened now."""
TAKEN = b"taken\n"
TOKENS = ("XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID")
"""What the desktop gives a program that it starts, by which a window may come to the front."""


@dataclass(frozen=True, slots=True)
class Like:
    """What a call and a window have to agree in."""

    display: str
    version: str
    python: str


def like_this(python: str | None) -> Like:
    """Of this process."""
    display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY") or ""
    return Like(display, __version__, chosen(python))


def folder() -> Path | None:
    """Where windows are listed, made where it is not there; None where it is not this user's alone."""
    with warnings.catch_warnings():  # without XDG_RUNTIME_DIR it says which other folder it takes
        warnings.simplefilter("ignore")
        where = Path(platformdirs.user_runtime_dir("inspector", appauthor=False))
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = where.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    mine = sys.platform == "win32" or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
    return where if mine else None


def hand_over(paths: Sequence[str], at: ViewAt, python: str | None) -> bool:
    """Whether an open window took the files. Windows that have ended without a word are taken off the list."""
    where = folder()
    if where is None:
        return False
    told = {"paths": [str(Path(path).absolute()) for path in paths], "at": encode(at).decode()}
    told["token"] = next((os.environ[name] for name in TOKENS if os.environ.get(name)), "")
    for note in sorted(where.glob("*" + NOTE), key=_last_used, reverse=True):
        server = _server_of(note, like_this(python))
        if server and _took(server, json.dumps(told).encode() + b"\n", note):
            return True
    return False


def _last_used(note: Path) -> float:
    try:
        return note.stat().st_mtime
    except OSError:
        return 0.0


def _server_of(note: Path, like: Like) -> str:
    """The name of a window's socket, or "" where it is another kind of window or none."""
    try:
        said = read_json(read_text(note))
        same = all(said.get(name) == value for name, value in asdict(like).items())
        return str(said["server"]) if same else ""
    except (OSError, ValueError, KeyError, AttributeError, RecursionError):
        return ""


def _took(server: str, call: bytes, note: Path) -> bool:
    socket = QLocalSocket()
    socket.connectToServer(server)
    if not socket.waitForConnected(ANSWER_MS):
        if socket.error() in (
            QLocalSocket.LocalSocketError.ConnectionRefusedError,
            QLocalSocket.LocalSocketError.ServerNotFoundError,
        ):
            QLocalServer.removeServer(server)
            note.unlink(missing_ok=True)
        return False
    socket.write(QByteArray(call))
    while socket.bytesToWrite() and socket.waitForBytesWritten(ANSWER_MS):
        pass
    answered = socket.waitForReadyRead(ANSWER_MS)
    return answered and socket.readAll().data() == TAKEN


class TakesFiles(QObject):
    """A window's end: listens from now on until `close`. `take(paths, position)` opens them."""

    def __init__(self, window: QWidget, take: Callable[[list[str], ViewAt], None], python: str | None) -> None:
        super().__init__(window)
        self._window, self._take, self._waiting = window, take, list[tuple[list[str], ViewAt]]()
        self._note: Path | None = None
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._connected)
        self._again = QTimer(self, interval=AGAIN_MS)
        self._again.timeout.connect(self._open_waiting)
        application = QApplication.instance()
        if isinstance(application, QGuiApplication):
            application.applicationStateChanged.connect(self._used)
        self._listen(like_this(python))

    def _listen(self, like: Like) -> None:
        where = folder()
        if where is None:
            return
        name = f"inspector-{os.getpid()}-{id(self):x}"
        server = name if sys.platform == "win32" else str(where / name)
        if not self._server.listen(
            server
        ):  # a path that is too long, for one: files are opened by windows of their own
            return
        note = where / f"{name}{NOTE}"
        self._note = note  # removed at the end also where not all of it could be written
        with contextlib.suppress(OSError):
            note.write_text(json.dumps({**asdict(like), "server": server}), encoding="utf-8")

    def close(self) -> None:
        """Take no more."""
        self._again.stop()
        self._server.close()
        if self._note is not None:
            with contextlib.suppress(OSError):
                self._note.unlink(missing_ok=True)
            self._note = None

    @Slot(Qt.ApplicationState)
    def _used(self, state: Qt.ApplicationState) -> None:
        if state == Qt.ApplicationState.ApplicationActive and self._note is not None:
            with contextlib.suppress(OSError):
                os.utime(self._note)

    @Slot()
    def _connected(self) -> None:
        socket = self._server.nextPendingConnection()
        socket.disconnected.connect(socket.deleteLater)
        socket.readyRead.connect(lambda: self._read(socket))
        self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        """A call is one line; what is longer than any call, or none, ends the connection."""
        if not socket.canReadLine():
            if socket.bytesAvailable() > LARGEST:
                socket.abort()
            return
        call = _call(bytes(socket.readLine(LARGEST).data()))
        if call is None:
            socket.abort()
            return
        paths, at, token = call
        socket.write(QByteArray(TAKEN))
        socket.flush()
        socket.disconnectFromServer()
        self._raise(token)
        self._waiting.append((paths, at))
        self._again.start()
        self._open_waiting()

    @Slot()
    def _open_waiting(self) -> None:
        """While a dialog is open nothing is opened behind it."""
        if QApplication.activeModalWidget() is not None:
            return
        self._again.stop()
        waiting, self._waiting = self._waiting, []
        for paths, at in waiting:
            self._take(paths, at)

    def _raise(self, token: str) -> None:
        if token:
            os.environ[TOKENS[0]] = token  # read and removed by Qt for Wayland
        window = self._window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()


def _call(line: bytes) -> tuple[list[str], ViewAt, str] | None:
    """Paths, position and token of a call, or None where it is none."""
    try:
        said = read_json(line)
        paths, at, token = said["paths"], decode(str(said["at"]).encode()), said.get("token", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadRecordError):
        return None
    fine = isinstance(paths, list) and all(isinstance(path, str) for path in paths) and isinstance(at, ViewAt)
    plain = isinstance(token, str) and "\0" not in token and len(token) < 1024
    return (paths, at, token if plain else "") if fine and paths else None
