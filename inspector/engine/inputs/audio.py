"""Sound from .wav and .flac files, framed as the subject says."""

from __future__ import annotations

import soundfile
import torch

from inspector.engine.batching import check_vectors, pad, regular_file
from inspector.engine.errors import InputError
from inspector.engine.shelves import INPUTS
from inspector.engine.subject import Batch, Subject
from inspector.records import InputSpec

SUFFIXES = (".wav", ".flac", ".ogg")


class Audio:
    """A recording; several channels are averaged."""

    summary = "sound from .wav or .flac, framed by the subject"

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The frames of the recording as vectors."""
        if subject.frames is None:
            raise InputError(
                f"{subject.name} does not say how sound is framed (`frames`), so it cannot be run on audio."
            )
        path = regular_file(spec.value)
        try:
            samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        except (RuntimeError, OSError) as problem:
            raise InputError(f"{path.name} cannot be read as sound: {problem}.") from None
        if len(samples) == 0:
            raise InputError(f"{path.name} holds no sound.")
        try:
            rows = subject.frames(torch.from_numpy(samples.mean(axis=1)), int(rate))
        except ValueError as problem:
            raise InputError(str(problem)) from None
        return pad(subject, [check_vectors(subject, rows)], targets=[None], title=path.name)


INPUTS.register("audio")(Audio())
