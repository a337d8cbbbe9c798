"""transformers' own `generate` with its cache of keys: the rows of its calls are one map, that of one call on it all."""

from __future__ import annotations

from typing import Any

import hugging_face_folders as folders
import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor

import inspector
from inspector.engine.attention.rows import rows
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import perform
from inspector.engine.trace.trace import Attention

pytestmark = [
    pytest.mark.parametrize("library", ["transformers"], indirect=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
NEW = 6


def generated(name: str, kernel: str, tmp_path: Any, **how: Any) -> tuple[Any, Tensor, Tensor, list[Attention]]:
    """(the model, what it read, what it said, the attentions) of one `generate`, watched from outside."""
    model = folders.save(name, tmp_path / "f").double()
    model.set_attn_implementation(kernel)
    ids = torch.tensor([[5, 6, 7, 8, 5]])
    said: list[Tensor] = []

    def forward(model: Any, inputs: Tensor, _lengths: Tensor) -> Tensor:
        said.append(
            model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=NEW,
                min_new_tokens=NEW,
                do_sample=False,
                use_cache=True,
                **how,
            )
        )
        return said[-1]

    rows_ = model.get_input_embeddings().weight.shape[0]
    subject = Subject(model=model, kind="tokens", vocabulary=[f"w{n}" for n in range(rows_)], forward=forward)
    trace = perform(subject, Batch(ids, torch.tensor([5])), Listed())
    model.set_attn_implementation("eager")
    return model, ids, said[0], list(trace.attentions)


def assert_maps(found: list[Attention], expected: tuple[Tensor, ...]) -> None:
    assert len(found) == len(expected) > 0, [one.place for one in found]
    for one, other in zip(found, expected, strict=True):
        held = one.query if one.weights is None else one.weights
        torch.testing.assert_close(rows(one, 0, 0, held.shape[-2]), other[0], rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_decoder_that_continues_a_text(library: Any, name: str, kernel: str, tmp_path: Any) -> None:
    model, _, said, found = generated(name, kernel, tmp_path, pad_token_id=0)
    with torch.no_grad():
        told = model(input_ids=said[:, :-1], output_attentions=True)  # the last token is said, and never read
    assert_maps(found, told.attentions)
    assert {(one.queries_from, one.keys_from, one.first_query) for one in found} == {("position", "position", 0)}


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize(("name", "cross"), [("t5", "EncDecAttention"), ("bart", "encoder_attn")])
def test_a_decoder_that_reads_an_encoder(library: Any, name: str, cross: str, kernel: str, tmp_path: Any) -> None:
    model, ids, said, found = generated(name, kernel, tmp_path)
    with torch.no_grad():
        told = model(input_ids=ids, decoder_input_ids=said[:, :-1], output_attentions=True)
    encoder = [one for one in found if "encoder." in one.place.replace("decoder.", "") and cross not in one.place]
    looked = [one for one in found if cross in one.place]
    own = [one for one in found if one not in encoder and one not in looked]
    assert_maps(encoder, told.encoder_attentions)
    assert_maps(own, told.decoder_attentions)
    assert_maps(looked, told.cross_attentions)
    assert {one.keys_from for one in looked} == {"step"}


@pytest.mark.parametrize("name", ["gpt2", "t5", "bart"])
def test_a_folder_is_given_its_text_one_step_at_a_time(library: Any, name: str, tmp_path: Any) -> None:
    """Of an encoder and a decoder it is what the decoder says; the encoder reads all of its text at each call."""
    folders.save(name, tmp_path / "f")
    ids = [5, 6, 7, 8, 5, 9, 6]
    alone = name == "gpt2"
    given: Any = ids if alone else {"input_ids": ids, "decoder_input_ids": [0, *ids[:4]]}
    with inspector.run(str(tmp_path / "f"), given, only=["structure/cache"]) as capture:
        channel = capture.channel("model:structure/cache")
        moved = capture.array(channel.name)
    assert channel.domain("step") == ("step" if alone else "answer step")
    assert 0 < np.isfinite(moved).sum() < len(moved) and np.nanmax(moved) < 1e-5
