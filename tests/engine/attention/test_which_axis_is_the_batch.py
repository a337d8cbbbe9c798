"""As many heads, steps or windows as sequences: maps against those of the sequence alone, in plain float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Channel

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, SAMPLE = 12, 1


def split(x: Tensor, heads: int) -> Tensor:
    """(b, t, a, d)."""
    return x.unflatten(-1, (heads, -1))


def plain(x: Tensor, heads: int) -> np.ndarray:
    """(a, t, t) of x (t, e), queries 1.5 times the keys."""
    own = x.double().unflatten(-1, (heads, -1))
    found = torch.zeros(heads, len(x), len(x), dtype=torch.float64)
    for a in range(heads):
        for q in range(len(x)):
            row = torch.stack([1.5 * own[q, a] @ own[k, a] for k in range(len(x))]) / math.sqrt(WIDTH // heads)
            found[a, q] = (row - row.max()).exp() / (row - row.max()).exp().sum()
    return found.numpy()


Way = Callable[[Tensor, int], Tensor]


def weigh(order: str) -> Way:
    """Scores with their axes in an order."""

    def attend(x: Tensor, heads: int) -> Tensor:
        own = split(x, heads)
        scores = torch.einsum(f"bqad,bkad->{order}", 1.5 * own, own) / math.sqrt(own.shape[-1])
        weights = scores.softmax(order.index("k"))
        return torch.einsum(f"{order},bkad->bqad", weights, own).flatten(2)

    return attend


def heads_first(x: Tensor, heads: int) -> Tensor:
    own = split(x, heads).permute(2, 0, 1, 3)
    return ((1.5 * own @ own.mT / math.sqrt(own.shape[-1])).softmax(-1) @ own).permute(1, 2, 0, 3).flatten(2)


def batch_first(x: Tensor, heads: int) -> Tensor:
    own = split(x, heads).transpose(1, 2)
    return ((1.5 * own @ own.mT / math.sqrt(own.shape[-1])).softmax(-1) @ own).transpose(1, 2).flatten(2)


def time_first(x: Tensor, heads: int) -> Tensor:
    own = split(x.transpose(0, 1), heads)  # (t, b, a, d)
    weights = torch.einsum("qbad,kbad->qbak", 1.5 * own, own).div(math.sqrt(own.shape[-1])).softmax(-1)
    return torch.einsum("qbak,kbad->qbad", weights, own).transpose(0, 1).flatten(2)


def merged_heads_first(x: Tensor, heads: int) -> Tensor:
    b, t, _ = x.shape
    own = split(x, heads).permute(2, 0, 1, 3).reshape(heads * b, t, -1)
    out = torch.bmm((1.5 * own @ own.mT / math.sqrt(own.shape[-1])).softmax(-1), own)
    return out.view(heads, b, t, -1).permute(1, 2, 0, 3).flatten(2)


def merged_batch_first(x: Tensor, heads: int) -> Tensor:
    b, t, _ = x.shape
    own = split(x, heads).transpose(1, 2).reshape(heads * b, t, -1)
    out = torch.bmm((1.5 * own @ own.mT / math.sqrt(own.shape[-1])).softmax(-1), own)
    return out.view(b, heads, t, -1).transpose(1, 2).flatten(2)


def chunked_heads(x: Tensor, heads: int) -> Tensor:
    """torch.cat(chunks) along the batch, as in the code of the Set Transformer."""
    own = torch.cat(x.split(x.shape[-1] // heads, -1), 0)
    out = (1.5 * own @ own.mT / math.sqrt(own.shape[-1])).softmax(-1) @ own
    return torch.cat(out.split(len(x), 0), -1)


def fused_batch_first(x: Tensor, heads: int) -> Tensor:
    own = split(x, heads).transpose(1, 2)
    return F.scaled_dot_product_attention(1.5 * own, own, own).transpose(1, 2).flatten(2)


def fused_heads_first(x: Tensor, heads: int) -> Tensor:
    own = split(x, heads).permute(2, 0, 1, 3)
    return F.scaled_dot_product_attention(1.5 * own, own, own).permute(1, 2, 0, 3).flatten(2)


def fused_merged(x: Tensor, heads: int) -> Tensor:
    own = split(x, heads).permute(2, 0, 1, 3).flatten(0, 1)
    out = F.scaled_dot_product_attention(1.5 * own, own, own)
    return out.unflatten(0, (heads, -1)).permute(1, 2, 0, 3).flatten(2)


def one_by_one(x: Tensor, heads: int) -> Tensor:
    """A loop over the sequences, with as many heads as these: no axis of the batch."""
    own = split(x, heads).transpose(1, 2)
    return torch.stack([(1.5 * one @ one.mT).softmax(-1) @ one for one in own]).transpose(1, 2).flatten(2)


WAYS: dict[str, Way] = {
    "baqk": weigh("baqk"), "abqk": weigh("abqk"), "bqak": weigh("bqak"), "qbak": weigh("qbak"), "kabq": weigh("kabq"),
    "heads first": heads_first, "batch first": batch_first, "time first": time_first,
    "merged, heads first": merged_heads_first, "merged, batch first": merged_batch_first, "chunks": chunked_heads,
    "fused": fused_batch_first, "fused, heads first": fused_heads_first, "fused, merged": fused_merged,
}  # fmt: skip
SIZES = {"heads": (2, 5, 2), "all": (3, 3, 3), "steps": (4, 4, 2), "twice": (2, 5, 4), "none": (3, 5, 2)}
"""(batch, steps, heads)"""


class Model(nn.Module):
    def __init__(self, way: Way, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layer, self.way, self.heads = nn.Linear(WIDTH, WIDTH), way, heads
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.way(self.dropout(self.layer(x)), self.heads)


def run(model: nn.Module, x: Tensor, *asked: str) -> Listed:
    sink = Listed()
    batch = Batch(x, torch.full((len(x),), x.shape[1]), look_at=SAMPLE)
    perform(Subject(model=model, kind="vectors", width=WIDTH), batch, sink, RunOptions(only=asked))
    return sink


def inputs(batch: int, steps: int) -> Tensor:
    return torch.randn(batch, steps, WIDTH, generator=torch.Generator().manual_seed(3)).double()


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("way", WAYS)
def test_the_map_is_that_of_the_selected_sequence(way: str, sizes: str) -> None:
    batch, steps, heads = SIZES[sizes]
    torch.manual_seed(1)
    model, x = Model(WAYS[way], heads).double().eval(), inputs(batch, steps)
    sink = run(model, x, "attention/maps", "attention/entropy")
    expected = plain(model.layer(x[SAMPLE]).detach(), heads)
    assert not sink.refusals(), sink.refusals()
    np.testing.assert_allclose(sink.array("model:attention"), expected, atol=1e-3)
    entropy = -(expected * np.log(expected)).sum(-1)
    np.testing.assert_allclose(sink.array("model:attention/entropy"), entropy, rtol=1e-5)
    assert "taken" not in sink.channel("model:attention").method


def test_a_loop_over_the_sequences_is_not_taken_for_one_map() -> None:
    torch.manual_seed(1)
    model, x = Model(one_by_one, 2).double().eval(), inputs(2, 5)
    sink = run(model, x, "attention/maps")
    names = [one.name for one in sink.of(Channel) if one.name.endswith(":attention")]
    assert not names
    assert "Which axis of the attention of model is the batch is not known" in sink.refusals()["model:attention"]


def test_dropout_does_not_hide_it_and_what_was_added_to_the_values_is_of_the_run() -> None:
    torch.manual_seed(1)
    model, x = Model(heads_first, 2, dropout=0.3).double().train(), inputs(2, 5)
    seen: list[Tensor] = []
    model.dropout.register_forward_hook(lambda _module, _given, out: seen.append(out.detach()))
    sink = run(model, x, "attention/maps")
    np.testing.assert_allclose(sink.array("model:attention"), plain(seen[0][SAMPLE], 2), atol=1e-3)
