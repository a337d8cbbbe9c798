"""`inspector.sweep`: a sweep from Python, in the caller's own process and in worker processes that it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.capture import Capture, open_capture
from inspector.engine.model.subject import adopt
from inspector.engine.opening.open_subject import Opened
from inspector.engine.session.in_process import temporary_capture
from inspector.engine.session.run_arguments import Asked, requests
from inspector.engine.session.sweep.conduct import Conductor, Listener
from inspector.engine.session.sweep.one_frame import Maker
from inspector.records import InputSpec, Load, Run, Sweep


def sweep_here(
    checkpoints: Path | str | Sequence[Path | str],
    subject: Any,
    sequence: Any = None,
    *,
    out: Path | str | None = None,
    overwrite: bool = False,
    arguments: Mapping[str, Any] | None = None,
    also: Asked = (),
    only: Asked = (),
    seed: int = 0,
    partial: bool = False,
    look_at: int = 0,
    device: str = "cpu",
    workers: int = 1,
    threads: int = 1,
    scheduler: str = "",
    progress: Callable[[float, float, str], None] = lambda _done, _total, _text: None,
) -> Capture:
    """See `inspector.sweep`. Raises InputError, ModelError or CaptureError; naming a file runs its code.

    `workers` processes compute (1: this one; 0: as many as there are cores and memory). A checkpoint that fails is a
    frame with a refusal (`Frame.meta["sweep"]["failed"]`); where all fail ModelError is raised and nothing is written.
    """
    folder = Path(out).absolute() if out is not None else temporary_capture()
    bound = _adopted(subject)
    spec, given = _input_of(sequence, look_at)
    load = Load(
        subject=subject if bound is None else bound.title,
        arguments=arguments or {}, partial=partial, trusted=True, device=device, seed=seed,
    )  # fmt: skip
    run = Run(
        path=str(folder), input=spec, also=requests(also), only=requests(only), seed=seed, overwrite=overwrite,
    )  # fmt: skip
    request = Sweep(
        paths=_paths(checkpoints), load=load, run=run, workers=workers, threads=threads, scheduler=scheduler
    )
    Conductor(request, Maker(None, bound, given), Listener(progress=progress)).run()
    return open_capture(folder)


def _paths(checkpoints: Path | str | Sequence[Path | str]) -> tuple[str, ...]:
    return tuple(map(str, [checkpoints] if isinstance(checkpoints, (str, Path)) else checkpoints))


def _adopted(subject: Any) -> Opened | None:
    """A model object as what was opened; None for a name, which each process opens for itself."""
    if isinstance(subject, str):
        return None
    adopted = adopt(subject)
    return Opened(adopted, adopted.name)


def _input_of(sequence: Any, look_at: int) -> tuple[InputSpec, Any]:
    """The sequence as a record, and as it is where no record has it (arrays, lists)."""
    if isinstance(sequence, InputSpec):
        return sequence, None
    if isinstance(sequence, str):
        return InputSpec(kind="text", value=sequence, look_at=look_at), None
    return InputSpec(look_at=look_at), sequence
