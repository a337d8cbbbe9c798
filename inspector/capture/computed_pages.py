"""Cells that no page of a channel has, where they are computed from other channels when they are read."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.checked import CheckedPages, PageSource
from inspector.capture.computed_map import RECIPE, ComputedMap
from inspector.capture.damage import Box, Damage
from inspector.capture.holes import Holes

Array = npt.NDArray[Any]
Key = tuple[str, int]
"""(channel, frame)"""


class ComputedPages(CheckedPages):
    """What is computed is tested against the rows that were written before any of it is shown."""

    def _forget_run(self) -> None:
        """Nothing of a run is known, and nothing was tested."""
        super()._forget_run()
        self._tested: dict[Key, tuple[Hashable, ComputedMap | None]] = {}
        self._not_computed: dict[Key, Damage] = {}
        self._testing = False

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Also what is not computed, because it is not what the run had."""
        return (*super().damage, *self._not_computed.values())

    def _recipe(self, name: str, frame: int) -> ComputedMap | None:
        """What computes a channel in a frame; None where nothing does, or what it gives is not what the run had."""
        key = (name, frame)
        data = self._arrays.get(key)
        if data is None or data.channel.computed != RECIPE or self._testing:
            return None
        made = ComputedMap(self, name, frame)  # type: ignore[arg-type]
        if key not in self._tested or self._tested[key][0] != self._revisions(key, made):
            problem = self._test(key, made)
            self._tested[key] = self._revisions(key, made), None if problem else made  # reading may find damage
            self._note_test(key, made, problem)
        return self._tested[key][1]

    def _revisions(self, key: Key, made: ComputedMap) -> Hashable:
        return tuple(self._assembly(one, key[1]).revision for one in (key[0], *made.parts))

    def _test(self, key: Key, made: ComputedMap) -> str:
        """Why a map is not shown; "" where the rows that were written come out as they were."""
        data, self._testing = self._arrays[key], True
        try:
            if made.damaged:
                return f"the queries and keys that were kept of {key[0]} are damaged"
            queries = sorted({row.start[1] for row in data.pages if row.id not in data.bad})
            source = self._source(*key)
            return made.problem(
                (query, data.block((slice(None), slice(query, query + 1)), source)[:, 0]) for query in queries
            )
        finally:
            self._testing = False

    def _note_test(self, key: Key, made: ComputedMap, problem: str) -> None:
        data = self._arrays[key]
        data.behind = sum(self._assembly(part, key[1]).held for part in made.parts)
        if data.computes is bool(problem):
            data.computes = not problem
            data.bumps += 1
        self._not_computed.pop(key, None)
        if problem:
            self._not_computed[key] = Damage(*key, None, f"{problem[0].upper()}{problem[1:]}, so it is not shown.")

    def computed_block(self, name: str, frame: int, box: Box) -> Array | None:
        """What cells of a channel are computed to be, whatever pages have of them; None where nothing is computed."""
        recipe = self._recipe(name, frame)
        return None if recipe is None else recipe.block(box, self._arrays[name, frame].channel.dtype)

    def _source(self, name: str, frame: int) -> PageSource:
        """Tested before anything is read: what is computed counts with the bytes of what it is computed from."""
        self._assured(name, frame)
        return super()._source(name, frame)

    def _assured(self, name: str, frame: int) -> None:
        """Test what is computed before it is said what is known."""
        self._recipe(name, self.frame_of(name, frame))

    def holes(self, name: str, frame: int = -1) -> Holes:
        """The cells of a channel that no page brought so far and nothing computes, and those whose page was found
        damaged."""
        self._assured(name, frame)
        return super().holes(name, frame)

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """True for every cell of a region that was captured, or is computed, and is undamaged."""
        self._assured(name, frame)
        return super().known(name, frame, region)
