"""`inspector.sweep`: a sweep from Python, in the caller's own process and in worker processes that it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.capture import Capture, open_capture
from inspector.engine.model.subject import adopt
from inspector.engine.opening.open_subject import Opened
from inspector.engine.session.in_process import Asked, requests, temporary_capture
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
    paths = [checkpoints] if isinstance(checkpoints, (str, Path)) else list(checkpoints)
    folder = Path(out).absolute() if out is not None else temporary_capture()
    spec = _spec_of(sequence, look_at)
    given = None if sequence is None or isinstance(sequence, (str, InputSpec)) else sequence
    bound = None
    if not isinstance(subject, str):
        adopted = adopt(subject)
        bound = Opened(adopted, adopted.name)
    named = subject if bound is None else bound.title
    request = Sweep(
        paths=tuple(map(str, paths)),
        load=Load(
            subject=named, arguments=arguments or {}, partial=partial, trusted=True, device=device, seed=seed,
        ),
        run=Run(
            path=str(folder), input=spec, also=requests(also), only=requests(only), seed=seed, overwrite=overwrite,
        ),
        workers=workers, threads=threads, scheduler=scheduler,
    )  # fmt: skip
    Conductor(request, Maker(None, bound, given), Listener(progress=progress)).run()
    return open_capture(folder)


def _spec_of(sequence: Any, look_at: int) -> InputSpec:
    if isinstance(sequence, InputSpec):
        return sequence
    if isinstance(sequence, str):
        return InputSpec(kind="text", value=sequence, look_at=look_at)
    return InputSpec(look_at=look_at)
