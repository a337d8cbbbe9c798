"""What is captured on a real accelerator is what is captured on the CPU: every quantity, on every kind of model.

Run with `python -m pytest -m gpu` on a machine that has one; elsewhere each test is skipped, with the reason.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import inspector
from inspector.capture import Capture
from inspector.engine.devices.memory import free_bytes
from inspector.engine.devices.present import present
from inspector.engine.devices.random_state import state_of

TOOLS = Path(__file__).resolve().parents[1] / "tools"
DEVICES = present()[1:]
NO_DEVICE = "torch finds no accelerator (CUDA, MPS) on this machine"
NO_SECOND = "this needs two accelerators"
ROUNDING = 2e-3
"""Of a channel's largest number: an accelerator adds in another order, and what is amplified over steps grows."""
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not DEVICES, reason=NO_DEVICE)]


def tool(name: str) -> ModuleType:
    """A module of tests/tools."""
    if str(TOOLS) not in sys.path:
        sys.path.insert(0, str(TOOLS))
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


cases, same = tool("second_device_cases"), tool("same_captures")
DROPPING = "with dropout"


@pytest.fixture(autouse=True)
def full_precision() -> Any:
    """Products in float32, not in TensorFloat-32: those are another arithmetic."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


def run(tmp_path: Path, name: str, make: Any, move: Any) -> Capture:
    return run_subject(tmp_path, name, cases.subject(make, move))


def run_subject(tmp_path: Path, name: str, subject: Any) -> Capture:
    return inspector.run(subject, cases.TEXTS, also=cases.EVERY, out=tmp_path / f"{name}.inspect")


@pytest.mark.parametrize("device", DEVICES or ["none"])
@pytest.mark.parametrize("name", [name for name in cases.CASES if DROPPING not in name])
def test_every_quantity_is_that_of_the_cpu(tmp_path: Path, name: str, device: str) -> None:
    make = cases.CASES[name]
    first = run(tmp_path, "cpu", make, lambda model: model)
    second = run(tmp_path, "device", make, lambda model: model.to(device))
    assert list(same.differences(first, second, tolerance=ROUNDING)) == []


@pytest.mark.parametrize("name", [name for name in cases.CASES if DROPPING in name])
def test_dropout_is_drawn_again_or_refused_with_its_reason(tmp_path: Path, name: str) -> None:
    """The device draws other masks than the CPU, so the run is compared with itself: the check of every layer."""
    capture = run(tmp_path, "device", cases.CASES[name], lambda model: model.to(DEVICES[0]))
    reasons = " ".join(str(one) for one in capture.refusals)
    shown = {channel for channel in capture.channels if channel.endswith(":h")}
    assert shown and ("lstm" not in name or len(shown) == 2 or "Dropout between the layers" in reasons)
    assert "could not be reproduced" not in reasons


@pytest.mark.skipif(len(DEVICES) < 2, reason=NO_SECOND)
def test_a_model_over_two_devices(tmp_path: Path) -> None:
    first = run(tmp_path, "cpu", cases.Spread, lambda model: model)
    second = run(tmp_path, "devices", cases.Spread, cases.spread_over(*DEVICES[:2]))
    assert list(same.differences(first, second, tolerance=ROUNDING)) == []


def test_a_model_over_a_device_and_the_cpu(tmp_path: Path) -> None:
    first = run(tmp_path, "cpu", cases.Spread, lambda model: model)
    second = run(tmp_path, "devices", cases.Spread, cases.spread_over(DEVICES[0], "cpu"))
    assert list(same.differences(first, second, tolerance=ROUNDING)) == []


def test_random_numbers_go_on_as_if_nothing_had_run(tmp_path: Path) -> None:
    device = torch.device(DEVICES[0])
    subject = cases.subject(cases.CASES["lstm with dropout"], lambda model: model.to(device))  # seeds the device
    before = state_of(device)
    run_subject(tmp_path, "device", subject)
    after = state_of(device)
    assert before is not None and after is not None and torch.equal(before, after)


def test_a_device_tells_its_free_memory() -> None:
    free = free_bytes(torch.device(DEVICES[0]))
    assert free is not None and free > 0


def test_a_run_leaves_nothing_on_the_device(tmp_path: Path) -> None:
    device = torch.device(DEVICES[0])
    if device.type != "cuda":
        pytest.skip("only CUDA's allocator is asked")
    model: nn.Module = cases.CASES["hand-written"]().to(device)
    before = torch.cuda.memory_allocated(device)
    run(tmp_path, "device", lambda: model, lambda one: one)
    assert torch.cuda.memory_allocated(device) <= before + (1 << 20)
