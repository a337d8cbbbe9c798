"""Options by their types: from text and from Python, as they are written, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.records import Catalog, Entry, Option, decode, encode, requests_in, split_request
from inspector.records.options import named_words, values_of, written

STEPS = Option(name="steps", type="steps", default=(None, None))
DRAWS = Option(name="draws", type="int", default=4, low=1, high=64)
SIZE = Option(name="size", default=1.0)
OPTIONS = (STEPS, DRAWS, SIZE)


@pytest.mark.parametrize(
    ("option", "given", "expected"),
    [
        (STEPS, "0:5", (0, 5)), (STEPS, "3:", (3, None)), (STEPS, ":7", (None, 7)), (STEPS, "4", (4, 5)), (STEPS, ":", (None, None)),
        (STEPS, (0, 5), (0, 5)), (STEPS, [2, None], (2, None)), (STEPS, 6, (6, 7)),
        (DRAWS, "8", 8), (DRAWS, 8.0, 8), (SIZE, "1e-3", 1e-3), (SIZE, 2, 2.0),
        (Option(name="b", type="bool"), "yes", True), (Option(name="b", type="bool"), "0", False), (Option(name="b", type="bool"), True, True),
        (Option(name="t", type="text"), "a b", "a b"), (Option(name="t", type="text"), 3, "3"),
        (Option(name="c", type="choice", choices=("x", "y")), "y", "y"), (Option(name="f", type="texts"), ["a"], ["a"]),
    ],
)  # fmt: skip
def test_a_value_is_read_from_text_and_from_python(option: Option, given: Any, expected: Any) -> None:
    found = option.value(given)
    assert found == expected and type(found) is type(expected)
    if option.type != "texts":
        assert option.value(option.written(found)) == expected, "what is written is read again"


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        (STEPS, "5:2", "FROM:TO"), (STEPS, "", "FROM:TO"), (STEPS, "a:b", "FROM:TO"), (STEPS, (1, 2, 3), "FROM:TO"), (STEPS, (-1, 2), "FROM:TO"),
        (DRAWS, "x", "a whole number from 1 to 64"), (DRAWS, 1.5, "whole"), (DRAWS, 65, "64"), (DRAWS, True, "whole"), (DRAWS, 0, "from 1"),
        (SIZE, "nan", "a number"), (SIZE, float("inf"), "a number"), (SIZE, 10**400, "a number"), (SIZE, None, "a number"),
        (Option(name="b", type="bool"), "maybe", "yes or no"), (Option(name="c", type="choice", choices=("x", "y")), "z", "one of x, y"),
        (Option(name="f", type="texts"), "ab", "a list"), (Option(name="t", type="text"), None, "text"),
        (Option(name="n", type="int", low=0), -1, "0 or more"), (Option(name="n", type="int", high=9), 10, "at most 9"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_what_is_expected(option: Option, given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^is .*; expected .*{said}"):
        option.value(given)


def test_a_request_is_a_key_with_options_behind_it() -> None:
    assert requests_in(["a, b@0:5", "c"]) == ("a", "b@0:5", "c") and requests_in(["", ","]) == ()
    assert split_request("gradient/vectors@0:5@draws=3") == ("gradient/vectors", ("0:5", "draws=3"))
    assert named_words(OPTIONS, ("0:5", "size=2", "3")) == {"steps": "0:5", "size": "2", "draws": "3"}
    assert values_of(OPTIONS, {"draws": "3"}) == {"steps": (None, None), "draws": 3, "size": 1.0}
    assert (
        written("k", OPTIONS, {"steps": (0, 5), "draws": 2}) == "k@steps=0:5@draws=2"
        and written("k", OPTIONS, {}) == "k"
    )
    with pytest.raises(ValueError, match="no option for 'd'; it has steps, draws, size"):
        named_words(OPTIONS, ("a", "b", "c", "d"))
    with pytest.raises(ValueError, match="no option 'darws'; close to it is draws"):
        values_of(OPTIONS, {"darws": 1})


def test_an_entry_travels_with_its_options() -> None:
    entry = Entry(key="k", summary="s", needs=("loss",), options=OPTIONS, suffixes=(".x",), magic=("00ff",))
    catalog = Catalog(torch="2", threads=1, devices=("cpu",), quantities=(entry,))
    (back,) = decode(encode(catalog)).quantities
    assert back.options[1:] == OPTIONS[1:] and back.suffixes == (".x",)
    assert back.options[0].value(back.options[0].default) == (None, None), "a list by then"
