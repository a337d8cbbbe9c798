"""The small picture of heads in the overview: masked keys, and rows that came while a decoder ran."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.panel.overview.pictures import PICTURES
from inspector.gui.widgets.sketch import Sketch
from inspector.gui.widgets.theme import MASKED
from inspector.records import Channel, Frame, Page, RunStart, RunStop

DIMS = ("head", "query", "key")
WEIGHTS = np.tril(np.full((1, 4, 4), 0.25, np.float32))
ALLOWED = np.stack([np.zeros(4), np.arange(4)]).astype(np.uint16)


def picture(path: Path, *, without: int | None = None, with_map: bool = True) -> Sketch:
    """What the overview shows of one causal head of which one row did not come, after two rows while it ran."""
    rows = Channel(name="a:attention/rows", kind="attention", dims=DIMS, shape=(1, None, None), limits=(0, 1))
    whole = Channel(name="a:attention", kind="attention", dims=DIMS, shape=(1, 4, 4), limits=(0, 1))
    allowed = Channel(
        name="a:attention/allowed", kind="attention", dims=("statistic", "query"), shape=(2, 4), dtype="uint16"
    )
    came = [(whole, (0, q, 0), WEIGHTS[:, q : q + 1]) for q in range(4) if q != without]
    pages = [(rows, (0, 0, 0), WEIGHTS[:, :2]), *came, (allowed, (0, 0), ALLOWED)]
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for channel in (rows, whole, allowed):
            writer.write(channel)
        for channel, at, values in pages if with_map else pages[:1]:
            writer.write(Page(channel.name, 0, at, values))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        shown = PICTURES["attention"]
        return shown.read(capture, 0, shown.find(capture, 0))


@pytest.mark.parametrize("without", [None, 2])
def test_masked_keys_and_rows_that_did_not_come_are_no_weights_of_zero(tmp_path: Path, without: int | None) -> None:
    ((_, cells),) = picture(tmp_path / "a.inspect", without=without).tiles
    masked = np.triu(np.ones((4, 4), bool), 1)
    if without is not None:
        masked[without] = True
    side = len(cells) // 4
    for q, k in np.ndindex(4, 4):
        block = cells[q * side : (q + 1) * side, k * side : (k + 1) * side]
        assert (block == MASKED).all() == masked[q, k] and (block == MASKED).any() == masked[q, k]


def test_rows_of_a_decoder_are_no_second_layer_beside_their_map(tmp_path: Path) -> None:
    sketch = picture(tmp_path / "a.inspect")
    assert sketch.sentence == "1 head in 1 layer" and [name for name, _ in sketch.tiles] == ["0.0"]
    assert sketch.channel == "a:attention"


def test_rows_of_a_decoder_are_shown_until_their_map_is_there(tmp_path: Path) -> None:
    sketch = picture(tmp_path / "a.inspect", with_map=False)
    assert sketch.sentence == "1 head in 1 layer" and sketch.channel == "a:attention/rows"


def test_a_map_of_which_only_the_last_queries_are_drawn_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = picture(tmp_path / "a.inspect")
    assert "drawn" not in whole.sentence
    monkeypatch.setattr("inspector.gui.pictures.attention.LARGEST", 8)  # two queries of four keys
    cut = picture(tmp_path / "b.inspect")
    assert "1 head in 1 layer, drawn: the last 2 of 4 queries" in cut.sentence
    assert not np.array_equal(cut.tiles[0][1], whole.tiles[0][1])
