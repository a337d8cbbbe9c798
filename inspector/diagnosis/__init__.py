"""Diagnosis: rules that read a capture and write findings, with evidence and a remedy.

A rule is one file in `rules/`, or in another package (entry-point group `inspector.rules`). It reads one frame of a
capture as `rule.Run` (the protocol of `capture/view.py`, with the scalars) and the verdicts in `analysis/`, never torch
and never Qt, so that a capture from a cluster can be diagnosed on a laptop. A rule returns `records.Finding`s:
severity, place, steps, evidence as channel names, remedy.

In: a capture. Out: findings, the worst first, one line for each rule that could not be run, and the damage to what
others read: those have not judged.

    rule        the protocol of a rule, and the registry
    evidence    what a rule read, and what of that is damaged
    diagnose    every rule over every frame
    rules/      one file for each rule

Begin reading with `rule.py`.
"""

from inspector.diagnosis.diagnose import Diagnosis, Unjudged, diagnose
from inspector.diagnosis.rule import RULES, Rule, Run

__all__ = ["RULES", "Diagnosis", "Rule", "Run", "Unjudged", "diagnose"]
