"""One of the searches by its name: from ln p of what may follow to the tree of what was tried."""

from __future__ import annotations

from inspector.engine.decoding.beam import beam
from inspector.engine.decoding.greedy import greedy
from inspector.engine.decoding.growth import Ask, Growth
from inspector.engine.decoding.sampling import sample
from inspector.records.decoding import Decode, DecodedTree


def search(ask: Ask, decode: Decode, *, end: int | None = None, seed: int = 0) -> DecodedTree:
    """Search for answers.

    Args:
        ask: beginnings of answers, all of one length → (n, v) ln p of each token after each.
        decode: how.
        end: the id that ends an answer; None where none does, and every answer has the longest length.
        seed: of what is drawn.
    """
    growth = Growth(decode)
    if decode.how == "sample":
        sample(ask, growth, end, seed)
    elif decode.how == "beam":
        beam(ask, growth, end)
    else:
        greedy(ask, growth, end)
    return growth.tree()
