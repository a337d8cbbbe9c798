"""Made tasks whose answers need memory: adding, copying, parity, nested brackets, reversing.

The right answer follows from the sequence itself, so a loss needs no targets: whatever is typed or loaded can be run.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sample_models.base import Batch, Plain

ROWS = 32
IGNORED = -100
"""Where nothing is asked for: F.cross_entropy leaves such targets out."""


def lengths_between(shortest: int, longest: int, generator: torch.Generator) -> Tensor:
    """(b,) lengths of a batch, the first of them the longest."""
    lengths = torch.randint(shortest, longest + 1, (ROWS,), generator=generator)
    lengths[0] = longest
    return lengths


def real_steps(batch: Batch) -> Tensor:
    """(b, t), true where a step is no padding."""
    return (torch.arange(batch.inputs.shape[1])[None] < batch.lengths[:, None]).to(batch.inputs.device)


def step_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """(b, t): −ln p(target) in nats of scores (b, t, v); NaN where the target is IGNORED."""
    asked = torch.nonzero(targets != IGNORED, as_tuple=True)
    values = nn.functional.cross_entropy(scores[asked], targets[asked], reduction="none")
    return scores.new_full(targets.shape, torch.nan).index_put(asked, values)


def adding(generator: torch.Generator, shortest: int = 20, longest: int = 40) -> Plain:
    """The adding problem: steps (value from 0 to 1, mark); the answer is the sum of the two marked values.

    One mark stands in the first half of a sequence, the other in the second.
    Reference: Hochreiter & Schmidhuber (1997).
    """
    lengths = lengths_between(shortest, longest, generator)
    inputs = torch.rand(ROWS, longest, 2, generator=generator)
    inputs[..., 1] = 0
    chosen = torch.rand(ROWS, 2, generator=generator)
    half = lengths // 2
    rows = torch.arange(ROWS)
    inputs[rows, (chosen[:, 0] * half).long(), 1] = 1
    inputs[rows, half + (chosen[:, 1] * (lengths - half)).long(), 1] = 1
    inputs[torch.arange(longest)[None] >= lengths[:, None]] = 0
    return Plain(inputs, lengths)


def adding_loss(answer: Tensor, batch: Batch) -> Tensor:
    """(b, t): half the squared error of the answer (b, 1, 1) at the last step of each sequence, NaN elsewhere.

    That is −ln of a normal density of variance 1 around the answer, less a constant. Always saying 1 costs 1/12.
    """
    wanted = (batch.inputs[..., 0] * batch.inputs[..., 1] * real_steps(batch)).sum(1)
    b, t = batch.inputs.shape[:2]
    values = (answer[:, 0, 0] - wanted) ** 2 / 2
    return answer.new_full((b, t), torch.nan).index_put((torch.arange(b), batch.lengths - 1), values)


COPY = (*"abcd", "·", "?")
"""Four symbols, the blank, and the sign that asks for them."""
KEPT = 4


def copying(generator: torch.Generator, lag: int = 20) -> Plain:
    """Copying memory: KEPT symbols, blanks, then `?` KEPT times; at each `?` the next of the symbols is wanted.

    Each symbol lies `lag` steps before it is asked for. After Hochreiter & Schmidhuber (1997), in the form of
    Arjovsky, Shah & Bengio (2016).
    """
    inputs = torch.full((ROWS, lag + KEPT), COPY.index("·"))
    inputs[:, :KEPT] = torch.randint(0, 4, (ROWS, KEPT), generator=generator)
    inputs[:, lag:] = COPY.index("?")
    return Plain(inputs, torch.full((ROWS,), lag + KEPT))


def copying_targets(batch: Batch) -> Tensor:
    """(b, t): at the j-th `?` the j-th symbol of the sequence, IGNORED elsewhere and where there are not so many."""
    targets = torch.full_like(batch.inputs, IGNORED)
    for row, given, length in zip(targets, batch.inputs, batch.lengths.tolist(), strict=True):
        given = given[:length]
        symbols = given[given < COPY.index("·")]
        asked = torch.nonzero(given == COPY.index("?"))[: len(symbols), 0]
        row[asked] = symbols[: len(asked)]
    return targets


def copying_loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): −ln p(the symbol wanted) at every `?`, NaN elsewhere. Guessing costs ln 4 = 1.386 nat."""
    return step_loss(scores, copying_targets(batch))


