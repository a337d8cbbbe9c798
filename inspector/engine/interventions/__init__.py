"""Edited runs: a token changed, a unit or a gate clamped, and the model run again.

In: `records.Edit` values (place, signal, unit, value, steps). Out: a second frame of the capture, so that the window
can show the run as it was, with the change, or the difference.

    runs          one run as it is and one with the changes
    heads         heads of attention that give 0, another value or their mean
    editor        replaces the value in the middle of the run, found by a first pass without the change
    eager_loops   torch's fused modules written out as loops, so that a value inside a step can be replaced

Begin reading with `runs.py`.
"""
