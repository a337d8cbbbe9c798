"""Everything that is tested before a training: what is asked of a run for it, and what its capture then says."""

from __future__ import annotations

from inspector.analysis.before_training.structure import TESTS, verdicts
from inspector.analysis.before_training.trial import TRIALS, trials
from inspector.analysis.before_training.verdicts import Tested, Verdict

EVERY = (*TRIALS, *TESTS)
"""Keys of the quantities of all tests, the trial steps first."""


def asked(*, quick: bool) -> tuple[str, ...]:
    """Keys of the quantities; `quick`: the structure tests alone, no trial step."""
    return TESTS if quick else EVERY


def found(run: Tested, frame: int = -1) -> list[Verdict]:
    """What all tests that were made say. Raises CaptureError."""
    return [*verdicts(run, frame), *trials(run, frame)]
