"""Dates in written English: the grammar can be read back, and each way of attending shows what its sample says."""

from __future__ import annotations

import datetime
import importlib
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sample_models import dates, dates_two_encoders, garden_path_gru
from sample_models.base import Plain, Sample, checkpoints, load, run
from sample_models.date_decoders import Additive, Bilinear, DateModel, Dot, LinearScore, Source
from sample_models.dates_transformer import DateTransformer
from sample_models.first_digit import FirstDigit
from sample_models.positions import sinusoidal

ATTENDING = ("dates_additive", "dates_bilinear", "dates_dot", "dates_linear_score")
RECURRENT = (*ATTENDING, "dates_every_step", "dates_state")
RIGHT = {
    "dates_additive": 0.98, "dates_bilinear": 0.98, "dates_dot": 0.98, "dates_every_step": 0.95,
    "dates_transformer": 0.95,
}  # fmt: skip
"""Share of held-out dates that the last checkpoint must say right by itself."""


@cache
def trained(stem: str, position: int = -1) -> Sample:
    sample: Sample = importlib.import_module(f"sample_models.{stem}").build()
    load(sample.model, checkpoints(stem)[position])
    sample.model.eval()
    return sample


@cache
def unseen() -> Plain:
    return dates.draw(torch.Generator().manual_seed(11), 100, kept=True)


def said_greedily(sample: Sample, text: Plain) -> Tensor:
    """(1, 11): the likeliest symbols one after the other, by what each sample offers for decoding."""
    said = torch.zeros(1, 0, dtype=torch.long)
    for _ in range(dates.LONGEST):
        assert sample.next_logits is not None
        with torch.no_grad():
            following = sample.next_logits(sample.model, text, said)[:, -1].argmax(-1, keepdim=True)
        said = torch.cat((said, following), dim=1)
    return said


def said_freely(model: nn.Module, batch: Plain) -> Tensor:
    """(b, 11): what a model says of each text by itself."""
    nothing = torch.full((len(batch.inputs), dates.LONGEST), -100)
    with torch.no_grad():
        if isinstance(model, DateModel):
            scores: Tensor = model.decoder(model.encoder(batch.inputs, batch.lengths), nothing)
            return scores.argmax(-1)
        assert isinstance(model, DateTransformer)
        return model.completed(*model.read(batch.inputs, batch.lengths), nothing)


def test_every_written_date_is_read_back() -> None:
    generator = torch.Generator().manual_seed(3)
    for _ in range(400):
        day = dates.drawn_day(generator)
        assert dates.read(dates.written(day, generator)) == day
        both = dates.written(day, generator, dates_two_encoders.FORMS)
        assert dates.read(both, dates_two_encoders.FORMS) == day


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("3 march 1998", (1998, 3, 3)), ("the 22nd of feb 2001", (2001, 2, 22)), ("august 1st, 2033", (2033, 8, 1)),
        ("07/4/2031", (2031, 4, 7)), ("monday 1999 dec 31", (1999, 12, 31)), ("sunday, may the 2nd 1960", (1960, 5, 2)),
    ],
)  # fmt: skip
def test_forms_of_the_grammar(text: str, day: tuple[int, int, int]) -> None:
    assert dates.read(text) == datetime.date(*day)


@pytest.mark.parametrize("text", ["", "yesterday", "31 feb 1999", "3/13/1999", "3 marc 1999", "3 march 99"])
def test_what_is_no_date_has_no_answer(text: str) -> None:
    assert dates.read(text) is None
    batch = dates.padded([text or " "])
    assert bool((dates.wanted(batch.inputs, batch.lengths) == -100).all())


def test_ordinals() -> None:
    assert [dates.ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 31)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "31st",
    ]  # fmt: skip


def test_no_training_sees_a_day_that_is_held_out() -> None:
    generator = torch.Generator().manual_seed(0)
    assert not any(dates.held_out(dates.drawn_day(generator)) for _ in range(300))
    found = dates.unseen()
    days = [datetime.date.fromisoformat(name) for name in found]
    assert len(days) >= 30 and all(map(dates.held_out, days))
    assert all(dates.read(text) == day for day, text in zip(days, found.values(), strict=True))
    assert all(dates.held_out(day) for text in dates.EXAMPLES.values() if (day := dates.read(text)))


def test_wanted_is_the_date_in_isos_form_with_its_end() -> None:
    batch = dates.padded(["3 march 1998", "07/4/2031"])
    rows = dates.wanted(batch.inputs, batch.lengths).tolist()
    assert ["".join(dates.SAID[i] for i in row) for row in rows] == ["1998-03-03<", "2031-04-07<"]


