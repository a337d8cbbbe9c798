"""A loss that is found and logged is one curve; the logged one is told apart where it differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import nn

import inspector
from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.training import Training


def trained(path: Path, log: Callable[[inspector.engine.watch.Watcher, torch.Tensor, int], None], every: int) -> Path:  # type: ignore[name-defined]
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, path, every=every, cost="light") as watcher:
        for n in range(30):
            loss = model(torch.randn(4, 3)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            log(watcher, loss, n + 1)
        assert watcher.error is None
    return path


@contextmanager
def shown(path: Path) -> Iterator[Training]:
    with open_capture(path) as capture:
        stage = Stage(capture, (1000, 700))
        made = stage.panel("training")
        assert isinstance(made, Training) and made.state == "figure", made._error.toPlainText()
        yield made
        stage.close()


def losses(panel: Training) -> list[str]:
    return [curve.name for curve in panel.curves if "loss" in curve.name]


def test_the_same_loss_is_one_curve_of_all_points(tmp_path: Path) -> None:
    path = trained(tmp_path / "a.inspect", lambda watcher, loss, n: watcher.log(loss=loss.item()), every=7)
    with shown(path) as panel:
        assert losses(panel) == ["loss"] and panel.groups[0] == "loss"
        assert panel.points["training:loss"].x.tolist() == list(range(1, 31)), "logged at each iteration"
        with open_capture(path) as capture:
            assert len(capture.array("training:loss")) == 5
        assert panel.shown[0].titleLabel.lines == ("loss",)
        assert len(panel.data()["training:loss"]) == 30


def test_a_loss_that_is_logged_now_and_then_does_not_take_points_away(tmp_path: Path) -> None:
    path = trained(
        tmp_path / "a.inspect", lambda watcher, loss, n: watcher.log(loss=loss) if n % 10 == 0 else None, every=1
    )
    with shown(path) as panel:
        assert losses(panel) == ["loss"] and len(panel.points["training:loss"].x) == 30


def test_what_a_library_logs_is_the_same_up_to_its_rounding(tmp_path: Path) -> None:
    path = trained(
        tmp_path / "a.inspect",
        lambda watcher, loss, n: watcher.log(**{"loss (logged)": round(loss.item(), 4)}) if n % 2 == 0 else None,
        every=1,
    )  # fmt: skip
    with shown(path) as panel:
        assert losses(panel) == ["loss"] and len(panel.points["training:loss"].x) == 30
    path = trained(
        tmp_path / "b.inspect",
        lambda watcher, loss, n: watcher.log(**{"loss (logged)": loss.item() + (n > 20)}),
        every=1,
    )
    with shown(path) as panel:
        assert losses(panel) == ["loss", "loss (logged)"] and panel.groups[0] == "loss"
        assert panel.points["training:logged[loss (logged)]"].x.tolist() == list(range(21, 31))


def test_another_loss_is_told_apart_where_it_differs(tmp_path: Path) -> None:
    """As where the mean over processes is found, and the loop logs its own."""
    path = trained(tmp_path / "a.inspect", lambda watcher, loss, n: None, every=1)
    from inspector.capture import Writer
    from inspector.records import Axis, Channel, Frame, Page, RunStart, RunStop

    with open_capture(path) as capture:
        values = capture.array("training:loss")
    other = values.copy()
    other[20:] *= 2
    with Writer(tmp_path / "b.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for axis in ("iteration", "iteration/logged"):
            writer.write(Axis(name=axis, title="iteration"))
            writer.write(Channel(name=f"training:{axis}", kind="coordinate", dims=("iteration",), shape=(None,),
                                 dtype="float64", title="iteration", domains={"iteration": axis}))  # fmt: skip
            writer.write(Page(f"training:{axis}", 0, (0,), np.arange(1.0, 31.0)))
        writer.write(Channel(name="training:loss", kind="series", dims=("iteration",), shape=(None,), dtype="float64",
                             title="loss"))  # fmt: skip
        writer.write(Page("training:loss", 0, (0,), values))
        writer.write(Channel(name="training:logged", kind="series", dims=("iteration", "statistic"), dtype="float64",
                             shape=(None, None), title="logged", labels={"statistic": ("loss",)},
                             domains={"iteration": "iteration/logged"}))  # fmt: skip
        writer.write(Page("training:logged", 0, (0, 0), np.ascontiguousarray(other[:, None])))
        writer.write(RunStop("done"))
    with shown(tmp_path / "b.inspect") as panel:
        assert losses(panel) == ["loss", "loss (logged)"] and panel.groups == ("loss",)
        assert len(panel.points["training:loss"].x) == 30
        assert panel.points["training:logged[loss]"].x.tolist() == list(range(21, 31))
        assert [name for _, name in panel.legends[0].entries] == ["loss", "loss (logged)"]
