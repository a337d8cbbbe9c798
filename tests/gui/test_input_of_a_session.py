"""What a session or the run before had stands in the row of the input, to be changed and run again."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.engine.session.catalogue import catalog
from inspector.gui.state.offered import Offered
from inspector.gui.window.bars.input_bar import InputBar
from inspector.records import InputSpec, Loaded


@pytest.fixture
def bar(qapp: QApplication) -> InputBar:
    made = InputBar()
    made.set_offered(Offered(catalog()))
    made.set_loaded(Loaded(subject="m.py:make", title="m", kind="vectors", width=3, examples=("one", "two")))
    return made


@pytest.mark.parametrize("kind, value, options", [
    ("generated", "noise", {"steps": 12}), ("generated", "sine", {"period": 7.5}), ("vectors", "0 1 2; 3 4 5", {}),
    ("file", "x.npy", {}), ("sequences", "folder", {"lines": True}), ("example", "two", {}),
])  # fmt: skip
def test_the_row_shows_what_ran_and_runs_it_again(
    bar: InputBar, tmp_path: Path, kind: str, value: str, options: dict[str, object]
) -> None:
    spec = InputSpec(kind=kind, value=value, options=options)
    bar.show_spec(spec)
    assert bar.spec() == spec and not bar.typed


def test_what_was_typed_meanwhile_stays(bar: InputBar) -> None:
    bar.kind.setCurrentIndex(bar.kind.findData("vectors"))
    QTest.keyClicks(bar.line, "1 2 3")
    bar.show_spec(InputSpec(kind="generated", value="noise", options={"steps": 12}))
    assert bar.spec() == InputSpec(kind="vectors", value="1 2 3")


@pytest.mark.parametrize("options", [{"steps": "many"}, {"steps": [1, 2]}, {"steps": -5}, {"no": "such"}])
def test_options_that_do_not_fit_leave_the_row_as_it_is(bar: InputBar, options: dict[str, object]) -> None:
    bar.show_spec(InputSpec(kind="generated", value="noise", options=options))
    assert bar.spec() == InputSpec(kind="generated", value="noise")
    bar.show_spec(InputSpec(kind="generated", value="no such signal"))
    assert bar.spec() == InputSpec(kind="generated", value="noise")


@pytest.mark.parametrize("examples, kinds", [((), ["ids", "text"]), (("one",), ["example", "ids", "text"])])
def test_a_model_without_a_vocabulary_begins_with_ids(
    qapp: QApplication, examples: tuple[str, ...], kinds: list[str]
) -> None:
    bar = InputBar()
    bar.set_offered(Offered(catalog()))
    bar.set_loaded(Loaded(subject="m.py:make", kind="tokens", examples=examples, typed="ids"))
    assert [bar.kind.itemData(n) for n in range(len(kinds))] == kinds
    QTest.keyClicks(bar.line, "1 2 3")
    assert bar.typed_spec() == InputSpec(kind="ids", value="1 2 3")
    bar.set_loaded(Loaded(subject="m.py:make", kind="tokens", examples=examples, vocabulary=5))
    assert bar.kind.findData("text") < bar.kind.findData("ids"), "text, where it can be encoded"
