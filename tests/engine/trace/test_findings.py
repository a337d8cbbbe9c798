"""What is left in a trace is found by its class, and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from inspector.engine.pipeline import tensor_bytes
from inspector.engine.trace.findings import Findings


@dataclass
class Counted:
    counts: list[torch.Tensor] = field(default_factory=list)


@dataclass
class CountedMore(Counted):
    """Another class: what is left under one is not found under the other."""


def test_a_value_is_found_by_its_own_class() -> None:
    findings = Findings()
    assert findings.get(Counted) is None
    left = CountedMore([torch.zeros(10)])
    findings.put(left)
    assert findings.get(CountedMore) is left and findings.get(Counted) is None
    made = findings.of(Counted)
    assert made.counts == [] and findings.of(Counted) is made and findings.get(Counted) is made
    findings.put(Counted())
    assert findings.get(Counted) is not made


def test_what_is_left_counts_for_the_memory_of_a_trace() -> None:
    findings = Findings()
    findings.of(Counted).counts.append(torch.zeros(10))
    assert tensor_bytes(findings) == 40
