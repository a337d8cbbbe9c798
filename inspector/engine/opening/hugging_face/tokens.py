"""The tokenizer of a folder: text to ids, and a readable label for every id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.opening.hugging_face.library import FROM_DISK, one_line
from inspector.records import counted

FILES = (
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.txt", "vocab.json", "spiece.model",
    "sentencepiece.bpe.model",
)  # fmt: skip
SPACE = "▁"
"""How SentencePiece writes a space in its pieces."""
UNREADABLE = "\ufffd"
"""What bytes are decoded to that are no whole character."""
SEPARATED, TYPED = "separated", "typed"
LONGEST = 1_000_000
"""A tokenizer that was saved without a longest length gives a number far beyond."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """How a folder's model reads text.

    Attributes:
        vocabulary: the label of every row of the embedding; None where the folder has no tokenizer.
        encode: text to ids, with the special tokens that the tokenizer adds.
        mask: the id that hides a token, where there is one.
        encode_pair: two texts to one sequence, where the tokenizer tells them apart.
        types: ids (b, t) to the type of each token (b, t), 0 in the first text and 1 in the second; None where the
            tokenizer has no types.
        ends: whether the tokenizer closes a text with `end`, the id of the end of a text.
    """

    vocabulary: tuple[str, ...] | None = None
    encode: Callable[[str], Tensor] | None = None
    mask: int | None = None
    end: int | None = None
    ends: bool = False
    encode_pair: Callable[[str, str], Tensor] | None = None
    types: Callable[[Tensor], Tensor] | None = None


def read_tokens(transformers: Any, folder: Path, rows: int) -> Tokens:
    """The tokenizer of a folder for a model whose embedding has so many rows. Raises InputError where it is broken."""
    if not any((folder / name).is_file() for name in FILES):
        return Tokens()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **FROM_DISK)
        vocabulary = pieces(tokenizer, rows)
        probe = list(tokenizer("a")["input_ids"])
        parted = _parted(tokenizer)
    except Exception as fault:  # noqa: BLE001 - files of a tokenizer may be of any release, or need a library that is missing
        raise InputError(f"The tokenizer of {folder} cannot be read ({one_line(fault)}).") from None
    end = tokenizer.eos_token_id
    ends = bool(probe) and end is not None and probe[-1] == end
    encode = _encoder(tokenizer)
    types = _types(tokenizer.sep_token_id) if parted == TYPED else None
    return Tokens(vocabulary, encode, tokenizer.mask_token_id, end, ends, encode if parted else None, types)


def _parted(tokenizer: Any) -> str:
    """How two texts are told apart: "" not at all, `SEPARATED` by a separator alone, `TYPED` by types of tokens too.

    Types count only where those of two texts are what `_types` makes of their ids; of other tokenizers (types of the
    separator, a class token at the end) no pair is read.
    """
    separator = tokenizer.sep_token_id
    try:
        found = tokenizer("a", "b", return_token_type_ids=True)
        ids, types = list(found["input_ids"]), list(found["token_type_ids"])
    except Exception:  # noqa: BLE001 - tokenizers of any release: one that takes no two texts may raise anything
        return ""
    if separator is None or separator not in ids[:-1]:
        return ""
    if not any(types):
        return SEPARATED
    return TYPED if _types(separator)(torch.tensor([ids]))[0].tolist() == types else ""


def _types(separator: int) -> Callable[[Tensor], Tensor]:
    """Type 1 behind the first separator, where there is more than one of them.

    Counter-example: a text that contains the separator itself is read as two.
    """

    def types(ids: Tensor) -> Tensor:
        ends = ids == separator
        return ((ends.cumsum(1) - ends.long()) > 0).long() * (ends.sum(1, keepdim=True) > 1)

    return types


def _encoder(tokenizer: Any) -> Callable[..., Tensor]:
    def encode(*texts: str) -> Tensor:
        ids = list(tokenizer(*texts, verbose=False)["input_ids"])
        longest = tokenizer.model_max_length
        if len(ids) > longest and longest < LONGEST:
            raise ValueError(f"The text has {counted(len(ids), 'token')}; the model was made for {longest} at most.")
        if not ids:
            raise ValueError("The tokenizer makes no token of this text; expected at least one.")
        return torch.tensor(ids)

    return encode


def pieces(tokenizer: Any, rows: int) -> tuple[str, ...]:
    """The label of each of so many ids: its text as it stands in a sentence, a leading space included.

    A piece whose bytes are no whole character keeps its name in the vocabulary, and an id that the tokenizer does not
    have, as embeddings padded to a round number have them, is named by its number.
    """
    named: list[str | None] = tokenizer.convert_ids_to_tokens(list(range(min(rows, len(tokenizer)))))
    found = [f"[{number}]" if piece is None else _readable(tokenizer, piece) for number, piece in enumerate(named)]
    return (*found, *(f"[{number}]" for number in range(len(found), rows)))


def _readable(tokenizer: Any, piece: str) -> str:
    if SPACE in piece:
        return piece.replace(SPACE, " ")
    text: str = tokenizer.convert_tokens_to_string([piece])
    return text if text and UNREADABLE not in text else piece
