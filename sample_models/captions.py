"""Two handwritten digits on a canvas, and a caption that says which they are and how they lie.

    caption = digit "left of" digit "<" | digit "above" digit "<"        ("three left of seven")

Pictures are composed from the 8 × 8 digits of data/digits.npz with a seed; none is stored. The digits that
are trained on and those that are held out are different ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sample_models import digits
from sample_models.base import Plain
from sample_models.tasks import IGNORED, step_loss

SIDE, DIGIT = 20, 8
"""Pixels of a canvas and of a digit, in each direction."""
CELL = 4
"""Pixels that one cell of the grid of features is of; the grid has 5 × 5."""
GRID = (SIDE // CELL, SIDE // CELL)
FREE = SIDE // 2 - DIGIT + 1
"""Places that a digit may take in its half of the canvas."""
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WORDS = (*NUMBERS, "left", "of", "above", "<")
BORDER = WORDS.index("<")
"""What starts and ends a caption."""
LONGEST = 5
"""Words of a caption with the sign that ends it."""
Picture = npt.NDArray[np.float32]


def caption(first: int, second: int, *, beside: bool) -> str:
    """What is said of two digits, beside or below each other."""
    return f"{NUMBERS[first]} {'left of' if beside else 'above'} {NUMBERS[second]}"


def encode(text: str) -> Tensor:
    """Words to ids (t,), the end added where it is missing. Raises ValueError for a word that captions do not have."""
    words = text.lower().split()
    for word in words:
        if word not in WORDS:
            raise ValueError(f"{word[:40]!r} is no word of a caption; there are {', '.join(WORDS)}.")
    if not words or words[-1] != WORDS[BORDER]:
        words.append(WORDS[BORDER])
    if len(words) > LONGEST:
        raise ValueError(f"A caption has at most {LONGEST - 1} words before its end; given were {len(words) - 1}.")
    return torch.tensor([WORDS.index(word) for word in words])


def composed(images: Picture, beside: npt.NDArray[np.bool_], moved: npt.NDArray[np.int64]) -> Picture:
    """(n, 1, 20, 20) canvases from pairs of digits (n, 2, 8, 8); `moved` (n, 2, 2): rows and columns in its half."""
    canvas = np.zeros((len(images), 1, SIDE, SIDE), dtype=np.float32)
    for n, (pair, next_to) in enumerate(zip(images, beside, strict=True)):
        for which in (0, 1):
            across = SIDE // 2 * which if next_to else (SIDE - DIGIT) // 2
            down = (SIDE - DIGIT) // 2 if next_to else SIDE // 2 * which
            row, column = (moved[n, which] + (down - (next_to), across - (not next_to))).tolist()
            canvas[n, 0, row : row + DIGIT, column : column + DIGIT] = pair[which]
    return canvas


def pictures(generator: torch.Generator, many: int, *, kept: bool = False) -> tuple[Tensor, list[str]]:
    """Composed pictures (n, 1, 20, 20) from 0 to 1 and their captions, from digits that are trained on or `kept`."""
    images, labels = digits.data(test=kept)
    chosen = torch.randint(0, len(images), (many, 2), generator=generator).numpy()
    beside = torch.randint(0, 2, (many,), generator=generator).bool().numpy()
    moved = torch.randint(0, FREE, (many, 2, 2), generator=generator).numpy()
    pairs = zip(labels[chosen].tolist(), beside.tolist(), strict=True)
    texts = [caption(first, second, beside=next_to) for (first, second), next_to in pairs]
    return torch.from_numpy(composed(images[chosen], beside, moved)), texts


def as_batch(shown: Tensor, texts: list[str]) -> Plain:
    """Pictures and captions as a batch with both by their names."""
    ids = [encode(text) for text in texts]
    said = Plain(
        nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=BORDER), torch.tensor([len(one) for one in ids])
    )
    seen = Plain(shown, torch.ones(len(shown), dtype=torch.long))
    return Plain(shown, seen.lengths, named={"picture": seen, "caption": said})


def draw(generator: torch.Generator, rows: int = 32) -> Plain:
    """A batch of pictures that are trained on."""
    return as_batch(*pictures(generator, rows))


def wanted(batch: Any) -> Tensor:
    """(b, l): the words of the caption, `<` from its end on; (b, 5) IGNORED where no caption is given."""
    if "caption" not in batch:
        shown = batch["picture"]
        return torch.full((len(shown), LONGEST), IGNORED, dtype=torch.long, device=shown.device)
    given: Tensor = batch["caption"]
    lengths = batch.named["caption"].lengths.to(given.device)
    return given.masked_fill(torch.arange(given.shape[1], device=given.device)[None] >= lengths[:, None], BORDER)


def ended(said: Tensor) -> Tensor:
    """The words (b, l) with IGNORED behind the first `<` of each row."""
    over = (said == BORDER).long().cumsum(1)
    return said.masked_fill((over - (said == BORDER).long()) > 0, IGNORED)


def answer(scores: Tensor, batch: Any) -> Tensor:
    """(b, l): the caption that is given; without one, the model's own."""
    said = wanted(batch)[:, : scores.shape[1]]
    return ended(torch.where(said == IGNORED, scores.argmax(-1), said))


def loss(scores: Tensor, batch: Any) -> Tensor:
    """(b, l): −ln p(word) in nats at every word and the end; NaN behind it, and everywhere without a caption."""
    return step_loss(scores, ended(wanted(batch))[:, : scores.shape[1]])


def pixels(picture: npt.NDArray[np.uint8]) -> Tensor:
    """A picture (h, w, 3) of any size as the models read it, (1, 20, 20) from 0 to 1, light ink on a dark ground.

    Averaged to 20 × 20; a picture that is more light than dark is turned into its negative.
    """
    grey = torch.from_numpy(picture.astype(np.float32)).mean(-1)[None, None] / 255
    small = nn.functional.interpolate(grey, size=(SIDE, SIDE), mode="area")[0]
    return 1 - small if float(small.mean()) > 0.5 else small


@cache
def _shown(many: int) -> tuple[Tensor, list[str]]:
    return pictures(torch.Generator().manual_seed(7), many, kept=True)


def examples(many: int = 6) -> dict[str, Any]:
    """Held-out pictures with their captions, and the first of them without: the model then says its own."""
    shown, texts = _shown(many)
    found: dict[str, Any] = {
        text: {"picture": picture.numpy(), "caption": text} for picture, text in zip(shown, texts, strict=True)
    }
    return {**found, "in its own words": {"picture": shown[0].numpy()}}


def held_out(many: int = 40) -> dict[str, Any]:
    """Held-out pictures with their captions, by number."""
    shown, texts = _shown(many)
    pairs = zip(shown, texts, strict=True)
    return {f"{n}: {text}": {"picture": one.numpy(), "caption": text} for n, (one, text) in enumerate(pairs)}
