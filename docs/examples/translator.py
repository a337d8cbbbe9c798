"""Two sequences, and a mask made of the lengths of one: an encoder-decoder transformer that spells words.

inspector run docs/examples/translator.py:make --text src=water --text tgt='<eau>'
inspector decode docs/examples/translator.py:make --text src=water --text tgt='<eau>' --how beam --longest 8
"""

from types import SimpleNamespace

import torch
from torch import nn

LETTERS = "abcdefghijklmnopqrstuvwxyz<>"


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(28, 16), nn.Embedding(28, 16)
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.head = nn.Linear(16, 28)

    def forward(self, src, tgt, src_padding):
        later = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1], dtype=torch.bool)
        out = self.transformer(
            self.source(src),
            self.target(tgt),
            tgt_mask=later,
            src_key_padding_mask=src_padding,
            memory_key_padding_mask=src_padding,
        )
        return self.head(out)


def wanted(scores, batch):  # the target at each step; negative at padding
    return batch["tgt"][:, 1:].masked_fill(~batch.mask("tgt")[:, 1:], -100)


def loss(scores, batch):
    right = wanted(scores, batch)
    return nn.functional.cross_entropy(scores.transpose(1, 2), right, reduction="none").masked_fill(
        right < 0, torch.nan
    )


def next_logits(model, batch, beginnings):  # of what may follow each beginning of an answer, and each of its steps
    said = nn.functional.pad(beginnings, (1, 0), value=LETTERS.index("<"))
    many = len(beginnings)
    return model(batch["src"].expand(many, -1), said, batch["src_padding"].expand(many, -1))


def make():
    return SimpleNamespace(
        model=Translator(),
        inputs={
            "src": {"kind": "tokens", "vocabulary": LETTERS},
            "tgt": {"kind": "tokens", "vocabulary": LETTERS},
            "src_padding": {"kind": "mask", "of": "src", "marks": "padding"},
        },
        forward=lambda model, batch: model(batch["src"], batch["tgt"][:, :-1], batch["src_padding"]),
        answer=wanted,
        loss=loss,
        decoder="transformer.decoder",
        next_logits=next_logits,
        end_token=LETTERS.index(">"),
        examples={"a word": ("hello", "<bonjour>")},
    )