BITS = tuple("01")


def parity(generator: torch.Generator, shortest: int = 8, longest: int = 24) -> Plain:
    """Random bits; the answer at every step is the parity of all bits so far."""
    lengths = lengths_between(shortest, longest, generator)
    inputs = torch.randint(0, 2, (ROWS, longest), generator=generator)
    batch = Plain(inputs, lengths)
    inputs[~real_steps(batch)] = 0
    return batch


def parity_loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): −ln p(parity so far) at every real step. Guessing costs ln 2 = 0.693 nat."""
    return step_loss(scores, (batch.inputs.cumsum(1) % 2).masked_fill(~real_steps(batch), IGNORED))


BRACKETS = tuple("()[]{}")
CLOSING = (")", "]", "}", "none")
DEEPEST = 4


def brackets(generator: torch.Generator, shortest: int = 12, longest: int = 32) -> Plain:
    """Well nested brackets of three kinds, at most DEEPEST open at once (a bounded Dyck language).

    Reference: Hewitt et al. (2020), RNNs can generate bounded hierarchical languages with optimal memory.
    """
    lengths = lengths_between(shortest, longest, generator)
    inputs = torch.zeros(ROWS, longest, dtype=torch.long)
    kinds = torch.randint(0, 3, (ROWS, longest), generator=generator).tolist()
    opens = (torch.rand(ROWS, longest, generator=generator) < 0.5).tolist()
    for row, length in enumerate(lengths.tolist()):
        stack: list[int] = []
        for t in range(length):
            if not stack or (opens[row][t] and len(stack) < DEEPEST):
                stack.append(kinds[row][t])
                inputs[row, t] = 2 * stack[-1]
            else:
                inputs[row, t] = 2 * stack.pop() + 1
    return Plain(inputs, lengths)


def brackets_targets(batch: Batch) -> Tensor:
    """(b, t): which bracket would close the innermost open one after each step (3: none is open), else IGNORED.

    A closing bracket that does not fit makes the sequence wrong: nothing is asked for from there on.
    """
    targets = torch.full_like(batch.inputs, IGNORED)
    for row, (given, length) in enumerate(zip(batch.inputs.tolist(), batch.lengths.tolist(), strict=True)):
        stack: list[int] = []
        for t, bracket in enumerate(given[:length]):
            kind, closes = divmod(bracket, 2)
            if not closes:
                stack.append(kind)
            elif not stack or stack.pop() != kind:
                break
            targets[row, t] = stack[-1] if stack else 3
    return targets


def brackets_loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): −ln p(the bracket that would close) at every step."""
    return step_loss(scores, brackets_targets(batch))


LETTERS = (*"abcdef", "·", "<")
"""Six letters, a filler that is to be left out, and the sign that starts and ends an answer."""
FILLER, BORDER = 6, 7


def reversing(generator: torch.Generator, shortest: int = 3, longest: int = 8) -> Plain:
    """Letters with fillers between them; the answer is the letters backwards, without the fillers, and then `<`.

    So the answer is shorter or longer than the question. After Sutskever, Vinyals & Le (2014), who reverse sources.
    """
    lengths = lengths_between(shortest, longest, generator)
    inputs = torch.randint(0, 6, (ROWS, longest), generator=generator)
    inputs[torch.rand(ROWS, longest, generator=generator) < 0.3] = FILLER
    batch = Plain(inputs, lengths)
    inputs[~real_steps(batch)] = 0
    return batch


def reversed_letters(inputs: Tensor, lengths: Tensor) -> Tensor:
    """(b, l): what is wanted of each sequence, ended by `<`, IGNORED beyond."""
    rows = []
    for given, length in zip(inputs, lengths.tolist(), strict=True):
        letters = given[:length]
        letters = letters[letters < FILLER].flip(0)
        rows.append(torch.cat((letters, letters.new_full((1,), BORDER))))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=IGNORED)
