"""Recorded trainings, one file each: a small model, its task and what goes wrong in it, beside the capture of it.

Nothing here imports inspector; `build()` of a file returns a `plan.Plan`. `sample_models/record.py` trains it, watched,
and writes `NAME.inspect`: `python -m sample_models.record NAME|all`.
"""
