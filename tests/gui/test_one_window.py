"""A second call hands its files to the window that is open: which window takes them, and what is never taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalServer, QLocalSocket
from PySide6.QtWidgets import QDialog, QWidget

from inspector.gui.runtime import one_window
from inspector.gui.runtime.icon import SIDES, app_icon
from inspector.gui.runtime.one_window import TakesFiles, folder, hand_over
from inspector.records import ViewAt

pytestmark = pytest.mark.qt_log_ignore("does not support raise")  # without a screen nothing is in front
Taken = list[tuple[list[str], ViewAt]]
CALL = """
import sys
from PySide6.QtCore import QCoreApplication
from inspector.gui.runtime.one_window import hand_over
from inspector.records import ViewAt
application = QCoreApplication([])
raise SystemExit(0 if hand_over(sys.argv[1:], ViewAt(panel="lags", steps=(2, 7)), None) else 3)
"""


@pytest.fixture(autouse=True)
def own_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short one: the path of a local socket has some hundred characters at most."""
    with tempfile.TemporaryDirectory(prefix="run-") as made:
        monkeypatch.setenv("XDG_RUNTIME_DIR", made)
        yield Path(made)


@pytest.fixture
def taking(qtbot: object) -> Iterator[tuple[TakesFiles, Taken, QWidget]]:
    """A window that keeps what it is given."""
    taken: Taken = []
    window = QWidget()
    qtbot.addWidget(window)
    end = TakesFiles(window, lambda paths, at: taken.append((paths, at)), None)
    yield end, taken, window
    end.close()


def call(qtbot: object, *paths: str, cwd: Path | None = None) -> int:
    """A second call, in a process of its own, while this one answers events."""
    process = subprocess.Popen([sys.executable, "-c", CALL, *paths], cwd=cwd)
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=30_000)
    return process.returncode


def test_files_of_a_second_call_are_opened_by_the_window_that_is_there(
    qtbot: object, taking: tuple[TakesFiles, Taken, QWidget], tmp_path: Path
) -> None:
    _, taken, window = taking
    assert call(qtbot, "a.inspect", "/b/c.pt", cwd=tmp_path) == 0
    qtbot.waitUntil(lambda: bool(taken))
    assert taken == [([str(tmp_path / "a.inspect"), "/b/c.pt"], ViewAt(panel="lags", steps=(2, 7)))]
    assert window.isVisible()


def test_while_a_dialog_asks_nothing_is_opened_behind_it(
    qtbot: object, taking: tuple[TakesFiles, Taken, QWidget]
) -> None:
    _, taken, window = taking
    dialog = QDialog(window)
    dialog.setModal(True)
    dialog.show()
    assert call(qtbot, "/a.inspect") == 0
    qtbot.wait(2 * one_window.AGAIN_MS)
    assert taken == []
    dialog.close()
    qtbot.waitUntil(lambda: bool(taken))


def test_windows_that_are_closed_or_were_killed_take_nothing(
    qtbot: object, taking: tuple[TakesFiles, Taken, QWidget]
) -> None:
    end, taken, _ = taking
    where = folder()
    assert where is not None
    (note,) = where.glob("*.window")
    killed = where / "killed.window"
    killed.write_text(json.dumps({**json.loads(note.read_text()), "server": str(where / "nobody")}))
    end.close()
    assert list(where.glob("*.window")) == [killed]
    assert not hand_over(["/a.inspect"], ViewAt(), None)
    assert list(where.glob("*.window")) == [], "a window that was killed is not asked again"
    assert not taken


def test_the_window_used_last_takes_them(qtbot: object, taking: tuple[TakesFiles, Taken, QWidget]) -> None:
    first, of_first, _ = taking
    of_second: Taken = []
    other = QWidget()
    qtbot.addWidget(other)
    second = TakesFiles(other, lambda paths, at: of_second.append((paths, at)), None)
    for number, end in enumerate((second, first)):
        os.utime(end._note, (1e9 + number, 1e9 + number))
    assert call(qtbot, "/a") == 0
    qtbot.waitUntil(lambda: bool(of_first))
    os.utime(second._note)
    assert call(qtbot, "/b") == 0
    qtbot.waitUntil(lambda: bool(of_second))
    assert [paths for paths, _ in of_first] == [["/a"]]
    second.close()


@pytest.mark.parametrize("other", [("DISPLAY", ":77"), ("INSPECTOR_PYTHON", "/another/python")])
def test_a_window_on_another_display_or_with_another_python_does_not_take_them(
    qtbot: object, taking: tuple[TakesFiles, Taken, QWidget], monkeypatch: pytest.MonkeyPatch, other: tuple[str, str]
) -> None:
    monkeypatch.setenv(*other)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert call(qtbot, "/a") == 3
    assert not taking[1]


@pytest.mark.parametrize(
    "sent",
    [
        b"\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b'{"paths": "/etc/passwd", "at": "{}"}\n', b"[" * 100_000 + b"\n",
        b'{"paths": ["/a"], "at": "{\\"record\\": \\"Quit\\"}"}\n', b'{"paths": [1], "at": ""}\n',
        b"x" * (one_window.LARGEST + 10),
    ],
    ids=["empty", "list", "object", "bytes", "text for paths", "deep", "another record", "number", "endless"],
)  # fmt: skip
def test_what_is_no_call_ends_the_connection_and_opens_nothing(
    qtbot: object, taking: tuple[TakesFiles, Taken, QWidget], sent: bytes
) -> None:
    end, taken, _ = taking
    socket = QLocalSocket()
    socket.connectToServer(json.loads(end._note.read_text())["server"])
    assert socket.waitForConnected(2000)
    socket.write(sent)
    qtbot.waitUntil(lambda: socket.state() == QLocalSocket.LocalSocketState.UnconnectedState)
    assert not socket.readAll().data() and not taken


def test_a_folder_that_others_can_read_lists_no_windows(qtbot: object, own_runtime_folder: Path) -> None:
    where = own_runtime_folder / "inspector"
    where.mkdir()
    where.chmod(0o755)
    assert folder() is None and not hand_over(["/a"], ViewAt(), None)
    end = TakesFiles(QWidget(), lambda paths, at: None, None)
    assert not list(where.iterdir()) and end.findChildren(QLocalServer)[0].isListening() is False


def test_the_icon_is_drawn_in_every_size(qapp: object) -> None:
    icon = app_icon()
    assert sorted(size.width() for size in icon.availableSizes()) == sorted(SIDES)
    picture = icon.pixmap(64, 64).toImage()
    assert {picture.pixelColor(x, y).name() for x in range(64) for y in range(64)} >= {"#14213d", "#ffb703", "#ffffff"}
