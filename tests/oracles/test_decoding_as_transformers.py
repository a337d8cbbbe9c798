"""Greedy decoding and beam search of folders of Hugging Face's against `generate` of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hugging_face_folders as folders
import pytest
import torch

import inspector
from inspector.analysis.decoded_tree import read_tree
from inspector.engine.opening.open_subject import open_subject
from inspector.records import Load

pytestmark = [
    pytest.mark.parametrize("library", ["transformers"], indirect=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
IDS, STEPS = [3, 5, 7, 9], 6
ONLY = ("attention/maps",)


def until(ids: list[int], end: int | None) -> tuple[int, ...]:
    """Ids up to the end of the text, without what fills up the row."""
    return tuple(ids[: ids.index(end) + 1] if end in ids else ids)


@pytest.mark.parametrize(("name", "width"), [("t5", 1), ("t5", 4), ("bart", 3), ("gpt2", 1), ("gpt2", 3), ("llama", 2)])
def test_the_same_hypotheses_with_the_same_scores(library: Any, name: str, width: int, tmp_path: Path) -> None:
    model = folders.save(name, tmp_path)
    pair = bool(model.config.is_encoder_decoder)
    given = {"input_ids": IDS} if pair else IDS
    how = "beam" if width > 1 else "greedy"
    capture = inspector.decode(str(tmp_path), given, how=how, width=width, longest=STEPS, only=ONLY)  # type: ignore[arg-type]
    tree = read_tree(capture)
    assert tree is not None
    end = open_subject(Load(subject=str(tmp_path))).subject.end_token
    known = model.generate(
        torch.tensor([IDS]), num_beams=width, num_return_sequences=width, max_new_tokens=STEPS, do_sample=False,
        length_penalty=0.0, early_stopping="never", return_dict_in_generate=True, output_scores=True,
        forced_bos_token_id=None, forced_eos_token_id=None, eos_token_id=end, min_length=0, no_repeat_ngram_size=0,
    )  # fmt: skip
    wanted = [until(row[1 if pair else len(IDS) :].tolist(), end) for row in known.sequences]
    ranked = sorted(tree.ranked, key=lambda at: -tree.tokens[at].score)[:width]  # transformers ranks both kinds as one
    assert [tree.ids(at) for at in ranked] == wanted
    if width > 1:
        totals = [tree.tokens[at].total for at in ranked]
        assert totals == pytest.approx(known.sequences_scores.tolist(), abs=1e-4)
    if pair:
        between = ("answer step", "step")
        maps = [one for one in capture.channels.values() if one.dims == ("head", "query", "key")]
        cross = [one.name for one in maps if (one.domain("query"), one.domain("key")) == between]
        assert cross and capture.array(cross[0]).shape[1:] == (len(tree.ids(tree.ranked[0])), len(IDS))
