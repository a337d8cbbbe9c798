"""Each panel names the quantities whose channels it shows: every quantity alone, on samples of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from kept import Kept
from models import OnlyOutput
from torch import nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.pipeline import KeptTrace, RunOptions, analyse, perform
from inspector.engine.pipeline.batches import batch_of_spec
from inspector.engine.registries import QUANTITIES
from inspector.gui.panel.registry import ordered
from inspector.records import Channel, InputSpec, Load

MASKED, SCAN, HANDED = "masked by a finite number", "a scan by running sums", "hands its state on"
SAMPLED = "samples hidden states"
SAMPLES = (
    "char_gru", "char_s4d", "ladder_lstm", "char_transformer", "elman_relu", "deep_highway", "adding_elman",
    "nile_kalman", "char_hmm", "numerals_vae", "captions_vector", "", MASKED, SCAN, HANDED, SAMPLED,
)  # fmt: skip
SLOW = {
    "bptt", "truncation", "influence", "fixed_points", "gradient/state_derivatives", "operations",
    "attention/value_zeroing", "residual/sensitivity",
}  # fmt: skip
"""What is computed on request is run on one sample: each of these belongs to one panel alone."""
ONLY = {"numerals_vae": "latent/use", "captions_vector": "picture/words"}
"""A sample that is there for one quantity."""


def stack() -> tuple[Subject, Batch]:
    """Two recurrent layers, one above the other."""
    torch.manual_seed(0)
    model = OnlyOutput(nn.GRU(3, 4, 2, batch_first=True)).eval()
    subject = Subject(model=model, kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    return subject, Batch(torch.randn(1, 9, 3), torch.tensor([9]))


class Masked(nn.Module):
    """Attention whose mask is −10⁹."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return (x @ x.mT).masked_fill(later, -1e9).softmax(-1) @ x


def masked() -> tuple[Subject, Batch]:
    """Attention with a finite mask."""
    return Subject(model=Masked(), kind="vectors", width=3), Batch(torch.randn(1, 9, 3), torch.tensor([9]))


class Handed(nn.Module):
    """Attention and a layer whose state can be given."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(5, 4), nn.GRU(4, 4, batch_first=True), nn.Linear(4, 5)
        self.head.weight.data.copy_(self.embed.weight)  # equal, and not tied

    def forward(self, ids: torch.Tensor, state: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(ids)
        out, state = self.rnn((x @ x.mT).softmax(-1) @ x, state)
        return self.head(out), state


def handed() -> tuple[Subject, Batch]:
    """Everything that can be tested before training: a cache, attention, a loss over classes, targets beside inputs, the
    training's own optimizer and backward, padding in front."""

    def loss(out: tuple[torch.Tensor, torch.Tensor], batch: Batch) -> torch.Tensor:
        return nn.functional.cross_entropy(out[0].transpose(1, 2), batch.targets, reduction="none")

    def backward(model: nn.Module, batch: Batch, passes: int) -> None:
        for part in batch.inputs.chunk(passes):
            (model(part)[0].square().mean() / passes).backward()

    model = Handed()
    model.config = SimpleNamespace(pad_token_id=1)  # with which the first sequence begins
    subject = Subject(model=model, kind="tokens", vocabulary=list("abcde"), loss=loss, backward=backward)
    subject.optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    ids = torch.tensor([[1, 2, 3, 4, 0, 2, 1, 3, 4, 0], [2, 3, 1, 0, 4, 2, 3, 1, 0, 4]])
    return subject, Batch(ids[:, :-1], torch.tensor([9, 9]), targets=ids[:, 1:])


def before_training(quantity: str) -> bool:
    """Whether the model is called many times for it, which one small model shows."""
    return quantity.startswith(("structure/", "trial/"))


class Scan(nn.Module):
    """h_t = a_t h_{t−1} + (1 − a_t) x_t without a loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        decay = x.sigmoid()
        total = decay.cumprod(1)
        written = (1 - decay) * x
        return total * (written / total).cumsum(1)


def scan() -> tuple[Subject, Batch]:
    """A parallel scan, whose decay changes from step to step."""
    return Subject(model=Scan(), kind="vectors", width=3), Batch(torch.randn(1, 9, 3), torch.tensor([9]))


class Sampled(nn.Module):
    """A state of numbers and one of categories by step, both sampled."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = torch.distributions.Normal(x, 1.0).rsample()
        return z * torch.distributions.Categorical(logits=x).sample()[..., None]


def sampled() -> tuple[Subject, Batch]:
    """Distributions of both sorts."""
    return Subject(model=Sampled(), kind="vectors", width=3), Batch(torch.randn(1, 9, 3), torch.tensor([9]))


def recorded(sample: str) -> KeptTrace:
    kept: list[KeptTrace] = []
    made = {MASKED: masked, SCAN: scan, HANDED: handed, SAMPLED: sampled}
    if sample in made:
        subject, batch = made[sample]()
    elif sample:
        subject = open_subject(Load(subject=sample, trusted=True)).subject
        batch = batch_of_spec(subject, InputSpec(), 0)
    else:
        subject, batch = stack()
    perform(subject, batch, Kept(), RunOptions(only=("states", "clipping"), keep=kept.append))
    return kept[0]


def channels(kept: KeptTrace, key: str) -> Iterator[Channel]:
    """What one quantity writes, alone."""
    sink = Kept()
    emit = replace(kept.emit, sink=sink, declared={}, axes=set(), refused=set())
    analyse(kept.trace, emit, [key])
    return iter(sink.of(Channel))


@pytest.fixture(scope="module")
def shown() -> dict[str, set[str]]:
    """By panel, the quantities of which it accepts a channel."""
    found: dict[str, set[str]] = {key: set() for key, _ in ordered()}
    for sample in SAMPLES:
        kept = recorded(sample)
        for quantity in QUANTITIES:
            if quantity != ONLY.get(sample, quantity) or (quantity in SLOW and sample != "adding_elman"):
                continue
            if before_training(quantity) != (sample == HANDED):
                continue
            for channel in channels(kept, quantity):
                for key, panel in ordered():
                    if panel.accepts(channel):
                        found[key].add(quantity)
    return found


def test_a_panel_names_every_quantity_that_it_shows(shown: dict[str, set[str]]) -> None:
    declared = {key: {*panel.shows, *panel.extra} for key, panel in ordered()}
    lacking = {key: own - declared[key] for key, own in shown.items() if own - declared[key]}
    # these show whatever there is, and whatever has steps: the first names what it wants first
    assert lacking.keys() <= {"overview", "table"}, lacking


def test_a_panel_names_no_other_quantity(shown: dict[str, set[str]]) -> None:
    named = {key: {*panel.shows, *panel.extra} - shown[key] for key, panel in ordered()}
    assert {key: own for key, own in named.items() if own} == {}
    for key, panel in ordered():
        assert all(QUANTITIES[one].default for one in panel.shows), key
