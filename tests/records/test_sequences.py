"""Sequences written on a command line become an InputSpec, by the names of inputs where they have them."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.records import InputSpec, decode, encode, input_spec


def part(kind: str, value: str, **options: Any) -> InputSpec:
    return InputSpec(kind=kind, value=value, options=options)


SPECS: list[tuple[dict[str, list[str]], dict[str, Any], InputSpec]] = [
    ({}, {"a": 1}, InputSpec(options={"a": 1})),
    ({"text": ["hello"]}, {}, part("text", "hello")),
    ({"text": ["a", "b"]}, {"x": 2}, part("text", "a", x=2, texts=["b"])),
    ({"file": ["a.npy", "b.npy"]}, {}, part("file", "a.npy", files=["b.npy"])),
    ({"ids": ["1 2", "3"]}, {}, part("ids", "1 2;3")),
    ({"text": [""]}, {}, part("text", "")),
    ({"text": ["a =b", "2=3"]}, {}, part("text", "a =b", texts=["2=3"])),
    (
        {"text": ["src=a b", "tgt=c=d"]}, {},
        InputSpec(kind="text", value="src=a b", options={"texts": ["tgt=c=d"]},
                  parts={"src": part("text", "a b"), "tgt": part("text", "c=d")}),
    ),
    (
        {"text": ["src=a", "src=b"], "file": ["x=1.npy"], "generated": ["y=noise"]}, {"steps": 3, "x.key": "k"},
        InputSpec(parts={
            "src": part("text", "a", steps=3, texts=["b"]), "x": part("file", "1.npy", steps=3, key="k"),
            "y": part("generated", "noise", steps=3),
        }),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "options", "spec"), SPECS)
def test_what_is_written_is_a_spec(given: dict[str, list[str]], options: dict[str, Any], spec: InputSpec) -> None:
    assert input_spec(given, options) == spec
    assert decode(encode(spec)) == spec
    assert input_spec(given, options, 2).look_at == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": ["a"], "ids": ["1"]}, "given were --text and --ids."),
        ({"text": ["src=a"], "file": ["x.npy"]}, "given were --text and --input."),
        (
            {"text": ["src=a"], "generated": ["src=noise"]},
            "src is of one kind of sequence; given were --text and --generate.",
        ),
    ],
)
def test_kinds_that_cannot_go_together(given: dict[str, list[str]], said: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as told:
        input_spec(given, {})
    assert said in str(told.value)


def test_a_spec_of_before_is_read() -> None:
    old = '{"record": "InputSpec", "kind": "text", "value": "ab", "options": {}, "look_at": 1}'
    assert decode(old) == InputSpec(kind="text", value="ab", look_at=1)
