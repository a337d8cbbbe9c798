"""Which model is open in the worker and which one is being opened beside it, with what the user agreed to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from inspector.records import Decode, Edit, InputSpec, Load, Loaded, NeedsTrust
from inspector.workspace.trust import agree, agreed_files


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sequence to be run, with changes if there are any, or with a search for its answer."""

    input: InputSpec = field(default_factory=InputSpec)
    edits: tuple[Edit, ...] = ()
    decode: Decode | None = None


class Opening:
    """A model that is being opened replaces the one that is open only once it is open itself."""

    def __init__(self) -> None:
        self.load: Load | None = None
        """How the model that is open was opened; a worker that is started again opens it again."""
        self.loaded: Loaded | None = None
        """The worker's record of the model that is open in it."""
        self.pending: Load | None = None
        """The model that is being opened, or waits for the user's confirmation."""
        self.then: Wanted | None = None
        """What is run as soon as that model is open."""
        self.waiting = False
        """Whether what is being opened waits for the user's confirmation."""
        self.if_refused = ""
        """The consequence if the user declines, as text."""
        self.why = ""
        """Why a worker had to be started again, until its model is open again."""
        self._asked: dict[int, Load] = {}
        self._agreed: dict[str, str] = {}
        """Code that may run, whose agreement could not be remembered for other windows."""

    def begin(self, load: Load, then: Wanted | None, generation: int) -> tuple[Load, str]:
        """Another model is to be opened: the request, and what is wrong with the list of trusted code, or ""."""
        self.pending = self._asked[generation] = replace(load, generation=generation)
        self.then, self.waiting = then, False
        known, problem = agreed_files()
        return replace(self.pending, agreed={**known, **self._agreed}), problem

    @property
    def again(self) -> bool:
        """Whether what is being opened is the model that was open, in a worker that was started again."""
        if self.pending is None or self.load is None:
            return False
        return replace(self.pending, generation=self.load.generation) == self.load

    @property
    def still(self) -> str:
        """What is still open, to be added to a message."""
        return f"; {self.loaded.title or self.loaded.subject} is still open" if self.loaded is not None else ""

    def take(self, generation: int) -> Load | None:
        """The request that an answer belongs to; None where the request was cancelled, or the answer is to a run."""
        return self._asked.pop(generation, None)

    def ask(self, if_refused: str) -> None:
        """What is being opened waits for the user's confirmation."""
        self.waiting, self.if_refused = True, if_refused

    def over(self) -> Load | None:
        """Nothing is being opened any more; returns what was."""
        pending, self.pending = self.pending, None
        self.then, self.waiting = None, False
        return pending

    def another_worker(self) -> None:
        """Requests to a worker that has ended are not answered."""
        self._asked.clear()
        self.loaded = None

    def remember(self, asked: NeedsTrust) -> str:
        """The code may run; returns why that could not be stored, or ""."""
        files = {file.path: file.sha256 for file in asked.files}
        try:
            agree(files)
        except OSError as problem:
            self._agreed.update(files)
            return f"The answer could not be remembered ({problem.strerror or problem}); it holds for this window."
        return ""
