"""The tree of modules: what its tooltips tell."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication

from inspector.capture import Writer, open_capture
from inspector.gui.window.docking.side_docks import ModelTree
from inspector.records import Frame, Place, RunStart, RunStop


def test_a_module_tells_its_parameters_and_those_of_the_modules_in_it(tmp_path: Path, qapp: QApplication) -> None:
    places = (
        Place(name="", module="Net", parameters=2), Place(name="rnn", module="Stack"),
        Place(name="rnn.0", module="GRU", parameters=1200), Place(name="rnn.1", module="GRU", parameters=34),
        Place(name="rnn2", module="Linear", parameters=500),
    )  # fmt: skip
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t", places=places)) as writer:
        writer.write(Frame(index=0))
        writer.write(RunStop("done"))
    tree = ModelTree()
    with open_capture(tmp_path / "a.inspect") as capture:
        tree.show_capture(capture)
    top = tree.tree.topLevelItem(0)
    assert top is not None
    rnn = top.child(0)
    told = [item.toolTip(0) for item in (top, rnn, rnn.child(1), top.child(1))]
    assert "2 parameters of its own, 1,736 with the modules in it" in told[0]
    assert "0 parameters of its own, 1,234 with the modules in it" in told[1]
    assert "34 parameters of its own" in told[2] and "with the modules" not in told[2]
    assert "500 parameters of its own" in told[3]
    tree.deleteLater()
