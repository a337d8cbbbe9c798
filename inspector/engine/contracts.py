"""What a probe, a loader and an input must be: the protocols that the files of the engine's registries fulfil."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.records import InputSpec


class Probe(Protocol):
    """Records one family of modules while the user's model runs.

    A new probe is made for every run. `attach` installs hooks or modes; `detach` removes every one of them and
    is called also when the model raised. `finish` runs after the model (and after the one backward pass): it
    turns what was recorded into Recurrences or Attentions of the trace. Nothing that a probe does may raise into the
    user's model, change its outputs, or draw random numbers.
    """

    summary: str

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """Install hooks; `emit` may be used to write pages live."""

    def detach(self) -> None:
        """Remove whatever `attach` installed. Idempotent."""

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Put what was recorded into the trace; reasons why something is missing go to `emit.refuse`."""


MAX_STEP = 10**15
"""Larger numbers, which a file may contain, are not training steps."""


REBUILDING = "rebuilding"
"""The key of a State's `meta` with hints for rebuilding a model from weights alone: `not_run`, {name of a module: why
it and what follows is not run}; `remarks`, sentences; `guessed`, what else is a guess; `nonlinearity`; `cells`, {name
of a layer of Keras: its kind and settings}."""


@dataclass(slots=True)
class State:
    """What a checkpoint file contains, as found: tensors by name, the layout that was recognised, the training step."""

    tensors: dict[str, Tensor]
    layout: str
    step: int | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    """Other tensor dicts in the same file that were not chosen (for example "ema" beside "model")."""


class Loader(Protocol):
    """Reads one checkpoint format.

    `suffixes` are those of its files (".pt"). What else it may declare, as attributes:

    magic: a tuple of bytes, the first bytes of its files.
    folders: True where a checkpoint is a folder; `sniff` is then asked about folders too, with no bytes.
    step(path): the training step that a checkpoint tells and where it stands, (1200, "the key 'global_step'"), or None;
        read without the tensors, to put many checkpoints in order.
    files(path): of a folder, the files whose content makes it what it is.
    program(path, content, arguments): the Subject of a file that is a model by itself, of these bytes of it; its
        `form` is "model". runs_code: True where that runs code of the file: the user is asked before.
    """

    summary: str
    suffixes: tuple[str, ...]

    def sniff(self, path: Path, head: bytes) -> bool:
        """True when the file's first bytes (4096) or name say that this loader can read it. Raises nothing."""

    def load(self, path: Path) -> State:
        """All tensors on the CPU. Raises InputError with a one-line message."""


class Input(Protocol):
    """Makes a batch of sequences from what the user gave.

    What else an input may declare, as attributes (window, command line and Python read it from there):

    title: its name in the menu of kinds; the key where it is not given.
    form: how its sequence is given in the window: "line" (typed), "choice" (one of `choices`), "file", "example",
        "several" (a source of many); an input without a form is reached by the suffixes of its files.
    prompt: for a line: what to type.
    choices: the sequences that it can make, by name.
    reads: kinds of model that it is for ("tokens", "vectors"); all where it is not given.
    suffixes, magic: of the files that it reads, and how they begin. `make` gets the path as the value.
    of_content: True where `make` gets the content of the file (UTF-8 text) instead of its path.
    options: a tuple of records.Option: what can be set. `make` gets a value for each in `spec.options`; None where the
        options belong to another input that this one hands the sequence to.
    """

    summary: str

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The batch, padded, with step labels. Raises InputError with a one-line message.

        `subject` may be a view of one input of several (Subject.view); the batch then holds that one alone.
        """


class Cure(Protocol):
    """Something that may make a training go better, and that needs no change of the model's code.

    Attributes:
        title: a short text for a button. summary: one sentence: what is changed.
        rules: ids of the rules whose findings it may cure.
    """

    title: str
    summary: str
    rules: Sequence[str]

    def apply(self, copy: Any) -> str:
        """Change a copy of the parameters, or the loop that trains it (a `Copy` of engine/analyses/trial_training.py).

        Returns what was changed, in words with the numbers. Raises Unsupported where there is nothing to be changed.
        """
