"""What attention did in a GPT-2 and a Llama of transformers, against what transformers and autograd give."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from listed import Listed

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Page, parse_edit

pytestmark = [
    pytest.mark.parametrize("library", ["transformers"], indirect=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
V, HEADS, LAYERS, WIDTH = 11, 4, 2, 16
ASKED = (
    "attention/gradient", "attention/weighted_norm", "residual", "residual/lens", "attention/direct_logit",
    "attention/cost", "attention/value_zeroing", "output/loss",
)  # fmt: skip


def loss(output: Any, batch: Batch) -> torch.Tensor:
    each = torch.nn.functional.cross_entropy(
        output.logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none"
    )
    return torch.nn.functional.pad(each, (0, 1), value=torch.nan)


def gpt2(library: Any, attention: str) -> Any:
    torch.manual_seed(0)
    config = library.GPT2Config(
        vocab_size=V, n_positions=32, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, attn_implementation=attention,
        initializer_range=0.5,
    )  # fmt: skip
    return library.GPT2LMHeadModel(config).double().eval()


def llama(library: Any, attention: str) -> Any:
    torch.manual_seed(0)
    config = library.LlamaConfig(
        vocab_size=V, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=2, max_position_embeddings=32, attn_implementation=attention, initializer_range=0.3,
    )  # fmt: skip
    return library.LlamaForCausalLM(config).double().eval()


MODELS = {
    "gpt2": (gpt2, "transformer.h.{}.attn", "transformer.h"),
    "llama": (llama, "model.layers.{}.self_attn", "model.layers"),
}


def run(model: Any, *edits: str) -> tuple[Listed, ...]:
    subject = Subject(model=model, kind="tokens", vocabulary="abcdefghijk", loss=loss, next_token=True)
    batch, sink = Batch(IDS, torch.tensor([IDS.shape[1]])), Listed()
    plan = plan_edits(subject, batch, [parse_edit(edit) for edit in edits]) if edits else None
    perform_with_edits(subject, batch, sink, plan, RunOptions(only=ASKED if not edits else ("output/loss",)))
    return tuple(Listed(one for one in sink if not isinstance(one, Page) or one.frame == frame) for frame in (0, 1))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_what_attention_did(library: Any, name: str, attention: str) -> None:
    make, place, stack = MODELS[name]
    sink = run(make(library, attention))[0]
    model = make(library, "eager")
    out = model(IDS, output_attentions=True, output_hidden_states=True)
    total = torch.nn.functional.cross_entropy(out.logits[0, :-1], IDS[0, 1:], reduction="sum")
    slopes = torch.autograd.grad(total, out.attentions)
    for layer, (maps, slope) in enumerate(zip(out.attentions, slopes, strict=True)):
        found = sink.array(f"{place.format(layer)}:attention/times_gradient")
        np.testing.assert_allclose(found, (maps * slope)[0].detach(), rtol=1e-4, atol=1e-8)
    norms = torch.stack([one[0].detach().norm(dim=1) for one in out.hidden_states[:-1]])  # the last one is normed
    np.testing.assert_allclose(sink.array(f"{stack}:residual/norm")[:LAYERS], norms, rtol=1e-6)
    np.testing.assert_array_equal(sink.array(f"{stack}:residual/lens_token")[-1], out.logits[0].argmax(-1))
    numbers = sink.array(f"{place.format(0)}:attention/parameters")
    expected = [0, 0, 0, WIDTH * WIDTH + WIDTH, 3 * (WIDTH * WIDTH + WIDTH), 0, 0]
    if name == "llama":
        expected = [WIDTH * WIDTH, WIDTH * WIDTH // 2, WIDTH * WIDTH // 2, WIDTH * WIDTH, 0, 0, 0]
    assert numbers.tolist() == expected
    for layer in range(LAYERS):
        assert f"{place.format(layer)}:attention/direct_logit" in sink.names()
        rows = sink.array(f"{place.format(layer)}:attention/value_zeroing").sum(1)
        np.testing.assert_allclose(rows, 1.0, rtol=1e-5)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_head_of_gpt2_that_gives_nothing(library: Any, attention: str) -> None:
    """W_O without the rows of a head is the same model without it."""
    model = gpt2(library, attention)
    without = run(model, "transformer.h.1.attn:head[2]=0")[1].array("output:loss")
    other = copy.deepcopy(model)
    width = WIDTH // HEADS
    with torch.no_grad():
        other.transformer.h[1].attn.c_proj.weight[2 * width : 3 * width] = 0.0
    np.testing.assert_allclose(without, run(other)[0].array("output:loss"), rtol=1e-5)
    assert not np.allclose(without[:-1], run(model)[0].array("output:loss")[:-1])
