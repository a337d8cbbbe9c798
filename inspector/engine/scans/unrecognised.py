"""What mixes steps as a scan does and was not recognised: one line for each, with the function and its line."""

from __future__ import annotations

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.scans.mixing import Stretch

WHAT = {
    "transform": "A product of Fourier transforms over {steps} steps",
    "running": "A running sum over {steps} steps in logarithms",
    "halved": "A scan by halves of {steps} steps",
    "shifted": "A sum over {steps} steps by shifts of 1, 2, 4 and more",
}
UNKNOWN = "no tensors around it meet h_t = a_t h_{t−1} + b_t, nor is it a causal convolution"
DOUBLING = {1, 2, 4}


def is_listed(table: Table, stretch: Stretch) -> bool:
    """Whether a stretch is worth a line.

    Running sums are counts and means more often than scans, but for those in logarithms; shifts by one or two steps are
    differences and short convolutions.
    """
    if stretch.kinds & {"transform", "halved"}:
        return True
    if "running" in stretch.kinds:
        return any(table.op(n).name == "logcumsumexp" for n in stretch.calls)
    return stretch.shifts >= DOUBLING


def sentence(table: Table, stretch: Stretch) -> str:
    """What was seen, where, and that it is not shown."""
    kind = next(one for one in WHAT if one in stretch.kinds)
    chain = table.op(stretch.calls[0]).chain
    where = ""
    if chain:
        frame, offset = chain[-1]
        code = frame.f_code
        lines = (line for start, stop, line in code.co_lines() if line is not None and start <= offset < stop)
        line = next(lines, code.co_firstlineno)
        where = f" in {code.co_qualname.rpartition('<locals>.')[2]}(), line {line},"
    return f"{WHAT[kind].format(steps=stretch.steps)}{where} is not shown as a recurrence: {UNKNOWN}."
