"""Which panel comes to the front where the one on top has nothing: figures of a model first, what every run has last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import finish, opened

from inspector.capture import Writer
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.background import Rest
from inspector.gui.window.main_window import Window
from inspector.records import Channel, Frame, InputSpec, Page, RunStart, RunStop

IDS = Channel(name="input:ids", kind="input", dims=("step",), shape=(4,), title="input")
GRADIENT = Channel(name="rnn.l0:gradient", kind="gradient", dims=("step",), shape=(4,), title="gradient")
ATTENTION = Channel(
    name="a:attention", kind="attention", dims=("head", "query", "key"), shape=(1, 4, 4), title="attention",
    limits=(0, 1),
)  # fmt: skip


@pytest.fixture
def window(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    with opened(qtbot) as made:
        made._ticker.stop()
        monkeypatch.setattr(made, "say_what_remains", lambda: None)  # the tests say what is left to compute
        yield made


def small(path: Path, *channels: Channel) -> Path:
    """A capture of these channels, its numbers all one."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for channel in channels:
            writer.write(channel)
            writer.write(
                Page(channel.name, 0, (0,) * len(channel.dims), np.full_like(np.empty(channel.shape), 0.25, np.float32))
            )
        writer.write(RunStop("done"))
    return path


def shown(window: Window, path: Path, qtbot: Any, front: str) -> None:
    window.open_capture(str(path))
    window.docking.give_way(window.session.capture)
    qtbot.waitUntil(lambda: front in window.docking.seen, timeout=30_000)
    qtbot.wait(50)
    assert front in window.docking.seen


def test_what_the_model_reads_comes_forward_only_where_nothing_else_does(
    window: Window, tmp_path: Path, qtbot: Any
) -> None:
    shown(window, small(tmp_path / "b.inspect", IDS), qtbot, "inputs")
    window.docks["states"].raise_()
    qtbot.waitUntil(lambda: "states" in window.docking.seen, timeout=30_000)
    shown(window, small(tmp_path / "a.inspect", IDS, ATTENTION, GRADIENT), qtbot, "attention")
    assert {key for key in PANELS if PANELS[key].forward_last} == {"inputs", "lens"}


def test_a_panel_in_which_one_asks_first_never_comes_forward(window: Window, tmp_path: Path, qtbot: Any) -> None:
    words = Channel(
        name="input:ids", kind="input", dims=("step",), shape=(4,), title="t", labels={"step": tuple("abcd")}
    )
    shown(window, small(tmp_path / "a.inspect", words, GRADIENT), qtbot, "gradients")
    assert "ask" not in window.docking.seen


COMING = Rest(present="jacobian/spectral_norm")


@pytest.mark.parametrize(
    ("asked", "front"), [("", "gradients"), ("jacobians", "jacobians")], ids=["nobody", "a person"]
)
def test_what_was_waited_for_in_vain_gives_way_once_nothing_more_comes(
    window: Window, tmp_path: Path, qtbot: Any, asked: str, front: str
) -> None:
    window.open_capture(str(small(tmp_path / "a.inspect", GRADIENT)))
    window.panels["jacobians"].say_remaining(COMING)
    window.docking.give_way(window.session.capture)
    qtbot.wait(50)
    assert "jacobians" in window.docking.seen, "its numbers may still come"
    if asked:
        window.docking.show_panel(asked)
    window.docking.give_way(window.session.capture)
    qtbot.wait(50)
    assert "jacobians" in window.docking.seen, "they are not there yet"
    window.panels["jacobians"].say_remaining(Rest())
    window.docking.give_way(window.session.capture)
    qtbot.waitUntil(lambda: front in window.docking.seen, timeout=30_000)
    qtbot.wait(50)
    assert front in window.docking.seen


def test_a_panel_that_was_chosen_meanwhile_is_left_alone(window: Window, tmp_path: Path, qtbot: Any) -> None:
    window.open_capture(str(small(tmp_path / "a.inspect", GRADIENT)))
    window.panels["jacobians"].say_remaining(COMING)
    window.docking.give_way(window.session.capture)
    window.docks["depth"].raise_()
    qtbot.waitUntil(lambda: "depth" in window.docking.seen, timeout=30_000)
    window.panels["jacobians"].say_remaining(Rest())
    window.docking.give_way(window.session.capture)
    qtbot.wait(100)
    assert "depth" in window.docking.seen and "gradients" not in window.docking.seen


def test_a_transformer_opens_on_its_attention(qtbot: Any) -> None:
    """With a worker: its step Jacobians are asked for in the background, and there are none."""
    with opened(qtbot) as window:
        window.open_sample("char-transformer", "", InputSpec(kind="text", value="Alice was"))
        finish(window, qtbot)
        qtbot.waitUntil(lambda: not {"states", "jacobians"} & window.docking.seen, timeout=120_000)
        assert "attention" in window.docking.seen


def test_what_the_overview_hid_before_it_gave_way_does_so_once_the_rows_are_back(
    window: Window, tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.open_capture(str(small(tmp_path / "a.inspect", ATTENTION, GRADIENT)))
    giving, held = window.docking.giving_way, list[Any]()
    with monkeypatch.context() as patched:
        patched.setattr(giving, "_go_on", lambda *turns: held.append(turns))
        giving.for_capture(window.session.capture)
    window.docking.show_panel("overview")  # it comes to the front before the first of these turns
    qtbot.waitUntil(lambda: "jacobians" not in window.docking.seen, timeout=30_000)
    giving._go_on(*held[0])
    qtbot.wait(50)
    window.docking.show_panel("attention")
    qtbot.waitUntil(lambda: "gradients" in window.docking.seen, timeout=30_000)
    assert "attention" in window.docking.seen
