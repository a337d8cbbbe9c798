"""A model that nobody here wrote or trained: resemblyzer's LSTM, on a real voice, in every panel."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import inspector
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.registry import ordered

VOICE = Path("/usr/share/sounds/alsa/Front_Center.wav")


def weights() -> Path:
    """The checkpoint in the installed package, found without importing the package."""
    found = importlib.util.find_spec("resemblyzer")
    if found is None or not found.submodule_search_locations:
        pytest.skip("resemblyzer is not installed (pip install --no-deps resemblyzer==0.1.4)")
    return Path(next(iter(found.submodule_search_locations))) / "pretrained.pt"


def recording(folder: Path) -> Path:
    """A real voice where the system has one ("Front Center", from alsa-utils), else a synthetic vowel."""
    if VOICE.exists():
        return VOICE
    import soundfile

    t = np.arange(24_000) / 16_000
    soundfile.write(
        folder / "vowel.wav", sum(np.sin(2 * math.pi * 120 * k * t) / k for k in range(1, 12)) * 0.1, 16_000
    )
    return folder / "vowel.wav"


@pytest.mark.foreign
def test_the_speaker_encoder_opens_runs_and_every_panel_shows_it(tmp_path: Path, qapp: object) -> None:
    path = weights()
    from sample_models.subjects.resemblyzer_encoder import encoder

    batch_file = recording(tmp_path)
    import soundfile

    from inspector.engine.opening.checkpoint_matching import fit
    from inspector.engine.opening.read_checkpoint import read_checkpoint

    subject = encoder()
    report, plan = fit(subject.model, read_checkpoint(path), path)
    assert report.fits and report.matched == report.total, report
    plan.apply(subject.model)
    samples, rate = soundfile.read(batch_file, dtype="float32", always_2d=True)
    frames = subject.frames(torch.from_numpy(samples.mean(1)), rate)
    assert frames.shape[1] == 40 and len(frames) > 50
    frames = frames[:8]  # what is compared below is so at every step, and the eigenvalues of each take long
    subject.model.eval()
    with torch.no_grad():
        expected = subject.model.lstm(frames[None])[0][0]
    with inspector.run(subject, frames, out=tmp_path / "voice.inspect") as capture:
        assert not capture.refusals, capture.refusals
        np.testing.assert_allclose(capture.array("lstm.l2:h"), expected, atol=1e-6)
        for layer in range(3):
            values = {name: capture.array(f"lstm.l{layer}:{name}").astype(np.float64)
                      for name in ("c", "h", "gate/input", "gate/forget", "gate/output", "candidate")}  # fmt: skip
            before = np.vstack((np.zeros((1, 256)), values["c"][:-1]))
            made = values["gate/forget"] * before + values["gate/input"] * values["candidate"]
            np.testing.assert_allclose(made, values["c"], atol=2e-5)
            np.testing.assert_allclose(values["gate/output"] * np.tanh(values["c"]), values["h"], atol=2e-5)
        stage = Stage(capture, (900, 520))
        states = {key: stage.panel(key).state for key, _ in ordered()}
        stage.close()
    shown = {
        "overview",
        "states",
        "table",
        "units",
        "ask",
        "lens",
        "gates",
        "openers",
        "jacobians",
        "spectra",
        "dynamics",
        "lags",
        "paths",
        "depth",
        "health",
        "inputs",
    }
    assert {key for key, state in states.items() if state == "figure"} == shown
    assert all(states[key] == "empty" for key in ("attention", "gradients", "outputs"))


@pytest.mark.foreign
def test_opening_by_name_with_its_checkpoint(tmp_path: Path) -> None:
    capture = inspector.run(
        "sample_models.subjects.resemblyzer_encoder:encoder", np.abs(np.random.default_rng(0).normal(size=(20, 40))),
        checkpoint=str(weights()), only=("states", "gates"), out=tmp_path / "a.inspect",
    )  # fmt: skip
    assert capture.status == "done" and capture.extent("lstm.l0:gate/forget") == (20, 256)
    assert not math.isnan(float(capture.array("lstm.l2:h").sum()))
    capture.close()
