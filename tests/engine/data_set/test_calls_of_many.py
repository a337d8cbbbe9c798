"""How often the model is called for many short sequences, and that no sequence of the user's is handed to it as it is."""

from __future__ import annotations

import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.data_set import run_data_set
from inspector.engine.data_set.run import CHECKED
from inspector.engine.model.subject import Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Frame, data_spec

COUNT, STEPS = CHECKED + 512, 4


class Counting(nn.Module):
    """A layer that counts its calls, and may change its input in place."""

    def __init__(self, spoils: bool) -> None:
        super().__init__()
        self.rnn, self.spoils, self.calls = nn.RNN(3, 2, batch_first=True), spoils, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        out: Tensor = self.rnn(x)[0]
        if self.spoils:
            x.zero_()
        return out


def run(model: Counting) -> tuple[Tensor, Tensor]:
    """The sequences before and after."""
    torch.manual_seed(0)
    data = torch.randn(COUNT, STEPS, 3)
    subject = Subject(model=model.eval(), kind="vectors", width=3)
    subject.data = given = [one.clone() for one in data]
    assert run_data_set(subject, data_spec("subject"), Kept(), RunOptions(), Frame(index=0)) == COUNT
    return data, torch.stack(given)


def test_many_short_sequences_take_few_calls() -> None:
    model = Counting(spoils=False)
    run(model)
    assert model.calls == CHECKED + 2 + 512 // 256, "each of the first alone, two to compare, and the batches"


def test_a_model_that_changes_its_input_does_not_change_the_sequences() -> None:
    before, after = run(Counting(spoils=True))
    assert torch.equal(before, after)
