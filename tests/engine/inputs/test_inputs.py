"""Every kind of input becomes a batch, and every bad one gets its sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from torch import nn

from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec

LETTERS = Subject(model=nn.Embedding(4, 2), vocabulary=["a", "b", " ", "\n"], name="letters")
VECTORS = Subject(model=nn.GRU(3, 2), name="vectors")
FRAMED = Subject(
    model=nn.GRU(3, 2), name="framed", frames=lambda samples, rate: samples[: len(samples) // 3 * 3].view(-1, 3)
)


def make(subject: Subject, kind: str, text: str = "", *, look_at: int = 0, **options: Any) -> Batch:
    return INPUTS[kind].make(adopt(subject), InputSpec(kind=kind, value=text, options=options, look_at=look_at), 0)


def test_noise_with_the_options_as_offered_is_what_a_model_without_examples_runs_first() -> None:
    first = make(VECTORS, "example")
    offered = {option.name: option.default for option in INPUTS["generated"].options}
    assert first.length == offered["steps"]
    for options in ({}, offered):
        assert torch.equal(make(VECTORS, "generated", "noise", **options).inputs, first.inputs)


def test_text_and_its_labels() -> None:
    batch = make(LETTERS, "text", "ab a")
    assert batch.inputs.tolist() == [[0, 1, 2, 0]] and batch.names == (("a", "b", " ", "a"),)


def test_a_batch_of_texts_is_padded() -> None:
    batch = make(LETTERS, "text", "ab", texts=["abab"], look_at=1)
    assert batch.lengths.tolist() == [2, 4] and batch.inputs.tolist() == [[0, 1, 0, 0], [0, 1, 0, 1]]
    assert batch.length == 4


def test_a_vocabulary_file(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("x\ny\nz\n")
    bare = Subject(model=nn.Embedding(3, 2))
    assert make(bare, "text", "zx", vocabulary=str(tmp_path / "v.txt")).inputs.tolist() == [[2, 0]]


def test_ids_typed_and_batched() -> None:
    batch = make(LETTERS, "ids", "0, 3 1; 2")
    assert batch.inputs.tolist() == [[0, 3, 1], [2, 0, 0]] and batch.names[0] == ("a", "\n", "b")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_numbers(tmp_path: Path, suffix: str) -> None:
    values = np.arange(12, dtype=np.float64).reshape(4, 3)
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, values)
    elif suffix == ".npz":
        np.savez(path, x=values)
    else:
        path.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in values))
    batch = make(VECTORS, "file", str(path))
    torch.testing.assert_close(batch.inputs[0], torch.from_numpy(values).float())


def test_a_file_with_several_sequences(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((5, 7, 3)))
    assert make(VECTORS, "numbers", str(tmp_path / "x.npy"), look_at=4).inputs.shape == (5, 7, 3)


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_sound(tmp_path: Path, suffix: str) -> None:
    soundfile.write(tmp_path / f"x.{suffix}", np.linspace(-0.5, 0.5, 300), 8000)
    assert make(FRAMED, "file", str(tmp_path / f"x.{suffix}")).inputs.shape == (1, 100, 3)


def test_made_signals() -> None:
    impulse = make(VECTORS, "generated", "impulse", steps=9, at=4, value=2.0).inputs[0]
    assert impulse.sum() == 6 and impulse[4].tolist() == [2, 2, 2]
    assert make(VECTORS, "generated", "constant", steps=3).inputs.unique().tolist() == [1]
    sine = make(VECTORS, "generated", "sine", steps=40, period=20).inputs[0, :, 0]
    torch.testing.assert_close(sine[5], torch.tensor(1.0))
    noise = make(VECTORS, "generated", "noise", steps=5, samples=3)
    assert noise.inputs.shape == (3, 5, 3) and not torch.equal(noise.inputs[0], noise.inputs[1])
    assert torch.equal(noise.inputs, make(VECTORS, "generated", "noise", steps=5, samples=3).inputs)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("0.1 0.2 0.3; 4 5 -6e1", [[0.1, 0.2, 0.3], [4, 5, -60]]),
        ("0.1, 0.2, 0.3 4 5 -6e1 ", [[0.1, 0.2, 0.3], [4, 5, -60]]),
        ("1,2,3", [[1, 2, 3]]),
        ("1 2 3;", [[1, 2, 3]]),
    ],
)
def test_numbers_typed(text: str, rows: list[list[float]]) -> None:
    batch = make(VECTORS, "vectors", text)
    torch.testing.assert_close(batch.inputs[0], torch.tensor(rows, dtype=torch.float32))
    assert batch.title == "typed numbers" and batch.lengths.tolist() == [len(rows)]


def test_numbers_typed_for_a_model_of_one_number_a_step() -> None:
    assert make(Subject(model=nn.GRU(1, 2)), "vectors", "1 2 3").inputs[0].tolist() == [[1], [2], [3]]


def test_examples_and_the_default() -> None:
    subject = Subject(model=LETTERS.model, vocabulary=LETTERS.vocabulary, examples={"first": "ab", "other one": "ba"})
    assert make(subject, "example").title == "first"
    assert make(subject, "example", "other").inputs.tolist() == [[1, 0]]
    assert make(LETTERS, "example").inputs.shape == (1, 64)
    assert make(VECTORS, "example").inputs.shape == (1, 64, 3)


def test_one_step_is_enough() -> None:
    assert make(LETTERS, "text", "a").length == 1


@pytest.mark.parametrize("data", [["abba", "ab"], {"one": "abba"}, lambda: iter(["abba"])])
def test_without_examples_the_first_of_the_data_is_run(data: Any) -> None:
    """A random one may be none that the subject's loss can judge; what can be read once only is left alone."""
    letters = Subject(model=nn.Embedding(4, 2), vocabulary=["a", "b", " ", "\n"], name="letters", data=data)
    assert make(letters, "example").inputs.tolist() == [[0, 1, 1, 0]]
    once = iter(["ab"])
    letters.data = once
    assert make(letters, "example").steps > 4 and next(once) == "ab"


