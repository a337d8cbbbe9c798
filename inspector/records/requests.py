"""Requests of the window or the command line to the worker, and the worker's answers beside the capture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from inspector.records.decoding import Decode
from inspector.records.edits import Edit
from inspector.records.run import Frame, Place, RunStop


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """A sequence to run. `kind` is a key of the registry of inputs ("example", "text", "ids", "vectors", "file"…).

    `value` is the text, the ids, the file's path or the generator's name; `options` belong to that input
    (for example {"steps": 200, "at": 10} of an impulse). `look_at` is the sample of the batch to be shown.
    `parts`: the sequences of the inputs of a model that has several, by their names; the rest is then what the same
    words mean to a model without inputs of these names ("x=5" is also a text).
    """

    kind: str = "example"
    value: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    look_at: int = 0
    parts: Mapping[str, InputSpec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Open a model. Code of the user runs only where `agreed` names its file (absolute path → SHA-256 of its content).

    `trusted` allows whatever the subject runs: the user typed it on the command line or called it from Python.
    `tensors`: a checkpoint without a model is opened as its tensors alone, where nothing of it can be rebuilt or
    always.
    """

    subject: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str = ""
    partial: bool = False
    trusted: bool = False
    agreed: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    seed: int = 0
    tensors: Literal["never", "if needed", "always"] = "never"
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run the loaded model on a sequence and write the capture to the folder `path`.

    An existing capture is replaced only with `overwrite`, and only once the run has ended with something to show.
    `made_by` is stored in the capture ("demo": the command of that name may replace it without `--overwrite`). The
    default quantities are computed and those in `also`; with `only` these instead of the default ones. Both name keys
    of the registry of quantities, with options after `@` ("gradient/vectors@0:5", see options.py). With `edits` there
    are two frames: the run as it is, and with the changes. `states`: place of a hand-written recurrence → the variables
    of the user's code that are its state, to correct what was found. With `now` only those of them are computed in the
    run; the others are left to `Analyse` requests, unless the run is too large to be stored for these. With `decode` an
    answer is searched for, and the frames are the right answer, where that is known, and the hypotheses found.
    """

    path: str
    input: InputSpec = field(default_factory=InputSpec)
    also: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    now: tuple[str, ...] | None = None
    edits: tuple[Edit, ...] = ()
    decode: Decode | None = None
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seed: int = 0
    frame_label: str = ""
    overwrite: bool = False
    made_by: str = ""
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Run a model at many checkpoints, each as one frame of the capture `run.path`, in the order of training.

    `paths`: folders, patterns and files; `load` has the subject, `run` the input and the quantities. `workers`: how
    many processes at a time, 0 for as many as there are cores and memory; `threads`: of each. `scheduler`: the address
    of a dask.distributed cluster that computes instead. `follow`: checkpoints that appear are taken too, until a
    Cancel. A sweep that is in the folder already is continued, unless `run.overwrite`.
    """

    paths: tuple[str, ...]
    load: Load
    run: Run
    workers: int = 0
    threads: int = 1
    scheduler: str = ""
    follow: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFrame:
    """One checkpoint of a sweep (`load.checkpoint`): compute its frame into the file `run.path`, a spool."""

    load: Load
    run: Run
    frame: Frame
    threads: int = 1
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyse:
    """Compute more quantities of the run that is still in the worker's memory, into the same capture."""

    path: str
    quantities: tuple[str, ...]
    frame: int = -1
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the run in progress at the next page; what was captured so far stays."""


@dataclass(frozen=True, slots=True)
class Quit:
    """End the worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One tensor that a checkpoint and a model do not agree on.

    `problem` is "missing", "unexpected", "shape", "dtype", "tied", "non-finite"; `detail` one phrase.
    """

    name: str
    problem: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointReport:
    """What a checkpoint would do to the model, before anything is loaded.

    `fits` is False when tensors are missing, unexpected or of another shape: loading then needs the user's
    confirmation. `folded`: weights that were parametrised in the file; `others`: dicts of tensors that were
    not chosen. `sha256`: of the bytes that were read, as `sha256sum` prints it; of several files, of what it prints.
    `rebuilt`: where no model was given, what was made of the file, and what of that is a guess; `guess`: the same as
    the arguments that would ask for it, and what else could be asked for.
    """

    path: str
    layout: str = ""
    removed_prefix: str = ""
    matched: int = 0
    total: int = 0
    fits: bool = True
    mismatches: tuple[Mismatch, ...] = ()
    step: int | None = None
    folded: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    sha256: str = ""
    rebuilt: str = ""
    guess: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The answer to Load: the model is ready (or, when `needs_consent`, waits for `partial=True`).

    `typed` is the input that typed characters are at first; "" for the first that is offered.
    """

    subject: str
    title: str = ""
    kind: str = "vectors"
    width: int | None = None
    vocabulary: int = 0
    characters: bool = False
    examples: tuple[str, ...] = ()
    default_text: str = ""
    typed: str = ""
    audio: bool = False
    has_data: bool = False
    has_loss: bool = False
    places: tuple[Place, ...] = ()
    report: CheckpointReport | None = None
    needs_consent: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile:
    """A file of code that is to run. `what` is "changed" where the user agreed to another content of it before."""

    path: str
    sha256: str
    what: Literal["new", "changed"] = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsTrust:
    """The answer to a Load or a Run that needs code to which the user has not agreed; none of it has run.

    Load again with these in `agreed` continues. `request` is the interrupted request: "Load" or "Run".
    """

    files: tuple[CodeFile, ...]
    message: str = ""
    request: str = ""
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: `done` of `total` (0: unknown), and what it does now; with `note` a sentence to be read."""

    done: float
    total: float
    text: str = ""
    note: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request that could not be met: one clear sentence, what to do, and the details for --debug."""

    message: str
    details: str = ""
    request: str = ""
    kind: str = "input"
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run's end as reported on the pipe; the capture has the same RunStop.

    `costs`: for quantities that are not computed and can be, from what is stored: about how many seconds each takes.
    `refused`: quantities that are not computed and could only be refused for this run, with the reason.
    `details`: where the model raised, all of what it said and the lines of its code; the capture's log has them too.
    """

    path: str
    stop: RunStop
    costs: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    details: str = ""
    generation: int = 0
