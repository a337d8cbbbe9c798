"""Structure tests on trained samples, each of which was made to show one of these facts."""

from __future__ import annotations

import pytest

import inspector
from inspector.analysis.before_training.structure import verdicts

pytestmark = pytest.mark.usefixtures("one_thread")


def words(sample: str, text: str, test: str) -> set[str]:
    return {verdict.word for verdict in inspector.preflight(sample, text) if verdict.test == test}


@pytest.mark.parametrize(("kind", "word"), [("unordered", "fact"), ("learned", "holds"), ("hard", "holds")])
def test_order_is_seen_with_positions_alone(kind: str, word: str) -> None:
    """The hard one looks at its first step only, which a single random order may leave in place."""
    assert words(f"first-digit-{kind}", "3141", "order") == {word}


def test_weights_on_one_key_do_not_show_that_the_query_is_lost() -> None:
    assert "fault" not in words("first-digit-hard", "3141", "query")
    capture = inspector.run("first-digit-hard", "3141", only=["structure/query"])
    assert [refusal.reason for refusal in capture.refusals if "hard attention" in refusal.reason]


@pytest.mark.parametrize(("sample", "word"), [("dates-linear-score", "fault"), ("dates-additive", "holds")])
def test_the_query_cancels_without_tanh(sample: str, word: str) -> None:
    assert words(sample, "3 march 1998", "query") == {word}


def test_a_convolution_by_fourier_transforms_has_no_mask_that_is_beaten() -> None:
    """Rounding moves all of its outputs, more with large weights."""
    capture = inspector.run("char-s4d", "the quick brown fox jumps over the lazy dog " * 3, only=["structure/causal"])
    (told,) = verdicts(capture, only="large")
    assert told.word == "holds"
