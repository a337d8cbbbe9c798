"""What a panel may show of a capture is looked for once while the capture does not change, and again once it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from inspector.capture import Writer, open_capture
from inspector.gui.panel.run_toggle import filled
from inspector.records import Channel, Frame, Page, RunStart, RunStop

PAGE = np.ones((4, 2), np.float32)


def named(name: str) -> Channel:
    return Channel(name=name, kind="state", dims=("step", "unit"), shape=(None, 2), title=name)


class Asked:
    """Accepts every state, and counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def accepts(self, channel: Channel) -> bool:
        self.times += 1
        return channel.kind == "state"


def test_it_is_looked_for_again_when_something_came(tmp_path: Path) -> None:
    asked = Asked()
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for record in (named("a:h"), named("b:h"), Frame(index=0), Page("a:h", 0, (0, 0), PAGE)):
            writer.write(record)
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as capture:

            def names(frame: int = -1) -> list[str]:
                return [one.name for one in filled(capture, asked.accepts, frame)]

            assert names() == names() == ["a:h"] and asked.times == 2
            assert names(0) == ["a:h"] and names(1) == []
            filled(capture, asked.accepts, -1).clear()  # who asked may do with the list what it likes
            assert names() == ["a:h"]
            writer.write(Frame(index=1))
            writer.write(Page("b:h", 1, (0, 0), PAGE))
            writer.flush()
            assert names() == ["a:h"]
            capture.refresh()
            assert names() == ["a:h", "b:h"] and names(1) == ["b:h"]
            writer.write(RunStop("done"))


def test_a_damaged_page_counts_as_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for record in (named("a:h"), Frame(index=0), Page("a:h", 0, (0, 0), PAGE), RunStop("done")):
            writer.write(record)
    (pages,) = path.glob("pages*")
    data = bytearray(pages.read_bytes())
    data[3] ^= 1
    pages.write_bytes(bytes(data))
    with open_capture(path) as capture:
        before: Any = capture.changes
        assert capture.verify() and capture.changes > before
