"""Everything that is tested before a training: what is asked of a run for it, and what its capture then says."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analysis.before_training.structure import TESTS, verdicts
from inspector.analysis.before_training.trial import TRIALS, trials
from inspector.analysis.before_training.verdicts import Tested, Verdict
from inspector.analysis.gradient_cuts import Cut, cuts_of

EVERY = (*TRIALS, *TESTS)
"""Keys of the quantities of all tests, the trial steps first."""


def asked(*, quick: bool) -> tuple[str, ...]:
    """Keys of the quantities; `quick`: the structure tests alone, no trial step."""
    return TESTS if quick else EVERY


def found(run: Tested, frame: int = -1) -> list[Verdict]:
    """What all tests that were made say. Raises CaptureError."""
    return [*verdicts(run, frame), *detached(run, frame), *trials(run, frame)]


def detached(run: Tested, frame: int = -1) -> Iterator[Verdict]:
    """Recurrences whose gradient the model cuts, as the recorder notes wherever a run has a loss: between every two
    steps a fault; fewer cuts are truncation, which may be meant. Nothing of those that are not cut."""
    yield from (_verdict(cut) for cut in cuts_of(run, frame))


def _verdict(cut: Cut) -> Verdict:
    return Verdict("detached state", "fault" if cut.every else "fact", f"{cut.said}.", place=cut.place)
