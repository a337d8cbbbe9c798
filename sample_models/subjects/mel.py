"""Mel spectrograms as speech encoders read them: 16 kHz, windows of 25 ms every 10 ms, 40 bands of power.

The mel scale is Slaney's (linear below 1 kHz, logarithmic above), bands are triangles of unit area: M. Slaney,
Auditory Toolbox (1998).
"""

from __future__ import annotations

import torch
from torch import Tensor

RATE, WINDOW, HOP, BANDS = 16_000, 400, 160, 40


def hertz_of_mel(mel: Tensor) -> Tensor:
    """Slaney's scale: 200/3 Hz a mel up to 1 kHz (15 mel), then a factor of 6.4 in 27 mel."""
    return torch.where(mel < 15, mel * 200 / 3, 1000 * torch.exp((mel - 15) * torch.log(torch.tensor(6.4)) / 27))


def filters() -> Tensor:
    """(band, frequency) triangles from 0 to 8 kHz, each of area 1 over frequency in hertz."""
    top = 15 + 27 * torch.log(torch.tensor(RATE / 2 / 1000)) / torch.log(torch.tensor(6.4))
    edges = hertz_of_mel(torch.linspace(0, 1, BANDS + 2) * top)
    grid = torch.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rising = (grid - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - grid) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0) * (2 / (edges[2:] - edges[:-2]))[:, None]


def mel_frames(samples: Tensor, rate: int) -> Tensor:
    """Samples (n,) at any rate → frames (t, 40) of mel power; resampled linearly, which is enough for speech."""
    if len(samples) < WINDOW:
        raise ValueError(f"The recording has {len(samples)} samples; at least {WINDOW} are needed for one frame.")
    if rate != RATE:
        size = max(WINDOW, round(len(samples) * RATE / rate))
        samples = torch.nn.functional.interpolate(samples[None, None], size, mode="linear")[0, 0]
    spectrum = torch.stft(
        samples, WINDOW, HOP, window=torch.hann_window(WINDOW), center=True, pad_mode="constant", return_complex=True
    )
    return (filters() @ spectrum.abs().square()).T
