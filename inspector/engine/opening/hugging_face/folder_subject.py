"""From a folder to a subject: the model, how it is called, what it reads and what it is to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from inspector.engine.errors import InputError
from inspector.engine.model.subject import Subject, adopt
from inspector.engine.opening.checkpoint_files import read_and_hashed
from inspector.engine.opening.hugging_face import heads, pairs, pictures
from inspector.engine.opening.hugging_face.description import read_description
from inspector.engine.opening.hugging_face.library import offline
from inspector.engine.opening.hugging_face.tokens import Tokens, read_tokens
from inspector.engine.opening.hugging_face.weights import build, class_of, dtype_of, read_config, read_state
from inspector.engine.wording import text_of
from inspector.records import CheckpointReport
from inspector.records.plain_text import shortened

ARGUMENTS = ("architecture", "dtype", "attn_implementation")
"""What `--arguments` may say of a folder: another class, another type of numbers, another kernel of attention."""
TEXT = "The cat sat on the mat."
LOSSES = {
    "causal": heads.next_token_loss, "masked": heads.masked_loss, "class": heads.class_loss,
    "tags": heads.tag_loss, "span": heads.span_loss,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Folder:
    """The parts of a folder that its subject is made of."""

    name: str
    model: Any
    tokens: Tokens
    rows: int
    head: str


def open_folder(folder: Path, arguments: Mapping[str, Any], device: str) -> tuple[Subject, CheckpointReport]:
    """The subject of a folder and the report of its weights. Raises InputError.

    Nothing is fetched and no code of the folder runs. The model computes attention as its configuration says.
    """
    unknown = next((name for name in arguments if name not in ARGUMENTS), None)
    if unknown is not None:
        raise InputError(
            f"A folder of Hugging Face's takes no argument {shortened(text_of(unknown), 40)!r}; there are "
            f"{', '.join(ARGUMENTS)}."
        )
    described = read_description(folder)
    with offline(folder) as transformers:
        config = read_config(transformers, folder, described["model_type"])
        kind = class_of(transformers, folder, config, str(arguments.get("architecture", "")))
        _check_reads(kind, folder)
        if "attn_implementation" in arguments:
            config._attn_implementation = _own_kernel(arguments["attn_implementation"])
        dtype = dtype_of(config, arguments.get("dtype"), device)
        state, sha256 = read_and_hashed(folder, read_state)
        model, report = build(kind, config, state, dtype, folder)
        report = replace(report, sha256=sha256)
        model.config.return_dict = True  # a folder may ask for tuples, whose items have no names
        if _sees(kind):
            return adopt(pictures.subject_of(transformers, folder, model, heads.head_of(kind.__name__))), report
        rows = int(model.get_input_embeddings().weight.shape[0])
        tokens = read_tokens(transformers, folder, rows)
    found = Folder(folder.resolve().name, model, tokens, rows, heads.head_of(kind.__name__))
    return adopt(_of_pair(found) if _is_pair(model, kind) else _of_text(found)), report


def _own_kernel(asked: Any) -> str:
    if not isinstance(asked, str) or not asked.replace("_", "").isalnum():
        raise InputError(
            f"The attn_implementation asked for is {shortened(text_of(asked), 40)!r}; expected sdpa, eager …"
        )
    return asked


def _sees(kind: Any) -> bool:
    return bool(kind.main_input_name == "pixel_values")


def _check_reads(kind: Any, folder: Path) -> None:
    if kind.main_input_name not in ("input_ids", "pixel_values"):
        raise InputError(
            f"{folder} reads {kind.main_input_name}; folders of models that read text or pictures are opened. Write a "
            "file.py whose callable returns the model, and give file.py:callable."
        )


def _is_pair(model: Any, kind: Any) -> bool:
    """Whether both an encoder and a decoder read a text: a classifier with both reads one text twice."""
    both = bool(getattr(model.config, "is_encoder_decoder", False))
    return both and not heads.head_of(kind.__name__)


def _of_text(found: Folder) -> Subject:
    model: nn.Module = found.model
    head, tokens = found.head, found.tokens
    scores = {"": heads.no_scores, "span": heads.no_scores, "class": heads.scores_once}.get(head, heads.scores_by_step)
    labels = heads.class_names(found.model.config) if head in ("class", "tags") else None
    label_of = {"tags": heads.tags_of(labels or ()), "span": heads.span_of}.get(head)
    return Subject(
        model=model, name=found.name, kind="tokens", vocabulary=tokens.vocabulary, encode=tokens.encode, labels=labels,
        encode_pair=tokens.encode_pair, label_of=label_of,
        forward=heads.reads_text(model, tokens.types), logits=scores, loss=LOSSES.get(head),
        next_token=head == "causal", end_token=tokens.end,
        mask_token=tokens.mask if head == "masked" else None, examples=_examples(found),
    )  # fmt: skip


def _of_pair(found: Folder) -> Subject:
    model, tokens = found.model, found.tokens
    first = pairs.first_id(model.config, tokens)
    says = model.get_output_embeddings() is not None
    return Subject(
        model=model, name=found.name, inputs=pairs.inputs_of(model, tokens, found.rows, first),
        forward=pairs.reads_pair(model, first), logits=heads.scores_by_step if says else heads.no_scores,
        loss=pairs.forced_loss(tokens.end if tokens.ends else None) if says else None, next_token=says,
        next_logits=pairs.next_logits(model, first) if says else None, end_token=tokens.end,
        examples={} if tokens.encode is None else {"a sentence": {pairs.SOURCE: TEXT, pairs.TARGET: TEXT}},
    )  # fmt: skip


def _examples(found: Folder) -> dict[str, Any]:
    """A sentence; for a masked language model one token of it is masked."""
    encode, mask = found.tokens.encode, found.tokens.mask
    if encode is None:
        return {}
    if found.head != "masked" or mask is None:
        return {"a sentence": TEXT}
    ids = encode(TEXT)
    where = len(ids) // 2
    target = [heads.IGNORED] * len(ids)
    target[where] = int(ids[where])
    ids[where] = mask
    return {"a sentence, one token masked": (ids, target)}
