"""The keys of a padded source have their tokens, and padding numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from panel_captures import channel, shown

from inspector.gui.panel.attention.parts import named_first
from inspector.records import Labels


@pytest.mark.parametrize(
    ("names", "count", "expected"),
    [
        (("f", "g", "h"), 5, ("f", "g", "h", "3", "4")),
        (("f", "g"), 2, ("f", "g")),
        ((), 3, ()),
        (("f", "g", "h"), 2, ()),
    ],
)
def test_positions_behind_the_last_name_have_their_number(
    names: tuple[str, ...], count: int, expected: tuple[str, ...]
) -> None:
    assert named_first(names, count) == expected


def test_the_map_has_the_tokens_of_a_padded_source(qtbot: object, tmp_path: Path) -> None:
    weights = np.full((1, 2, 5), 1 / 3, dtype=np.float16)
    weights[..., 3:] = 0
    parts = (
        channel("a:attention", "attention", ("head", "query", "key"), weights, domains={"query": "step", "key": "src"}),
        Labels("step", ("u", "v")),
        Labels("src", ("f", "g", "h")),
    )
    with shown(tmp_path, "attention", *parts, place="a") as (_, panel):
        ((_, choice),) = panel.choices()
        assert panel._key_names(choice, 5) == ("f", "g", "h", "3", "4")
