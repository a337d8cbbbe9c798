"""Verdicts: functions from arrays of a capture to a conclusion, and the sentence that states it.

Panels and diagnosis rules use the same functions, so that a rule and a panel never disagree about the same
numbers. Everything here is numpy and scipy: no torch, no Qt, no files.

In: arrays as a capture has them (states, gates, norms by step or lag), with their axis labels where a sentence names
positions. Out: small frozen dataclasses and sentences in plain English; every number in a sentence is measured, every
threshold has its reason beside it.

Begin reading with `gate_summary.py`: what the gates of a layer say about its memory.
"""
