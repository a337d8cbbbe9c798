"""Diagnosis: rules that read a capture and write findings, with evidence and a remedy.

A rule is one file in `rules/`. It reads captures through `capture/view.py` and the verdicts in `analysis/`, never torch
and never Qt, so that a capture from a cluster is judged on a laptop. What a rule gives is a `records.Finding`: rule id,
severity, place, steps, evidence as channel names, remedy.

The registry exists and is scanned; no rule has been written yet.
"""
