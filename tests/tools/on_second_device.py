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
from inspector.capture import Capture
from inspector.engine.devices.present import checked, has_float64
from inspector.engine.errors import InputError, ModelError

WITH_FLOAT64 = ("hand-written", "lstm with dropout")
"""The others are run on a device that has none, as Apple's: what is right there is right elsewhere."""
MANY = ("lstm", "hand-written", "attention")
"""Also run as a data set."""


def run(folder: str, subject: Any, **options: Any) -> Capture:
    """The capture of a run with every quantity."""
    given = {"data": cases.TEXTS} if options.pop("many") else {"sequence": cases.TEXTS, "also": cases.EVERY}
    return inspector.run(subject, out=Path(folder) / "a.inspect", overwrite=True, **given, **options)


def compared(make: Any, move: cases.Move, *, float64: bool = True, many: bool = False) -> dict[str, Any]:
    """What differs between the two runs, how often the processor waited, and whether random numbers went on as before."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = run(one, cases.subject(make), many=many)
        has_float64.cache_clear()  # the device changes, as no real one does
        with SecondDevice(float64=float64) as device:
            moved = cases.subject(make, move)
            before = torch.emulated.get_rng_state()  # type: ignore[attr-defined]
            second = run(other, moved, many=many)
            same = bool(torch.equal(before, torch.emulated.get_rng_state()))  # type: ignore[attr-defined]
        found = list(differences(first, second))
        return {"differences": found, "waits": dict(device.waits), "random state restored": same}


def on(device: str) -> cases.Move:
    return lambda model: model.to(device)


def outcome(function: Any) -> str:
    """The class of what a function raises, or ""."""
    try:
        function()
    except (RuntimeError, TypeError) as fault:
        return type(fault).__name__
    return ""


def rules() -> dict[str, str]:
    """What the emulation does where a device has rules."""
    there, here = torch.ones(3, device="emulated:0"), torch.ones(3)
    found = {
        "two devices": outcome(lambda: there + here),
        "a number beside it": outcome(lambda: there + torch.tensor(2.0)),
        "an index on the CPU": outcome(lambda: there[torch.tensor([0, 1])]),
        "an index from there": outcome(lambda: here[torch.tensor([0, 1]).to("emulated:0")]),
        "numpy": outcome(there.numpy),
        "a generator of the CPU": outcome(lambda: torch.randn(3, generator=torch.Generator(), device="emulated:0")),
    }
    with SecondDevice(float64=False) as device:
        found["float64 where there is none"] = outcome(lambda: there.double())
        before = sum(device.waits.values())
        there.sum().item()
        found["waiting"] = "counted" if sum(device.waits.values()) == before + 1 else "not counted"
        state = torch.get_rng_state()
        torch.rand(3, device="emulated:0")
        found["random numbers of the CPU"] = "untouched" if torch.equal(state, torch.get_rng_state()) else "drawn"
        try:
            checked("cuda")
        except InputError as refused:
            found["a device that is not there"] = f"InputError: {refused}"
    return found


def main() -> None:
    """Every case, or those that are named, and the rules of the emulation: on the emulated device, over two devices, on one
    without float64."""
    register()
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    found: dict[str, Any] = {}
    plans: dict[str, tuple[Any, cases.Move, bool, bool]] = {
        **{name: (make, on("emulated:0"), name in WITH_FLOAT64, False) for name, make in cases.CASES.items()},
        "two devices": (cases.Spread, cases.spread_over("emulated:0", "cpu"), True, False),
        "two devices, exchanged": (cases.Spread, cases.spread_over("cpu", "emulated:0"), False, False),
        **{f"{name}, many sequences": (cases.CASES[name], on("emulated:0"), False, True) for name in MANY},
    }
    for name, (make, move, float64, many) in plans.items():
        if not wanted or name in wanted:
            try:
                found[name] = compared(make, move, float64=float64, many=many)
            except (ModelError, InputError) as fault:
                found[name] = {"differences": [str(fault)], "waits": {}, "random state restored": False}
            sys.stderr.write(f"{name}: {found[name]}\n")
    with SecondDevice():
        found["rules"] = rules()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
