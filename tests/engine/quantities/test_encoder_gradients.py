"""Gradients from an answer's steps to the encoder's states, against autograd through the encoder written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
V, H, ANSWER = 6, 4, 3


class EncoderDecoder(nn.Module):
    """A fixed context as the decoder's first state, or attention to the encoder's states by dot product."""

    def __init__(self, kind: type[nn.Module], *, attends: bool, packed: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, 3)
        self.encoder = kind(3, H, batch_first=True)  # type: ignore[call-arg]
        self.cell, self.head = nn.GRUCell(H, H), nn.Linear(H, V)
        self.attends, self.packed = attends, packed

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        given: Any = self.embedding(ids)
        if self.packed:
            given = nn.utils.rnn.pack_padded_sequence(given, lengths, batch_first=True, enforce_sorted=False)
        states, last = self.encoder(given)
        if self.packed:
            states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        return self.decode(states, (last[0] if isinstance(last, tuple) else last)[0])

    def decode(self, h: Tensor, s: Tensor) -> Tensor:
        out = []
        for _ in range(ANSWER):
            weights = (h @ s[:, :, None]).softmax(1)
            s = self.cell((weights * h).sum(1) if self.attends else torch.zeros_like(s), s)
            out.append(self.head(s))
        return torch.stack(out, 1)


def loss(scores: Tensor, batch: Batch) -> Tensor:
    return F.cross_entropy(scores.transpose(1, 2), batch.targets, reduction="none")


def states_written_out(model: EncoderDecoder, x: Tensor) -> list[Tensor]:
    """h after each step, by the equations of torch's documentation."""
    rnn = model.encoder
    w, u, b, d = (getattr(rnn, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, c, found = torch.zeros(H, dtype=torch.float64), torch.zeros(H, dtype=torch.float64), []
    for row in x:
        a, r = w @ row + b, u @ h + d
        if isinstance(rnn, nn.LSTM):
            i, f, g, o = (a + r).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        else:
            (ar, az, an), (rr, rz, rn) = a.chunk(3), r.chunk(3)
            z = (az + rz).sigmoid()
            h = (1 - z) * (an + (ar + rr).sigmoid() * rn).tanh() + z * h
        found.append(h)
    return found


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
@pytest.mark.parametrize(("attends", "packed"), [(False, False), (True, False), (True, True)])
def test_every_loss_at_every_state(kind: type[nn.Module], attends: bool, packed: bool) -> None:
    torch.manual_seed(2)
    model = EncoderDecoder(kind, attends=attends, packed=packed).double().eval()
    ids, targets = torch.randint(0, V, (2, 7)), torch.randint(0, V, (2, ANSWER))
    lengths = torch.tensor([7, 5 if packed else 7])
    subject = Subject(
        model=model, kind="tokens", vocabulary="abcdef", loss=loss, answer=lambda _out, batch: batch.targets,
        forward=lambda model, ids, lengths: model(ids, lengths),
    )  # fmt: skip
    sink = Listed()
    given = Batch(ids, lengths, targets=targets, look_at=1)
    perform(subject, given, sink, RunOptions(only=("gradient/from_answer",)))
    found = sink.array("encoder.l0:gradient/from_answer")
    states = states_written_out(model, model.embedding.weight[ids[1, : lengths[1]]])
    padded = F.pad(torch.stack(states), (0, 0, 0, 7 - len(states)))  # the model attends to its padding, too
    scores = model.decode(padded[None], states[-1][None])
    expected = torch.zeros(ANSWER, int(lengths[1]), dtype=torch.float64)
    for t in range(ANSWER):
        one = F.cross_entropy(scores[0, t][None], targets[1, t][None])
        slopes = torch.autograd.grad(one, states, retain_graph=True, allow_unused=True)
        expected[t] = torch.stack([torch.zeros(()) if g is None else g.norm() for g in slopes])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
    channel = sink.channel("encoder.l0:gradient/from_answer")
    assert (channel.domain("query"), channel.domain("key")) == ("answer step", "step")


def test_a_loss_over_the_input_is_told_where_to_look() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(3, V, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.rnn(x)[0]
            return out

    sink = Listed()
    subject = Subject(model=Plain(), kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    perform(subject, Batch(torch.randn(1, 5, 3), torch.tensor([5])), sink, RunOptions(only=("gradient/from_answer",)))
    assert "gradient/lag_map" in sink.refusals()["rnn.l0:gradient/from_answer"]
