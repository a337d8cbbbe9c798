"""Records survive the wire; anything else is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.records import (
    BadRecordError,
    Cancel,
    Channel,
    CheckpointReport,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Log,
    Mismatch,
    Place,
    Run,
    RunStart,
    RunStop,
    Scalar,
    decode,
    encode,
)  # fmt: skip

RECORDS = [
    Load(subject="a.py:b", arguments={"hidden": 3, "deep": [1, None, {"x": 2.5}]}),
    Run(
        path="/x",
        input=InputSpec(kind="text", value="<s>\n", options={"at": 3}),
        also=("bptt", "gradient/vectors@0:5"),
        only=("states",),
    ),
    Finished(path="x", stop=RunStop("cancelled", "why", 1.5)),
    Loaded(subject="x", report=CheckpointReport(path="p", mismatches=(Mismatch(name="a", problem="shape"),))),
    Channel(name="a:h", kind="state", dims=("step",), shape=(None,), limits=(0, 1), labels={"step": ("a",)}),
    RunStart(run="r", title="t", places=(Place(name="", module="M"),), meta={"a": {"b": 1}}),
    Cancel(),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_equal(record: object) -> None:
    assert decode(encode(record)) == record


@given(st.text(max_size=50), st.floats())
def test_any_text_and_any_number(text: str, value: float) -> None:
    assert decode(encode(Log(text))).text == text
    back = decode(encode(Scalar("s", 0, value))).value
    assert back == value or (back != back and value != value)


@pytest.mark.parametrize(
    "raw",
    [
        "", "[]", "{}", "null", '{"record": "Popen"}', '{"record": "Log"}', '{"record": "Log", "text": 3}',
        '{"record": "RunStop", "status": "splendid"}', '{"record": "Scalar", "name": "a", "frame": true, "value": 1}',
        '{"record": "Scalar", "name": "a", "frame": 0, "value": "12"}', '{"record": "Scalar", "name": "a", "frame": 0, "value": NaN}',
        '{"record": "Labels", "domain": "step", "names": ["a", 3]}',
        '{"record": "Channel", "name": "p:h", "kind": "state", "dims": ["step", "unit"], "shape": [3, true]}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_anything_else_is_refused(raw: str) -> None:
    with pytest.raises(BadRecordError):
        decode(raw)


def test_fields_of_a_newer_version_are_ignored() -> None:
    raw = json.loads(encode(Log("a")))
    assert decode(json.dumps({**raw, "colour": "red"})) == Log("a")


def test_a_channel_checks_itself() -> None:
    for change in ({"dtype": "O"}, {"dims": ("step", "step")}, {"name": "x"}, {"shape": (1, 2)}, {"kind": "A B"}):
        with pytest.raises(ValueError, match="\\."):
            Channel(**{"name": "a:h", "kind": "state", "dims": ("step",), "shape": (None,), **change})