def test_an_unknown_character_is_named_with_its_position() -> None:
    with pytest.raises(ValueError, match="Character 'ä' at position 1"):
        dates.encode("Mär")


@pytest.mark.parametrize("stem", [*RIGHT, "dates_state"])
def test_held_out_dates_are_said_right(stem: str) -> None:
    batch = unseen()
    right = dates.wanted(batch.inputs, batch.lengths)
    share = float((said_freely(trained(stem).model, batch) == right).all(1).float().mean())
    if stem in RIGHT:
        assert share >= RIGHT[stem]
    else:  # what one state of 48 numbers does not hold
        assert 0.1 < share < 0.6


@pytest.mark.parametrize("stem", [*RECURRENT, "dates_transformer"])
def test_without_a_right_answer_the_model_is_fed_with_what_it_says(stem: str) -> None:
    sample = trained(stem, 2)
    text = dates.padded(["next tuesday"])
    with torch.no_grad():
        scores = run(sample, text)
    said = said_greedily(sample, text)
    assert torch.equal(scores.argmax(-1), said)
    assert sample.answer is not None and torch.equal(sample.answer(scores, text), said)
    assert sample.loss is not None and bool(sample.loss(scores, text).isnan().all())


def weights_of(score: str, queries: Tensor, states: Tensor, parts: dict[str, Tensor]) -> Tensor:
    """(b, t) softmax of the score by its definition, in loops."""
    rows = []
    for s, hs in zip(queries, states, strict=True):
        one = []
        for h in hs:
            pair = torch.cat((s, h))
            if score == "dot":
                one.append(s @ h)
            elif score == "bilinear":
                one.append(s @ parts["matrix.weight"] @ h)
            elif score == "linear":
                one.append((parts["matrix.weight"] @ pair)[0])
            else:
                one.append(
                    (parts["vector.weight"] @ torch.tanh(parts["matrix.weight"] @ pair + parts["matrix.bias"]))[0]
                )
        rows.append(torch.softmax(torch.stack(one), dim=0))
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("score", "kind"), [("dot", Dot), ("bilinear", Bilinear), ("additive", Additive), ("linear", LinearScore)]
)
def test_scores_are_their_definitions(score: str, kind: Any) -> None:
    torch.manual_seed(0)
    attention = kind().double()
    states, query = torch.randn(2, 5, 40, dtype=torch.float64), torch.randn(2, 40, dtype=torch.float64)
    source = Source(states, torch.ones(2, 5, dtype=torch.bool), states[:, -1])
    parts = {name: value.detach() for name, value in attention.named_parameters()}
    wanted = torch.einsum("bt,btk->bk", weights_of(score, query, states, parts), states)
    torch.testing.assert_close(attention(query, source).detach(), wanted)


@pytest.mark.parametrize(("kind", "cancels"), [(LinearScore, True), (Additive, False), (Dot, False), (Bilinear, False)])
def test_without_tanh_the_query_cancels_in_the_softmax(kind: Any, cancels: bool) -> None:
    torch.manual_seed(0)
    attention = kind().double()
    states = torch.randn(3, 6, 40, dtype=torch.float64)
    source = Source(states, torch.ones(3, 6, dtype=torch.bool), states[:, -1])
    one, other = (attention(torch.randn(3, 40, dtype=torch.float64), source) for _ in range(2))
    assert bool(torch.isclose(one, other, rtol=1e-9).all()) is cancels


def test_two_encoders_answer_pairs_that_no_training_saw() -> None:
    sample = trained("dates_two_encoders")
    generator = torch.Generator().manual_seed(21)
    texts = [
        dates.written(dates.drawn_day(generator, kept=True), generator, dates_two_encoders.FORMS) for _ in range(60)
    ]
    day, month = (dates.padded(list(part)) for part in zip(*(text.split(";") for text in texts), strict=True))
    batch = Plain(day.inputs, day.lengths, named={"day": day, "month": month})
    with torch.no_grad():
        said = run(sample, batch).argmax(-1)
    assert float((said == dates_two_encoders.wanted(batch)).all(1).float().mean()) > 0.95
    shuffled = Plain(
        day.inputs, day.lengths, named={"day": day, "month": Plain(month.inputs.flip(0), month.lengths.flip(0))}
    )
    with torch.no_grad():
        other = sample.model.decoder(sample.model.read(shuffled), dates_two_encoders.wanted(batch)).argmax(-1)  # type: ignore[operator, union-attr]
    assert float((other == said).all(1).float().mean()) < 0.2


