"""Mel frames as speech encoders read them: resampling does not fold high tones back, loudness is raised, not lowered."""

from __future__ import annotations

import math

import pytest
import torch

from sample_models.subjects.mel import BANDS, RATE, filters, louder, mel_frames, resampled


def tone(hertz: float, rate: int, seconds: float = 0.5) -> torch.Tensor:
    return torch.sin(2 * math.pi * hertz * torch.arange(int(rate * seconds)).double() / rate).float()


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_resampling_keeps_a_tone(rate: int) -> None:
    made = resampled(tone(440, rate), rate)
    expected = tone(440, RATE)
    assert abs(len(made) - len(expected)) <= 1
    torch.testing.assert_close(made[500:-500], expected[500 : len(made) - 500], atol=2e-3, rtol=0)


@pytest.mark.parametrize("hertz", [9_000.0, 12_000.0, 20_000.0])
def test_what_16_khz_cannot_hold_is_filtered_out(hertz: float) -> None:
    assert float(resampled(tone(hertz, 48_000), 48_000).abs()[500:-500].max()) < 1e-3


def test_loudness() -> None:
    quiet, loud, silent = tone(440, RATE) * 1e-4, tone(440, RATE), torch.zeros(800)
    assert math.isclose(10 * math.log10(float(louder(quiet).square().mean())), -30, abs_tol=0.01)
    assert torch.equal(louder(loud), loud) and not louder(silent).any()


def test_a_tone_lands_in_its_band() -> None:
    centres = filters().argmax(1) * RATE / 400
    frames = mel_frames(tone(1_000, RATE), RATE)
    assert frames.shape[1] == BANDS
    band = int(frames[10:-10].mean(0).argmax())
    assert abs(float(centres[band]) - 1_000) < 100


def test_less_than_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1200 are needed"):
        mel_frames(torch.zeros(1_000), 48_000)
