"""A model that failed to learn has a short reach as well: the loss with its past against the loss with another one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.analysis.influence import Past, influence_verdict
from inspector.engine.analyses.past_ablation import DRAWS
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
STEPS, BACK = 24, 5


class Guess(nn.Module):
    """Scores of the symbol that was read BACK steps before, or, unlearned, of nothing: it reads its current symbol."""

    def __init__(self, *, learned: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(4, 4)
        self.learned = learned
        with torch.no_grad():
            self.embedding.weight.copy_(torch.eye(4))

    def forward(self, ids: Tensor) -> Tensor:
        read = self.embedding(ids)
        if self.learned:
            return 6 * nn.functional.pad(read, (0, 0, BACK, 0))[:, : ids.shape[1]]
        leak = read.cumsum(1) * 1e-3  # a little of the past, of no use
        return 0.3 * read + leak


def recall(out: Tensor, batch: Batch) -> Tensor:
    """−ln p of the symbol of BACK steps before; NaN in the first ones."""
    wanted = torch.nn.functional.cross_entropy(out[:, BACK:].transpose(1, 2), batch.inputs[:, :-BACK], reduction="none")
    return nn.functional.pad(wanted, (BACK, 0), value=torch.nan)


def run(model: nn.Module, sequences: int = 4) -> tuple[Tensor, Kept]:
    torch.manual_seed(1)
    ids = torch.randint(0, 4, (sequences, STEPS))
    kept = Kept()
    subject = Subject(model=model.to(D), kind="tokens", vocabulary=list("abcd"), loss=recall)
    perform(subject, Batch(ids, torch.full((sequences,), STEPS)), kept, RunOptions(only=("influence",)))
    return ids, kept


def word(kept: Kept) -> str:
    reaches = (kept.scalar("input:influence/reach"), kept.scalar("input:gradient/reach"))
    influence, gradient = (kept.array(f"input:{name}")[0] for name in ("influence/loss", "gradient/lag"))
    zero = int(kept.scalar("input:influence/reference_lag"))
    return influence_verdict(influence, gradient, zero, reaches, Past.read(kept.scalar)).word


def test_a_model_that_recalls_loses_by_another_past_as_much_as_plain_runs_say() -> None:
    model = Guess(learned=True)
    ids, kept = run(model)
    plain = recall(model(ids), Batch(ids, torch.full((4,), STEPS))).detach()
    picks = np.linspace(0, 4 * (STEPS - BACK) - 1, 16).round().astype(int)
    steps = [(pick // (STEPS - BACK), BACK + pick % (STEPS - BACK)) for pick in picks.tolist()]
    assert kept.scalar("input:influence/loss_with_past") == pytest.approx(
        float(torch.stack([plain[pair] for pair in steps]).mean()), rel=1e-6
    )
    # another past holds the symbol in one case of four or so: the loss is then that of a wrong symbol, 6 and more
    random, every = torch.Generator().manual_seed(5), []
    for _ in range(40):
        for sample, step in steps:
            other = ids[sample].clone()
            other[:step] = ids[sample][torch.randint(STEPS, (step,), generator=random)]
            out = model(other[None]).detach()
            wanted = ids[sample, step - BACK]
            every.append(-float(out[0, step].log_softmax(-1)[wanted]))
    assert kept.scalar("input:influence/loss_without_past") == pytest.approx(np.mean(every), rel=0.1)
    assert kept.scalar("input:influence/past_p") == 1 / (DRAWS + 1)
    assert word(kept) not in ("not learned", "unknown")


def test_a_model_that_did_not_learn_to_recall_is_not_called_natural() -> None:
    _, kept = run(Guess(learned=False))
    assert kept.scalar("input:influence/past_p") > 0.05
    assert word(kept) == "not learned"


def test_without_a_loss_that_has_a_past_that_is_said() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2)).to(D)
    kept, x = Kept(), torch.randn(1, 6, 2, dtype=D)
    loss = lambda out, batch: torch.where(torch.arange(6) < 1, out.square().sum(-1), torch.nan)  # noqa: E731
    perform(Subject(model=model, kind="vectors", width=2, loss=loss), Batch(x, torch.tensor([6])), kept,
            RunOptions(only=("influence",)))  # fmt: skip
    assert not any(s.name.endswith("past_p") for s in kept.records if hasattr(s, "name")) and kept.reasons()


def test_losses_that_are_not_finite_are_counted_and_nothing_is_called_natural() -> None:
    class Broken(Guess):
        def forward(self, ids: Tensor) -> Tensor:
            out = super().forward(ids)
            return torch.where((torch.arange(ids.shape[1]) == STEPS - 2)[:, None], torch.nan, out)

    _, kept = run(Broken(learned=True))
    assert kept.scalar("input:influence/past_left_out") == 4, "one in each of four sequences"
    assert math.isfinite(kept.scalar("input:influence/loss_with_past"))
    _, whole = run(Guess(learned=True))
    assert whole.scalar("input:influence/past_left_out") == 0


def test_where_no_loss_with_a_past_is_finite_that_is_said() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2)).to(D)
    kept, x = Kept(), torch.randn(1, 6, 2, dtype=D)
    loss = lambda out, batch: torch.where(torch.arange(6) < 1, out.square().sum(-1), torch.inf)  # noqa: E731
    perform(Subject(model=model, kind="vectors", width=2, loss=loss), Batch(x, torch.tensor([6])), kept,
            RunOptions(only=("influence",)))  # fmt: skip
    assert kept.scalar("input:influence/past_left_out") == 5
    assert any("no loss with a past is finite" in reason for reason in kept.reasons())


@pytest.mark.parametrize(
    ("past", "said"),
    [
        (Past(0.1, 1.386, 1 / 21, 2.0), "2 losses with a past, NaN or infinite, left out"),
        (Past(1.5, 1.386, 0.9, 1.0), "1 loss with a past, NaN or infinite, left out"),
        (Past(left_out=3.0), "3 losses with a past, NaN or infinite, left out"),
        (Past(1.5, math.nan, math.nan, 0.0), "with another past the loss is NaN or infinite"),
    ],
)
def test_a_loss_that_is_not_finite_leaves_it_unknown(past: Past, said: str) -> None:
    falling = np.exp(-0.3 * np.arange(60))
    found = influence_verdict(falling, falling, 0, (9.0, 23.0), past)
    assert found.word == "unknown" and said in found.sentence and "not known whether natural" in found.sentence
    vanished = influence_verdict(falling, np.exp(-0.9 * np.arange(60)), 0, (9.0, 7.0), past)
    assert vanished.word == "vanished" and said in vanished.sentence


@pytest.mark.parametrize(
    ("past", "expected", "said"),
    [
        (Past(1.38, 1.386, 0.4), "not learned", "not learned: the loss is no better than without the past"),
        (Past(1.5, 1.386, 0.9), "not learned", "a task that is known to need the past, decides"),
        (Past(0.1, 1.386, 1 / 21), "natural", "the loss is lower with the past (0.1 with it, 1.39 with another"),
        (Past(1e-4, 0.02, 0.14), "unknown", "natural or not learned"),
        (Past(), "natural", "natural: the loss depends"),
    ],
)
def test_the_words(past: Past, expected: str, said: str) -> None:
    falling = np.exp(-0.3 * np.arange(60))
    found = influence_verdict(falling, falling, 0, (9.0, 23.0), past)
    assert found.word == expected and said in found.sentence
    assert influence_verdict(falling, np.exp(-0.9 * np.arange(60)), 0, (9.0, 7.0), past).word == "vanished"
