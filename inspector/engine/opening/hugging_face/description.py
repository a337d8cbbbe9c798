"""What a folder's JSON files say before anything is built, and what of it is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inspector.capture.regular import in_words, is_a_file, open_regular
from inspector.engine.errors import InputError
from inspector.records.json_text import read_json
from inspector.records.plain_text import shortened

CONFIG = "config.json"
CODE = "auto_map"
"""The key under which a folder names Python code of its own."""
KERNELS = (
    "attn_implementation",
    "_attn_implementation",
    "attn_implementation_internal",
    "_attn_implementation_internal",
)
"""Keys that may name compiled code to be fetched from Hugging Face's Hub: "owner/kernel"."""
READ = (CONFIG, "tokenizer_config.json", "preprocessor_config.json", "processor_config.json")
MAX_JSON = 64 << 20


def is_model_folder(path: Path) -> bool:
    """Whether a folder describes its model as Hugging Face's do.

    By the file's name alone: another program's config.json is taken for one until it is read.
    """
    return is_a_file(path / CONFIG)


def read_description(folder: Path) -> Mapping[str, Any]:
    """config.json. Raises InputError where it is not whole, or where running the model would run code that is not
    transformers'."""
    for name in READ:
        if is_a_file(folder / name):
            _refuse_code(folder, name, _table(folder, name))
    config = _table(folder, CONFIG)
    if "quantization_config" in config:
        method = str(_within(config["quantization_config"], "quant_method") or "an unnamed method")[:40]
        raise InputError(
            f"{folder} holds weights quantised by {method}, which are not opened; expected those of the plain model."
        )
    if not isinstance(config.get("model_type"), str):
        raise InputError(f"{folder / CONFIG} names no model_type; expected the config.json of a transformers model.")
    return config


def _table(folder: Path, name: str) -> Mapping[str, Any]:
    try:
        with open_regular(folder / name) as file:
            raw: Any = read_json(file.read(MAX_JSON))
    except OSError as problem:
        raise InputError(f"{folder / name} cannot be read: {in_words(problem)}.") from None
    except ValueError:
        raise InputError(f"{folder / name} is not whole JSON.") from None
    if not isinstance(raw, dict):
        raise InputError(f"{folder / name} is not a table of settings; expected that of a transformers model.")
    return raw


def _refuse_code(folder: Path, name: str, table: Mapping[str, Any]) -> None:
    for key, value in _entries(table):
        if key == CODE and value:
            raise InputError(
                f"{folder / name} names Python code of its own ({CODE}), which is never run from a folder; write a "
                "file.py whose callable returns the model, and give file.py:callable."
            )
        if key in KERNELS and isinstance(value, str) and ("/" in value or ":" in value):
            raise InputError(
                f"{folder / name} asks for the attention kernel {shortened(value, 60)!r} from Hugging Face's "
                "Hub; expected one "
                "that transformers has itself (sdpa, eager)."
            )


def _entries(table: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its value, in nested tables and lists too."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield str(key), value
            yield from _entries(value)
    elif isinstance(table, list):
        for value in table:
            yield from _entries(value)


def _within(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, Mapping) else None
