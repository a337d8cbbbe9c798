"""Options of inputs come from their entries: typed, with defaults, and refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import inspector
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Subject
from inspector.engine.pipeline.batches import batch_of_spec
from inspector.records import InputSpec

VECTORS = Subject(model=nn.GRU(3, 2, batch_first=True), name="vectors", kind="vectors", width=3)


def test_values_are_read_as_the_entry_says_from_text_too() -> None:
    spec = InputSpec(kind="generated", value="impulse", options={"steps": "6", "at": "2", "value": "3"})
    batch = batch_of_spec(VECTORS, spec, 0)
    assert batch.inputs[0, :, 0].tolist() == [0, 0, 3, 0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("generated", {"stesp": 3}, "The input generated has no option 'stesp'; close to it is steps."),
        (
            "generated",
            {"steps": "many"},
            "The input generated cannot take this: steps is 'many'; expected a whole number from 0",
        ),
        ("generated", {"samples": 0}, "expected a whole number from 1 to 1,024."),
        ("vectors", {"key": "a"}, "The input vectors has no option 'key'"),
        ("nosie", {}, "There is no input 'nosie'; there are audio"),
        ("generate", {}, "There is no input 'generate'; close to it is generated."),
    ],
)
def test_a_wrong_option_is_told_in_one_sentence(kind: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as told:
        batch_of_spec(VECTORS, InputSpec(kind=kind, value="noise", options=options), 0)
    assert said in str(told.value) and "\n" not in str(told.value)


def test_a_file_has_the_options_of_the_input_that_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.full((4, 3), np.inf), b=np.zeros((5, 3)))
    read = InputSpec(kind="file", value=str(path), options={"key": "a", "allow_nonfinite": "yes"})
    assert batch_of_spec(VECTORS, read, 0).lengths.tolist() == [4]
    with pytest.raises(InputError, match="The input numbers has no option 'kye'; close to it is key"):
        batch_of_spec(VECTORS, InputSpec(kind="file", value=str(path), options={"kye": "a"}), 0)


def test_a_file_without_a_known_suffix_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    with (tmp_path / "x.dat").open("wb") as file:
        np.save(file, np.zeros((6, 3)))
    assert batch_of_spec(VECTORS, InputSpec(kind="file", value=str(tmp_path / "x.dat")), 0).lengths.tolist() == [6]


def test_a_sequence_from_python_names_its_input_and_options() -> None:
    model = nn.GRU(3, 2, batch_first=True)
    with inspector.run(model, inspector.sequence("generated", "noise", steps=12), only="states,input") as capture:
        assert capture.extent("input:value") == (12, 3)
    with pytest.raises(ValueError, match="no option 'stpes'"):
        inspector.run(model, inspector.sequence("generated", "noise", stpes=12))
    torch.manual_seed(0)
