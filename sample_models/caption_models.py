"""Models that say what is on a picture: one convolutional network, three decoders; one file beside this for each.

The network gives a grid of 5 × 5 cells with 24 features each, which come from the 18 × 18 pixels around a cell. A
decoder reads it as one vector, or attends to its cells at each word.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sample_models import captions
from sample_models.base import Sample, Training, vary_layers
from sample_models.captions import BORDER, GRID, LONGEST, WORDS
from sample_models.date_decoders import Additive, Source
from sample_models.tasks import IGNORED

EMBEDDED, FEATURES, NARROW, HEADS = 12, 24, 8, 2
CELLS = GRID[0] * GRID[1]


class Look(nn.Module):
    """Pictures (b, 1, 20, 20) → features (b, 25, 24) of the cells, row by row, with a learned place added to each."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, FEATURES // 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(FEATURES // 2, FEATURES, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(FEATURES, FEATURES, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.places = nn.Parameter(0.3 * torch.randn(CELLS, FEATURES))

    def forward(self, picture: Tensor) -> Tensor:
        """The channels of each cell side by side."""
        found: Tensor = self.layers(picture).flatten(2).transpose(1, 2) + self.places
        return found


class Said(nn.Module):
    """What decoders share: features (b, 25, 24) of a picture, and scores of the words that follow given ones."""

    def __init__(self) -> None:
        super().__init__()
        self.look = Look()

    def forward(self, picture: Tensor, said: Tensor) -> Tensor:
        """Scores (b, l, 14) of pictures (b, 1, 20, 20); `said` (b, l) are the right words, IGNORED for its own."""
        grid: Tensor = self.look(picture)
        return self.scores(grid, said)

    def scores(self, grid: Tensor, said: Tensor) -> Tensor:
        """(b, l, 14), each after the words before it; its own likeliest words where IGNORED, to the end of the last."""
        raise NotImplementedError


def before(said: Tensor) -> Tensor:
    """The words (b, l) one step late, after the sign that starts."""
    return nn.functional.pad(said[:, :-1], (1, 0), value=BORDER)


class Recurrent(Said):
    """s_t = GRU([y_{t-1}; c_t], s_{t-1}), scores of [s_t; c_t].

    With `attention`, soft and with the additive score (Xu et al. 2015), c_t is attended to with s_{t-1}, and s_0 is
    made of the mean of the cells; without, c and s_0 are one vector made of eight numbers of each cell.
    """

    def __init__(self, attention: nn.Module | None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), EMBEDDED)
        self.narrow = nn.Linear(FEATURES, NARROW) if attention is None else None
        self.whole = nn.Linear(FEATURES if attention else CELLS * NARROW, FEATURES)
        self.decoder = nn.GRUCell(EMBEDDED + FEATURES, FEATURES)
        self.attention = attention
        self.head = nn.Linear(2 * FEATURES, len(WORDS))

    def scores(self, grid: Tensor, said: Tensor) -> Tensor:
        """One step a word."""
        vector = self.whole(grid.mean(1) if self.narrow is None else self.narrow(grid).flatten(1))
        source = Source(grid, torch.ones(grid.shape[:2], dtype=torch.bool, device=grid.device), vector)
        state, found = torch.tanh(vector), list[Tensor]()
        word = said.new_full((len(said),), BORDER)
        over = torch.zeros_like(word, dtype=torch.bool)
        for given in said.unbind(1):
            context = vector if self.attention is None else self.attention(state, source)
            state = self.decoder(torch.cat((self.embedding(word), context), dim=-1), state)
            found.append(self.head(torch.cat((state, context), dim=-1)))
            word = torch.where(given == IGNORED, found[-1].argmax(-1), given)
            over |= (word == BORDER) & (given == IGNORED)
            if bool(over.all()):
                break
        return torch.stack(found, dim=1)


def attending() -> Recurrent:
    """A recurrent decoder that attends to the cells."""
    return Recurrent(Additive(FEATURES))


class Transformer(Said):
    """Cells as the memory of one decoder layer of two heads (Vaswani et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), FEATURES)
        self.places = nn.Parameter(0.3 * torch.randn(LONGEST, FEATURES))
        layer = nn.TransformerDecoderLayer(
            FEATURES, HEADS, 2 * FEATURES, dropout=0.0, batch_first=True, norm_first=True
        )
        self.decoder = nn.TransformerDecoder(layer, 1, nn.LayerNorm(FEATURES))
        vary_layers(self.decoder)
        self.head = nn.Linear(FEATURES, len(WORDS))

    def scores(self, grid: Tensor, said: Tensor) -> Tensor:
        """All words at once; a word does not see later ones."""
        if bool((said == IGNORED).any()):
            said = self.completed(grid, said)
        words = self.embedding(before(said)) + self.places[: said.shape[1]]
        later = nn.Transformer.generate_square_subsequent_mask(words.shape[1], device=said.device, dtype=torch.bool)
        found: Tensor = self.head(self.decoder(words, grid, tgt_mask=later, tgt_is_causal=True))
        return found

    def completed(self, grid: Tensor, said: Tensor) -> Tensor:
        """The words, those that are IGNORED replaced by the likeliest ones after what stands before them."""
        for t in range(said.shape[1]):
            likeliest = self.scores(grid, said[:, : t + 1].clamp(min=0))[:, -1].argmax(-1)
            said = said.clone()
            said[:, t] = torch.where(said[:, t] == IGNORED, likeliest, said[:, t])
            if bool((said[:, : t + 1] == BORDER).any(1).all()):
                return said[:, : t + 1]
        return said


def call(model: nn.Module, batch: Any) -> Tensor:
    """The model on a batch that has its inputs by name."""
    scores: Tensor = model(batch["picture"], captions.wanted(batch))
    return scores


def next_logits(model: nn.Module, batch: Any, prefixes: Tensor) -> Tensor:
    """Scores (n, l + 1, 14) after each beginning of the captions (n, l) that are tried on one picture."""
    assert isinstance(model, Said)
    grid = model.look(batch["picture"]).expand(len(prefixes), -1, -1)
    return model.scores(grid, nn.functional.pad(prefixes, (0, 1), value=BORDER)[:, :LONGEST])


def caption_sample(name: str, model: Said, rate: float = 4e-3) -> Sample:
    """The model with what captions need; a caption may be left out, the model then says its own."""
    inputs = {
        "picture": {
            "kind": "image", "shape": (1, captions.SIDE, captions.SIDE), "grid": GRID, "pixels": captions.pixels,
            "primary": True,
        },
        "caption": {
            "kind": "tokens", "vocabulary": WORDS, "encode": captions.encode, "optional": True, "padding": BORDER,
        },
    }  # fmt: skip
    return Sample(
        model=model, name=name, kind="image", labels=WORDS, inputs=inputs, forward=call, loss=captions.loss,
        answer=captions.answer, decoder=("decoder", "attention"), next_logits=next_logits, end_token=BORDER,
        training=Training(captions.draw, rate=rate), examples=captions.examples(),
        data=captions.held_out,
    )  # fmt: skip
