"""The model's output at each step: loss, most probable outputs, entropy, and the surprise at the actual token."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.answer import Answer
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT, catalogue

TOP = 8
OWN_STEPS = (
    "The scores have {} steps and the input {}: an output with a step axis of its own is shown if the subject defines "
    "`answer`."
)
OTHER_STEPS = "The scores have {} steps and the answer has {}, so they are not shown."
BLOCK_ENTRIES = 1 << 22
"""Scores handled at once: a block of steps of a large vocabulary."""

LOSS = Describe(kind="output", unit=LOSS_UNIT, title="loss", formula="the subject's own loss, step by step")
MODELS_LOSS = replace(LOSS, formula="the loss in the model's own output, step by step")
SURPRISE = Describe(
    kind="output", unit="nat", title="surprise", formula="−ln p(token_t | tokens before t); NaN at the first step",
    source="Shannon 1948",
)  # fmt: skip
ANSWERED = Describe(
    kind="output", unit="nat", title="surprise", formula="−ln p(token_t of the answer | input, answer before t)",
    source="Shannon 1948",
)  # fmt: skip
ENTROPY = Describe(kind="output", unit="nat", title="output entropy", formula="−Σ_v p_v ln p_v", source="Shannon 1948")
PROBABILITY = Describe(
    kind="output", title=f"the {TOP} most probable", formula="softmax of the scores, largest first", limits=(0.0, 1.0)
)

TOKEN = Describe(kind="output", title=f"indices of the {TOP} most probable", formula="indices of the largest scores")


@QUANTITIES.register("output/loss")
@per_run(summary="loss of every step, its mean and the perplexity", order=5, needs=(catalogue.LOSS,))
def loss(trace: Trace, emit: Emitter) -> None:
    """ℓ_t of the selected sample: (step,), NaN where a step carries none; scalars mean, terms, nan and exp(mean).

    The mean is over all steps of all samples that carry a loss, `terms` their number; it is NaN where the model made
    NaN of one of them, `nan` in number; the formula says how that NaN was told from "no loss". Perplexity only where
    the loss predicts tokens. The step axis is the output's where it has its own.
    """
    if trace.loss is None:
        return
    values = trace.loss.detach()
    answer = trace.answer
    length = trace.batch.length if answer is None else answer.length(trace.look_at)
    own = values[trace.look_at, :length].float()
    describe = LOSS if trace.subject.loss is not None else MODELS_LOSS
    formula = ". ".join(part for part in (describe.formula, trace.loss_rule) if part)
    emit.array(describe.channel("output:loss", ("step",), tuple(own.shape), "float32", formula=formula), own)
    carried = ~values.isnan() if trace.loss_carried is None else trace.loss_carried
    terms = values[carried].double()
    mean = float(terms.mean())
    emit.scalar("output:loss/mean", mean)
    emit.scalar("output:loss/terms", len(terms))
    emit.scalar("output:loss/nan", int(terms.isnan().sum()))
    has_targets = answer is not None and answer.ids is not None and trace.logits is not None
    if trace.subject.next_token or has_targets:
        emit.scalar("output:perplexity", math.inf if mean >= 700 else math.exp(mean))


@dataclass(slots=True)
class Answers:
    """Of each row of scores: log-normalised entropy (t,), the k likeliest (t, k) and ln p of a given token (t,)."""

    entropy: Tensor
    probability: Tensor
    token: Tensor
    log_probability: Tensor


@QUANTITIES.register("output/probabilities")
@per_run(summary="most probable outputs, surprise and entropy of every step", order=5)
def probabilities(trace: Trace, emit: Emitter) -> None:
    """p = softmax(scores) of the selected sample, in blocks of steps.

    Writes `output:probability` and `output:token` (step, rank), `output:entropy` (step,), and where the subject
    predicts the next token `output:surprise` (step,): −ln p of token t under the scores of step t-1. A model that gives
    one output (scores of one step) has its one row at the last step. An output with a step axis of its own is written
    over that axis, and its surprise is −ln p of its token t under the scores of step t.
    """
    if trace.logits is None:
        return
    if trace.answer is not None:
        _own_steps(trace, trace.answer, emit)
        return
    length = trace.batch.length
    scores = trace.logits[trace.look_at].detach()
    once = scores.shape[0] == 1 and length > 1
    given = trace.batch.steps
    if not once and scores.shape[0] != given:
        emit.refuse("output:probability", OWN_STEPS.format(scores.shape[0], given))
        return
    scores = scores if once else scores[:length]
    ids = trace.batch.inputs[trace.look_at, :length]
    following = trace.subject.next_token and not once and ids.dim() == 1 and not ids.is_floating_point()
    answers = answer(scores, ids[1:] if following else None)
    _write(trace, answers, length, length - 1 if once else 0, emit)
    if following:
        _write_surprise(answers, length, emit)


def _write_surprise(answers: Answers, length: int, emit: Emitter) -> None:
    """−ln p of every token but the first, at the step where it is read."""
    surprise = torch.cat([torch.full((1,), torch.nan), -answers.log_probability])
    emit.array(SURPRISE.channel("output:surprise", ("step",), (length,), "float32"), surprise)


def _own_steps(trace: Trace, known: Answer, emit: Emitter) -> None:
    """The same over the output's own step axis; surprise where the target is known."""
    assert trace.logits is not None
    scores, length = trace.logits[trace.look_at].detach(), known.length(trace.look_at)
    if scores.shape[0] != known.steps:
        emit.refuse("output:probability", OTHER_STEPS.format(scores.shape[0], known.steps))
        return
    ids = None if known.ids is None else known.ids[trace.look_at, :length]
    read = trace.batch.named[known.source] if known.source and trace.subject.next_token else None
    if read is not None and read.kind == "tokens" and read.tensor is not None:  # a decoder is fed one step late
        answers = answer(scores[:length], read.tensor[trace.look_at, 1:length])
        _write(trace, answers, length, 0, emit)
        _write_surprise(answers, length, emit)
        return
    answers = answer(scores[:length], ids)
    _write(trace, answers, length, 0, emit)
    if ids is not None:
        emit.array(ANSWERED.channel("output:surprise", ("step",), (length,), "float32"), -answers.log_probability)


