"""Searching for an answer token by token, and showing what was tried.

    next_tokens   ln p of what may follow each beginning, from whatever a subject offers
    growth        the tree of hypotheses while it grows
    greedy, sampling, beam   the searches, functions of ln p alone
    search        one of them by name
    drift         the right answer given against what the model says by itself: how far both part
    channels      the tree as channels
    decoding_run  the whole: search, a frame for each hypothesis shown, channels

Begin reading with `search.py`.
"""

from inspector.engine.decoding.decoding_run import DecodingRun
from inspector.engine.decoding.next_tokens import NextTokens
from inspector.engine.decoding.search import search

__all__ = ["DecodingRun", "NextTokens", "search"]
