"""Several inputs by name, as the command line and the window ask for them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from several_inputs import SOURCE, TARGET, Captioner, Continued, made, translation
from torch import Tensor, nn

import inspector
from inspector.cli import cli
from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject, adopt
from inspector.engine.opening.open_subject import Opened
from inspector.engine.pipeline.batches import batch_of_spec
from inspector.engine.session.service import describe
from inspector.records import InputSpec, Load, input_spec

SUBJECT = """
from types import SimpleNamespace
from several_inputs import translation

def make():
    return translation(examples={"first": ("abc", "AB")})
"""


def asked(subject: Subject, look_at: int = 0, options: dict[str, Any] | None = None, **given: list[str]) -> Batch:
    return batch_of_spec(subject, input_spec(given, options or {}, look_at), 0)


@pytest.mark.parametrize("texts", [["abc", "answer=AB"], ["answer=AB", "abc"], ["a=b", "answer=AB"]])
def test_a_text_for_an_input_that_there_is_not_is_no_second_row(texts: list[str]) -> None:
    class Reads(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            return tokens

    words = "abcdefghijklmnopqrstuvwxyzAB="
    for subject in (
        adopt(SimpleNamespace(model=Reads(), vocabulary=words)),
        adopt(SimpleNamespace(model=Reads(), inputs={"tokens": {"vocabulary": words}})),
    ):
        with pytest.raises(InputError, match=r"Reads has no input '(answer|a)', which was given .* there is tokens\."):
            asked(subject, text=texts)
        assert asked(subject, text=["answer=AB"]).lengths.tolist() == [9], "one text is a text"
        assert asked(subject, text=["abc", "de"]).lengths.tolist() == [3, 2]


def test_texts_and_ids_by_name_and_repeated_are_a_batch() -> None:
    subject = adopt(translation())
    batch = asked(subject, 1, text=["src=abc", "src=de"], ids=["tgt=0 1;2 3 4"])
    assert batch["src"].tolist() == [[0, 1, 2], [3, 4, 0]] and batch["tgt"].tolist() == [[0, 1, 0], [2, 3, 4]]
    assert batch.look_at == 1 and batch.title == "abc" and batch.named["tgt"].names[1] == ("C", "D", "E")


def test_files_of_every_kind(tmp_path: Path) -> None:
    np.save(tmp_path / "image.npy", np.ones((3, 6, 6)))
    np.save(tmp_path / "images.npy", np.ones((2, 3, 6, 6)))
    (tmp_path / "said.txt").write_text("ABC\n")
    inputs = {"image": "image", "caption": {"vocabulary": TARGET}}
    subject = adopt(SimpleNamespace(model=made(Captioner), inputs=inputs))
    batch = asked(subject, file=[f"image={tmp_path / 'image.npy'}", f"caption={tmp_path / 'said.txt'}"])
    assert batch["image"].shape == (1, 3, 6, 6) and batch["caption"].tolist() == [[0, 1, 2]]
    two = asked(subject, file=[f"image={tmp_path / 'images.npy'}"], text=["caption=A", "caption=B"])
    assert two["image"].shape == (2, 3, 6, 6)
    state = {"kind": "state", "shape": (2, 4), "batch_dim": 1}
    going_on = adopt(SimpleNamespace(model=made(Continued), inputs={"x": {"width": 3}, "h0": state, "c0": state}))
    np.savez(tmp_path / "h.npz", a=np.ones((2, 4)), b=np.zeros((2, 4)))
    batch = asked(
        going_on, generated=["x=noise"], file=[f"h0={tmp_path / 'h.npz'}"], options={"x.steps": 5, "h0.key": "a"}
    )
    assert batch["x"].shape == (1, 5, 3) and batch["h0"].sum() == 8 and batch["c0"].shape == (2, 1, 4)


def test_two_made_signals_are_not_the_same_noise() -> None:
    class Sum(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

    subject = adopt(SimpleNamespace(model=Sum(), inputs={"x": {"width": 2}, "y": {"width": 2, "axis": "x"}}))
    batch = asked(subject, generated=["x=noise", "y=noise"], options={"steps": 4})
    assert batch["x"].shape == batch["y"].shape == (1, 4, 2) and (batch["x"] != batch["y"]).all()


def test_a_mask_may_be_typed() -> None:
    class Masked(nn.Module):
        def forward(self, x: Tensor, keep: Tensor) -> Tensor:
            return x

    subject = adopt(SimpleNamespace(model=Masked(), inputs={"x": {"vocabulary": "ab"}, "keep": {"of": "x"}}))
    assert asked(subject, text=["x=aba"], ids=["keep=1 0 1"])["keep"].tolist() == [[True, False, True]]


def test_one_sequence_without_a_name_is_the_primary_input() -> None:
    with pytest.raises(InputError, match="given was only src, and tgt is missing"):
        asked(adopt(translation()), text=["abc"])
    optional = adopt(translation(
        inputs={"tgt": {"vocabulary": TARGET, "optional": True}}, forward=lambda model, batch: batch["src"]
    ))  # fmt: skip
    batch = asked(optional, text=["abc"])
    assert batch["src"].tolist() == [[0, 1, 2]] and batch["tgt"] is None


def test_an_equals_sign_is_text_where_no_input_has_that_name() -> None:
    class Reader(nn.Module):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
            return x

    subject = adopt(SimpleNamespace(model=Reader(), vocabulary="abxyz=5"))
    assert asked(subject, text=["x=5"]).names == (tuple("x=5"),)  # one input needs no name
    with pytest.raises(InputError, match=r"Reader has no input 'z', which was given as z=…; there are x, y\."):
        asked(subject, text=["x=5", "z=a"])  # not two rows of text
    with pytest.raises(InputError, match=r"2 texts were given, of which 1 begins with the name of an input \(x=…\)"):
        asked(subject, text=["ab", "x=5"])
    both = asked(subject, ids=["x=6", "y=0"])
    assert both["x"].tolist() == [[6]] and list(both.named) == ["x", "y"]
    named = adopt(SimpleNamespace(model=Reader(), inputs={"x": {"vocabulary": "abxyz=5"}}))
    assert asked(named, text=["x=5"]).names == (("5",),) and asked(named, text=["z=a"]).names == (tuple("z=a"),)


def test_unknown_names_and_kinds_have_their_sentence() -> None:
    for given, said in (
        ({"text": ["src=a", "tgt=A", "more=x"]}, "has no input 'more'; there are src, tgt"),
        ({"text": ["src=a"], "generated": ["tgt=noise"]}, "tgt of .* reads tokens; generated signals are for"),
        ({"text": ["src=a", "tgt=A"], "file": ["x=a.npy"]}, "has no input 'x'"),
    ):
        with pytest.raises(InputError, match=said):
            asked(adopt(translation()), **given)
    with pytest.raises(InputError, match="There is no input 'song'; there are audio"):
        batch_of_spec(adopt(translation()), InputSpec(parts={"src": InputSpec(kind="song")}), 0)


def test_a_vocabulary_file_names_the_ids_of_its_input(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("".join(f"{letter}\n" for letter in reversed(SOURCE)))
    subject = adopt(translation(inputs={"src": {"size": 8}, "tgt": {"size": 6}}))
    batch = asked(subject, text=["src=ab"], ids=["tgt=0"], options={"src.vocabulary": str(tmp_path / "v.txt")})
    assert batch["src"].tolist() == [[7, 6]] and subject.vocabulary == list(reversed(SOURCE))
    assert asked(subject, text=["src=b"], ids=["tgt=0"])["src"].tolist() == [[6]]  # for the session, as with one input


def test_the_window_is_offered_the_primary_text_of_the_first_example() -> None:
    for example in (("abc", "AB"), {"tgt": "AB", "src": "abc"}, (("abc", "AB"), 1)[0]):
        subject = adopt(translation(examples={"x": example}))
        assert describe(Opened(subject, "t"), Load(subject="s")).default_text == "abc"


def test_in_python_and_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(SUBJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "support"), prepend=":")
    words = ["run", "mine.py:make", "--text", "src=abcde", "--text", "tgt=ABC", "--only", "states,input"]
    cli.main([*words, "--out", "c.inspect"], standalone_mode=False)
    with inspector.open_capture("c.inspect") as theirs:
        assert theirs.labels("answer step") == ("A", "B", "C") and theirs.labels("step") == tuple("abcde")
        subject = translation()
        with inspector.run(subject, {"src": "abcde", "tgt": "ABC"}, only=["states", "input"]) as ours:
            assert list(ours.channels) == list(theirs.channels)
            np.testing.assert_allclose(ours.array("decoder.l0:h"), theirs.array("decoder.l0:h"), atol=1e-12)
        assert json.dumps(theirs.start.title) and theirs.start.title.endswith("abcde")
    with inspector.run("mine.py:make", only=["input"]) as example:
        assert example.labels("step") == ("a", "b", "c") and example.array("input.tgt:token").tolist() == [0, 1]
