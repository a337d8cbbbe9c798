"""The spacing of numbers that checks allow for, by the precision of matrix products."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from inspector.engine.cells.gate_products import resolution

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def test_products_of_float32_may_be_rounded_to_ten_or_seven_bits() -> None:
    found = {}
    for name in ("highest", "high", "medium"):
        torch.set_float32_matmul_precision(name)
        found[name] = resolution(torch.float32, CPU)
        assert resolution(torch.float64, CPU) == 2.0**-52 and resolution(torch.bfloat16, CPU) == 2.0**-7
    assert found == {"highest": 2.0**-23, "high": 2.0**-10, "medium": 2.0**-7}
