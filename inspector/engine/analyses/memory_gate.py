"""Which gate of a recurrence carries the state over, and at which value: families declare it, for others it is tested.

An LSTM keeps its state with f = 1 (and writes nothing with i = 0). Single update gates are defined in both directions:
PyTorch's GRU and h' = z h + (1 − z) n keep the state with 1, Cho et al. (2014) and simplified gated units with 0. So a
hand-written gate's direction is never taken from its name: it is tested on the states that the model went through.
"""

from __future__ import annotations

import torch

from inspector.engine.cells.gate_info import MemoryGate, short
from inspector.engine.trace.trace import Recurrence

FORGET, INPUT = ("forget", "f"), ("input", "i")
UPDATE = ("update", "z", "carry", "t", "u", "transform")
LOOKED_AT = 256
CLOSE, CLEAR = 1e-4, 0.2
"""Relative error at which an equation fits (a float32 step reaches 1e-6); the least |correlation| that is accepted."""


def memory_gate_of(recurrence: Recurrence) -> MemoryGate | None:
    """The memory gate of a recurrence, or None where there is none or its direction is not clear."""
    if recurrence.cell.memory_gate is not None:
        return recurrence.cell.memory_gate
    names = {short(signal): signal for signal in recurrence.cell.gate_names if short(signal) != "candidate"}
    part = "c" if "c" in recurrence.cell.parts else recurrence.cell.main
    forget = next((names[name] for name in FORGET if name in names), "")
    update = next((names[name] for name in UPDATE if name in names), "")
    if not forget and not update and len(names) == 1:
        update = next(iter(names.values()))
    signal = forget or update
    if not signal:
        return None
    found = _direction(recurrence, signal, part)
    if found is None:
        return None
    writes = next((names[name] for name in INPUT if name in names), "") if forget else ""
    return MemoryGate(signal, found[0], writes, part, found[1])


def _direction(recurrence: Recurrence, signal: str, part: str) -> tuple[bool, str] | None:
    """(True if 1 keeps the state, method) from the first steps of the first sample; None where they do not decide."""
    block = recurrence.block(0, min(LOOKED_AT, int(recurrence.lengths[0])), slice(0, 1))
    gate = block.gates[signal].double()
    before, after = (block.part(part, states).double() for states in (block.previous, block.following))
    if gate.shape != before.shape or not bool(torch.isfinite(after).all()):
        return None
    others = [v.double() for name, v in block.gates.items() if name != signal and v.shape == gate.shape]
    for high, kept in ((True, gate), (False, 1 - gate)):
        rest = after - kept * before
        products = [(1 - kept) * a for a in others] + [a * b for i, a in enumerate(others) for b in others[:i]]
        if any(float((rest - product).norm()) <= CLOSE * float(after.norm()) for product in products):
            return high, "exact"
    moved = (after - before).abs().flatten()
    if moved.numel() < 3:
        return None
    correlation = float(torch.corrcoef(torch.stack((gate.flatten(), moved)))[0, 1])
    if not abs(correlation) >= CLEAR:
        return None
    return (
        correlation < 0,
        f"direction judged from the states: correlation of the gate with |s_t − s_(t−1)| is {correlation:.2f}",
    )
