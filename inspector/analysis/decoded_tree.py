"""The tree of a search for an answer, read from a capture, and as lines of text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from inspector.capture import CaptureError
from inspector.capture.view import View
from inspector.records import Decode, DecodedToken, DecodedTree
from inspector.records.decoding import BEGINNING, FATES, joined

PLACE, NODE = "decoding", "node"
MARKS: Mapping[str, str] = {"continued": "", "pruned": "× ", "finished": "■ ", "unfinished": "… ", "alive": "→ "}
"""One sign for each fate."""
GOING_ON = "on the way"
"""What became of a token that another one follows, in words."""
DEEPEST = 30
"""Choices one after the other that are shown by indentation; of further ones the number is written."""
MOST_ON_A_LINE = 12
"""Tokens without a choice between them up to which each has its probability."""
_FIELDS = tuple(part.name for part in fields(DecodedToken) if part.name != "text")
_BROKEN = "The tree of the search is damaged, or not complete yet: {}."


def read_tree(view: View, frame: int = 0) -> DecodedTree | None:
    """The tree of a capture; None where nothing was searched for. Raises CaptureError where it is damaged.

    Of a capture that is being written, or whose writer was killed, what is there of every field.
    """
    if any(f"{PLACE}:{field}" not in view.channels for field in _FIELDS):
        return None
    columns = {field: view.array(f"{PLACE}:{field}", frame) for field in _FIELDS}
    count = len(columns["token"])
    if _grows(view, frame):
        count = min(map(len, columns.values()))
        columns = {field: values[:count] for field, values in columns.items()}
    texts = view.labels(NODE, frame)
    for field, values in columns.items():
        if values.shape != (count,) or bool(np.ma.getmaskarray(values).any()):
            raise CaptureError(_BROKEN.format(f"{PLACE}:{field} has unknown cells"))
    if bool(((columns["parent"] >= np.arange(count)) | (columns["parent"] < BEGINNING)).any()):
        raise CaptureError(_BROKEN.format("a token stands before the one that it follows"))
    if bool((columns["fate"] >= len(FATES)).any()):
        raise CaptureError(_BROKEN.format("a token has a fate that is not known"))
    rows: dict[str, list[Any]] = {field: values.tolist() for field, values in columns.items()}
    rows["fate"] = [FATES[fate] for fate in rows["fate"]]
    rows["text"] = [*texts[:count], *map(str, rows["token"][len(texts) :])]
    tokens = (DecodedToken(**dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True))
    return DecodedTree(decode=_asked(view), tokens=tuple(tokens))


def _grows(view: View, frame: int) -> bool:
    """Whether fields may be of unequal length without anything being lost: they are written one after the other."""
    names = [f"{PLACE}:{field}" for field in _FIELDS]
    return all(view.channel(name, frame).shape == (None,) and not view.damage_of(name, frame) for name in names)


def _asked(view: View) -> Decode:
    """How it was searched; the defaults where the capture does not say it in words that are known."""
    said = view.start.meta.get(PLACE)
    try:
        return Decode(**said) if isinstance(said, Mapping) else Decode()
    except (TypeError, ValueError):
        return Decode()


def tree_lines(tree: DecodedTree, *, pruned: bool = True) -> Iterator[str]:
    """The tree as text: each token below the one before it, likelier ones first; those without a choice on one line.

    A line has the sign of its last token's fate (× pruned, ■ finished, … unfinished, → alive), p of each token (or ln p
    of many together), and the score of the hypothesis so far. Without `pruned` only hypotheses are there.
    """
    kept = {position for end in tree.ranked for position in tree.path(end)}
    below: dict[int, list[int]] = {}
    for position, one in enumerate(tree.tokens):
        if pruned or position in kept:
            below.setdefault(one.parent, []).append(position)
    for children in below.values():
        children.sort(key=lambda position: -tree.tokens[position].log_probability)
    waiting = [(position, 0) for position in reversed(below.get(BEGINNING, []))]
    while waiting:
        position, depth = waiting.pop()
        chain = [position]
        while len(below.get(chain[-1], [])) == 1:
            chain += below[chain[-1]]
        yield ("  " * depth if depth <= DEEPEST else f"{'  ' * DEEPEST}[{depth}] ") + _line(tree, chain)
        waiting += [(child, depth + 1) for child in reversed(below.get(chain[-1], []))]


def _line(tree: DecodedTree, chain: list[int]) -> str:
    tokens = [tree.tokens[position] for position in chain]
    last = tokens[-1]
    texts = " ".join(repr(one.text) for one in tokens)
    chances = "p " + " ".join(f"{math.exp(one.log_probability):.2g}" for one in tokens)
    if len(tokens) > MOST_ON_A_LINE:
        texts = repr(joined([one.text for one in tokens]))
        chances = f"{len(tokens)} tokens, ln p {sum(one.log_probability for one in tokens):.4g}"
    often = f", {last.times} samples" if last.times > 1 else ""
    return f"{MARKS[last.fate]}{texts}  ({chances}; score {last.score:.4g}{often})"


def hypothesis_lines(tree: DecodedTree, longest: int = 0, last: int = 0) -> Iterator[str]:
    """One line a hypothesis, the best first: its text, score, log probability and number of tokens; with `last` as they
    were after that token of the search (1 for the first).

    Of texts of more than `longest` characters (0: none) the middle is left out.
    """
    for rank, end in enumerate(hypotheses_after(tree, last), 1):
        one, length = tree.tokens[end], len(tree.path(end))
        often = f", drawn {one.times} times" if one.times > 1 else ""
        fate = GOING_ON if one.fate == "continued" else one.fate
        many = f"{length} token{'s' if length > 1 else ''}"
        said = f"score {one.score:.4g}, ln p {one.total:.4g} nat, {many}, {fate}{often}"
        yield f"{rank}. {_cut(tree.said(end), longest)}  ({said})"


def _cut(text: str, longest: int) -> str:
    """The beginning and the end: hypotheses of a beam often differ only there."""
    half = longest // 2
    return text if not longest or len(text) <= longest else f"{text[:half]} … {text[-half:]}"


def hypotheses_after(tree: DecodedTree, last: int) -> tuple[int, ...]:
    """Where the hypotheses of a search end as it was after its token `last` (0: after all of it), the best score first:
    what was tried as that token and not pruned, and what had ended before."""
    if not last:
        return tree.ranked
    depths = tree.depths
    tried = [at for at, depth in enumerate(depths) if depth == last and tree.tokens[at].fate != "pruned"]
    ended = [end for end in tree.ranked if depths[end] < last]
    return tuple(sorted((*tried, *ended), key=lambda at: (-tree.tokens[at].score, at)))


def tokens_until(tree: DecodedTree, last: int, *, everything: bool = False) -> list[int]:
    """Positions of the tokens of a search as it was after its token `last` (1 for the first; 0: after all of it).

    After all of it those of hypotheses; after token n what was tried as token n, whether pruned or not, and what stands
    before that, with the hypotheses that had ended. With `everything` also all that was pruned until then.
    """
    depths = tree.depths
    if everything:
        return [position for position, depth in enumerate(depths) if depth <= last or not last]
    ends = tree.ranked
    if last:
        tried = tuple(position for position, depth in enumerate(depths) if depth == last)
        ends = (*tried, *(end for end in ends if depths[end] < last))
    return sorted({position for end in ends for position in tree.path(end)})


def tree_as_json(tree: DecodedTree) -> dict[str, Any]:
    """How it was searched, every token, and the hypotheses, the best first."""
    hypotheses = [
        {
            "text": tree.said(end), "ids": list(tree.ids(end)), "nodes": list(tree.path(end)),
            "score": tree.tokens[end].score, "log_probability": tree.tokens[end].total, "fate": tree.tokens[end].fate,
            "times": tree.tokens[end].times,
        }
        for end in tree.ranked
    ]  # fmt: skip
    return {"decode": asdict(tree.decode), "hypotheses": hypotheses, "nodes": [asdict(one) for one in tree.tokens]}
