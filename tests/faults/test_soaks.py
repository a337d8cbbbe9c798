"""What the soak calls growth: a leak, and not what an allocator does once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

import soaks  # noqa: E402

ATTACHMENTS = soaks.SHORT["attaching"]


def samples(megabytes: list[float], used: list[float] | None = None) -> list[dict[str, Any]]:
    """As many samples as there are values."""
    used = used or [100.0] * len(megabytes)
    return [
        {"number": n + 1, "megabytes": own, "used": inside, "descriptors": 9, "threads": 3, "none": 50_000}
        for n, (own, inside) in enumerate(zip(megabytes, used, strict=True))
    ]


def settling(n: int) -> float:
    """As resident memory came to rest in a run: steps of arenas, and 0.03 MB each time of bounded caches."""
    return 374.3 + 3.2 * (n > 1) + 2.4 * (n > 2) + 2.5 * (n > 4) + 0.03 * n


@pytest.mark.parametrize("at", range(ATTACHMENTS))
@pytest.mark.parametrize("jump", [2.34, 40.0, -40.0])
def test_one_jump_is_no_leak_wherever_it_comes(at: int, jump: float) -> None:
    """2.34 MB in one step is what a run of two cores showed."""
    problems, _ = soaks.judged(samples([settling(n) + jump * (n >= at) for n in range(ATTACHMENTS)]))
    assert problems == []


@pytest.mark.parametrize("each", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("every", [1, 2])
def test_a_leak_is_one_with_or_without_a_jump(each: float, every: int) -> None:
    """Of so many megabytes each time, which the system sees each time or every second time."""
    for at in range(ATTACHMENTS):
        values = [settling(n) + each * every * (n // every) - 40.0 * (n >= at) for n in range(ATTACHMENTS)]
        assert "memory grew" in " ".join(soaks.judged(samples(values))[0]), at


def test_what_is_in_use_has_a_limit_of_its_own() -> None:
    flat = [300.0] * ATTACHMENTS
    assert soaks.judged(samples(flat, [100 + 0.02 * n for n in range(ATTACHMENTS)]))[0] == []
    problems, _ = soaks.judged(samples(flat, [100 + 0.15 * n for n in range(ATTACHMENTS)]))
    assert [one.split(" by ")[0] for one in problems] == ["what is in use grew"]


def test_what_fills_once_is_allowed_and_a_leak_beside_it_is_not() -> None:
    flat, fills = [300.0] * ATTACHMENTS, soaks.FILLS["watching"]
    for each, lost in ((0.15, False), (0.35, True)):
        problems, _ = soaks.judged(samples(flat, [100 + each * n for n in range(ATTACHMENTS)]), fills=fills)
        assert bool(problems) is lost
    assert soaks.judged(samples([300 + 0.3 * n for n in range(ATTACHMENTS)]), fills=fills)[0] == []
    assert soaks.judged(samples([300 + 0.6 * n for n in range(ATTACHMENTS)]), fills=fills)[0]


PLANTED = """
import sys
sys.path[:0] = {path!r}
import torch, inspector, soaking
KEPT, watch = [], inspector.watch
def leaking(*arguments, **options):
    KEPT.append(torch.ones(12_500))
    KEPT.extend(str(n) * 20 for n in range(500))
    return watch(*arguments, **options)
inspector.watch = leaking
soaking.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_leak_of_a_hundred_kilobytes_each_time_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it a tensor, half small objects. Without it the same program survives, as the short form tries."""
    program = tmp_path / "planted.py"
    program.write_text(PLANTED.format(path=[str(HERE.parents[1]), str(HERE.parent / "support")]))
    monkeypatch.setattr(soaks, "PROGRAM", program)
    outcome = soaks.attempt({"what": "attaching", "number": ATTACHMENTS}, None, tmp_path)
    assert outcome.kind == "lost" and "what is in use grew" in outcome.said


USED = """
import gc, sys, threading
sys.path[:0] = [{support!r}]
from soaking import used
before, kept = used(), [bytes(1_000_000), [str(n) for n in range(20_000)]]
grown = used() - before
threads = [threading.Thread(target=lambda: [bytes(9_000) for _ in range(2_000)]) for _ in range(8)]
[one.start() for one in threads], [one.join() for one in threads]
del threads
after = used() - before - grown
print(grown, after)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_what_is_in_use_counts_what_is_kept_and_not_what_an_allocator_keeps() -> None:
    done = subprocess.run(
        [sys.executable, "-c", USED.format(support=str(HERE.parent / "support"))], capture_output=True, text=True,
        env={**os.environ, "PYTHONMALLOC": "malloc"}, check=True,
    )  # fmt: skip
    kept, after = map(float, done.stdout.split())
    assert kept == 0.0 or (2.0 < kept < 3.0 and abs(after) < 0.1)  # 0 where the C library cannot tell
