"""The first and last recurrence of every sample can be aimed at by an edit, and hold the values, in one run."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from kept import Kept

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.session.in_process import make_batch
from inspector.records import InputSpec, parse_edit
from sample_models.base import checkpoints, load
from sample_models.train import cards

LONG = 300
SHORT = InputSpec(kind="text", value="Alice was beginning to get very tired")
"""Instead of a passage of so many characters: every step of a text is held in the same way."""


@pytest.mark.parametrize("name", sorted(cards()))
def test_an_edit_holds_in_a_sample(name: str) -> None:
    stem = cards()[name]
    built = importlib.import_module(f"sample_models.{stem}").build()
    load(built.model, checkpoints(stem)[-1])
    subject = adopt(built, name)
    batch = make_batch(subject, None, 0, 0)
    if batch.inputs.shape == (1, LONG):
        batch = make_batch(subject, SHORT, 0, 0)
    seen = Kept()
    trace = perform(subject, batch, seen, RunOptions(only=("states",)))
    found = [one for one in trace.recurrences if one.cell.family != "scan"]  # which cannot be edited
    aimed = [found[0], found[-1]] if found else []
    values = {f"{item.place}:{item.cell.main}": value for item, value in zip(aimed, (0.125, 0.25), strict=False)}
    if not aimed:
        return
    kept = Kept()
    plan = plan_edits(subject, batch, [parse_edit(f"{name}[0]={value}") for name, value in values.items()])
    perform_with_edits(subject, batch, kept, plan, RunOptions(only=("states",)))
    for item in aimed:
        name = f"{item.place}:{item.cell.main}"
        held = kept.array(name, 1)[: item.length(trace.look_at), 0]
        np.testing.assert_allclose(held, values[name])
