"""The structure tests of a model as a pytest file, to be kept beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from inspector.analysis.before_training.verdicts import Verdict
from inspector.records import InputSpec, Load

STRUCTURE = ("causal", "large", "batch", "padding", "order", "repeat", "cache", "query")
"""Tests that hold or do not at any weights of one structure; trial steps change with the weights."""
TEMPLATE = '''"""Structure of {subject}, by `inspector preflight`: what held when this was written must hold."""

import inspector
import pytest
{imports}
HOLDS = {holds}


@pytest.fixture(scope="module")
def found():
    """Every verdict by its test; of several attentions, the ones that are faults come last."""
    verdicts = inspector.preflight({arguments}, quick=True)
    return {{one.test: one for one in sorted(verdicts, key=lambda one: one.word == "fault")}}


@pytest.mark.parametrize("test", HOLDS)
def test_structure(found, test):
    """A test that held is no fault, and was made."""
    assert test in found, f"{{test}} was not tested"
    assert found[test].word == "holds", found[test].sentence
'''
KNOWN = '''

FAULTS = {faults}


@pytest.mark.xfail(reason="a fault when this was written: once it is repaired, move it to HOLDS", strict=True)
@pytest.mark.parametrize("test", FAULTS)
def test_known_faults(found, test):
    """A fault stays one until it is repaired; then this test fails, and tells so."""
    assert test not in found or found[test].word != "fault", found[test].sentence
'''
"""Where there are some."""


def tests_of(load: Load, spec: InputSpec, found: Sequence[Verdict]) -> str:
    """The text of the file: the tests that hold now are asserted, those that find a fault are expected to fail, and
    others are left out."""
    worst = {one.test: one.word for one in sorted(found, key=lambda one: one.word == "fault")}
    holds, faults = (
        [test for test, word in worst.items() if word == wanted and test in STRUCTURE] for wanted in ("holds", "fault")
    )
    given = [repr(load.subject), _spec(spec)]
    options = {
        "checkpoint": load.checkpoint, "arguments": dict(load.arguments), "seed": load.seed, "device": load.device
    }  # fmt: skip
    usual = {"checkpoint": "", "arguments": {}, "seed": 0, "device": "cpu"}
    given += [f"{name}={value!r}" for name, value in options.items() if value != usual[name]]
    subject = load.subject.replace("\\", "/").replace('"', "'")
    imports = "from inspector.records import InputSpec\n" if given[1] != "None" else ""
    known = KNOWN.format(faults=repr(faults)) if faults else ""
    return TEMPLATE.format(subject=subject, holds=repr(holds), arguments=", ".join(given), imports=imports) + known


def _spec(spec: InputSpec) -> str:
    """The input as Python writes it."""
    usual = InputSpec()
    said: dict[str, Any] = {one.name: getattr(spec, one.name) for one in fields(spec)}
    parts = [f"{name}={value!r}" for name, value in said.items() if value != getattr(usual, name)]
    return f"InputSpec({', '.join(parts)})" if parts else "None"
