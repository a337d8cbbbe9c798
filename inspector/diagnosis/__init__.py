"""Diagnosis: rules that read a capture and write findings, with evidence and a remedy.

A rule is one file in `rules/`, or in another package (entry-point group `inspector.rules`). It reads one frame of a
capture, or a training as a whole, as `rule.Run` (the protocol of `capture/view.py`, with the scalars), and the verdicts
in `analysis/`, never torch and never Qt, so that a capture from a cluster can be diagnosed on a laptop. A rule returns
`records.Finding`s: severity, place, steps or iterations, evidence as channel names, how sure it is and what would make
it wrong, remedy.

In: a capture. Out: findings, the worst first, one line for each rule that could not be run, and the damage to what
others read: those have not judged.

    rule        the protocol of a rule, its limits, and the registry
    series      curves and tables over training, as rules read them
    settings    what a project mutes, and which limits it changes
    muting      a project's file with a mute more or one less
    evidence    what a rule read, and what of that is damaged
    diagnose    every rule over every frame
    case_script the script that shows a rule's fault on its own
    rules/      one file for each rule
    report/     the report as one HTML file; the command line puts the figures in

Begin reading with `rule.py`.
"""

from inspector.diagnosis.case_script import NoCaseError, default_name, has_case, reproduce, rule_of
from inspector.diagnosis.diagnose import SEVERITIES, Answer, Diagnosis, Unjudged, answers, diagnose, gathered
from inspector.diagnosis.rule import RULES, Captured, Limit, Rule, Run, is_trend, untried
from inspector.diagnosis.settings import Settings, SettingsError, project_file, read_settings

__all__ = [
    "RULES",
    "SEVERITIES",
    "Answer",
    "Captured",
    "Diagnosis",
    "Limit",
    "NoCaseError",
    "Rule",
    "Run",
    "Settings",
    "SettingsError",
    "Unjudged",
    "answers",
    "default_name",
    "diagnose",
    "gathered",
    "has_case",
    "is_trend",
    "project_file",
    "read_settings",
    "reproduce",
    "rule_of",
    "untried",
]
