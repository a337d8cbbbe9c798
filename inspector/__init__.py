"""inspector: see, step by step, what happens inside a sequence model.

Importing this package imports neither Qt nor torch; the functions below import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inspector.version import __version__

if TYPE_CHECKING:
    from inspector.analysis.before_training.verdicts import Verdict
    from inspector.analysis.divergence import Divergence
    from inspector.capture import Capture, Comparison, LogView
    from inspector.diagnosis import Diagnosis, Settings
    from inspector.engine.pipeline.own_operations import RecordedOperations
    from inspector.engine.session.trying import Trials
    from inspector.engine.watch import Watcher
    from inspector.gui.export.notebook import ShownFigure
    from inspector.records import Finding, InputSpec

__all__ = [
    "__version__",
    "compare",
    "decode",
    "diagnose",
    "first_divergence",
    "open_capture",
    "preflight",
    "record_operations",
    "reproduce",
    "run",
    "sequence",
    "show",
    "sweep",
    "try_cure",
    "watch",
]


def open_capture(path: Path | str, *, run: str | None = None) -> Capture | LogView:
    """Open a capture folder, a packed capture, or a log that another tool wrote (docs/logs.md), which reads the same.

    `run` is the name of one of the runs of a log (`LogView.runs`); without it all of them are opened.
    Raises inspector.capture.CaptureError with a one-line message.
    """
    from inspector.capture import open_any

    return open_any(path, run)


def _in_one_line(problem: ImportError) -> str:
    from inspector.records.plain_text import shortened  # late: numpy comes with it

    return shortened(" ".join(str(problem).split()), 200).rstrip(".")


def show(
    opened: Any, panel: str, *, frame: int = -1, place: str = "", step: int | None = None,
    steps: tuple[int, int] | None = None, iterations: tuple[int, int] | None = None, unit: int | None = None,
    head: int | None = None, curves: Sequence[str] = (),
    size: tuple[int, int] = (900, 520), theme: str = "light", font: float = 0.0, dpi: int = 192,
) -> ShownFigure:  # fmt: skip
    """A panel's figure, which a notebook shows as the result of its cell: `capture.show("lags")`.

    Args:
        opened: an open capture or log, or the path of one. panel: its key or title (`inspector list PATH --panels`).
        frame, place, step, unit, head, curves: what it shows, as the options of `inspector export --panel`.
        steps, iterations: from the first in view to the one before the second.
        size: (width, height) in pixels of 1/96 inch. theme: "light", "dark" or "paper". font: points of its texts.

    `.save("x.png")` or `.svg` writes it, `.numbers` has the arrays that it draws. Needs Qt, but no display.
    Raises CaptureError with a one-line message, also where Qt cannot be loaded.
    """
    from contextlib import ExitStack

    from inspector.capture import CaptureError
    from inspector.records import ViewAt

    try:
        from inspector.gui.export.look import Look
        from inspector.gui.export.notebook import shown_figure

        in_view, along = (None if one is None else (one[0], one[1] - 1) for one in (steps, iterations))
        at = ViewAt(
            panel=panel, frame=frame, place=place, step=step, steps=in_view, iterations=along, unit=unit, head=head,
            curves=tuple(curves),
        )  # fmt: skip
        with ExitStack() as opening:
            view: Any = opening.enter_context(open_capture(opened)) if isinstance(opened, (str, Path)) else opened
            return shown_figure(view, at, Look(size=size, colours=theme, font=font, dpi=dpi))
    except ImportError as problem:
        if "PySide6" not in f"{problem.name} {problem}":
            raise
        why = _in_one_line(problem)
        raise CaptureError(f"A figure is drawn by Qt, which cannot be loaded ({why}); see docs/install.md.") from None


def compare(first: Any, second: Any, *, align: bool = True) -> Comparison:
    """Compare two frames: of one run, of two runs, two checkpoints or two models, on the same input or another.

    What is returned is read like a capture: `array(name)` is second minus first, or second by first where the channel
    declares a ratio; `refused` says what cannot be compared and why, `separate` what is read one run at a time. Also a
    context manager, which closes the captures that were opened for it.

    Args:
        first, second: each a path of a capture or a log, `"run.inspect#3"` for one of its frames (without it the
            newest), an open capture, (capture, frame), or an inspector.capture.Reference.
        align: align steps by their tokens where these differ (a longest common subsequence). Steps that only one side
            has are then gaps: NaN, and not `known`; `alignments` says what was aligned. Without it numbers of
            different tokens are refused.

    Raises inspector.capture.CaptureError with a one-line message.
    """
    from inspector.capture.comparing.compare import compare as made

    return made(first, second, align=align)


def diagnose(path: Path | str, *, run: str | None = None, settings: Settings | None = None) -> Diagnosis:
    """Ask every rule about a capture or a log: `inspector diagnose` in Python. `.findings` has the worst first.

    Args:
        path: a capture folder, a packed capture or a log; run: the name of one of the runs of a log.
        settings: what is muted and which limits are changed; without them nothing is, whatever `inspector.toml` says.

    Raises inspector.capture.CaptureError with a one-line message.
    """
    from inspector.diagnosis import diagnose as asked

    with open_capture(path, run=run) as opened:
        return asked(opened, opened.frames, settings)


def reproduce(rule: str, findings: Sequence[Finding] = ()) -> str:
    """The script of a small training with the fault that a rule finds, and without it: `inspector reproduce` in Python.

    Args:
        rule: its number or key ("IN205", "contracting-weight").
        findings: of that rule, whose sentences are put at the head of the script, in a comment.

    Raises ValueError where there is no such rule, or no script for it.
    """
    from inspector.diagnosis import reproduce as script

    return script(rule, findings)


def first_divergence(a: Any, b: Any, *, dtype: str = "") -> Divergence:
    """Where two runs of the same code begin to differ by more than rounding explains: `inspector diverge` in Python.

    Args:
        a, b: open captures or logs, or their paths: runs with the quantity "operations", or trainings that were watched
            with `fingerprints=True`.
        dtype: judge rounding as that of this dtype at least ("bfloat16" where autocast was on).

    `.lines()` has the sentences, `.operations` and `.training` the verdicts. Raises CaptureError or ValueError.
    """
    from contextlib import ExitStack

    from inspector.analysis.divergence import first_divergence as found

    with ExitStack() as opened:
        views: list[Any] = [opened.enter_context(open_capture(x)) if isinstance(x, (str, Path)) else x for x in (a, b)]
        return found(views[0], views[1], dtype=dtype)


def record_operations(path: Path | str, model: Any, *, overwrite: bool = False, **inputs: Any) -> RecordedOperations:
    """Record every tensor operation of what a program computes, to compare it with the same on another machine.

    `with inspector.record_operations("a.inspect", model, x=x) as seen: loss = …; loss.backward(); seen.result("loss",
    loss)`. Inputs are named tensors. What is computed is the same as without it; each operation is run twice and takes
    some ten times as long. At most 20,000 operations. Raises CaptureError.
    """
    from inspector.engine.pipeline.own_operations import RecordedOperations

    return RecordedOperations(path, model, overwrite, inputs)


def sequence(kind: str, value: str = "", *, look_at: int = 0, **options: Any) -> InputSpec:
    """A sequence that an input makes, to be run: `run(model, sequence("generated", "noise", steps=12))`.

    Args:
        kind: key of an input (`inspector catalogue inputs` lists them), such as "generated", "file", "text".
        value: the text, the ids, the file's path, or the name of a generated signal.
        look_at: which sequence of a batch is shown.
        options: of that input.
    """
    from inspector.records import InputSpec

    return InputSpec(kind=kind, value=value, options=options, look_at=look_at)


def run(
    subject: Any, sequence: Any = None, *, out: Path | str | None = None, overwrite: bool = False, **options: Any
) -> Capture:
    """Run a model in this process and return the finished capture.

    Args:
        subject: a sample's name, `file.py:callable`, `module:callable`, an nn.Module, or a subject object.
        sequence: text, ids, an array (steps, width), a list of several, any of these by the names of the model's
            inputs, the result of `sequence`, or None for the subject's first example.
        out: the capture's folder; a temporary one, removed at exit, when left out.
        overwrite: whether an existing capture may be replaced.
        options: also, only (quantities beyond the default ones, and instead of them), checkpoint, arguments, seed,
            partial, look_at, device, edits; data, lines, most (many sequences instead of one); spike (an iteration that
            a watched training kept): see inspector.engine.session.run_arguments.
    """
    from inspector.engine.session.in_process import run_here

    return run_here(subject, sequence, out=out, overwrite=overwrite, **options)


def decode(
    subject: Any,
    sequence: Any = None,
    *,
    how: Literal["greedy", "sample", "beam"] = "greedy",
    width: int = 4,
    longest: int = 50,
    length_penalty: float = 0.0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    shown: int = 1,
    **options: Any,
) -> Capture:
    """Search for the answer of a model token by token, and return the finished capture.

    Args:
        subject, sequence, options: as in `run`. The subject offers `next_logits`, or predicts the next token of what it
            reads (docs/subjects.md).
        how: "greedy", "sample" or "beam".
        width: hypotheses of a beam, samples drawn, or tokens noted at each step of "greedy".
        longest: tokens of an answer at most.
        length_penalty: α of the score ln p / ((5 + tokens) / 6)^α.
        temperature, top_k, top_p: of "sample"; `seed=` is of what it draws.
        shown: how many hypotheses are run with every quantity, each as a frame, after the right answer where that is
            known.

    `inspector.analysis.decoded_tree.read_tree(capture)` gives the tree of what was tried. Raises ValueError for what
    cannot be searched by.
    """
    from inspector.engine.session.in_process import run_here
    from inspector.records import Decode

    asked = Decode(
        how=how, width=width, longest=longest, length_penalty=length_penalty, temperature=temperature, top_k=top_k,
        top_p=top_p, shown=shown,
    )  # fmt: skip
    return run_here(subject, sequence, decode=asked, **options)


def preflight(subject: Any, sequence: Any = None, **options: Any) -> list[Verdict]:
    """Test a model on a sequence before training: its structure (leaks of the future, of padding, of the batch, and
    others), and trial steps that are not kept (learning rate, one batch learned by heart).

    Args:
        subject, sequence: as in `run`.
        options: checkpoint, arguments, seed, partial, look_at, device, out, overwrite as in `run`; quick=True leaves
            the trial steps out.

    Each verdict has the test, `word` ("holds", "fault", "fact", "not tested"), a sentence, the largest change, and the
    module where it came in: see docs/preflight.md.
    """
    from inspector.analysis.before_training.preflight import asked, found

    wanted = asked(quick=bool(options.pop("quick", False)))
    with run(subject, sequence, only=wanted, **options) as capture:
        return found(capture)


def try_cure(
    target: Any, cures: str | Sequence[str] = (), sequence: Any = None, *, steps: int = 100, seeds: int = 3,
    subject: Any = None, **options: Any,
) -> Trials:  # fmt: skip
    """Train copies of a model as it is and with a cure, on the same batches, and compare them: `inspector try`.

    Args:
        target: a subject as in `run`; or a capture (open, or its path), which keeps the result beside its findings.
        cures: the key of one or several (`inspector catalogue cures` lists them); without it all are tried.
        sequence: as in `run`; it decides what a loss is of where the subject has no data and no examples.
        steps, seeds: of training of each copy; copies of each kind.
        subject: the model of a capture that names none which can be opened.
        options: optimizer ("adam", "adamw", "sgd"), rate, decay; others as in `run`.

    The model, its gradients and the random state are afterwards what they were. `.tried` has the verdicts, `.refused`
    why others could not be tried, `.capture` the losses. Raises InputError, ModelError or CaptureError.
    """
    from inspector.engine.session.trying import try_here

    return try_here(target, cures, sequence, steps, seeds, subject, options)


def sweep(
    checkpoints: Path | str | Sequence[Path | str], subject: Any, sequence: Any = None, **options: Any
) -> Capture:
    """Run a model at many checkpoints on one input, each as a frame of one capture, in the order of training.

    Args:
        checkpoints: a folder, a pattern ("run/*.pt"), a file, or several of these.
        subject, sequence: as in `run`; the checkpoints are loaded into the model that the subject makes.
        options: out, overwrite, also, only, arguments, seed, partial, look_at, device as in `run`; workers (processes
            at a time: 1 is this one, 0 as many as fit), threads of each, scheduler (the address of a dask.distributed
            cluster), progress (called with done, total, text): see docs/sweep.md.

    A sweep that is at `out` already is continued: finished frames are not computed again.
    """
    from inspector.engine.session.sweep.here import sweep_here

    return sweep_here(checkpoints, subject, sequence, **options)


def watch(model: Any, optimizer: Any = None, path: Path | str = "run.inspect", **options: Any) -> Watcher:
    """Watch a training loop from here on: `inspector.watch(model, optimizer)` before it, and nothing in it.

    The loop computes what it would have computed without this, bit for bit; an error of the watcher ends watching with
    one line. The capture at `path` grows and can be opened at any time; where the path exists, a number is added.

    Args:
        model: the nn.Module that is trained.
        optimizer: a torch.optim.Optimizer, several of them (steps of the first one count as iterations), or None: then
            those that step parameters of the model are found.
        options: every (record every n-th iteration; without it as many as `share` allows), share (of the wall time,
            0.02), cost ("light", "normal", "full"), modules (patterns of names such as "encoder.*"), probe (a batch,
            or a subject's input), break_on (when the loop is to wait), pause_timeout: see docs/watching.md.
        path: a folder, or tcp://host:port/name of a listener on another machine (`inspector listen`), which shares
            `secret=` with this one.

    Returns the Watcher: `log(loss=…, name=number)`, `note(text)`, `pause()`, `break_when(…)`, `close()`; also a context
    manager. Raises ValueError, TypeError or CaptureError where an argument cannot be used.
    """
    from inspector.engine.watch import watch

    return watch(model, optimizer, path, **options)
