"""One checkpoint of a sweep: the model is made anew, so that no frame depends on the ones before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from inspector.capture import CaptureError
from inspector.engine.errors import CancelledError, InputError, ModelError
from inspector.engine.model.subject import Batch, to_device
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.open_subject import Opened, open_subject
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.engine.opening.user_code import UserCode
from inspector.engine.pipeline import RunOptions, perform, run_start
from inspector.engine.pipeline.batches import batch_of_spec, make_batch
from inspector.engine.session.sweep.frames import KEY
from inspector.engine.session.sweep.identity import identity
from inspector.engine.trace.emitter import Sink
from inspector.engine.wording import error_text
from inspector.records import Load, SweepFrame
from inspector.records.report import misfit

Progress = Callable[[float, float, str], None]


class Maker:
    """Makes the model with a checkpoint, and the batch, for each frame anew.

    `code`: the user's code in a worker, see `opening`. A Python caller may have given, in the place of what a request
    says, a `subject` that is open already (its weights are put back afterwards), and a `sequence`.
    """

    def __init__(self, code: UserCode | None = None, subject: Opened | None = None, sequence: Any = None) -> None:
        self.code, self.given, self.sequence = code, subject, sequence
        own = subject.subject.model.state_dict() if subject is not None else {}
        self._before = {name: value.detach().clone() for name, value in own.items() if isinstance(value, torch.Tensor)}

    @property
    def is_bound(self) -> bool:
        """Whether it can only be used in this process."""
        return self.given is not None or self.sequence is not None

    def opened(self, load: Load) -> Opened:
        """The model with its checkpoint, if the request names one. Raises InputError or ModelError."""
        if self.given is None:
            with self.code.opening(load) if self.code is not None else nullcontext():
                opened = open_subject(load, self.code)
                _require_fit(opened)
            return opened
        return self._fitted(load) if load.checkpoint else self.given

    def _fitted(self, load: Load) -> Opened:
        assert self.given is not None
        self.put_back()
        path, model = Path(load.checkpoint), self.given.subject.model
        report, plan = fit(model, read_checkpoint(path), path)
        opened = Opened(self.given.subject, self.given.title, str(path), report, not (report.fits or load.partial))
        _require_fit(opened)
        plan.apply(model)
        return opened

    def put_back(self) -> None:
        """The weights that the caller's model had."""
        if self.given is not None:
            self.given.subject.model.load_state_dict(self._before, strict=False)

    def batch(self, opened: Opened, task: SweepFrame) -> Batch:
        """The batch of the request. Raises InputError."""
        subject, seed = opened.subject, task.run.seed
        where = task.load.device
        if self.given is not None:
            where = next((str(parameter.device) for parameter in subject.model.parameters()), "cpu")
        if self.sequence is None:
            return to_device(batch_of_spec(subject, task.run.input, seed), where)
        return to_device(make_batch(subject, self.sequence, seed, task.run.input.look_at), where)


def _require_fit(opened: Opened) -> None:
    if opened.pending:
        assert opened.report is not None
        raise InputError(misfit(opened.report))


def _require_same(task: SweepFrame) -> None:
    """The file that was just read is the one that the frame says. Its content decides: another machine's copy may have
    another time. Raises InputError."""
    told = task.frame.meta.get(KEY, {})
    if not told.get("hash"):
        return
    path = Path(task.load.checkpoint)
    now = identity(path)
    if (now["size"], now["hash"]) != (told["size"], told["hash"]):
        raise InputError(
            f"{path.name} has changed since this sweep listed it; the same sweep again takes it as it is then."
        )


def compute(task: SweepFrame, sink: Sink, maker: Maker, cancelled: Callable[[], bool], progress: Progress) -> str:
    """Write a frame to the sink: how its run began, then all its records. Returns why that failed, or "".

    Raises CancelledError.
    """
    try:
        with _threads(task.threads):
            opened = maker.opened(task.load)
            _require_same(task)
            batch = maker.batch(opened, task)
            run, load = task.run, task.load
            sink.write(run_start(opened, batch.title, subject=load.subject, seed=run.seed, device=load.device))
            options = RunOptions(also=run.also, only=run.only, seed=run.seed, cancelled=cancelled, progress=progress)
            perform(opened.subject, batch, sink, options, frame=task.frame)
    except CancelledError:
        raise
    except (InputError, ModelError, CaptureError) as problem:
        return str(problem)
    except OSError as problem:
        return f"The frame could not be stored until it is merged: {problem.strerror or problem}."
    except Exception as fault:  # noqa: BLE001 - one checkpoint must not end the sweep
        return f"The frame could not be computed: {error_text(fault)}."
    return ""


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """As many threads of torch in every process: a sum over another number of parts may end in another last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
