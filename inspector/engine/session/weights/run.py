"""The capture of the tensors of one checkpoint, or of two, and the values of large ones that are asked for later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from inspector.capture import Writer
from inspector.capture.regular import is_there, path_of
from inspector.engine.analyses.tensor_statistics import BINS, difference, summary
from inspector.engine.errors import InputError
from inspector.engine.opening.open_subject import Opened, checkpoint_at
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.engine.pipeline import Recording, RunOptions
from inspector.engine.session.weights.cells import cells, dtype_name, pages
from inspector.engine.session.weights.parts import Part, Tensors, parts_of
from inspector.engine.trace.emitter import Emitter
from inspector.records import Channel, Frame, InputSpec, RunStart, RunStop, split_request
from inspector.records import weights as layout
from inspector.records.plain_text import shortened

MOST_EACH, MOST_TOGETHER = 1 << 22, 1 << 25
"""Elements up to which the values of a tensor are stored at once, the smallest tensors first."""
MOST_ASKED = 1 << 27
"""Elements of a tensor whose values can be asked for: 512 MB in single precision."""
FARTHEST = "of each cell the value farthest from 0"


def is_weights(spec: InputSpec) -> bool:
    """Whether the tensors of a checkpoint are asked for instead of a run."""
    return spec.kind == layout.WEIGHTS


class WeightsRun:
    """The tensors of the model that is open, beside those of the checkpoint `spec.value` where it names one.

    They are those of the file, as they lie in it; of a model without a file, or of one whose file is no checkpoint of
    tensors, the model's own. Raises InputError where the second file cannot be read.
    """

    def __init__(self, opened: Opened, spec: InputSpec) -> None:
        self.names, self.told = [Path(opened.checkpoint).name or opened.title], [""]
        self.first, self.told[0] = _own(opened)
        self.second: Tensors | None = None
        if spec.value:
            path = path_of(spec.value)
            if not is_there(path):
                raise InputError(f"There is no file {path}.")
            state = read_checkpoint(checkpoint_at(path))
            self.second, self.names, self.told = state.tensors, [*self.names, path.name], [*self.told, state.layout]
        self.parts = parts_of(self.first, self.second)
        self.why = opened.why_tensors

    @property
    def title(self) -> str:
        """What is shown, in a few words."""
        return "weights" if self.second is None else f"weights beside {self.names[1]}"

    def noted(self, start: RunStart) -> RunStart:
        """The record of the beginning, with the files."""
        about = {"files": self.names, "layouts": self.told, "why": self.why}
        return replace(start, meta={**start.meta, layout.WEIGHTS: about})

    @property
    def sides(self) -> list[tuple[str, Tensors]]:
        """(what names of channels end with, tensors) of each file."""
        return list(zip(layout.SIDES, [self.first, *([self.second] if self.second is not None else [])], strict=False))

    def write(self, sink: Any, options: RunOptions) -> None:
        """The list, the numbers of all parts, and values: of small tensors, and cells of pictures of the others.
        Raises CancelledError."""
        sink.write(Frame(index=0, label=self.title))
        emit = Emitter(sink, 0, options.cancelled, options.progress)
        self._name(emit)
        every = [part.of(tensors) for part in self.parts for _, tensors in self.sides]
        total = sum(one.numel() for one in every if one is not None) or 1
        done = 0
        for side, tensors in self.sides:
            done = self._count(emit, side, tensors, done, total)
        if self.second is not None:
            self._compare(emit)
        for name in self._small():
            self.write_values(emit, name)
        for name in self._large():
            self._write_cells(emit, name)

    def _name(self, emit: Emitter) -> None:
        blocks = [part.block for part in self.parts]
        emit.labels(layout.NAMES, [part.name for part in self.parts])
        emit.labels(layout.GATES, ["" if block is None else block.gate for block in blocks])
        emit.labels(layout.ORDERS, ["" if block is None else block.order for block in blocks])
        for side, tensors in self.sides:
            found = [part.of(tensors) for part in self.parts]
            shapes = ["" if one is None else layout.written_shape(tuple(one.shape)) for one in found]
            types = ["" if one is None else str(one.dtype).removeprefix("torch.") for one in found]
            emit.labels(layout.SHAPES + side, shapes)
            emit.labels(layout.TYPES + side, types)
        rows = [(part.tensor, *((-1, 0, 0) if (block := part.block) is None else (block.axis, block.start, block.stop)))
                for part in self.parts]  # fmt: skip
        table = np.array(rows, np.int64).reshape(-1, len(layout.BLOCK))
        emit.array(self._table(layout.BLOCKS, layout.BLOCK, "int64", "where the gates lie"), table)

    def _table(self, name: str, columns: Sequence[str], dtype: str, title: str, **more: Any) -> Channel:
        return Channel(
            name=name, kind=layout.WEIGHTS, dims=("tensor", "statistic"), shape=(len(self.parts), len(columns)),
            dtype=dtype, title=title, labels={"statistic": tuple(columns)}, compare="separate", **more,
        )  # fmt: skip

    def _count(self, emit: Emitter, side: str, tensors: Tensors, done: int, total: int) -> int:
        """The numbers and the histogram of every part of one file."""
        table = np.full((len(self.parts), len(layout.STATISTICS)), np.nan)
        counts = np.zeros((len(self.parts), BINS), np.int64)
        for row, part in enumerate(self.parts):
            emit.check()
            tensor = part.of(tensors)
            if tensor is None:
                continue
            found = summary(tensor, spectrum=False)
            table[row] = [math.nan if found[key] is None else found[key] for key in layout.STATISTICS]
            bins = found["histogram"] or []
            counts[row, : len(bins)] = bins
            done += tensor.numel()
            emit.progress(done, total, part.name)
        method = "exact, in double precision; of complex numbers their magnitudes"
        emit.array(self._table(layout.TABLE + side, layout.STATISTICS, "float64", "numbers of tensors", method=method,
                               formula="min, max, mean, std and norm of the finite elements"), table)  # fmt: skip
        emit.array(Channel(
            name=layout.HISTOGRAM + side, kind=layout.WEIGHTS, dims=("tensor", "bin"), shape=counts.shape,
            dtype="int64", title="histograms of tensors", compare="separate",
            formula=f"finite elements in {BINS} bins of equal width from min to max; equal ones in the first",
        ), counts)  # fmt: skip
        return done

    def _compare(self, emit: Emitter) -> None:
        """How each part differs between the files, where both have it in one shape."""
        assert self.second is not None
        table = np.full((len(self.parts), len(layout.DIFFERENCES)), np.nan)
        for row, part in enumerate(self.parts):
            emit.check()
            one, other = part.of(self.first), part.of(self.second)
            if one is not None and other is not None and one.shape == other.shape:
                table[row] = _differences(difference(one, other), tuple(one.shape))
                emit.progress(row, len(self.parts), part.name)
        emit.array(self._table(layout.COMPARED, layout.DIFFERENCES, "float64", "differences of tensors",
                               formula="‖b − a‖ / ‖a‖, ‖b‖ / ‖a‖, ⟨a, b⟩ / (‖a‖ ‖b‖), max |b − a|, ‖b − a‖; a is the "
                                       "first file", method="exact, in double precision"), table)  # fmt: skip

    # -- values

    def _elements(self, name: str) -> int:
        return sum(tensors[name].numel() for _, tensors in self.sides if name in tensors)

    def _small(self) -> list[str]:
        """Tensors whose values are stored at once, in the order of the file."""
        names = [part.name for part in self.parts if part.block is None]
        left, taken = MOST_TOGETHER, set()
        for name in sorted(names, key=self._elements):
            if self._elements(name) <= min(left, MOST_EACH):
                left -= self._elements(name)
                taken.add(name)
        return [name for name in names if name in taken]

    def _large(self) -> list[str]:
        small = frozenset(self._small())
        return [part.name for part in self.parts if part.block is None and part.name not in small]

    def write_values(self, emit: Emitter, name: str) -> None:
        """All values of a tensor in each file that has it. Raises CancelledError."""
        for side, tensors in self.sides:
            tensor = tensors.get(name)
            if tensor is None or tensor.dim() > layout.MOST_AXES:
                continue
            shape = tuple(tensor.shape) or (1,)
            emit.channel(Channel(
                name=f"{name}:{layout.VALUES}{side}", kind=layout.WEIGHTS, dims=layout.axes_of(tensor.dim()),
                shape=shape, dtype=dtype_name(tensor), title=name, scale="diverging", compare="separate",
                formula="|z|" if tensor.is_complex() else "as in the file",
            ))  # fmt: skip
            for offset, values in pages(tensor):
                emit.page(f"{name}:{layout.VALUES}{side}", offset, values)

    def _write_cells(self, emit: Emitter, name: str) -> None:
        """Pictures of a large tensor: of each file, and of their difference."""
        pictures = [(side, tensors[name], None) for side, tensors in self.sides if name in tensors]
        if len(pictures) == 2 and pictures[0][1].shape == pictures[1][1].shape:
            pictures.append((layout.DIFFERENCE, pictures[0][1], pictures[1][1]))  # type: ignore[arg-type]
        for side, tensor, other in pictures:
            emit.check()
            emit.progress(0, 0, name)
            found = cells(tensor, other)
            emit.array(Channel(
                name=f"{name}:{layout.CELLS}{side}", kind=layout.WEIGHTS, dims=("row", "column"), shape=found.shape,
                title=name, scale="diverging", compare="separate", formula=FARTHEST, method=FARTHEST,
            ), found)  # fmt: skip


def _own(opened: Opened) -> tuple[Tensors, str]:
    """(tensors by name, what they are) of a model that is open."""
    if opened.tensors is not None:
        return opened.tensors.tensors, opened.tensors.layout
    if opened.checkpoint:
        try:
            state = read_checkpoint(Path(opened.checkpoint))
        except InputError:
            pass
        else:
            return state.tensors, state.layout
    return dict(opened.subject.model.state_dict()), "the model's parameters and buffers"


def _differences(found: Mapping[str, Any], shape: tuple[int, ...]) -> list[float]:
    at = found["at"]
    place = float(np.ravel_multi_index(at, shape)) if at else (math.nan if at is None else 0.0)
    numbers = [found[key] for key in ("relative", "ratio", "cosine", "largest", "norm", "left_out", "equal")]
    return [*(math.nan if one is None else float(one) for one in numbers), place]


@dataclass(slots=True)
class KeptWeights:
    """A run that has ended, whose values can still be asked for."""

    run: WeightsRun
    path: Path
    start: RunStart
    stop: RunStop

    def question(self, keys: Sequence[str], options: RunOptions) -> tuple[Recording, Any]:
        """The capture, open once more, and a function that writes the values that are asked for into it.
        Raises InputError for what cannot be asked, CaptureError."""
        names = [self._asked(key) for key in keys]
        recording = Recording(Writer(self.path, self.start, again=True), self.stop)

        def compute() -> None:
            emit = Emitter(recording, 0, options.cancelled, options.progress)
            for done, name in enumerate(names):
                options.progress(done, len(names), name)
                self.run.write_values(emit, name)

        return recording, compute

    def _asked(self, request: str) -> str:
        """The tensor of a request."""
        key, _ = split_request(request)
        number = request.partition("@")[2]
        part: Part | None = None
        if key == layout.MORE and number.isdecimal() and int(number) < len(self.run.parts):
            part = self.run.parts[int(number)]
        if part is None:
            raise InputError(f"Of weights {layout.MORE}@NUMBER can be asked for, not {shortened(request, 60)!r}.")
        found = [tensors[part.name] for _, tensors in self.run.sides if part.name in tensors]
        if any(one.numel() > MOST_ASKED for one in found):
            raise InputError(
                f"{shortened(part.name, 80)} has more than {MOST_ASKED:,} elements, too many to be copied."
            )
        if any(one.dim() > layout.MOST_AXES for one in found):
            raise InputError(f"{shortened(part.name, 80)} has more than {layout.MOST_AXES} axes.")
        return part.name
