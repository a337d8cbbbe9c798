"""What is measured, described before any of it is sent: panels match kinds and dims, never names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from inspector.records.labels import STEP_DOMAIN
from inspector.records.naming import channel_name
from inspector.records.plain_text import shortened

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
)  # fmt: skip
"""Names of the element types of a capture; bfloat16 is widened to float32, which is exact."""

DIMS = (
    "step", "unit", "head", "query", "key", "source", "lag", "start", "rank", "statistic",
    "count", "class", "feature", "layer", "parameter", "bin", "exponent", "eigenvalue", "part", "component", "point",
    "token", "input", "iteration", "sequence", "number", "operation", "slot", "output", "value",
    "node", "state",
)  # fmt: skip
"""Known axis names. Others are allowed (lower-case words); these have axis labels in the window."""

KINDS = (
    "input", "state", "gate", "jacobian", "lag", "map", "gradient", "attention", "attention_statistic",
    "attention_map", "attention_head", "attention_pair", "residual", "attention_cost",
    "output", "unit", "health", "parameter", "path", "mask", "memory", "opener", "influence", "depth",
    "spectrum", "lyapunov", "trajectory", "fixed_point", "bptt", "truncation", "clipping",
    "training", "coordinate", "sequences", "state_derivative", "series", "histogram", "spike",
    "operations", "fingerprint", "structure", "trial", "decoding", "latent", "innovation", "occupancy", "latent_use",
    "picture_words", "positions", "weights",
)  # fmt: skip
"""Known kinds. A kind determines which plot fits; a new kind needs a new panel, a new name does not.

A "coordinate" is not plotted: it has the numbers of the positions along its axis (capture/coordinates.py); nor are
"operations" and "fingerprint", by which two runs are compared (analysis/divergence).
"""

_STEP_DIMS = frozenset({"step", "query", "key", "source", "start"})
Comparison = Literal["difference", "ratio", "separate"]
_WORD = re.compile(r"[a-z][a-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One measured array, named `place:signal`.

    Attributes:
        name: `place:signal`, for example `rnn.l0:gate/forget`; overlong parts are shortened (records/naming.py).
        kind: which sort of quantity it is (see KINDS); panels choose by kind and dims.
        dims: axis names, slowest first, for example ("step", "unit") or ("head", "query", "key").
        shape: the final length of each axis; None where it is not known beforehand.
        dtype: one of DTYPES.
        unit: physical or mathematical unit; "1" for pure numbers, "nat" for entropies and log-likelihoods.
        title: its name in a legend, for example "forget gate".
        formula: the definition in plain text.
        source: where the formula comes from.
        method: "exact", or how it was estimated and with what error.
        scale: the scale of its colours or axis: "sequential", "diverging" (centred on zero), "log", or "ratio"
            (logarithmic and centred on 1: comparisons of norms of two runs).
        compare: how two runs of it are compared: by a "difference", a "ratio" (norms and other positive numbers that
            are read by their order of magnitude), or not at all ("separate": tables, spectra and verdicts of one run).
        limits: the values it can take at all (gates: (0, 1)); None where unbounded.
        labels: names along an axis when they are few, for example {"statistic": ("mean", "p10", "p90")}.
        domains: which label domain (Axis, Labels) an axis belongs to; step-like axes default to "step".
        value_domain: set when the values are indices into a label domain ("vocabulary" for token ids).
        module: class name of the module at the place, for the model tree.
        fill: the value of a cell that no page has; None for NaN in floats and 0 in integers.
        computed: what a cell that no page has is computed from when it is read: "queries and keys" for a map of
            attention whose NAME/queries and NAME/keys are kept (capture/computed_map.py); "" for nothing.
    """

    name: str
    kind: str
    dims: tuple[str, ...]
    shape: tuple[int | None, ...]
    dtype: str = "float32"
    unit: str = "1"
    title: str = ""
    formula: str = ""
    source: str = ""
    method: str = "exact"
    scale: Literal["sequential", "diverging", "log", "ratio"] = "sequential"
    compare: Comparison = "difference"
    limits: tuple[float, float] | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)
    value_domain: str = ""
    module: str = ""
    fill: float | None = None
    computed: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", channel_name(self.name))
        if ":" not in self.name:
            raise ValueError(f"A channel is named place:signal, not {shortened(self.name, 80)!r}.")
        if self.dtype not in DTYPES:
            raise ValueError(f"Channel {self.name}: dtype {self.dtype!r} is not one of {', '.join(DTYPES)}.")
        if len(self.dims) != len(self.shape) or len(set(self.dims)) != len(self.dims):
            raise ValueError(f"Channel {self.name}: dims {self.dims} and shape {self.shape} do not fit each other.")
        if not all(_WORD.match(word) for word in (self.kind, *self.dims)):
            raise ValueError(
                f"Channel {self.name}: kind and dims are lower-case words, not {self.kind!r}, {self.dims}."
            )
        if any(n is not None and n < 0 for n in self.shape):
            raise ValueError(f"Channel {self.name}: a length in shape {self.shape} is negative.")

    def over(self, domain: str) -> Channel:
        """The same channel with its step-like axes in another label domain, except for those that declare one."""
        return replace(self, domains={**{dim: domain for dim in self.dims if dim in _STEP_DIMS}, **self.domains})

    @property
    def step_domain(self) -> str:
        """The label domain of the first step-like axis: "step", "answer step" or another; "" without such an axis."""
        return next((self.domain(dim) for dim in self.dims if dim in _STEP_DIMS), "")

    @property
    def place(self) -> str:
        """Where in the model: the part before the last colon."""
        return self.name.rpartition(":")[0]

    @property
    def signal(self) -> str:
        """What is measured there: the part after the last colon."""
        return self.name.rpartition(":")[2]

    @property
    def titled(self) -> str:
        """Its title, or what is measured there where it came without one: what a legend and a read-out call it."""
        return self.title or self.signal

    def axis_word(self, dim: str) -> str:
        """A dim as it is listed and exported: with the axis that it lies along, where that is not the default one."""
        domain = self.domain(dim)
        return dim if domain in (dim, STEP_DOMAIN) else f"{dim} ({domain})"

    def domain(self, dim: str) -> str:
        """The label domain of an axis: as declared, "step" for step-like axes, else the axis' own name."""
        return self.domains.get(dim, STEP_DOMAIN if dim in _STEP_DIMS else dim)
