"""A loop over a packed sequence by hand: its batch shrinks as sequences end, so one sequence alone is shown."""

from __future__ import annotations

import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        h, found = x.new_zeros(len(x), 4), []
        for rows in packed.data.split(packed.batch_sizes.tolist()):
            h = torch.tanh(self.a(rows) + self.b(h[: len(rows)]))
            found.append(h)
        whole = PackedSequence(torch.cat(found), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        return pad_packed_sequence(whole, batch_first=True)[0]


def run(*lengths: int) -> Kept:
    sink = Kept()
    subject = Subject(model=Packed(), forward=lambda model, x, n: model(x, n))
    batch = Batch(torch.randn(len(lengths), max(lengths), 3), torch.tensor(lengths))
    perform(subject, batch, sink, RunOptions(only=("states",)))
    return sink


def test_of_a_batch_it_is_said_that_one_sequence_alone_is_shown() -> None:
    (reason,) = [one for one in run(4, 9, 7).reasons() if "changes its shape" in one]
    assert reason.endswith(
        "(3, 4), (2, 4), (1, 4) (fewer sequences as they end: a run with one sequence alone shows it)."
    )


def test_one_sequence_alone_is_shown() -> None:
    sink = run(9)
    assert sink.array("model:h").shape == (9, 4) and not sink.refusals()
