"""Axis records: what they say, and what they refuse to say."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.records import Axis, BadRecordError, decode, encode


def test_an_axis_travels_as_it_is() -> None:
    for axis in (
        Axis(name="step"),
        Axis(name="patch", title="image patch", layout="grid", grid=(14, 16), frame=2),
        Axis(name="iteration", length=0, unit="iteration"),
        Axis(name="layer", length=12, layout="layers"),
        Axis(name="beam", length=4, layout="hypotheses"),
    ):
        assert decode(encode(axis)) == axis


def test_what_is_left_out_follows_from_the_rest() -> None:
    assert Axis(name="answer step").title == "answer step" and Axis(name="step").length is None
    assert Axis(name="patch", layout="grid", grid=(3, 5)).length == 15


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": ""}, "no name"),
        ({"length": -1}, "negative"),
        ({"layout": "grid"}, r"\(rows, columns\)"),
        ({"grid": (2, 3)}, r"\(rows, columns\)"),
        ({"layout": "grid", "grid": (0, 3)}, "no cells"),
        ({"layout": "grid", "grid": (2, 3), "length": 7}, "2 × 3 cells are not 7 positions"),
    ],
)
def test_contradictions_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Axis(**{"name": "patch", **given})


def test_an_unknown_layout_in_a_file_is_refused() -> None:
    text = encode(Axis(name="step")).decode().replace('"line"', '"circle"')
    with pytest.raises(BadRecordError, match="layout"):
        decode(text)
