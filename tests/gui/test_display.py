"""Whether a display answers: a name that is left over from one that has gone would end the process in Qt."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from captures import numbers, write

from inspector.gui.runtime import display

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there a display is always taken for given")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    yield
    display._let_go()


@pytest.mark.parametrize(
    "name", ["", ":60999", ":60999.0", "unix:60999", "localhost:59999", "rubbish", ":999999", ":", "\0:1"]
)
def test_a_name_where_nobody_answers_is_no_display(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(
        os, "environ", {"DISPLAY": name, "WAYLAND_DISPLAY": "wayland-none", "XDG_RUNTIME_DIR": "/nowhere"}
    )
    assert not display.has_display()
    os.environ["QT_QPA_PLATFORM"] = "xcb"
    assert not display.has_display()
    os.environ["QT_QPA_PLATFORM"] = "vnc:size=800x600"  # which asks none of them
    assert display.has_display()


def test_a_server_in_the_network_and_one_of_this_machine_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(display, "_X_PORT", server.getsockname()[1] - 3)
        monkeypatch.setenv("DISPLAY", "127.0.0.1:3.0")
        assert display.has_display()
    assert not display.has_display()
    monkeypatch.delenv("DISPLAY")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("WAYLAND_DISPLAY", "w")
    monkeypatch.chdir(tmp_path)  # a socket's name is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("w")
        server.listen()
        monkeypatch.setenv("XDG_RUNTIME_DIR", ".")
        assert display.has_display()
    assert not display.has_display()


def test_a_figure_is_drawn_where_the_display_has_gone(tmp_path: Path) -> None:
    write(tmp_path / "a.inspect", numbers(8, 3))
    done = subprocess.run(
        [sys.executable, "-m", "inspector", "export", "a.inspect", "--panel", "states", "--to", "a.png"],
        cwd=tmp_path, env={**os.environ, "DISPLAY": ":60999"}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and (tmp_path / "a.png").stat().st_size > 1000, done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "inspector", "a.inspect"],
        cwd=tmp_path, env={**os.environ, "DISPLAY": ":60999"}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.startswith("There is no display") and done.stderr.count("\n") == 1
