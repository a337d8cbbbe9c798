"""Runs the cases on the CPU and on the emulated device; prints what differs as JSON. It changes the process: call it
as a program."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import second_device_cases as cases
import torch
from same_captures import differences
from second_device import SecondDevice, register

import inspector
from inspector.engine.errors import InputError, ModelError
from inspector.capture import Capture

WITHOUT = ("lstm", "hand-written", "attention")
"""Cases that are also run on a device without float64, as Apple's is."""


def run(folder: str, subject: Any, **options: Any) -> Capture:
    """The capture of a run with every quantity."""
    given = {"data": cases.TEXTS} if options.pop("many") else {"sequence": cases.TEXTS, "also": cases.EVERY}
    return inspector.run(subject, out=Path(folder) / "a.inspect", overwrite=True, **given, **options)


def compared(make: Any, move: cases.Move, *, float64: bool = True, many: bool = False) -> dict[str, Any]:
    """What differs between the two runs, how often the processor waited, and whether random numbers went on as before."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = run(one, cases.subject(make), many=many)
        with SecondDevice(float64=float64) as device:
            moved = cases.subject(make, move)
            before = torch.emulated.get_rng_state()  # type: ignore[attr-defined]
            second = run(other, moved, many=many)
            same = bool(torch.equal(before, torch.emulated.get_rng_state()))  # type: ignore[attr-defined]
        found = list(differences(first, second))
        return {"differences": found, "waits": dict(device.waits), "random state restored": same}


def on(device: str) -> cases.Move:
    return lambda model: model.to(device)


def main() -> None:
    """Every case, those named, on `emulated:0`; one over two devices; one on a device without float64."""
    register()
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    found = {}
    plans: dict[str, tuple[Any, cases.Move, bool, bool]] = {
        **{name: (make, on("emulated:0"), True, False) for name, make in cases.CASES.items()},
        "two devices": (cases.Spread, cases.spread_over("emulated:0", "cpu"), True, False),
        "two devices, exchanged": (cases.Spread, cases.spread_over("cpu", "emulated:0"), True, False),
        **{f"{name} without float64": (cases.CASES[name], on("emulated:0"), False, False) for name in WITHOUT},
        **{f"{name}, many sequences": (cases.CASES[name], on("emulated:0"), False, True) for name in WITHOUT},
    }
    for name, (make, move, float64, many) in plans.items():
        if not wanted or name in wanted:
            try:
                found[name] = compared(make, move, float64=float64, many=many)
            except (ModelError, InputError) as fault:
                found[name] = {"differences": [str(fault)], "waits": {}, "random state restored": False}
            sys.stderr.write(f"{name}: {found[name]}\n")
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
