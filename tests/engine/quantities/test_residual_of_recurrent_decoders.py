"""Where attention is part of a recurrent decoder there is no residual stream, and that is known before a call more."""

from __future__ import annotations

import torch
from attended_models import loss
from listed import Listed
from torch import Tensor, nn

from inspector.engine.analyses.attention.residual_stream import NO_STACK, no_stack
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

STEPS, WIDTH, V = 6, 8, 7


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH)

    def forward(self, state: Tensor, memory: Tensor) -> Tensor:
        weights = (self.q(state)[:, None] @ memory.mT).softmax(-1)
        return (weights @ memory)[:, 0]


class Decoder(nn.Module):
    """A cell that attends to the encoder's states at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.attention = nn.GRUCell(WIDTH, WIDTH), Attending()

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        state, out = x.new_zeros(len(x), WIDTH), []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step] + self.attention(state, memory), state)
            out.append(state)
        return torch.stack(out, 1)


class Recurrent(nn.Module):
    def __init__(self, *, listed: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.encoder = nn.Embedding(V, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.decoder: nn.Module = nn.ModuleList([Decoder(), Decoder()]) if listed else Decoder()
        self.head = nn.Linear(WIDTH, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        memory = torch.cat([self.encoder(x)[0], x[:, :1]], 1)
        for one in self.decoder if isinstance(self.decoder, nn.ModuleList) else [self.decoder]:
            x = one(x, memory)
        out: Tensor = self.head(x)
        return out


def told(model: nn.Module) -> tuple[str, dict[str, str]]:
    """(why there is no stream as it is known ahead, reasons of refusals)."""
    ids = torch.randint(0, V, (1, STEPS), generator=torch.Generator().manual_seed(3))
    subject = Subject(model=model, kind="tokens", vocabulary="abcdefg", loss=loss, next_token=True)
    sink = Listed()
    trace = perform(subject, Batch(ids, torch.tensor([STEPS])), sink, RunOptions(only=("residual",)))
    return no_stack(trace), sink.refusals()


def test_a_recurrent_decoder_that_attends_has_no_stack_of_layers() -> None:
    reason, refused = told(Recurrent())
    assert reason == NO_STACK.format("decoder.attention")
    assert refused == {"layers:residual/norm": reason}, "what is known ahead is what the quantity says"


def test_recurrent_layers_in_a_list_may_be_a_stack() -> None:
    assert told(Recurrent(listed=True))[0] == ""
