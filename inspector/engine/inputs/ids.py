"""Token ids, typed with spaces or commas between them; a semicolon begins the next sequence of a batch."""

from __future__ import annotations

import re

import torch

from inspector.engine.errors import InputError
from inspector.engine.model.batching import of_value, pad, what_it_reads
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec
from inspector.records.plain_text import shortened

_WORD = re.compile(r"[+-]?\d{1,18}\Z")


class Ids:
    """Ids of the model's vocabulary."""

    title = "Ids"
    summary = "Token ids, typed (or the 0 and 1 of a mask)."
    form = "line"
    order = 20
    prompt = "3 1 4 1 5 …; a semicolon begins another sequence of the batch"
    reads = ("tokens", "mask")
    suffixes = (".ids",)
    of_content = True

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """One sequence, or a batch of several."""
        if subject.kind not in ("tokens", "mask"):
            raise InputError(f"{subject.name} reads {what_it_reads(subject)}, not token ids.")
        rows = [of_value(subject, torch.tensor(parse_ids(part))) for part in spec.value.split(";")]
        return pad(subject, rows, targets=[None] * len(rows), title="typed ids", look_at=spec.look_at)


def parse_ids(text: str) -> list[int]:
    """Whole numbers separated by spaces or commas. Raises InputError naming the first item that is not one."""
    words = text.replace(",", " ").split()
    for word in words:
        if not _WORD.match(word):
            raise InputError(
                f"{shortened(word, 40)!r} is not a token id; expected whole numbers with spaces or commas between."
            )
    return [int(word) for word in words]


INPUTS.register("ids")(Ids())
