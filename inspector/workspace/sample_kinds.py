"""What the samples are, in groups that a person looks for them by: from single recurrent layers to decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.workspace.samples import Sample


@dataclass(frozen=True, slots=True)
class SampleKind:
    """One group: `key` names its picture, `rows` are the rows of the systems table whose samples are in it."""

    key: str
    title: str
    rows: tuple[str, ...] = ()


ELSEWHERE = SampleKind("other", "Others")
KINDS = (
    SampleKind("elman", "Elman networks", ("S1", "S2", "S4", "S5", "S6", "S7")),
    SampleKind("gated", "Gated cells", ("S3", "S9", "S10", "S12")),
    SampleKind("space", "State spaces", ("S22",)),
    SampleKind("deep", "Deep nets", ("S8",)),
    SampleKind("lengths", "One to many, many to one", ("S11",)),
    SampleKind("decoder", "Encoder–decoders", ("S13", "S14", "S21")),
    SampleKind("attention", "Self-attention", ("S15", "S16", "S17")),
    SampleKind("transformer", "Transformers", ("S18",)),
    SampleKind("decoding", "Decoding", ("S19", "S20")),
)


def kind_of(sample: Sample) -> SampleKind:
    """The group of a sample; one of another package may be in a row of its own, which is among the others."""
    return next((kind for kind in KINDS if sample.row in kind.rows), ELSEWHERE)


def by_kind(samples: Sequence[Sample]) -> list[tuple[SampleKind, list[Sample]]]:
    """The groups that have samples, in their order, each with its samples in theirs."""
    found = [(kind, [sample for sample in samples if kind_of(sample) == kind]) for kind in (*KINDS, ELSEWHERE)]
    return [(kind, some) for kind, some in found if some]
