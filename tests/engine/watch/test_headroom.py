"""Room of float16: against numbers counted one by one, and in trainings of other kinds than the rule's own case."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector.diagnosis.series import table_of
from inspector.engine.watch.measures.headroom import largest, of_float16
from inspector.records import Finding


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_those_of_a_count(seed: int) -> None:
    torch.manual_seed(seed)
    for size in (1e-8, 1e-6, 1e-4, 1.0):
        gradient = (size * torch.randn(40, 20)).half()
        numbers = [float(np.float64(one)) for one in gradient.flatten().tolist()]
        there = [abs(one) for one in numbers if one != 0]
        expected = [sum(one < 2**-14 for one in there) / len(there), 1 - len(there) / len(numbers)]
        for given in (gradient, gradient.float()):
            assert of_float16(given).tolist() == pytest.approx(expected, abs=1e-6)
    zeros = of_float16(torch.zeros(9))
    assert bool(zeros[0].isnan()) and float(zeros[1]) == 1


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e6])
def test_gradients_of_another_precision_are_not_judged(size: float) -> None:
    torch.manual_seed(0)
    assert bool(of_float16(size * torch.randn(64)).isnan().all())
    broken = torch.ones(16)
    broken[3] = torch.nan
    assert bool(of_float16(broken).isnan().all())


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0, -3.0], 3.0), ([1.0, -torch.inf], 1.0), ([-65504.0, 2.0], 2.0), ([torch.inf, 2.0], torch.inf),
        ([torch.nan, 2.0], 2.0), ([torch.nan], 0.0), ([60000.0, 1.0], 60000.0),
    ],
)  # fmt: skip
def test_the_largest_output_is_not_that_of_a_mask(values: list[float], found: float) -> None:
    expected = float(torch.tensor(found).half()) if np.isfinite(found) else found
    assert float(largest(torch.tensor(values, dtype=torch.float16))) == expected


class Net(nn.Module):
    """ids (b, t) → (b, t, 8), by a recurrence, attention or neither; `times` stands before the last layer."""

    def __init__(self, kind: str, times: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head, self.times = nn.Embedding(8, 16), nn.Linear(16, 8), times
        self.rnn = nn.GRU(16, 16, batch_first=True) if kind == "gru" else None
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True) if kind == "attention" else None
        self.inner = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
        self.last = nn.Linear(16, 16)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        x = x if self.rnn is None else self.rnn(x)[0]
        x = x if self.layer is None else self.layer(x)
        x = self.last(self.inner(x) * self.times)
        said: Tensor = self.head(x / self.times)
        return said


def trained(
    path: Path, model: nn.Module, dtype: torch.dtype | None, divided: float = 1.0, factor: float = 0.0,
    after: Callable[[int], None] = lambda n: None, ids: Callable[[], Tensor] = lambda: torch.randint(0, 8, (8, 12)),
) -> dict[str, Finding]:  # fmt: skip
    """30 iterations: autocast in `dtype`, the loss divided, and multiplied by a GradScaler with `factor`."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cpu", factor or 1.0, enabled=factor > 0)
    with inspector.watch(model, optimizer, path, every=1) as watcher:
        for n in range(30):
            some = ids()
            with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
                said = model(some)
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(said.flatten(0, 1).float(), some.flatten()) / divided).backward()
            scaler.step(optimizer)
            scaler.update()
            after(n)
    assert watcher.error is None
    found = inspector.diagnose(path)
    assert not found.broken
    return {one.places[0] if len(one.places) else one.place: one for one in found.findings if one.id == "IN422"}


HALF = torch.float16


@pytest.mark.parametrize("kind", ["gru", "attention", "plain"])
@pytest.mark.parametrize(
    ("dtype", "divided", "factor", "ill"),
    [
        (HALF, 2.0**16, 0.0, True), (HALF, 2.0**16, 2.0**16, False), (torch.bfloat16, 2.0**16, 0.0, False),
        (None, 2.0**16, 0.0, False), (HALF, 1.0, 0.0, False), (HALF, 1.0, 2.0**8, False),
    ],
    ids=["divided", "scaled", "bfloat16", "float32", "as-it-is", "as-it-is-scaled"],
)  # fmt: skip
def test_gradients_that_become_zero(
    tmp_path: Path, kind: str, dtype: torch.dtype | None, divided: float, factor: float, ill: bool
) -> None:
    found = trained(tmp_path / "a.inspect", Net(kind), dtype, divided, factor)
    assert [one.severity for one in found.values()] == ["warning"] * ill
    if ill:
        (told,) = found.values()
        assert "computed in float16" in told.message and len(told.places) > 1


def test_symbols_that_do_not_occur_and_units_that_are_off_are_no_underflow(tmp_path: Path) -> None:
    model = Net("plain")
    first: Any = model.inner[0]
    nn.init.constant_(first.bias[:60], -50.0)  # of 64 units 60 are off
    assert not trained(tmp_path / "a.inspect", model, HALF, ids=lambda: torch.randint(0, 2, (8, 12)))


def test_parameters_that_are_in_float16_themselves(tmp_path: Path) -> None:
    class Wide(Net):
        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids).float()

    model = Wide("plain").half()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=1):
        for _ in range(20):
            ids = torch.randint(0, 8, (8, 12))
            optimizer.zero_grad()
            (F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()) * 1e-4).backward()
            optimizer.step()
    told = [one for one in inspector.diagnose(tmp_path / "a.inspect").findings if one.id == "IN422"]
    assert [one.severity for one in told] == ["warning"]


@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16, None])
def test_outputs_that_grow_towards_the_largest_number(tmp_path: Path, dtype: torch.dtype | None) -> None:
    model = Net("plain")

    def grow(n: int) -> None:
        with torch.no_grad():
            model.last.weight.mul_(1.5)
            model.head.weight.div_(1.5)

    found = trained(tmp_path / "a.inspect", model, dtype, after=grow)
    assert list(found) == (["last"] if dtype is HALF else [])
    if dtype is HALF:
        with inspector.open_capture(tmp_path / "a.inspect") as capture:
            table = table_of(capture, "modules:activation/float16_used")
        assert table is not None
        own = table.values[:, table.names.index("last")]
        first = int(table.iterations[int(np.argmax(own >= 0.25))])
        assert found["last"].severity == "warning" and found["last"].iterations == (first,) and first > 5


def test_what_is_recorded_is_the_largest_output(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(8, 16), nn.Linear(16, 8))
    seen: list[float] = []
    model[1].register_forward_hook(lambda module, args, out: seen.append(float(out.detach().double().abs().max())))
    trained(tmp_path / "a.inspect", model, HALF)
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        table = table_of(capture, "modules:activation/float16_used")
    assert table is not None and "1" in table.names
    own: Any = table.values[:, table.names.index("1")]
    known = np.isfinite(own)
    at = table.iterations[known].astype(int) - 1
    np.testing.assert_allclose(own[known], np.array(seen)[at] / 65504, rtol=1e-6)
    assert known.sum() > 3


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_gradients_are_looked_at_however_often_iterations_are_recorded(tmp_path: Path, every: int) -> None:
    model = nn.Sequential(nn.Embedding(8, 16), nn.Linear(16, 8))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=every):
        for _ in range(60):
            ids = torch.randint(0, 8, (8, 6))
            with torch.autocast("cpu", HALF):
                loss = F.cross_entropy(model(ids).float().flatten(0, 1), ids.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        table = table_of(capture, "parameters:gradient/float16_zero")
    assert table is not None and table.points >= 3
