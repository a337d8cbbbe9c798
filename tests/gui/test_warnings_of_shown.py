"""A state that runs along the batch is shown, with a warning below it; it is not called "not shown"."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import inspector
from inspector.gui.export.offscreen import Stage


class TimeMajor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.rnn(x)[0]
        return found


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize(("shown", "before"), [(True, ""), (False, "Not shown: ")])
def test_a_state_along_the_batch_is_warned_of_where_it_is_shown(shown: bool, before: str) -> None:
    """The remedy stands where a line of a window of 1280 is not cut."""
    capture = inspector.run(TimeMajor(), [torch.randn(4, 3).numpy() for _ in range(4 if shown else 3)])
    assert ("rnn.l0:h" in capture.channels) is shown
    stage = Stage(capture, (860, 400))
    panel = stage.panel("states")
    panel._missing.tell(panel)
    assert panel._missing.whole.startswith(f"{before}rnn:h: {'Runs along' if shown else ''}")
    assert not shown or "make rnn with batch_first=True, or give it the input transposed" in panel._missing.text()
    stage.close()
