"""The speaker encoder that the PyPI package `resemblyzer` ships: three LSTM layers over 40 mel bands.

Open it with its own checkpoint (`resemblyzer/pretrained.pt` in site-packages) and a voice recording:
`inspector run resemblyzer_encoder.py:encoder --checkpoint pretrained.pt --input voice.wav`.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn

from sample_models.subjects.mel import mel_frames


class Encoder(nn.Module):
    """Mel frames (b, t, 40) → unit embedding (b, 256); attribute names as in the checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.linear = nn.LSTM(40, 256, 3, batch_first=True), nn.Linear(256, 256)
        self.similarity_weight, self.similarity_bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, frames: Tensor) -> Tensor:
        """The speaker embedding."""
        _, (hidden, _) = self.lstm(frames)
        return nn.functional.normalize(torch.relu(self.linear(hidden[-1])), dim=1)


def encoder() -> SimpleNamespace:
    """What inspector needs to know: the model, the width of a step, and how sound becomes steps."""
    return SimpleNamespace(
        model=Encoder(), name="resemblyzer speaker encoder", kind="vectors", width=40, frames=mel_frames
    )
