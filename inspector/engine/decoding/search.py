"""One of the searches by its name: from ln p of what may follow to the tree of what was tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from inspector.engine.decoding.beam import beam
from inspector.engine.decoding.greedy import greedy
from inspector.engine.decoding.growth import Ask, Growth
from inspector.engine.decoding.sampling import sample
from inspector.records.decoding import Decode, DecodedTree

Grown = Callable[[Growth], None]


def search(
    ask: Ask, decode: Decode, *, end: int | None = None, seed: int = 0, grown: Grown = lambda _growth: None
) -> DecodedTree:
    """Search for answers.

    Args:
        ask: beginnings of answers, all of one length → (n, v) ln p of each token after each.
        decode: how.
        end: the id that ends an answer; None where none does, and every answer has the longest length.
        seed: of what is drawn.
        grown: gets the tree so far before each question; the same object, which goes on growing.
    """
    growth = Growth(decode)

    def asked(beginnings: Sequence[tuple[int, ...]]) -> Tensor:
        grown(growth)
        return ask(beginnings)

    if decode.how == "sample":
        sample(asked, growth, end, seed)
    elif decode.how == "beam":
        beam(asked, growth, end)
    else:
        greedy(asked, growth, end)
    return growth.tree()
