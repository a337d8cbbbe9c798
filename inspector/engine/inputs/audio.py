"""Sound from .wav and .flac files, framed as the subject defines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import soundfile
import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.batching import (
    ALLOW_NONFINITE,
    MORE_FILES,
    allows_nonfinite,
    ask,
    check_vectors,
    more_of,
    pad,
    regular_file,
    tensor_of,
)
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.model.whole_sound import missing_part
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec
from inspector.records.unreadable import why_unreadable

MAX_SAMPLES = 100_000_000
"""Over all channels: 100 minutes at 16 kHz. A compressed file, or one with a wrong header, may claim any number."""


class Audio:
    """Recordings; several channels are averaged; `options["files"]` adds more sequences."""

    title = "Sound"
    summary = "Sound from .wav, .flac or .ogg, framed by the subject."
    reads = ("vectors",)
    suffixes = (".wav", ".flac", ".ogg")
    magic = (b"RIFF", b"fLaC", b"OggS")
    options = (MORE_FILES, ALLOW_NONFINITE)

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The frames of each recording as vectors."""
        if subject.frames is None:
            raise InputError(
                f"{subject.name} does not define how sound is framed (`frames`), so it cannot be run on audio."
            )
        paths = [regular_file(path) for path in (spec.value, *more_of(spec, "files"))]
        sounds = [read_sound(path) for path in paths]
        rows = []
        for sound in sounds:
            frames = tensor_of(ask(subject, "frames", subject.frames, *sound))
            rows.append(check_vectors(subject, frames, allow_nonfinite=allows_nonfinite(spec)))
        batch = pad(subject, rows, targets=[None] * len(rows), title=paths[0].name, look_at=spec.look_at)
        batch.named = {batch.primary: replace(batch.first, sound=tuple(sounds))}
        return batch


def _said(problem: BaseException) -> str:
    """libsndfile puts the file's path before its reason."""
    return why_unreadable(problem).rpartition("': ")[2]


def read_sound(path: Path) -> tuple[Tensor, int]:
    """Samples (n,) float32 as the mean of the channels, and their rate in hertz. Raises InputError."""
    try:
        if missing := missing_part(path):
            raise InputError(f"{path.name} is not read: {missing}.")
        with soundfile.SoundFile(path) as file:
            if file.frames * file.channels > MAX_SAMPLES:
                raise InputError(f"{path.name} claims {file.frames:,} samples; at most {MAX_SAMPLES:,} are read.")
            samples, rate = file.read(dtype="float32", always_2d=True), int(file.samplerate)
    except (RuntimeError, OSError, ValueError, TypeError, MemoryError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{path.name} cannot be read as sound: {_said(problem)}.") from None
    if len(samples) == 0:
        raise InputError(f"{path.name} holds no sound.")
    return torch.from_numpy(samples.mean(axis=1)), rate


INPUTS.register("audio")(Audio())
