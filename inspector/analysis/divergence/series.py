"""What two watched trainings recorded, by iteration: batches, losses, settings, and how far parameters are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inspector.capture.curves import ITERATION, column_dim, curves_of, names_of_columns, points_of
from inspector.capture.damage import summary
from inspector.capture.view import View
from inspector.records import FINGERPRINTS

Floats = npt.NDArray[np.float64]
LOSS, HASH, SETTINGS = "training:loss", "training:batch_hash", "training:optimizer"
NORMS = {"gradient": "parameters:gradient/norm_clipped", "weight": "parameters:weight/norm"}
UNCLIPPED = "parameters:gradient/norm"
PROJECTIONS = 8


@dataclass(slots=True)
class Recorded:
    """One training.

    Attributes:
        names: of the parameters. losses, batches: iteration → number. settings: iteration → name → number.
        prints: "start", "gradient", "weight" → iteration → (p, 8). norms: "gradient", "weight" → iteration → (p,).
        processes: how many trained together; the batch that is known is that of the first.
        others: name → iteration → number, of every other curve that is recorded in a log or by a user.
    """

    names: tuple[str, ...] = ()
    losses: Mapping[float, float] = field(default_factory=dict)
    batches: Mapping[float, float] = field(default_factory=dict)
    settings: dict[float, dict[str, float]] = field(default_factory=dict)
    prints: dict[str, dict[float, Floats]] = field(default_factory=dict)
    norms: dict[str, dict[float, Floats]] = field(default_factory=dict)
    others: dict[str, Mapping[float, float]] = field(default_factory=dict)
    processes: int = 1

    @property
    def iterations(self) -> set[float]:
        """Those of which anything is known."""
        tables = (*self.prints.values(), *self.norms.values(), self.losses, self.batches, *self.others.values())
        return set().union(*(set(one) for one in tables))


def recorded(view: View) -> Recorded:
    """What a view has of a training; empty where it has no series. Raises CaptureError."""
    found = Recorded(processes=_processes(view))
    for curve in curves_of(view):
        if curve.column is None:
            points = points_of(view, curve)
            known = points.known & np.isfinite(points.x)
            values = dict(zip(points.x[known].tolist(), points.y[known].tolist(), strict=True))
            if curve.channel.name == LOSS:
                found.losses = values
            elif curve.channel.name == HASH:
                found.batches = values
            elif curve.channel.place != "training":
                found.others[curve.key] = values
    found.names = _names(view)
    _tables(view, found)
    return found


def damage_of_series(view: View) -> str:
    """What of its series is damaged, in one line; "" where nothing is."""
    names = dict.fromkeys(curve.channel.name for curve in curves_of(view))
    names.update(dict.fromkeys(name for name in view.channels if name.startswith(f"{FINGERPRINTS}/")))
    return summary([one for name in (f"training:{ITERATION}", *names) if name in view.channels
                    for one in view.damage_of(name)])  # fmt: skip


def _names(view: View) -> tuple[str, ...]:
    known = [name for name in (*NORMS.values(), UNCLIPPED) if name in view.channels]
    by_label = view.labels("parameter") if known or _has(view, f"{FINGERPRINTS}/weight") else ()
    return tuple(by_label)


def _processes(view: View) -> int:
    about = view.start.meta.get("training") if view.start is not None else None
    told = about.get("processes") if isinstance(about, dict) else None
    return told if isinstance(told, int) else 1


def _has(view: View, name: str) -> bool:
    return name in view.channels and bool(view.revision(name))


def _tables(view: View, found: Recorded) -> None:
    for word in ("start", "gradient", "weight"):
        name = f"{FINGERPRINTS}/{word}"
        if _has(view, name):
            rows = _rows(view, name)
            found.prints[word] = {at: _padded(row, len(found.names)) for at, row in rows.items()}
    for word, name in NORMS.items():
        name = name if _has(view, name) or word != "gradient" else UNCLIPPED
        if _has(view, name):
            found.norms[word] = _rows(view, name)
    if _has(view, SETTINGS):
        channel = view.channel(SETTINGS)
        names = names_of_columns(view, channel) if column_dim(channel) is not None else ()
        for at, row in _rows(view, SETTINGS).items():
            known = {name: float(value) for name, value in zip(names, row, strict=False) if not np.isnan(value)}
            found.settings[at] = known


def _padded(row: Floats, count: int) -> Floats:
    """(p, 8) of the numbers of one iteration, NaN for parameters that had none."""
    whole = np.full(max(count * PROJECTIONS, -(-len(row) // PROJECTIONS) * PROJECTIONS), np.nan)
    whole[: len(row)] = row
    return whole.reshape(-1, PROJECTIONS)


def _rows(view: View, name: str) -> dict[float, Floats]:
    """Iteration → the row of a table; cells that were not recorded are NaN."""
    channel = view.channel(name)
    axis = channel.domain(ITERATION)
    coordinate = f"training:{axis}"
    if coordinate not in view.channels:
        return {}
    at = np.ma.filled(np.ma.asarray(view.array(coordinate), dtype=np.float64), np.nan)
    table = np.ma.filled(np.ma.asarray(view.array(name), dtype=np.float64), np.nan)
    known = view.known(name)
    rows = zip(at[: len(table)].tolist(), table, known, strict=False)
    return {n: row for n, row, told in rows if told.any()}
