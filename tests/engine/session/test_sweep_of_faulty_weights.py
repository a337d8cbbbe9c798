"""Checkpoints whose weights are not finite: they fit and run, and only their numbers would show it."""

from __future__ import annotations

from pathlib import Path

import torch
from sweeping import ONLY, checkpoints, subject, weights

import inspector
from inspector.engine.session.sweep.conduct import Conductor, Listener
from inspector.engine.session.sweep.one_frame import Maker
from inspector.records import InputSpec, Load, Run, Sweep


def test_weights_that_are_not_finite_are_told_as_the_sweep_goes_on(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (0, 30))
    broken = {**weights(2), "head.bias": weights(2)["head.bias"] * torch.nan}
    torch.save({"model": broken, "step": 10}, folder / "model-10.pt")
    request = Sweep(
        paths=(str(folder),), load=Load(subject=subject(tmp_path), trusted=True), workers=1,
        run=Run(path=str(tmp_path / "s.inspect"), input=InputSpec(kind="text", value="abca"), only=ONLY),
    )  # fmt: skip
    told: list[str] = []
    outcome = Conductor(request, Maker(), Listener(log=lambda log: told.append(log.text))).run()
    assert (outcome.computed, outcome.failed) == (3, 0)
    (said,) = [text for text in told if "non-finite" in text]
    assert said.startswith("model-10.pt, step 10: ") and said.endswith("loaded, 1 non-finite")
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert [log.level for log in capture.logs if "non-finite" in log.text] == ["warning"]
