"""Structure of a model in half precision: rounding there may be as large as what is looked for, and then is no answer."""

from __future__ import annotations

import pytest
import torch
from structures import Attending, MeanOfBatch, Recurrent
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.verdicts import Verdict

IDS = [1, 2, 3, 4, 5, 6, 7, 8, 9]


def found(model: nn.Module) -> dict[str, Verdict]:
    return {one.test: one for one in inspector.preflight(model, IDS, quick=True)}


class Set(nn.Module):
    """Each step by itself: nothing but its own input moves it, whatever the precision."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.head(self.embed(ids))
        return out


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_an_order_that_is_seen_is_never_said_not_to_be(dtype: torch.dtype) -> None:
    """A GRU reads its inputs in order; the change by a permutation is below what rounding is allowed."""
    torch.manual_seed(0)
    model = Recurrent()
    assert found(model)["order"].word == "holds"
    told = found(model.to(dtype))["order"]
    assert told.word == "not tested"
    assert "in half precision rounding may change them" in told.sentence and "float32" in told.sentence


def test_what_stays_exactly_the_same_is_known_in_half_precision_too() -> None:
    torch.manual_seed(0)
    told = found(Set().bfloat16())
    assert {test: told[test].word for test in ("causal", "batch", "padding", "order", "repeat")} == {
        "causal": "holds", "batch": "holds", "padding": "holds", "order": "fact", "repeat": "holds",
    }  # fmt: skip


def test_a_leak_below_the_rounding_of_half_precision_is_not_called_none() -> None:
    torch.manual_seed(0)
    model = Attending(causal=True, mask=-4.0)
    assert found(model)["causal"].word == "fact"  # it reads later inputs, by less than a quarter
    assert found(model.bfloat16())["causal"].word == "not tested"


def test_a_fault_beyond_rounding_is_found_in_half_precision() -> None:
    torch.manual_seed(0)
    assert found(MeanOfBatch().bfloat16())["batch"].word == "fault"


class Broken(nn.Module):
    """Divides by nothing: where `all` is false, at the first step alone."""

    def __init__(self, all_steps: bool) -> None:
        super().__init__()
        self.embed, self.all_steps = nn.Embedding(11, 8), all_steps

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids).cumsum(1)
        by = torch.zeros_like(x)
        if not self.all_steps:
            by[:, 1:] = 1
        return x * 0 / by + x


@pytest.mark.parametrize(("all_steps", "word", "said"), [(True, "fault", "100 %"), (False, "fact", "11 %")])
def test_outputs_that_are_nan_are_told(all_steps: bool, word: str, said: str) -> None:
    told = found(Broken(all_steps))
    assert told["finite"].word == word and said in told["finite"].sentence
    assert told["repeat"].word == ("not tested" if all_steps else "holds")
    assert "finite" not in found(Set())