BAD: list[tuple[Subject, str, str, dict[str, Any], str]] = [
    (LETTERS, "text", "abc", {}, "'c' at position 2"),
    (LETTERS, "text", "", {}, "empty"),
    (LETTERS, "ids", "1 9", {}, "Id 9 at step 1 does not exist; ids go from 0 to 3"),
    (LETTERS, "ids", "1 two", {}, "'two' is not a token id"),
    (LETTERS, "ids", "", {}, "empty"),
    (LETTERS, "text", "a", {"look_at": 3}, "the batch has 1"),
    (VECTORS, "text", "a", {}, "vectors of 3"),
    (VECTORS, "ids", "1", {}, "not token ids"),
    (VECTORS, "vectors", "", {}, "expected numbers such as 0.1 0.2 0.3; 0.2 0.3 0.4"),
    (VECTORS, "vectors", "the white rabbit", {}, "'the' is not a number"),
    (VECTORS, "vectors", "1 2 3 4", {}, "4 numbers do not fill steps of 3"),
    (VECTORS, "vectors", "1 2 3; 4", {}, "Step 1 has 1 number; expected 3"),
    (VECTORS, "vectors", "1", {}, "1 number does not fill steps of 3"),
    (VECTORS, "vectors", "1 2 3; 4 5", {}, "Step 1 has 2 numbers; expected 3"),
    (VECTORS, "vectors", "0,5 0,25 1", {}, "'0,5' may be one number or two"),
    (VECTORS, "vectors", "1 2 nan", {}, "must be finite"),
    (VECTORS, "vectors", "1 2 nan", {}, "under Options… beside the line in the window"),
    (VECTORS, "vectors", "1 2 nan", {}, "--option allow_nonfinite=1 in a terminal"),
    (LETTERS, "vectors", "1 2", {}, "reads tokens"),
    (VECTORS, "generated", "square", {}, "there are noise"),
    (VECTORS, "generated", "impulse", {"steps": 4, "at": 9}, "steps 0 to 3"),
    (VECTORS, "generated", "noise", {"steps": 0}, "empty"),
    (VECTORS, "generated", "noise", {"steps": "many"}, "expected a number"),
    (VECTORS, "file", "/nowhere/x.npy", {}, "no file"),
    (VECTORS, "audio", "x.wav", {}, "does not define how sound is framed"),
    (LETTERS, "example", "x", {}, "has no examples"),
]


@pytest.mark.parametrize(("subject", "kind", "value", "options", "said"), BAD)
def test_bad_input(subject: Subject, kind: str, value: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as told:
        make(subject, kind, value, **options)
    assert said in str(told.value) and "\n" not in str(told.value)


def test_bad_files(tmp_path: Path) -> None:
    cases: dict[str, tuple[Any, str]] = {
        "wide.npy": (np.zeros((4, 5)), "has 5 a step"),
        "nan.npy": (np.array([[1.0, 2, 3], [4, np.nan, 6]]), "nan at step 1, feature 1"),
        "empty.npy": (np.zeros((0, 3)), "empty"),
        "deep.npy": (np.zeros((2, 2, 2, 3)), "shape"),
        "words.npy": (np.array(["a"]), "expected numbers"),
    }
    for name, (array, said) in cases.items():
        np.save(tmp_path / name, array)
        with pytest.raises(InputError) as told:
            make(VECTORS, "file", str(tmp_path / name))
        assert said in str(told.value), told.value
    np.savez(tmp_path / "two.npz", a=np.zeros(3), b=np.zeros(3))
    (tmp_path / "ragged.csv").write_text("1,2,3\n4,5\n")
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (tmp_path / "x.doc").write_text("?")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    for name, said in (("two.npz", "choose one"), ("ragged.csv", "row 2 has 2 cells"), ("cut.npy", "cannot be read"),
                       ("x.doc", "unknown suffix")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            make(VECTORS, "file", str(tmp_path / name))
    with pytest.raises(InputError, match="UTF-8"):
        make(LETTERS, "file", str(tmp_path / "bad.txt"))
    with pytest.raises(InputError, match="as sound"):
        make(FRAMED, "file", str(tmp_path / "bad.wav"))


def test_a_pickled_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        make(VECTORS, "file", str(tmp_path / "x.npy"))


class Widened(nn.Module):
    """Its first layer is given more than the input has."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, out = x.new_zeros(len(x), 2), []
        for row in x.unbind(1):
            h = self.cell(torch.cat((row, h), -1), h)
            out.append(h)
        return torch.stack(out, 1)


def test_a_width_that_nobody_said_is_no_rule(tmp_path: Path) -> None:
    """The width of the first layer may be that of more than the input: what a person gives is run as it is."""
    np.save(tmp_path / "x.npy", np.zeros((4, 3), np.float32))
    guessed = adopt(Subject(model=Widened()))
    assert make(guessed, "numbers", str(tmp_path / "x.npy")).inputs.shape == (1, 4, 3)
    assert make(guessed, "generated", "noise").inputs.shape[-1] == 5
    with pytest.raises(InputError, match="reads vectors of 5 numbers; the sequence given has 3 a step"):
        make(Subject(model=Widened(), width=5), "numbers", str(tmp_path / "x.npy"))
