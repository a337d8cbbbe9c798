"""The samples with attention, run as anybody would: maps against plain sums, and the right tokens along both axes."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import Capture
from sample_models import dates
from sample_models.base import checkpoints, load

pytestmark = pytest.mark.usefixtures("one_thread")

TEXT, SAID = "tuesday, the 23rd of september 2025", "2025-09-23<"
ONLY = ("attention/maps", "output/probabilities")


@cache
def ran(sample: str, *texts: str) -> Capture:
    sequence: Any = dict(zip(("day", "month"), texts, strict=True)) if len(texts) == 2 else texts[0]
    return inspector.run(sample, sequence, only=ONLY)


def axis(capture: Capture, name: str, dim: str) -> str:
    return "".join(capture.labels(capture.channels[name].domain(dim)))


def opened(sample: str) -> nn.Module:
    """The trained model, by itself."""
    stem = sample.replace("-", "_")
    made: nn.Module = importlib.import_module(f"sample_models.{stem}").build().model
    load(made, checkpoints(stem)[-1])
    return made.double().eval()


def softmax_rows(sample: str) -> Tensor:
    """(11, 35) by the definitions of the model, in float64: the right symbols fed, one row a step."""
    model: Any = opened(sample)
    decoder = model.decoder
    ids = dates.encode(TEXT)[None]
    with torch.no_grad():
        states, last = model.encoder.rnn(model.encoder.embedding(ids))
        keys, s = states[0], torch.cat(tuple(last), -1)
        rows = []
        for t in range(len(SAID)):
            symbol = decoder.embedding(torch.tensor([dates.SAID.index("<" if t == 0 else SAID[t - 1])]))
            if sample in ("dates-dot", "dates-bilinear"):
                s = decoder.cell(symbol, s)
                matrix = decoder.attention.matrix.weight if sample == "dates-bilinear" else torch.eye(40).double()
                rows.append(torch.softmax(keys @ matrix.T @ s[0], 0))
                continue
            pairs = torch.cat((s.expand(len(keys), -1), keys), -1)
            if sample == "dates-additive":
                scores = torch.tanh(pairs @ decoder.attention.matrix.weight.T + decoder.attention.matrix.bias)
                scores = scores @ decoder.attention.vector.weight[0]
            else:
                scores = pairs @ decoder.attention.matrix.weight[0]
            rows.append(torch.softmax(scores, 0))
            s = decoder.cell(torch.cat((symbol, (rows[-1] @ keys)[None]), -1), s)
    return torch.stack(rows)


@pytest.mark.parametrize("sample", ["dates-additive", "dates-dot", "dates-bilinear", "dates-linear-score"])
def test_an_alignment_is_the_softmax_of_every_step(sample: str) -> None:
    capture = ran(sample, TEXT)
    found = np.asarray(capture.array("decoder.attention:attention"), dtype=np.float64)
    assert found.shape == (1, len(SAID), len(TEXT))
    np.testing.assert_allclose(found[0], softmax_rows(sample), atol=2e-3)  # stored as float16
    assert axis(capture, "decoder.attention:attention", "query") == SAID
    assert axis(capture, "decoder.attention:attention", "key") == TEXT


def test_without_tanh_all_rows_are_equal_and_with_it_they_are_not() -> None:
    spread = {
        sample: float(np.ptp(np.asarray(ran(sample, TEXT).array("decoder.attention:attention"), float), axis=1).max())
        for sample in ("dates-linear-score", "dates-additive")
    }
    assert spread["dates-linear-score"] < 1e-3 < 0.5 < spread["dates-additive"]


def test_a_digit_is_looked_up_where_it_stands() -> None:
    found = np.asarray(ran("dates-bilinear", TEXT).array("decoder.attention:attention"), dtype=np.float64)[0]
    for step in (3, 8, 9):  # the last digit of the year, and both of the day
        assert TEXT[int(found[step].argmax())] == SAID[step] and found[step].max() > 0.9


@pytest.mark.parametrize(
    ("day", "month"),
    [
        ("tuesday, the 23rd", "of september 2025"),  # equally long
        ("9", "1999 december"),  # one key
        ("tuesday the 12th", "of may 2025"),  # as many keys as queries
    ],
)
def test_each_of_two_encoders_has_keys_of_its_own(day: str, month: str) -> None:
    capture = ran("dates-two-encoders", day, month)
    for place, text in (("decoder.day", day), ("decoder.month", month)):
        name = f"{place}:attention"
        assert axis(capture, name, "key") == text
        assert capture.channels[name].domain("query") == "answer step"
        assert capture.array(name).shape == (1, len(SAID), len(text))
    assert len(axis(capture, "decoder.day:attention", "query")) == len(SAID)


@pytest.mark.parametrize(("source", "target"), [("water", "<eau>"), ("water", "<leau>"), ("sea", "<mer>")])
def test_the_text_that_is_said_is_not_taken_for_what_is_attended_to(source: str, target: str) -> None:
    """Also where both are equally long, or the source is as long as the answer."""
    example = "docs/examples/translator.py:make"
    with inspector.run(example, {"src": source, "tgt": target}, only=["attention/maps"]) as capture:
        name = "transformer.decoder.layers.0.multihead_attn:attention"
        assert (axis(capture, name, "query"), axis(capture, name, "key")) == (target[1:], source)


def test_maps_of_an_encoder_decoder_transformer_lie_over_their_own_axes() -> None:
    capture = ran("dates-transformer", TEXT)
    wanted = {
        "encoder.layers.0.self_attn": (TEXT, TEXT), "decoder.layers.0.self_attn": (SAID, SAID),
        "decoder.layers.0.multihead_attn": (SAID, TEXT),
    }  # fmt: skip
    for place, (queries, keys) in wanted.items():
        name = f"{place}:attention"
        assert (axis(capture, name, "query"), axis(capture, name, "key")) == (queries, keys)
        assert capture.array(name).shape == (4, len(queries), len(keys))
    later = np.asarray(capture.array("decoder.layers.0.self_attn:attention"), dtype=np.float64)
    assert not np.nan_to_num(later)[:, *np.triu_indices(len(SAID), 1)].any()


@pytest.mark.parametrize("sample", ["dates-state", "dates-every-step", "dates-additive", "dates-transformer"])
def test_the_readout_names_the_symbols_that_are_said(sample: str) -> None:
    capture = ran(sample, TEXT)
    names = capture.labels(capture.channels["output:token"].value_domain)
    said = "".join(names[token] for token in capture.array("output:token")[:, 0])
    assert capture.channels["output:token"].domain("step") == "answer step" and "".join(names) == "0123456789-<"
    assert len(said) == len(SAID) and (sample == "dates-state" or said == SAID)


@pytest.mark.parametrize(
    ("sample", "one_hot"), [("first-digit-hard", True), ("first-digit-causal", False), ("first-digit-unordered", False)]
)
def test_self_attention_over_digits(sample: str, one_hot: bool) -> None:
    capture = ran(sample, "3141")
    found = np.nan_to_num(np.asarray(capture.array("model:attention"), dtype=np.float64))[0]
    assert found.shape == (4, 4) and axis(capture, "model:attention", "key") == "3141"
    np.testing.assert_allclose(found.sum(-1), 1, atol=2e-3)
    assert bool(np.isin(found, (0, 1)).all()) is one_hot
    if sample == "first-digit-causal":
        assert not found[np.triu_indices(4, 1)].any()
    if sample == "first-digit-unordered":
        other = np.asarray(ran(sample, "1413").array("model:attention"), dtype=np.float64)[0]
        order = [3, 0, 1, 2]  # where each of 3 1 4 1 stands in 1 4 1 3, equal ones as they come
        np.testing.assert_allclose(found, other[np.ix_(order, [3, 0, 1, 2])], atol=2e-3)
