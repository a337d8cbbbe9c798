"""Why gates behind a convolution are not assigned to inputs: not because there are other steps."""

from __future__ import annotations

import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
T, WIDTH = 8, 4


class Convolved(nn.Module):
    """A gated loop over what a causal convolution made of the input, or over every second step of it."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.embedding, self.every = nn.Embedding(9, WIDTH), every
        self.mixed = nn.Conv1d(WIDTH, WIDTH, 3, padding=2, groups=WIDTH)
        self.forget, self.new = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.mixed(self.embedding(ids).mT)[..., : ids.shape[1] : self.every].mT
        gate = torch.sigmoid(self.forget(x))
        given = (1 - gate) * self.new(x)
        h, out = torch.zeros_like(given[:, 0]), []
        for step in range(x.shape[1]):
            h = gate[:, step] * h + given[:, step]
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize(("every", "why"), [(1, "has as many steps as the input"), (2, "runs over other steps")])
def test_the_reason_is_true(every: int, why: str) -> None:
    torch.manual_seed(0)
    sink = Listed()
    ids = torch.randint(0, 9, (2, T))
    subject = Subject(Convolved(every).eval(), kind="tokens", vocabulary="abcdefghi")
    perform(subject, Batch(ids, torch.tensor([T, T])), sink, RunOptions(only=["openers"]))
    (reason,) = (reason for name, reason in sink.refusals().items() if name.endswith("openers"))
    assert why in reason
