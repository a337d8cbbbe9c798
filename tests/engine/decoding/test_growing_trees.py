"""The tree of a search while it grows: what is alive, what is written as it goes, and what a search that stops leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.decoded_tree import hypothesis_lines, read_tree, tree_lines
from inspector.capture import CaptureError, open_capture
from inspector.engine.decoding import channels
from inspector.engine.decoding.growth import Growth
from inspector.engine.decoding.search import search
from inspector.engine.errors import ModelError
from inspector.records import Decode, DecodedToken, DecodedTree

V, END = 5, 0
HOW = ("greedy", "sample", "beam")


def ask(beginnings: Sequence[tuple[int, ...]]) -> Tensor:
    """ln p after every beginning, random and the same for the same one."""
    rows = []
    for beginning in beginnings:
        number = sum((token + 1) * (V + 1) ** i for i, token in enumerate(beginning))
        rows.append(torch.randn(V, generator=torch.Generator().manual_seed(number), dtype=torch.float64))
    return torch.log_softmax(torch.stack(rows), dim=-1)


def known(tokens: Sequence[DecodedToken]) -> list[DecodedToken]:
    return [replace(one, fate="alive") if one.fate == "unfinished" else one for one in tokens]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("width", [1, 3])
def test_after_each_step_it_is_the_tree_of_a_search_of_that_length(how: Any, width: int) -> None:
    """What goes on after n tokens is what the same search leaves unfinished where n tokens are the most."""
    seen: list[list[DecodedToken]] = []
    whole = search(
        ask, Decode(how=how, width=width, longest=6), end=END, seed=3, grown=lambda now: seen.append([*now.tokens])
    )
    assert seen[0] == [] and len(seen) == max(whole.depths)
    for length, tokens in enumerate(seen[1:], 1):
        short = search(ask, Decode(how=how, width=width, longest=length), end=END, seed=3)
        assert tokens == known(short.tokens), (how, length)
        assert DecodedTree(decode=whole.decode, tokens=tuple(tokens)).goes_on
    assert not whole.goes_on


def test_what_is_alive_is_listed_behind_what_has_ended_and_has_a_sign() -> None:
    growth = Growth(Decode(how="beam", width=2))
    growth.add(-1, 1, -3.0, "finished")
    growth.add(-1, 2, -1.0, "alive")
    tree = growth.tree()
    assert tree.ranked == (0, 1)
    assert [line.rpartition(", ")[2] for line in hypothesis_lines(tree)] == ["finished)", "alive)"]
    assert any(line.startswith("→ ") for line in tree_lines(tree))


def test_a_long_text_is_cut_in_the_middle() -> None:
    growth, last = Growth(Decode()), -1
    for number in range(50):
        last = growth.add(last, 1, -0.1, "alive" if number == 49 else "continued")
    texts = (replace(one, text="ab"[at % 2]) for at, one in enumerate(growth.tokens))
    (line,) = hypothesis_lines(replace(growth.tree(), tokens=tuple(texts)), 10)
    assert line.startswith("1. ababa … babab  (")


class Counting(nn.Module):
    """Says a token after another, and raises at the `fails`-th question."""

    def __init__(self, fails: int) -> None:
        super().__init__()
        self.fails, self.asked, self.weight = fails, 0, nn.Parameter(torch.zeros(1))

    def forward(self, ids: Tensor) -> Tensor:
        self.asked += 1
        if self.asked == self.fails:
            raise RuntimeError("no further")
        return torch.nn.functional.one_hot((ids + 1) % V, V).float() * 3


def next_logits(model: Any, _batch: Any, beginnings: Tensor) -> Tensor:
    last = beginnings[:, -1:] if beginnings.shape[1] else torch.zeros(len(beginnings), 1, dtype=torch.long)
    return model(last)[:, -1]


def subject(fails: int) -> SimpleNamespace:
    return SimpleNamespace(model=Counting(fails), kind="tokens", vocabulary="·abcd", next_logits=next_logits)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "EVERY_SECONDS", 0.0)


def test_a_capture_has_the_tree_so_far_at_every_question(
    tmp_path: Path, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read from the disk, between two questions, as a window does while the search goes on."""
    read: list[DecodedTree | None] = []
    forward, path = Counting.forward, tmp_path / "a.inspect"

    def looking(self: Counting, ids: Tensor) -> Tensor:
        if path.exists() and self.asked:
            with open_capture(path) as capture:
                read.append(read_tree(capture))
        return forward(self, ids)

    monkeypatch.setattr(Counting, "forward", looking)
    monkeypatch.setattr("inspector.capture.writer.Writer.write", _then_flushed())
    capture = inspector.decode(subject(0), [1], how="beam", width=2, longest=5, out=path, only=("states",))
    whole = read_tree(capture)
    found = [tree for tree in read if tree is not None]
    assert whole is not None and len(found) >= 3 and all(tree.goes_on for tree in found)
    assert [max(tree.depths) for tree in found] == sorted({max(tree.depths) for tree in found})
    for tree in found:
        assert [(one.token, one.parent, one.text) for one in tree.tokens] == [
            (one.token, one.parent, one.text) for one in whole.tokens[: len(tree.tokens)]
        ]
    assert not whole.goes_on and capture.frames[0].label.partition(" (")[0] == whole.said(whole.ranked[0])


def _then_flushed() -> Any:
    from inspector.capture.writer import Writer

    write = Writer.write

    def both(self: Writer, record: Any) -> None:
        write(self, record)
        if type(record).__name__ == "Page":
            self.flush()

    return both


def test_a_search_that_fails_leaves_what_was_tried(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no further"):
        inspector.decode(subject(4), [1], how="beam", width=2, longest=9, out=tmp_path / "a.inspect", only=("states",))
    with open_capture(tmp_path / "a.inspect") as capture:
        tree = read_tree(capture)
        assert tree is not None and max(tree.depths) == 3 and tree.goes_on
        assert capture.frames[0].label == "searched for" and capture.status == "failed"


def test_fields_that_are_not_written_yet_are_waited_for(tmp_path: Path, at_once: None) -> None:
    """A capture whose writer was killed between two fields: the shortest counts; with a declared length it is damage."""
    import numpy as np

    from inspector.capture import Writer
    from inspector.records import Channel, Frame, Page, RunStart

    columns = {"token": [1, 2, 3], "parent": [-1, 0, 1], "log_probability": [-1.0] * 3, "total": [-1.0, -2.0, -3.0],
               "score": [-1.0, -2.0], "fate": [0, 4], "times": [1, 1]}  # fmt: skip
    for shape, good in (((None,), True), ((3,), False)):
        path = tmp_path / f"{good}.inspect"
        with Writer(path, RunStart(run="r", title="t")) as writer:
            writer.write(Frame(index=0))
            for name, values in columns.items():
                array = np.array(values, dtype="float64" if isinstance(values[0], float) else "int32")
                writer.write(Channel(name=f"decoding:{name}", kind="decoding", dims=("node",), shape=shape,
                                     dtype=str(array.dtype)))  # fmt: skip
                writer.write(Page(f"decoding:{name}", 0, (0,), array))
        with open_capture(path) as capture:
            if good:
                tree = read_tree(capture)
                assert tree is not None and len(tree.tokens) == 2 and tree.tokens[1].fate == "alive"
            else:
                with pytest.raises(CaptureError, match="damaged, or not complete"):
                    read_tree(capture)
