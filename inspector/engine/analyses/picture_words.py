"""ln p of each word that is said of a picture: its gradient at the picture, and what it is without a patch of it.

The words stay those of the run, also where the changed picture would have led the model to say others: where the
subject says what follows a beginning (`next_logits`), each word is scored after the words of the run; else
the model is called as it was, and its words are fixed only if they are given to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import following, scores_of
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.batch import Batch, NamedInput, selected
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

AGAIN = "The model, called again on the picture,"
MOST_WORDS = 256
MOST_NUMBERS = 1 << 25
"""Of gradients: a number for each word and pixel (128 MiB of float32)."""
PATCHES = 7
"""Rows and columns of patches, at most, where the subject declares no grid."""
FIXED = "exact; every word after the words of the run"
FREE = "exact; the model is called as it was, so without given words it may say others before a word"
NO_WORDS = (
    "Nothing is said of the picture step by step: there is no answer with scores (b, t, v). Words that a model is "
    "given, as in training, count where its subject declares them as `answer`."
)
CUT = "The scores are not connected to the picture by autograd (no_grad or detach inside the model?)."
LONG = "There are {:,} words and {:,} pixels; gradients are taken of up to {:,} words and {:,} numbers in all."
OTHER = "Called again, the model gave scores of shape {}; expected {} words."


def pictures(trace: Trace) -> list[tuple[str, NamedInput]]:
    """The inputs that are a picture, by name."""
    return [(n, one) for n, one in trace.batch.named.items() if one.kind == "image" and one.tensor is not None]


@dataclass(slots=True)
class Words:
    """The words said of one picture of a trace.

    Attributes:
        name: of the input that is the picture; ids: (t,) the words; method: how they are kept fixed.
    """

    trace: Trace
    name: str
    ids: Tensor
    method: str = FIXED

    @classmethod
    def of(cls, trace: Trace, name: str) -> Words:
        """The words of the run. Raises Unsupported."""
        scores, answer = trace.logits, trace.answer
        if answer is None or scores is None or scores.dim() != 3:
            raise Unsupported(NO_WORDS)
        length = min(answer.length(trace.look_at), scores.shape[1])
        if not length:
            raise Unsupported(NO_WORDS)
        given = None if answer.ids is None else answer.ids[trace.look_at, :length]
        likeliest = scores[trace.look_at, :length].detach().argmax(-1).cpu()
        ids = likeliest if given is None else given.long().cpu()
        if int(ids.max()) >= scores.shape[2]:
            raise Unsupported(NO_WORDS)
        fixed = trace.subject.next_logits is not None
        return cls(trace, name, ids, FIXED if fixed else FREE)

    @property
    def picture(self) -> Tensor:
        """(c, h, w) as the model read it."""
        tensor = self.trace.batch.named[self.name].tensor
        assert tensor is not None
        return tensor[self.trace.look_at].detach()

    def log_p(self, picture: Tensor) -> Tensor:
        """(t,) ln p of the words where the picture is another one, with its graph, in float64. Raises Unsupported."""
        trace, ids = self.trace, self.ids
        targets = trace.batch.targets
        own = targets[[trace.look_at]] if isinstance(targets, Tensor) and len(targets) == trace.batch.size else None
        one = selected(trace.batch, [trace.look_at], own)
        one.named = {**one.named, self.name: replace(one.named[self.name], tensor=picture[None])}
        placed = trace.subject.placed(one)
        try:
            rows = self._rows(placed)
        except Unsupported:
            raise
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, AGAIN))) from None
        if rows.dim() != 2 or len(rows) < len(ids):
            raise Unsupported(OTHER.format(tuple(rows.shape), len(ids)))
        log = rows[: len(ids)].double().log_softmax(-1)
        return log.gather(-1, ids.to(log.device)[:, None])[:, 0]

    def _rows(self, batch: Batch) -> Tensor:
        """(t, v) scores."""
        subject = self.trace.subject
        if subject.next_logits is None:
            alone = replace_look(self.trace)
            return scores_of(alone, subject.run(batch))
        before = self.ids[None, :-1].to(self.picture.device)
        found = subject.next_logits(subject.model, batch, before)
        if found.dim() == 3:
            return torch.as_tensor(found)[0]
        each = [subject.next_logits(subject.model, batch, before[:, :t])[0] for t in range(len(self.ids))]
        return torch.stack(each)

    def gradients(self, emit: Emitter) -> Tensor:
        """(t, h, w) ‖∂ ln p(word) / ∂ pixel‖₂ over the channels of a pixel. Raises Unsupported."""
        _, rows, columns = self.picture.shape
        pixels = rows * columns
        if len(self.ids) > MOST_WORDS or len(self.ids) * pixels > MOST_NUMBERS:
            raise Unsupported(LONG.format(len(self.ids), pixels, MOST_WORDS, MOST_NUMBERS))
        model, found = self.trace.subject.model, []
        with undisturbed(model, self.trace.seed), following(model):
            leaf = self.picture.clone().requires_grad_()
            numbers = self.log_p(leaf)
            if not numbers.requires_grad:
                raise Unsupported(CUT)
            for done, number in enumerate(numbers):
                emit.check()
                emit.progress(done, len(numbers), "gradients at the picture")
                (slope,) = torch.autograd.grad(number, leaf, retain_graph=True, allow_unused=True)
                slope = torch.zeros_like(leaf) if slope is None else slope
                found.append(slope.double().norm(dim=0).float().cpu())
        return torch.stack(found)

    def plain(self) -> Tensor:
        """(t,) ln p of the words on the picture as it is."""
        with undisturbed(self.trace.subject.model, self.trace.seed), torch.no_grad():
            return self.log_p(self.picture).cpu()

    def blanked(self, emit: Emitter) -> Tensor:
        """(t, rows, columns) ln p of each word on the picture less that without each patch, the patch filled with the
        picture's mean. Raises Unsupported."""
        plain, (rows, columns) = self.plain(), self.grid
        found = torch.zeros(len(self.ids), rows, columns, dtype=torch.float64)
        with undisturbed(self.trace.subject.model, self.trace.seed), torch.no_grad():
            for done, (row, column, changed) in enumerate(without_patches(self.picture, (rows, columns))):
                emit.check()
                emit.progress(done, rows * columns, "the picture without each patch")
                with undisturbed(self.trace.subject.model, self.trace.seed):
                    found[:, row, column] = plain - self.log_p(changed).cpu()
        return found

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches: those that are declared, where the picture has as many pixels."""
        _, rows, columns = self.picture.shape
        down, across = self.trace.batch.named[self.name].grid or (PATCHES, PATCHES)
        return min(down, rows), min(across, columns)


def replace_look(trace: Trace) -> Trace:
    """The trace as one of its selected sequence alone: what is read of a call on that sequence."""
    alone = Trace(trace.subject, selected(trace.batch, [trace.look_at]), seed=trace.seed)
    if trace.answer is not None:
        at = slice(trace.look_at, trace.look_at + 1)
        alone.answer = replace(trace.answer, lengths=trace.answer.lengths[at])
    return alone


def without_patches(picture: Tensor, grid: tuple[int, int]) -> Iterator[tuple[int, int, Tensor]]:
    """(row, column, the picture (c, h, w) with that patch filled with the mean of each channel)."""
    _, height, width = picture.shape
    mean = picture.mean(dim=(1, 2), keepdim=True)
    for row in range(grid[0]):
        for column in range(grid[1]):
            changed = picture.clone()
            down = slice(row * height // grid[0], (row + 1) * height // grid[0])
            across = slice(column * width // grid[1], (column + 1) * width // grid[1])
            changed[:, down, across] = mean
            yield row, column, changed
