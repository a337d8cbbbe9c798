"""A real window on a virtual screen: the demo as a user starts it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual_screen import display

from inspector.capture import open_capture
from inspector.gui.widgets.controls import number

DRIVE = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import inspector.gui.app as app
application = QApplication(["inspector"])
window = app.make_window()
window.show()
app.begin(window, [], demo=True)
def look():
    session = window.session
    if session.capture is not None and not session.running and "Done" in session.sentence:
        assert application.platformName() == "xcb"
        assert session.capture.status == "done"
        assert window.panels["states"].state == "figure"
        application.primaryScreen().grabWindow(0).save(sys.argv[1])
        timer.stop()
        window.close()
        application.quit()
timer = QTimer()
timer.timeout.connect(look)
timer.start(200)
QTimer.singleShot(90_000, application.quit)
application.exec()
"""


@pytest.fixture
def screen() -> Iterator[str]:
    """A display number of a fresh Xvfb."""
    with display("1440x900") as number:
        yield number


def drive(screen: str, script: str, *arguments: str, **environment: str) -> str:
    """What a script says that drives a window of its own on a display."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "DISPLAY": screen, "QT_QPA_PLATFORM": "xcb", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.xvfb
def test_the_demo_in_a_real_window(screen: str, tmp_path: Path) -> None:
    from PySide6.QtGui import QImage

    environment = {**os.environ, "DISPLAY": screen, "QT_QPA_PLATFORM": "xcb"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVE, str(tmp_path / "shot.png")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and (tmp_path / "shot.png").exists(), done.stdout + done.stderr
    image = QImage(str(tmp_path / "shot.png"))
    assert len({image.pixel(x, y) for x in range(0, image.width(), 9) for y in range(0, image.height(), 9)}) > 50


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.xvfb
def test_the_command_itself_stands_and_ends_cleanly(screen: str) -> None:
    import signal

    environment = {**os.environ, "DISPLAY": screen, "QT_QPA_PLATFORM": "xcb", "PYTHONFAULTHANDLER": "1"}
    process = subprocess.Popen([sys.executable, "-m", "inspector"], env=environment, stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    began = time.monotonic()
    ready = lambda: children.read_text() and catches(process.pid, signal.SIGINT)  # noqa: E731 - its worker, and its end
    while process.poll() is None and not ready() and time.monotonic() - began < 120:
        time.sleep(0.1)
    stands = process.poll() is None
    assert stands and children.read_text(), "the window ended: " + ("" if stands else process.communicate()[1])
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 0, told
    assert "Traceback" not in told


STAND = """
import json, sys
from PySide6.QtCore import QPoint, QRect
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
import inspector.gui.app as app
application = QApplication(["inspector"])
window = app.make_window()
window.session.start_worker = lambda: None
window.show()
QTest.qWait(400)
app.begin(window, sys.argv[1:2], demo=False)
QTest.qWait(400)
def area(rect):
    return [rect.x(), rect.y(), rect.width(), rect.height()]
def where(widget):
    return area(QRect(widget.mapToGlobal(QPoint(0, 0)), widget.size()))
"""
PLACES = (
    STAND
    + """
window.session.running = True
window.show_state()
QTest.qWait(200)
widgets = (window.input.go, window.readout, window.status.stop, window.status.worker, window.sequence.colour_by)
print(json.dumps({
    "room": area(application.primaryScreen().availableGeometry()), "frame": area(window.frameGeometry()),
    "widgets": [where(widget) for widget in widgets],
}))
window.session.running = False
window.close()
"""
)


def inside(area: list[int], room: list[int]) -> bool:
    return (
        area[0] >= room[0] and area[1] >= room[1]
        and area[0] + area[2] <= room[0] + room[2] and area[1] + area[3] <= room[1] + room[3]
    )  # fmt: skip


def stands_whole(found: dict[str, list[int]]) -> None:
    for area in (found["frame"], *found["widgets"]):
        assert inside(area, found["room"]), found
    assert found["frame"][2] > 0.9 * found["room"][2], "and uses the room there is"


@pytest.mark.xvfb
@pytest.mark.parametrize(("size", "manager"), [("1280x800", ""), ("1280x800", "openbox"), ("1024x700", "openbox")])
def test_the_window_stands_whole_on_a_small_screen(a_capture: Path, tmp_path: Path, size: str, manager: str) -> None:
    with display(size, manager) as number:
        stands_whole(json.loads(drive(number, PLACES, str(a_capture), XDG_CONFIG_HOME=str(tmp_path))))


@pytest.mark.xvfb
def test_a_window_remembered_on_a_larger_screen_stands_whole_on_a_smaller_one(a_capture: Path, tmp_path: Path) -> None:
    with display("1920x1200", "openbox") as number:
        drive(
            number, STAND + "window.resize(1800, 1100); QTest.qWait(200); window.close()", XDG_CONFIG_HOME=str(tmp_path)
        )
    with display("1280x800", "openbox") as number:
        stands_whole(json.loads(drive(number, PLACES, str(a_capture), XDG_CONFIG_HOME=str(tmp_path))))


POINT = (
    STAND
    + """
import subprocess
from PySide6.QtCore import QPointF
panel, cursor = window.panels["attention"], window.looking
window.docks["attention"].raise_()
QTest.qWait(400)
def at(head, query, key):
    scene = panel.row.plot.vb.mapViewToScene(QPointF(key, query))
    return panel.figure.viewport().mapToGlobal(panel.figure.mapFromScene(scene))
def thumbnail(head):
    return panel.figure.viewport().mapToGlobal(
        panel.figure.mapFromScene(panel.atlas.mapToScene(panel.atlas.cell_at(0, head).center())))
def tell(*words):
    subprocess.run(["xdotool", *map(str, words)], check=True)
    QTest.qWait(250)
found = []
for head, query, key in ((1, 40, 30), (0, 150, 20), (1, 199, 0)):
    tell("mousemove", thumbnail(head).x(), thumbnail(head).y(), "click", 1)
    place = at(head, query, key)
    tell("mousemove", place.x(), place.y())
    hovered = cursor.position
    tell("mousemove", place.x() + 300, place.y(), "mousemove", place.x(), place.y(), "click", 1)
    position = cursor.position
    rows = dict(panel.readout(position))
    weight = next(value for what, value in rows.items() if what.startswith("attention "))
    read = [window.readout.item(i, 0).text() for i in range(window.readout.rowCount())]
    tell("key", "Escape")  # the click has fixed query and key
    found.append([position.head, position.step, position.key, hovered.step, hovered.key, weight,
                  any(row.startswith(f"attention {position.step}") for row in read)])
print(json.dumps(found))
window.close()
"""
)


@pytest.mark.xvfb
def test_a_real_mouse_reads_the_weight_under_it(screen: str, a_capture: Path, tmp_path: Path) -> None:
    if shutil.which("xdotool") is None:
        pytest.skip("xdotool is not installed")
    found = json.loads(drive(screen, POINT, str(a_capture), XDG_CONFIG_HOME=str(tmp_path)))
    with open_capture(a_capture) as capture:
        weights = capture.array("attn:attention")
    for (head, query, key), (shown, step, where, hovered, hovered_key, weight, read) in zip(
        ((1, 40, 30), (0, 150, 20), (1, 199, 0)), found, strict=True
    ):
        assert shown == head and abs(step - query) <= 1 and abs(where - key) <= 1, "a pixel may be more than a step"
        assert (hovered, hovered_key) == (step, where) and read
        assert weight == number(weights[head, step, where])
