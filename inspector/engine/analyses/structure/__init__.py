"""Tests of a model's structure: its inputs are changed, and what moves in its outputs is looked at.

Nothing here is a statistic or has a threshold but rounding: a test gives the largest change of an output that should
not have moved, relative to the outputs, and the first module in which it moved.

    calls       the subject called again, and what it returned, along the steps of its input
    changes     the input with some positions, or some sequences, replaced
    modules     the first module whose output moves
    findings    what a test found, and its channels
"""
