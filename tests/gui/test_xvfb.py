"""A real window on a virtual screen: the demo as a user starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1440x900x24"], pass_fds=[write],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    time.sleep(0.2)
    yield f":{number}"
    server.terminate()
    server.wait()


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


@pytest.mark.xvfb
def test_the_command_itself_stands_and_ends_cleanly(screen: str) -> None:
    import signal

    environment = {**os.environ, "DISPLAY": screen, "QT_QPA_PLATFORM": "xcb"}
    process = subprocess.Popen([sys.executable, "-m", "inspector"], env=environment, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 0, told
    assert "Traceback" not in told
