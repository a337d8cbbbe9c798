"""Names of places and channels that stay within bounds, and the same at every call: modules may have any name."""

from __future__ import annotations

import hashlib

MAX_PLACE = 700
MAX_SIGNAL = 299
MAX_NAME = MAX_PLACE + 1 + MAX_SIGNAL


def place_name(place: str) -> str:
    """The place itself, or its beginning and a digest of the whole where it is longer than MAX_PLACE characters."""
    return _shortened(place, MAX_PLACE)


def channel_name(name: str) -> str:
    """`place:signal` with each part within its bounds; channels of one place keep one place."""
    if len(name) <= MAX_SIGNAL:
        return name
    place, colon, signal = name.rpartition(":")
    return f"{place_name(place)}{colon}{_shortened(signal, MAX_SIGNAL)}"


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    digest = hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{text[: most - len(digest) - 1]}…{digest}"


def model_in_file(text: str) -> str:
    """The file of "file.py:callable", as a model is named; "" for anything else."""
    file, colon, name = text.rpartition(":")
    return file if colon and file.endswith(".py") and name.replace(".", "_").isidentifier() else ""
