"""Every finding on the recorded trainings: how sure it is, what would make it wrong, what to do and the line for it, a
reference, and evidence that is in the capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.capture import open_capture
from inspector.diagnosis import diagnose

RECORDED = Path(__file__).parents[2] / "sample_models" / "illnesses" / "recorded"
ILL = sorted(path.parent.parent.name for path in RECORDED.glob("*/ill/run.inspect"))
NO_LINE = {
    "one-batch": "where the fault is can be anywhere",
    "plateau": "without a cause that the numbers show there is nothing to write",
    "norms-drift": "how much less a decay has to be is not known",
    "attention-sink": "no illness",
    "redundant-heads": "how heads are made is in the model's code",
    "no-alignment": "it takes longer training, or other data",
}
"""Rules that give a remedy in words alone, and why."""
OF_FLAGS = {"decay-on-biases", "evaluation-mode"}
"""Rules that judge what a training said of itself, which no channel has."""


@pytest.mark.parametrize("name", ILL)
def test_a_finding_can_be_weighed_and_acted_on(name: str) -> None:
    with open_capture(RECORDED / name / "ill" / "run.inspect") as capture:
        found = diagnose(capture, capture.frames)
        for one in found.findings:
            assert one.message and one.sure and one.unless and one.remedy and one.reference, one
            assert one.code or one.rule in NO_LINE, one
            assert "\n" not in one.code
            assert one.evidence or one.rule in OF_FLAGS, one
            assert set(one.evidence) <= set(capture.channels), one
