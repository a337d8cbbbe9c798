"""A search as a run: the tree of what was tried, and a frame for the right answer and for each hypothesis shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from torch import Tensor

from inspector.engine.decoding.channels import PLACE, TreeWriter, named
from inspector.engine.decoding.drift import write_drift
from inspector.engine.decoding.exposure import write_exposure
from inspector.engine.decoding.next_tokens import NextTokens
from inspector.engine.decoding.own_continuation import write_own_continuation
from inspector.engine.decoding.right_answer import right_answer
from inspector.engine.decoding.search import search
from inspector.engine.decoding.spoken import spoken
from inspector.engine.errors import CancelledError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import Recording, RunOptions, chosen_quantities, perform
from inspector.engine.pipeline.frames import begin_frame
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.trace.trace import Trace
from inspector.records import Decode, DecodedTree, Frame, Log, RunStart

RIGHT = "right answer"
SEARCHING = "searched for"
"""The label of the frame that has the tree, until it is known what is run in it."""
LAST_ONLY = (
    "`next_logits` gives the logits of the last step alone, so no hypothesis is run as a frame: (n, t + 1, v), those "
    "after every beginning, would show states and attention while it is said."
)


class DecodingRun:
    """A search for the answer to one sequence. Raises InputError where the subject cannot be decoded."""

    def __init__(self, subject: Subject, batch: Batch, decode: Decode, seed: int = 0) -> None:
        self.next_tokens = NextTokens(subject, batch, seed)
        self.subject, self.decode, self.seed, self.given = subject, decode, seed, batch

    def noted(self, start: RunStart) -> RunStart:
        """The record of the run's beginning with how it searches."""
        return replace(start, meta={**start.meta, PLACE: asdict(self.decode)})

    def run(self, recording: Recording, options: RunOptions) -> DecodedTree:
        """Search and write all frames. Raises InputError, ModelError or CancelledError.

        Frame 0 is the right answer where it is known, else the best hypothesis; it has the tree. The frame of the best
        hypothesis has how far it parts from the right answer; of greedy search also how several sequences do. The tree
        is written while it grows; where the search is cancelled or fails, what was tried until then is there.
        """
        writer = TreeWriter(lambda: self._begun(recording, options), lambda: self._names)
        try:
            tree = self._searched(options, writer)
        finally:
            writer.write()
        ends = tree.ranked[: self.decode.shown]
        right = self.right_answer() if ends else ()
        shown = [(RIGHT, right)] * bool(right) + [(title_of(tree, end), tree.ids(end)) for end in ends]
        if not self.next_tokens.by_step:
            recording.write(Log(LAST_ONLY, "info", "engine"))
            shown = []
        recording.expect(chosen_quantities(options) if shown else (), max(1, len(shown)))
        first = shown[0][0] if shown else title_of(tree, tree.ranked[0])
        if writer.begun:
            recording.write(_frame(0, first))
        traces = [self._shown(*one, index, recording, options) for index, one in enumerate(shown)]
        if right and len(traces) > 1:
            emit = Emitter(recording, 1, options.cancelled, options.progress)
            write_drift(traces[0], traces[1], right, tree.ids(ends[0]), emit)
            if self.decode.how == "greedy":
                write_exposure(self.subject, self.given, self.seed, self.decode.longest, emit)
        if self.next_tokens.continues and self.decode.how != "beam" and traces:
            emit = Emitter(recording, 0, options.cancelled, options.progress)
            write_own_continuation(self.subject, self.given, self.seed, self.decode.longest, emit)
        return tree

    def _begun(self, recording: Recording, options: RunOptions) -> Emitter:
        return begin_frame(self.subject, self.next_tokens.batch, recording, options, _frame(0, SEARCHING))

    @property
    def _names(self) -> Sequence[str] | None:
        return self.subject.classes(self.next_tokens.width)[1]

    def _searched(self, options: RunOptions, writer: TreeWriter) -> DecodedTree:
        asked = 0

        def ask(beginnings: Sequence[tuple[int, ...]]) -> Tensor:
            nonlocal asked
            if options.cancelled():
                raise CancelledError
            asked += 1
            options.progress(asked, self.decode.longest, f"searching, token {asked}")
            return self.next_tokens(beginnings)

        tree = search(ask, self.decode, end=self.subject.end_token, seed=self.seed, grown=writer.grow)
        return named(tree, self._names)

    def right_answer(self) -> tuple[int, ...]:
        """The ids of the right answer; empty where none is known, as of what only goes on."""
        return () if self.next_tokens.continues else right_answer(self.subject, self.next_tokens.batch, self.seed)

    def _shown(self, label: str, tokens: Sequence[int], index: int, recording: Recording, options: RunOptions) -> Trace:
        """Run the model saying these tokens, as one frame; the first one has begun already."""
        subject, batch = spoken(self.next_tokens, tokens)
        sink = recording if index else Once(recording)
        return perform(subject, batch, sink, options, frame=_frame(index, label))


class Once:
    """A sink that leaves out the frame, which has begun already."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, record: Any) -> None:
        """Pass a record on."""
        if not isinstance(record, Frame):
            self._sink.write(record)


def _frame(index: int, label: str) -> Frame:
    return Frame(index=index, label=label)


def title_of(tree: DecodedTree, end: int) -> str:
    """A hypothesis with its ln p, and its score where a length penalty makes that another number: a frame's label."""
    one = tree.tokens[end]
    score = "" if one.score == one.total else f"score {one.score:.3g}, "
    return f"{tree.said(end)} ({score}ln p {one.total:.3g} nat)"
