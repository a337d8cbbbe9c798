"""Operations of whatever a user's program computes inside a context: one training step of a script, for example."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import Tensor, nn

from inspector.engine.analyses.operations.channels import write
from inspector.engine.analyses.operations.recorder import OperationRecorder
from inspector.engine.pipeline.recording import record
from inspector.engine.pipeline.starting import start_of
from inspector.engine.trace.emitter import Emitter
from inspector.records import Frame


class RecordedOperations:
    """See `inspector.record_operations`. Raises CaptureError when it is left and the capture cannot be written."""

    def __init__(self, path: Path | str, model: nn.Module, overwrite: bool, given: dict[str, Any]) -> None:
        self._recording = record(path, start_of(model, f"{type(model).__name__}: operations"), overwrite=overwrite)
        self._model = model
        named = [(f"the input {name}", one) for name, one in given.items() if isinstance(one, Tensor)]
        self._recorder = OperationRecorder(model, named)
        self._results: list[tuple[str, Tensor]] = []

    def result(self, name: str, tensor: Tensor) -> None:
        """Something that comes out, to be told by its name: the loss. Gradients that are left in `.grad` are too."""
        self._results.append((name, tensor.detach()))

    def __enter__(self) -> Self:
        self._recorder.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        self._recorder.__exit__(kind, fault, where)  # type: ignore[no-untyped-call]
        gradients = [(f"gradient of {name}", one.grad) for name, one in self._model.named_parameters()]
        for name, tensor in (*self._results, *gradients):
            if tensor is not None:
                self._recorder.name(name, tensor)
        with self._recording as recording:
            frame = Frame(index=0, label="operations")
            recording.write(frame)
            write(self._recorder, Emitter(recording, frame.index, copies=True))
