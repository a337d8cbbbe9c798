"""Inputs are declared, given by name or in order, completed, and padded each with its own lengths and step axis."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from several_inputs import SOURCE, TARGET, Captioner, Continued, GruTranslator, Translator, made, translation
from torch import nn

from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch, selected, to_device
from inspector.engine.model.declared_inputs import declare
from inspector.engine.model.named_batches import defaults, of_example, of_values
from inspector.engine.model.subject import Subject, adopt
from inspector.engine.pipeline.batches import make_batch
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec

MASKS = {
    "src_padding": {"kind": "mask", "of": "src", "marks": "padding"},
    "tgt_padding": {"kind": "mask", "of": "tgt", "marks": "padding"},
}


def test_every_input_has_its_own_lengths_labels_and_axis() -> None:
    batch = of_values(adopt(translation()), {"src": ["abc", "de"], "tgt": ["A", "BCDE"]}, look_at=1)
    assert list(batch.named) == ["src", "tgt"] and batch.primary == "src"
    src, tgt = batch.named["src"], batch.named["tgt"]
    assert src.axis == "step" and tgt.axis == "tgt" and (src.kind, tgt.kind) == ("tokens", "tokens")
    assert batch["src"].tolist() == [[0, 1, 2], [3, 4, 0]] and batch["tgt"].tolist() == [[0, 0, 0, 0], [1, 2, 3, 4]]
    assert src.lengths.tolist() == [3, 2] and tgt.lengths.tolist() == [1, 4]
    assert tgt.names == (("A",), ("B", "C", "D", "E")) and tgt.row_names(0) == ("A",)
    assert batch.inputs is src.tensor and batch.lengths is src.lengths and batch.names == src.names
    assert (batch.length, batch.steps, batch.size, batch.look_at) == (2, 3, 2, 1)
    assert [name for name, _ in batch.others()] == ["tgt"]
    assert batch.mask().tolist() == [[True, True, True], [True, True, False]]
    assert batch.mask("tgt").tolist() == [[True, False, False, False], [True] * 4]


def test_masks_are_made_from_the_lengths_of_what_they_mask() -> None:
    batch = of_values(adopt(translation(Translator, inputs=MASKS)), {"src": ["abc", "de"], "tgt": ["A", "BC"]})
    assert batch["src_padding"].tolist() == [[False] * 3, [False, False, True]]
    assert batch["tgt_padding"].tolist() == [[False, True], [False, False]]
    assert batch.named["src_padding"].axis == "step" and batch.named["tgt_padding"].axis == "tgt"
    real = {"m": {"kind": "mask", "of": "tgt"}}
    one = adopt(translation(Translator, inputs=real, forward=lambda model, batch: None))
    assert of_values(one, {"src": "a", "tgt": "AB"})["m"].tolist() == [[True, True]]
    mine = of_values(one, {"src": "a", "tgt": "AB", "m": [1, 0]})  # a list of numbers is one sequence
    assert mine["m"].tolist() == [[True, False]] and mine.named["m"].axis == "tgt"


def test_states_begin_at_zero_and_go_where_the_model_wants_the_batch() -> None:
    state = {"kind": "state", "shape": (2, 4), "batch_dim": 1}
    inputs = {"x": {"kind": "vectors", "width": 3}, "h0": state, "c0": state}
    subject = adopt(SimpleNamespace(model=made(Continued), inputs=inputs))
    h0 = [torch.ones(2, 4), torch.zeros(2, 4), torch.zeros(2, 4)]
    batch = of_values(subject, {"x": [np.ones((5, 3)), np.ones((4, 3)), np.ones((2, 3))], "h0": h0})
    assert batch["h0"].shape == batch["c0"].shape == (2, 3, 4) and batch.named["h0"].tensor.shape == (3, 2, 4)
    assert batch["h0"][:, 0].eq(1).all() and not batch["c0"].any() and batch["c0"].dtype == torch.float64
    assert subject.run(batch).shape == (3, 5, 4)
    assert [one.axis for one in batch.named.values()] == ["step", "", ""]


def test_an_input_may_be_left_out() -> None:
    class Optional(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            return x if y is None else x + y

    vectors = {"kind": "vectors", "width": 2}
    subject = adopt(SimpleNamespace(model=Optional(), inputs={"x": vectors, "y": {**vectors, "optional": True}}))
    batch = of_values(subject, {"x": np.ones((3, 2)), "y": None})
    assert batch["y"] is None and "y" not in batch and "x" in batch and not batch.others()
    assert torch.equal(subject.run(batch), batch.inputs)
    both = of_values(subject, {"x": np.ones((3, 2)), "y": np.ones((3, 2))})
    assert torch.equal(subject.run(both), 2 * batch.inputs)
    with pytest.raises(InputError, match="has no steps"):
        batch.mask("y")


def test_the_primary_input_is_the_first_sequence_or_the_one_that_says_so() -> None:
    words = {"kind": "tokens", "vocabulary": TARGET}
    subject = adopt(SimpleNamespace(model=made(Captioner), inputs={"image": "image", "caption": words}))
    batch = of_values(subject, {"image": np.zeros((3, 6, 5)), "caption": "ABC"})
    assert batch.primary == "caption" and list(batch.named) == ["image", "caption"]
    assert batch.inputs.tolist() == [[0, 1, 2]] and batch["image"].shape == (1, 3, 6, 5)
    assert batch["image"].dtype == torch.float64 and subject.kind == "tokens" and subject.vocabulary == TARGET
    other = translation(inputs={"tgt": {"kind": "tokens", "vocabulary": TARGET, "primary": True}})
    turned = of_values(adopt(other), {"src": "abc", "tgt": "A"})
    assert turned.primary == "tgt" and turned.named["tgt"].axis == "step" and turned.named["src"].axis == "src"
    alone = of_values(adopt(SimpleNamespace(model=nn.Conv2d(1, 1, 1), inputs={"x": "image"})), {"x": np.ones((4, 4))})
    assert (
        alone.inputs.shape == (1, 1, 4, 4) and alone.lengths.tolist() == [1] and (alone.length, alone.steps) == (1, 1)
    )


def test_what_a_subject_says_of_its_sequence_is_said_of_the_primary_input_and_back() -> None:
    said = adopt(
        SimpleNamespace(model=made(GruTranslator), vocabulary=SOURCE, inputs={"src": "tokens", "tgt": {"size": 6}})
    )
    assert said.declared["src"].vocabulary == SOURCE and said.declared["tgt"].kind == "tokens"
    assert adopt(said) is said and said.declared["src"].vocabulary == SOURCE  # understood once, understood for good
    with pytest.raises(InputError, match="Id 6 at step 1 does not exist; ids go from 0 to 5"):
        of_values(said, {"src": "a", "tgt": [0, 6]})


def test_values_may_be_given_without_a_declaration() -> None:
    class Any_(nn.Module):
        def forward(self, **given: Any) -> dict[str, Any]:
            return given

    values = {
        "x": np.ones((4, 2)), "ids": torch.tensor([1, 2]), "keep": np.array([True, False]), "image": np.ones((1, 3, 3)),
        "rate": 0.5, "speaker": torch.tensor(3), "left out": None,
    }  # fmt: skip
    batch = of_values(adopt(Any_()), values)
    kinds = {name: one.kind for name, one in batch.named.items()}
    assert kinds == {
        "x": "vectors",
        "ids": "tokens",
        "keep": "mask",
        "image": "image",
        "rate": "other",
        "speaker": "other",
    }
    assert batch.primary == "x" and batch["speaker"].tolist() == [3] and batch["speaker"].dtype == torch.int64
    axes = {name: one.axis for name, one in batch.named.items() if one.axis}
    assert axes == {"x": "step", "ids": "ids", "keep": "ids"}  # the mask is as long as the ids, and nothing else is


def test_an_axis_does_not_lend_its_labels_to_another() -> None:
    class Three(nn.Module):
        def forward(self, x: torch.Tensor, unit: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
            return x

    named = of_values(adopt(Three()), {"x": np.ones((4, 2)), "unit": [1, 2, 3], "position": [1, 2]}).named
    assert (named["unit"].axis, named["position"].axis) == ("unit step", "position step")


def test_inputs_that_share_their_steps_have_equally_many() -> None:
    inputs = {"x": {"kind": "vectors", "width": 2}, "y": {"kind": "vectors", "width": 1, "axis": "x"}}
    subject = adopt(SimpleNamespace(model=nn.Bilinear(2, 1, 3), inputs=inputs))
    batch = of_values(subject, {"x": np.ones((4, 2)), "y": np.ones((4, 1))})
    assert batch.named["y"].axis == "step" and not batch.others()
    with pytest.raises(InputError, match=r"y has \[3\] steps and x \[4\], though both have the same step axis\."):
        of_values(subject, {"x": np.ones((4, 2)), "y": np.ones((3, 1))})


def test_copies_and_devices_take_every_input_along() -> None:
    batch = of_values(adopt(translation()), {"src": ["abc", "de"], "tgt": ["A", "BCDE"]})
    twice = selected(batch, [1, 1, 0], targets="t")
    assert twice["src"].tolist() == [[3, 4, 0], [3, 4, 0], [0, 1, 2]] and twice.named["tgt"].lengths.tolist() == [
        4,
        4,
        1,
    ]
    assert twice.named["tgt"].names[0] == ("B", "C", "D", "E") and twice.targets == "t" and twice.primary == "src"
    moved = to_device(batch, "meta")
    assert moved["tgt"].device.type == moved.inputs.device.type == "meta" and moved.lengths.device.type == "cpu"
    changed = Batch(torch.zeros(1, 2), torch.tensor([2]))
    changed.inputs = torch.ones(1, 2)
    assert changed.inputs.sum() == 2 and changed["input"] is changed.inputs


EXAMPLES: dict[str, Any] = {
    "by name": {"src": "ab", "tgt": "ABC"},
    "by name, with a target": ({"src": "ab", "tgt": "ABC"}, [7, 8]),
    "in order": ("ab", "ABC"),
    "in order, with a target": ("ab", "ABC", [7, 8]),
}


@pytest.mark.parametrize("case", EXAMPLES)
def test_an_example_gives_several_inputs(case: str) -> None:
    subject = adopt(translation(inputs={"m": {"kind": "mask", "of": "src"}}, forward=lambda model, batch: None))
    subject.examples = {case: EXAMPLES[case]}
    batch = INPUTS["example"].make(subject, InputSpec(), 0)
    assert batch["src"].tolist() == [[0, 1]] and batch["tgt"].tolist() == [[0, 1, 2]] and batch.title == case
    assert (batch.targets is not None) is ("target" in case) and (
        batch.targets is None or batch.targets.tolist() == [[7, 8]]
    )


def test_without_examples_there_is_something_to_run() -> None:
    subject = adopt(translation(Translator, inputs=MASKS))
    batch = defaults(subject, 3)
    assert subject.run(batch).shape == (1, batch.named["tgt"].steps, 6)
    assert batch.named["tgt"].steps != batch.steps  # so that layers can be told apart
    assert torch.equal(batch["src"], defaults(subject, 3)["src"]) and not torch.equal(
        batch["src"], defaults(subject, 4)["src"]
    )
    image = adopt(
        SimpleNamespace(
            model=made(Captioner), inputs={"image": {"kind": "image", "shape": [3, 6, 6]}, "caption": {"size": 6}}
        )
    )
    assert defaults(image, 0)["image"].shape == (1, 3, 6, 6)


def test_an_image_is_run_by_itself() -> None:
    subject = adopt(SimpleNamespace(model=nn.Conv2d(3, 1, 1), inputs={"x": {"kind": "image"}}))
    with pytest.raises(InputError, match="x of Conv2d has to be given: it is an image of an undeclared shape"):
        defaults(subject, 0)
    assert make_batch(subject, np.ones((3, 2, 2)), 0, 0).inputs.shape == (1, 3, 2, 2)


def test_two_inputs_without_a_word_are_ambiguous_only_where_they_are() -> None:
    assert isinstance(adopt(made(GruTranslator)), Subject)
    batch = make_batch(adopt(made(GruTranslator)), {"src": [1, 2, 3], "tgt": [0]}, 0, 0)
    assert batch.named["tgt"].row_names(0) == ("0",)


BAD_DECLARATIONS: list[tuple[Any, str]] = [
    (["src"], "expected name → description"),
    ({"a b": "tokens"}, "expected an identifier"),
    ({3: "tokens"}, "expected an identifier"),
    ({"src": "words"}, "expected one of tokens, vectors, image"),
    ({"src": {}}, "expected one of tokens"),
    ({"src": 5}, "is an int; expected"),
    ({"src": {"kind": "tokens", "vocab": "ab"}}, "has no 'vocab'; it may have kind, vocabulary"),
    ({"m": {"kind": "mask", "of": "src"}}, "The mask 'm' of it is of 'src'; there are m"),
    ({"x": "vectors", "m": {"of": "x", "marks": "yes"}}, "marks 'yes'; expected one of real, padding"),
    ({"a": {"kind": "tokens", "primary": True}, "b": {"kind": "tokens", "primary": True}}, "Several inputs"),
]


@pytest.mark.parametrize(("inputs", "said"), BAD_DECLARATIONS)
def test_a_declaration_that_cannot_be_has_its_sentence(inputs: Any, said: str) -> None:
    with pytest.raises(InputError) as told:
        declare(inputs, "it")
    assert said in str(told.value) and "\n" not in str(told.value) and str(told.value).endswith(".")


BAD_VALUES: list[tuple[Any, str]] = [
    ({"src": "ab"}, "reads src, tgt; given was only src, and tgt is missing"),
    ({}, "none was given, and src, tgt is missing"),
    ({"src": "ab", "tgt": "A", "x": 1}, "has no input 'x'; there are src, tgt"),
    ({"src": ["ab", "c"], "tgt": "A"}, "src was given 2 sequences and tgt 1; a batch has equally many"),
    ({"src": "ab", "tgt": "a"}, "'a' at position 0 is not in the vocabulary of tgt of"),
    ({"src": "", "tgt": "A"}, "The text is empty"),
    ({"src": "ab", "tgt": 3.5}, "Token ids have one axis"),
]


@pytest.mark.parametrize(("values", "said"), BAD_VALUES)
def test_values_that_cannot_be_have_their_sentence(values: Any, said: str) -> None:
    with pytest.raises(InputError) as told:
        make_batch(adopt(translation()), values, 0, 0)
    assert said in str(told.value) and "\n" not in str(told.value)


def test_arrays_that_cannot_be_have_their_sentence() -> None:
    inputs = {"x": "vectors", "image": "image", "h": {"kind": "state", "shape": (2,)}, "m": "mask"}
    subject = adopt(SimpleNamespace(model=nn.Identity(), inputs=inputs, forward=lambda model, batch: None))
    good: dict[str, Any] = {"x": np.ones((2, 2)), "image": np.ones((1, 2, 2)), "h": np.ones(2), "m": np.ones(2)}
    assert make_batch(subject, good, 0, 0)["m"].dtype == torch.bool
    for name, value, said in (
        ("image", np.ones(3), "image of SimpleNamespace has the shape (channels, height, width); given was an array"),
        ("h", np.ones(3), "has the shape (2,); given was an array of shape (3,)"),
        ("m", np.array([0, 2]), "expected nothing but 0 and 1"),
        ("h", np.array([1.0, np.nan]), "not finite"),
        ("h", np.ones(2) * 1j, "is real"),
        ("image", "a word", "reads an image, not text"),
    ):
        with pytest.raises(InputError) as told:
            make_batch(subject, {**good, name: value}, 0, 0)
        assert said.replace("SimpleNamespace", subject.name) in str(told.value)
    with pytest.raises(InputError, match=r"in the shapes \(1, 2, 2\) and \(1, 3, 3\); a batch has one"):
        two = {name: [value, value] for name, value in good.items()}
        make_batch(subject, {**two, "image": [np.ones((1, 2, 2)), np.ones((1, 3, 3))]}, 0, 0)


def test_an_example_of_the_wrong_number_of_values_is_said() -> None:
    with pytest.raises(InputError, match=r"The example 'x' of .* has 4 values; expected those of src, tgt"):
        of_example(adopt(translation()), ("a", "A", 1, 2), "x")
