"""`inspector decode`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import call

import inspector
from inspector.analysis.decoded_tree import hypothesis_lines, read_tree, tree_as_json, tree_lines
from inspector.capture import CaptureError, Writer
from inspector.records import Channel, Decode, DecodedToken, DecodedTree, Frame, Page, RunStart

FAST = ("--only", "states")


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("decode")
    asked = ("--how", "beam", "--width", "2", "--text", "<", *FAST)
    return folder, call("decode", "garden-path-gru", *asked, cwd=folder).stdout


def test_the_tree_is_printed_and_captured(decoded: tuple[Path, str]) -> None:
    folder, printed = decoded
    lines = printed.splitlines()
    assert lines[0].startswith("1. along<  (score -0.9") and "6 tokens, finished" in lines[0]
    assert any("■" in line and "'a' 'l' 'o' 'n' 'g' '<'" in line for line in lines) and "×" not in printed
    with inspector.open_capture(folder / "garden-path-gru-decode.inspect") as capture:
        tree = read_tree(capture)
        assert tree is not None and printed.splitlines() == [
            *hypothesis_lines(tree),
            "",
            *tree_lines(tree, pruned=False),
        ]
        assert sum("×" in line for line in tree_lines(tree)) > 3
        assert capture.array("rnn.l0:h").shape == (7, 16)


def test_json_has_every_token(decoded: tuple[Path, str]) -> None:
    folder, _ = decoded
    with inspector.open_capture(folder / "garden-path-gru-decode.inspect") as capture:
        tree = read_tree(capture)
    assert tree is not None
    found = json.loads(json.dumps(tree_as_json(tree)))
    assert found["decode"]["how"] == "beam" and len(found["nodes"]) == len(tree.tokens)
    best = found["hypotheses"][0]
    assert best["text"] == "along<" and [found["nodes"][at]["text"] for at in best["nodes"]] == list("along<")
    assert best["log_probability"] == pytest.approx(sum(found["nodes"][at]["log_probability"] for at in best["nodes"]))


def test_json_alone_is_on_stdout(tmp_path: Path) -> None:
    asked = ("--text", "<", "--json", "--shown", "0", "--how", "sample", "--top-k", "2")
    done = call("decode", "garden-path-gru", *asked, cwd=tmp_path)
    assert json.loads(done.stdout)["decode"]["top_k"] == 2
    with inspector.open_capture(tmp_path / "garden-path-gru-decode.inspect") as capture:
        assert [name for name in capture.channels if not name.startswith("decoding:")] == []


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("acceptor-digits",), 2, "does not say what may follow"),
        (("garden-path-gru", "--width", "0"), 2, "width is 0; expected 1 to 1000"),
        (("garden-path-gru", "--top-p", "0.5"), 2, "are of how='sample'"),
    ],
)
def test_what_cannot_be_decoded_is_one_sentence(given: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    done = call("decode", *given, cwd=tmp_path, expect=code)
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1 and not list(tmp_path.iterdir())


def token(parent: int, text: str, p: float, fate: str) -> DecodedToken:
    return DecodedToken(token=ord(text[0]), parent=parent, log_probability=p, total=p, score=p, fate=fate, text=text)  # type: ignore[arg-type]


def test_lines_of_a_tree() -> None:
    tokens = (
        token(-1, "a", -0.5, "continued"), token(-1, "b", -1.5, "pruned"), token(0, "c", -0.5, "finished"),
        token(0, "d", -1.0, "finished"),
    )  # fmt: skip
    tree = DecodedTree(decode=Decode(), tokens=tokens)
    assert list(tree_lines(tree)) == [
        "'a'  (p 0.61; score -0.5)", "  ■ 'c'  (p 0.61; score -0.5)", "  ■ 'd'  (p 0.37; score -1)",
        "× 'b'  (p 0.22; score -1.5)",
    ]  # fmt: skip
    assert [tree.said(end) for end in tree.ranked] == ["ac", "ad"]
    long = DecodedTree(decode=Decode(), tokens=(token(-1, "the", -1.0, "continued"), token(0, "cat", -1.0, "finished")))
    assert long.said(1) == "the cat"


def test_many_tokens_without_a_choice_are_one_text() -> None:
    chain = tuple(token(i - 1, "ab"[i % 2], -0.1, "continued" if i < 19 else "finished") for i in range(20))
    assert list(tree_lines(DecodedTree(decode=Decode(), tokens=chain))) == [
        f"■ '{'ab' * 10}'  (20 tokens, ln p -2; score -0.1)"
    ]


def test_a_very_deep_tree_is_printed() -> None:
    chain = tuple(token(i - 1, "x", -0.1, "continued") for i in range(9_000))
    branches = tuple(token(i, "y", -9.0, "pruned") for i in range(9_000))
    lines = list(tree_lines(DecodedTree(decode=Decode(), tokens=(*chain, *branches))))
    assert len(lines) > 9_000 and max(map(len, lines)) < 200


def broken(folder: Path, **columns: list[float]) -> Path:
    """A capture whose tree has these columns."""
    known = {"token": [1, 2], "parent": [-1, 0], "log_probability": [-1.0, -1.0], "total": [-1.0, -2.0],
             "score": [-1.0, -2.0], "fate": [0, 2], "times": [1, 1], **columns}  # fmt: skip
    with Writer(folder, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for name, values in known.items():
            array = np.array(values, dtype="float64" if isinstance(values[0], float) else "int32")
            channel = f"decoding:{name}"
            dtype = str(array.dtype)
            writer.write(Channel(name=channel, kind="decoding", dims=("node",), shape=(2,), dtype=dtype))
            writer.write(Page(channel, 0, (0,), array))
    return folder


def test_a_tree_that_is_whole_is_read(tmp_path: Path) -> None:
    with inspector.open_capture(broken(tmp_path / "a.inspect")) as capture:
        tree = read_tree(capture)
        assert tree is not None and tree.said(1) == "12" and tree.ids(1) == (1, 2)


@pytest.mark.parametrize(
    "columns", [{"parent": [-1, 1]}, {"parent": [-2, 0]}, {"fate": [0, 9]}, {"total": [-1.0]}]
)  # fmt: skip
def test_a_tree_that_is_damaged_is_refused(columns: dict[str, list[float]], tmp_path: Path) -> None:
    with (
        inspector.open_capture(broken(tmp_path / "a.inspect", **columns)) as capture,
        pytest.raises(CaptureError, match="damaged, or not complete"),
    ):
        read_tree(capture)
