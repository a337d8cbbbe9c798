"""Whatever is put beside a run, the record is written, and a mark stands for what cannot be kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.capture.layout import MAX_JSON
from inspector.records import Channel, Frame, Page, RunStart, RunStop, decode
from inspector.records.bounds import encoded
from inspector.records.plain_values import DEEPEST, plain_value


def deep(levels: int, kind: type[Any]) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": value} if kind is dict else [value]
    return value


class Unfriendly:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def without_end() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["left"] = value["right"] = value
    return value


HARD: dict[str, Any] = {
    "deep mappings": deep(3000, dict), "deep lists": deep(100_000, list), "many digits": 10**5000, "negative": -(10**5000),
    "a key of many digits": {10**5000: 1}, "unfriendly": Unfriendly(), "bytes": b"x", "a set": {1}, "itself": without_end(),
    "numpy": np.float32(0.5), "not finite": float("nan"), "an object as a key": {Unfriendly(): 2}, "complex": 1j,
    "long": list(range(300_000)), "surrogates": "\udcff", "a tuple": (1, (2, None)), "true": True,
}  # fmt: skip


@pytest.mark.parametrize("what", HARD)
def test_nothing_captured_is_lost_over_what_stands_beside_it(tmp_path: Path, what: str) -> None:
    meta = {"hard": HARD[what], "own": "word"}
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t", meta=meta)) as writer:
        writer.write(Frame(index=0, label="f", meta=meta))
        writer.write(Channel(name="a:h", kind="state", dims=("step",), shape=(3,)))
        writer.write(Page("a:h", 0, (0,), np.ones(3, np.float32)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "done" and not capture.verify() and capture.array("a:h").sum() == 3
        for read in (capture.start.meta, capture.frames[0].meta):
            assert "hard" in read
            if what not in ("itself", "long"):
                assert read["own"] == "word"


def test_marks_say_what_was_there() -> None:
    assert plain_value(10**5000) == "… [a whole number of 16,610 bits]"
    assert plain_value({"a": Unfriendly()}) == {"a": "… [a value of type Unfriendly]"}
    value, levels = plain_value(deep(100, list)), 0
    while isinstance(value, list):
        value, levels = value[0], levels + 1
    assert levels == DEEPEST and value == f"… [nested deeper than {DEEPEST} levels]"
    assert len(json.dumps(plain_value(without_end()))) < 10_000_000


def test_what_is_plain_stays_as_it_is() -> None:
    value = {"a": [1, 2.5, None, True, "x", {"b": [10**299, -1]}], "c": "é\n"}
    assert plain_value(value) == value
    frame = Frame(index=0, meta=value)
    (data,) = encoded(frame, MAX_JSON)
    assert decode(data) == frame
