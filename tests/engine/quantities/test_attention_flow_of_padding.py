"""Rollout and relevance to a padded source, against the same sequence run alone, without padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]
REAL, PADDED, SLOTS = 4, 6, 3
ROLLOUT, RELEVANCE = "cross:attention/rollout", "cross:attention/relevance"
IDS = torch.tensor([[1, 3, 5, 2, 0, 0], [1, 2, 3, 4, 5, 6]])


class Padded(nn.Module):
    """ids (b, t) → scores (b, 3, 5); 0 is padding, which the decoder masks or not."""

    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.embedding, self.slots = nn.Embedding(7, 8), nn.Parameter(torch.randn(SLOTS, 8))
        self.both = nn.Transformer(8, 2, 2, 2, 16, 0.0, batch_first=True)
        self.head, self.masked = nn.Linear(8, 5), masked

    def forward(self, ids: Tensor) -> Tensor:
        padding = ids == 0
        slots = self.slots.expand(len(ids), -1, -1)
        y = self.both(
            self.embedding(ids), slots, src_key_padding_mask=padding,
            memory_key_padding_mask=padding if self.masked else None,
        )  # fmt: skip
        out: Tensor = self.head(y)
        return out


def run(ids: Tensor, *, masked: bool = True) -> Listed:
    """Both quantities of the first sequence: rollout runs fused, relevance needs gradients and does not."""
    torch.manual_seed(3)
    sink = Listed()
    subject = Subject(
        model=Padded(masked).eval(), kind="tokens", vocabulary="abcdefg", labels="vwxyz", decoder="both.decoder",
        answer=lambda scores, _batch: scores.argmax(-1),
    )  # fmt: skip
    asked = ("attention/maps", "attention/rollout", "attention/relevance@of=score@step=2")
    perform(subject, Batch(ids, (ids != 0).sum(1)), sink, RunOptions(only=asked))
    return sink


def test_what_padding_hides_is_what_the_sequence_alone_shows() -> None:
    padded, alone = run(IDS), run(IDS[:1, :REAL])
    for name in (ROLLOUT, RELEVANCE):
        found = padded.array(name)
        assert found.shape == (2, SLOTS, PADDED) and found.any()
        np.testing.assert_allclose(found[..., :REAL], alone.array(name), rtol=1e-4, atol=1e-7)
        assert not found[..., REAL:].any()


def test_padding_that_a_decoder_reads_is_a_source_of_its_own_where_the_encoder_was_not_given_it() -> None:
    """Fused, its rows are zeros; else they attended to real positions, of which nothing is recorded."""
    sink = run(IDS, masked=False)
    expected = np.zeros((SLOTS, PADDED - REAL))
    for layer, found in enumerate(sink.array(ROLLOUT)):
        own, cross = (
            sink.array(f"both.decoder.layers.{layer}.{part}:attention").astype(float).mean(0)
            for part in ("self_attn", "multihead_attn")
        )
        expected = 0.5 * (expected + own @ expected)
        expected = 0.5 * expected + 0.5 * cross[:, REAL:]
        np.testing.assert_allclose(found[:, REAL:], expected, rtol=2e-3)
    why = sink.refusals()[RELEVANCE]
    assert why.startswith("both.decoder.layers.0.multihead_attn attends to positions of padding")
