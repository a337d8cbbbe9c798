"""A place, a unit or a head that a capture does not have is refused: a figure of another one would be drawn instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call

import inspector
from inspector.capture import CaptureError, Writer
from inspector.gui.export.what_is_there import check_view, known_part
from inspector.records import Channel, Frame, Page, Place, RunStart, RunStop, ViewAt


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells of 3 and 5 units, a map of two heads, and a table with a column for a parameter."""
    path = tmp_path_factory.mktemp("there") / "a.inspect"
    places = tuple(Place(name=name, module="Net") for name in ("", "rnn", "rnn.cell"))
    known: dict[str, tuple[str, tuple[str, ...], tuple[int, ...]]] = {
        "one:h": ("state", ("step", "unit"), (6, 3)),
        "two:h": ("state", ("step", "unit"), (6, 5)),
        "att:attention": ("attention", ("head", "query", "key"), (2, 6, 6)),
        "parameters:gradient/norm": ("series", ("iteration", "parameter"), (4, 1)),
    }
    with Writer(path, RunStart(run="r", title="t", places=places)) as writer:
        writer.write(Frame(index=0))
        for name, (kind, dims, shape) in known.items():
            labels = {"parameter": ("rnn.cell.bias",)} if "parameter" in dims else {}
            writer.write(Channel(name=name, kind=kind, dims=dims, shape=shape, title=name, labels=labels))
            writer.write(Page(name, 0, (0,) * len(shape), np.full(shape, 1 / 6, np.float32)))
        writer.write(RunStop("done"))
    return path


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "place": ({"panel": "states", "place": "typo"}, "States shows no place 'typo': it has one, two."),
    "place of another panel": ({"panel": "attention", "place": "one"}, "Attention shows no place 'one': it has att."),
    "unit": ({"panel": "states", "place": "one", "unit": 3},
             "There is no unit 3 of one: they are numbered 0 to 2."),
    "unit of none": ({"panel": "states", "unit": 5}, "There is no unit 5: they are numbered 0 to 4."),
    "head": ({"panel": "attention", "head": 77}, "There is no head 77: they are numbered 0 to 1."),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_there_is_refused_with_what_is(run: Path, what: str) -> None:
    asked, said = REFUSED[what]
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    done = call("export", "a.inspect", *words, "--to", f"{what}.png", cwd=run.parent, expect=2)
    assert done.stderr.strip() == said and not (run.parent / f"{what}.png").exists()
    with inspector.open_capture(run) as capture, pytest.raises(CaptureError) as refused:
        capture.show(**asked)
    assert str(refused.value) == said


def test_what_is_there_is_drawn(run: Path) -> None:
    call("export", "a.inspect", "--panel", "states", "--place", "two", "--unit", "4", "--to", "f.png", cwd=run.parent)
    call(
        "export", "a.inspect", "--panel", "attention", "--place", "att", "--head", "1", "--to", "g.png", cwd=run.parent
    )


def test_of_many_panels_a_place_is_refused_that_none_of_them_has(run: Path) -> None:
    done = call("export", "a.inspect", "--panels", "states,attention", "--place", "typo", "--to", "figures",
                cwd=run.parent, expect=2)  # fmt: skip
    assert done.stderr.strip() == "There is no place 'typo' in this capture: it has one, two, att, parameters."
    call("export", "a.inspect", "--panels", "states,attention", "--place", "att", "--to", "figures", cwd=run.parent)
    assert {path.name for path in (run.parent / "figures").iterdir()} == {"states.png", "attention.png"}


def test_modules_and_parameters_are_places_and_the_known_part_stays(run: Path) -> None:
    with inspector.open_capture(run) as capture:
        for place in ("rnn", "rnn.cell", "rnn.cell.bias"):
            check_view(capture, ViewAt(place=place))
        asked = ViewAt(panel="states", place="typo", unit=4, head=2, step=3)
        assert known_part(capture, asked) == ViewAt(panel="states", unit=4, step=3)
