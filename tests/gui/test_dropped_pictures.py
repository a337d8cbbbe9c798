"""A picture that is dropped on the window goes into the model that is open; one that cannot be read is one sentence."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from opened import finish, opened
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication

from inspector.gui.window.main_window import Window
from inspector.records import InputSpec
from sample_models import captions

images = pytest.importorskip("PIL.Image")


@pytest.fixture
def window(qtbot: object, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.open_sample("captions-vector", "", InputSpec(kind="example", value="in its own words"))
        finish(made, qtbot)
        yield made


def drop(window: Window, path: Path, qtbot: object) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    left = Qt.MouseButton.LeftButton
    window.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, Qt.KeyboardModifier.NoModifier))
    finish(window, qtbot)


def huge(path: Path) -> Path:
    """A PNG of a few bytes whose header says 60,000 × 60,000 pixels."""
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"")),
        (b"IEND", b""),
    )
    chunks = [struct.pack(">I", len(d)) + name + d + struct.pack(">I", zlib.crc32(name + d)) for name, d in parts]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    return path


def test_a_dropped_picture_is_read_and_captured(window: Window, qtbot: object, tmp_path: Path) -> None:
    page = np.full((40, 40), 255, np.uint8)
    page[4:20, 12:20] = 40
    images.fromarray(page).save(tmp_path / "two.png")
    drop(window, tmp_path / "two.png", qtbot)
    capture = window.session.capture
    assert capture is not None and capture.status == "done"
    wanted = captions.pixels(np.repeat(page[..., None], 3, 2))
    np.testing.assert_allclose(capture.array("input:image"), wanted, atol=1e-6)
    assert 1 <= len(capture.labels("answer step")) <= captions.LONGEST


@pytest.mark.filterwarnings("ignore:Image size")
def test_a_picture_that_cannot_be_read_is_one_sentence(window: Window, qtbot: object, tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    for path in (broken, huge(tmp_path / "huge.png")):
        drop(window, path, qtbot)
        said = window.session.sentence + window.input.problem.text()
        assert path.name in said and "\n" not in said, said
