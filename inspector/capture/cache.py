"""A bounded cache of the arrays that were read last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


class Recent:
    """Arrays by key, the most recently used ones, of at most `most` bytes together; a larger one is not cached."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        """Bytes in the cache now."""
        self._kept: OrderedDict[Hashable, Array] = OrderedDict()

    def get(self, key: Hashable) -> Array | None:
        """The cached array of a key, or None."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Hashable, array: Array) -> None:
        """Store an array, and drop the least recently used ones."""
        if array.nbytes > self.most or key in self._kept:
            return
        self._kept[key] = array
        self.held += array.nbytes
        while self.held > self.most:
            _, old = self._kept.popitem(last=False)
            self.held -= old.nbytes

    def clear(self) -> None:
        """Empty the cache."""
        self._kept.clear()
        self.held = 0
