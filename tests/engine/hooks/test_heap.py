"""Memory that a run holds beside what it keeps: gaps of the heap are given back, kept copies lie outside of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from inspector.engine.attention.kept import LEAST, kept_copy
from inspector.engine.attention.recorder import AttentionRecorder
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.hooks import heap
from inspector.engine.hooks.large_products import product_bytes
from inspector.engine.probes.attention import AttentionMode
from inspector.transport.process import KEEP_MEMORY

GAPS = """
import sys, torch
from inspector.engine.hooks.heap import Heap

def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) / 1024

tidied = Heap()
large, small = [], []
for _ in range(60):
    large.append(torch.ones(3 << 18))
    small.append(torch.ones(300))
held = resident()
large.clear()
after = resident()
if sys.argv[1] == "tidy":
    tidied.tidy()
print(held - resident(), sum(float(one.sum()) for one in small))
"""


@pytest.mark.skipif(heap.free_in_heap() == 0, reason="needs glibc's mallinfo2")
def test_gaps_between_small_things_are_given_back() -> None:
    def returned(way: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", GAPS, way], capture_output=True, text=True, env={**os.environ, **KEEP_MEMORY}
        )
        assert done.returncode == 0, done.stderr
        returned, kept = done.stdout.split()
        assert float(kept) == 60 * 300
        return float(returned)

    assert returned("leave") < 20, "the settings of the worker keep what is freed"
    assert returned("tidy") > 150, "60 tensors of 3 MB were freed between small ones"


def test_few_gaps_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    free, trimmed = [100 << 20], []
    usage = heap._Usage()

    def look() -> heap._Usage:
        usage.fordblks = free[0]
        return usage

    monkeypatch.setattr(heap, "_library", lambda: (look, lambda pad: trimmed.append(pad) or 1))
    monkeypatch.setattr(heap, "monotonic", lambda: 0.0)  # a look takes no time
    one = heap.Heap()
    for megabytes, times in ((120, 0), (148, 0), (149, 1), (190, 1), (60, 1), (109, 2)):
        free[0] = megabytes << 20
        one.tidy()
        assert len(trimmed) == times, megabytes


def test_looks_take_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look takes 50 ms, and there is one wherever a step of 1 ms has ended."""
    now, looks = [0.0], [0]

    def look() -> heap._Usage:
        now[0] += 0.05
        looks[0] += 1
        return heap._Usage()

    monkeypatch.setattr(heap, "_library", lambda: (look, lambda pad: 1))
    monkeypatch.setattr(heap, "monotonic", lambda: now[0])
    one = heap.Heap()
    for _ in range(10_000):
        now[0] += 0.001
        one.tidy()
    assert 5 < looks[0] < 13, "10 s of steps, and 50 ms every second of them"


def test_gaps_are_given_back_before_what_is_larger_than_all_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tidied: list[int] = []
    monkeypatch.setattr(heap.Heap, "tidy", lambda self, least=heap.GAPS: tidied.append(least))
    one = heap.Heap(0)
    for megabytes, times in ((1, 0), (64, 0), (65, 1), (65, 1), (64, 1), (200, 2), (200, 2)):
        one.before(megabytes << 20)
        assert len(tidied) == times, megabytes
    assert max(tidied) < heap.GAPS


def test_the_size_of_a_product_is_known_before_it_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(heap.Heap, "before", lambda self, size: told.append(size))
    x, w = torch.randn(2, 5, 8), torch.randn(8, 30)
    products = [
        lambda: x @ w, lambda: torch.matmul(x, w), lambda: x[0].mm(w), lambda: torch.bmm(x, w.expand(2, 8, 30)),
        lambda: F.linear(x, w.T), lambda: nn.Linear(8, 30)(x), lambda: torch.addmm(w[0], x[0], w),
        lambda: x.double() @ w.double(),
    ]  # fmt: skip
    with AttentionMode(AttentionRecorder(SelectedSample(2, 0, 5, 5), lambda: ("here", ""))):
        for product in products:
            told.clear()
            out = product()
            assert told == [out.numel() * out.element_size()], told


@pytest.mark.parametrize(
    "given",
    [
        (),
        (torch.ones(3),),
        (torch.ones(3), torch.ones(3)),
        (3, torch.ones(2, 2)),
        (torch.ones(2, 2, device="meta"),) * 2,
    ],
)
def test_the_size_of_other_calls_is_not_known(given: tuple[object, ...]) -> None:
    assert product_bytes(torch.matmul, given) == product_bytes(torch.addmm, given) == 0


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_library", lambda: None)
    heap.Heap().tidy()
    assert heap.free_in_heap() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.bool])
@pytest.mark.parametrize("count", [0, 7, LEAST])
def test_a_kept_copy_is_a_contiguous_copy(dtype: torch.dtype, count: int) -> None:
    given = torch.randn(2, count, 3).to(dtype).transpose(0, 2)
    expected = given.clone()
    copy = kept_copy(given)
    given.zero_()
    assert copy.dtype == dtype and copy.is_contiguous() and torch.equal(copy, expected)
    copy.fill_(1)  # its memory may be written to
    assert not given.any()


def test_a_kept_copy_has_no_graph() -> None:
    assert not kept_copy(torch.randn(LEAST, requires_grad=True) * 2).requires_grad
