"""transformers, imported when the first folder is opened, and used from the disk alone."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspector.engine.errors import InputError
from inspector.engine.wording import text_of

OFFLINE = "HF_HUB_OFFLINE"
FROM_DISK: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
MISSING = (
    "{} is a folder of Hugging Face's, which needs transformers to be opened: pip install 'sequence-inspector[hf]'."
)


@contextmanager
def offline(folder: Path) -> Iterator[Any]:
    """transformers, which fetches nothing, asks nothing and prints nothing meanwhile. Raises InputError without it."""
    if importlib.util.find_spec("transformers") is None:
        raise InputError(MISSING.format(folder))
    before = os.environ.get(OFFLINE)
    os.environ[OFFLINE] = "1"
    try:
        with _constant_offline(), _quiet(folder) as transformers:
            yield transformers
    finally:
        if before is None:
            os.environ.pop(OFFLINE, None)
        else:
            os.environ[OFFLINE] = before


@contextmanager
def _constant_offline() -> Iterator[None]:
    """huggingface_hub reads the variable once, when it is imported; from then on its constant counts."""
    try:
        constants: Any = importlib.import_module("huggingface_hub.constants")
    except ImportError:
        yield
        return
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _quiet(folder: Path) -> Iterator[Any]:
    """Its log and progress bars say what the report of the weights says."""
    try:
        transformers: Any = importlib.import_module("transformers")
        logging: Any = importlib.import_module("transformers.utils.logging")
    except Exception as fault:  # noqa: BLE001 - a library that does not fit this torch raises anything at its import
        raise InputError(f"{folder} needs transformers, whose import failed ({one_line(fault)}).") from None
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def one_line(fault: BaseException, most: int = 160) -> str:
    """What an error says, on one line without a full stop at its end."""
    return " ".join(text_of(fault).split())[:most].rstrip(" .") or type(fault).__name__