def _write(trace: Trace, answers: Answers, length: int, start: int, emit: Emitter) -> None:
    """Probabilities, tokens and entropies of `length` steps, of which the first `start` have no output."""
    assert trace.logits is not None
    speaking = "" if trace.answer is None else trace.answer.vocabulary_of
    domain, _ = trace.subject.classes(trace.logits.shape[-1], speaking)
    shape = (length, answers.token.shape[1])
    channel = PROBABILITY.channel("output:probability", ("step", "rank"), shape, "float32")
    emit.channel(channel)
    emit.page(channel.name, (start, 0), answers.probability)
    channel = TOKEN.channel("output:token", ("step", "rank"), shape, "int32", value_domain=domain)
    tokens = torch.full(shape, -1, dtype=torch.int32)  # no output before `start`
    tokens[start:] = answers.token
    emit.array(channel, tokens)
    channel = ENTROPY.channel("output:entropy", ("step",), (length,), "float32")
    emit.channel(channel)
    emit.page(channel.name, (start,), answers.entropy)


def answer(scores: Tensor, following: Tensor | None) -> Answers:
    """Entropy, top k and ln p of the following tokens from scores (t, v), computed in blocks of steps.

    `following` (t,) or (t-1,): the token that each row, or each but the last, is compared with; or None. Ids
    outside the vocabulary give NaN.
    """
    steps, width = scores.shape
    k = min(TOP, width)
    result = Answers(
        torch.empty(steps), torch.empty(steps, k), torch.empty(steps, k, dtype=torch.int32), torch.empty(0)
    )
    found = []
    size = max(1, BLOCK_ENTRIES // max(1, width))
    for start in range(0, steps, size):
        rows = slice(start, min(start + size, steps))
        logs = torch.log_softmax(scores[rows].float(), dim=-1)
        top, which = logs.topk(k, dim=-1)
        result.probability[rows] = top.exp()
        result.token[rows] = which.to(torch.int32)
        chances = logs.exp()
        result.entropy[rows] = (
            -(chances * logs).where(chances > 0, 0.0).sum(dim=-1).where(~top[:, 0].isnan(), torch.nan)
        )
        if following is not None:
            ids = following[rows].to(logs.device)
            inside = (ids >= 0) & (ids < width)
            picked = logs[: len(ids)].gather(1, ids.clamp(0, width - 1)[:, None])[:, 0]
            found.append(picked.where(inside, torch.nan).cpu())
    if found:
        result.log_probability = torch.cat(found)
    return result