def test_padding_of_either_input_reaches_no_loss() -> None:
    sample = trained("dates_two_encoders")
    day, month = dates.padded(["9", "tuesday, the 23rd"]), dates.padded(["1999 december", "of may 2025"])
    alone = Plain(
        day.inputs[:1, :1],
        day.lengths[:1],
        named={"day": dates.padded(["9"]), "month": dates.padded(["1999 december"])},
    )
    longer = torch.cat((day.inputs, torch.ones_like(day.inputs)), dim=1)
    both = Plain(longer, day.lengths, named={"day": Plain(longer, day.lengths), "month": month})
    assert sample.loss is not None
    with torch.no_grad():
        torch.testing.assert_close(
            sample.loss(run(sample, both), both)[0], sample.loss(run(sample, alone), alone)[0], rtol=1e-4, atol=1e-6
        )


def digits_said(model: nn.Module, rows: list[list[int]]) -> Tensor:
    with torch.no_grad():
        scores: Tensor = model(torch.tensor(rows), torch.full((len(rows),), len(rows[0])))
    return scores


def test_without_positions_the_order_changes_nothing_and_with_them_it_decides() -> None:
    orders = [[3, 1, 4, 1, 5], [5, 1, 4, 3, 1], [1, 5, 1, 4, 3]]
    scores = digits_said(trained("first_digit_unordered").model, orders)
    torch.testing.assert_close(scores[1:], scores[:1].expand(2, -1, -1), rtol=1e-5, atol=1e-5)
    for kind in ("learned", "sinusoidal", "concatenated", "hard"):
        assert digits_said(trained(f"first_digit_{kind}").model, orders)[:, 0].argmax(-1).tolist() == [3, 5, 1], kind


def test_hard_weights_are_one_and_zero_with_the_gradient_of_the_softmax() -> None:
    torch.manual_seed(0)
    scores = torch.randn(2, 4, 4, requires_grad=True)
    hard, soft = FirstDigit(hard=True).chosen(scores), torch.softmax(scores, dim=-1)
    assert torch.equal(hard.detach(), nn.functional.one_hot(scores.argmax(-1), 4).float())
    picked = torch.randn(2, 4, 4)
    one, other = (torch.autograd.grad((weights * picked).sum(), scores)[0] for weights in (hard, soft))
    torch.testing.assert_close(one, other)


def test_a_causal_answer_does_not_see_what_comes_later() -> None:
    model = trained("first_digit_causal").model
    one, other = digits_said(model, [[3, 1, 4, 1, 5], [3, 1, 9, 9, 9]])
    torch.testing.assert_close(one[:2], other[:2])
    assert not torch.allclose(one[2:], other[2:]) and one.argmax(-1).tolist() == [3] * 5


def test_positions_that_no_training_reached_are_as_they_began() -> None:
    first, last = (trained("first_digit_learned", position).model.positions for position in (0, -1))
    assert torch.equal(first[10:], last[10:]) and not torch.equal(first[:10], last[:10])  # type: ignore[index]


def test_sinusoidal_positions_are_their_formula() -> None:
    found = sinusoidal(6, 4)
    rates = [1.0, 10_000.0**-0.5]
    wanted = [[f(i * rate) for rate in rates for f in (torch.sin, torch.cos)] for i in map(torch.tensor, range(6))]
    torch.testing.assert_close(found, torch.tensor(wanted))


def test_the_words_of_the_garden_path_have_their_probabilities() -> None:
    model = trained("garden_path_gru").model
    for word, chance in garden_path_gru.WORDS.items():
        ids = torch.tensor([[garden_path_gru.LETTERS.index(c) for c in f"<{word}<"]])
        with torch.no_grad():
            steps = torch.log_softmax(model(ids)[:, :-1], dim=-1).gather(-1, ids[:, 1:, None])
        assert float(steps.sum().exp()) == pytest.approx(chance, abs=0.05)


def test_a_decoder_reads_nothing_beyond_the_end_of_the_text() -> None:
    model = trained("dates_additive").model
    assert isinstance(model, DateModel)
    batch = dates.padded(["3 march 1998", "wednesday, the 23rd of september 2015"])
    alone = dates.padded(["3 march 1998"])
    with torch.no_grad():
        torch.testing.assert_close(model(batch.inputs, batch.lengths)[:1], model(alone.inputs, alone.lengths))
