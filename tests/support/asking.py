"""A real worker that is asked to open code in a folder, and a trace of what of it has run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers import Parent

from inspector.records import Failure, Finished, InputSpec, Load, Loaded, NeedsTrust, Run


class Asking:
    """A folder of code, a canary that shows when some of it ran, and a worker that is asked to open it."""

    def __init__(self, folder: Path, parent: Parent) -> None:
        self.folder, self.parent = folder, parent
        self.agreed: dict[str, str] = {}
        self.generation = 0

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def canary(self, name: str) -> str:
        """Code that leaves a trace of having run."""
        return f"open({str(self.folder / 'ran')!r}, 'a').write('{name} ')\n"

    @property
    def ran(self) -> list[str]:
        """What has run since it was looked at last."""
        trace = self.folder / "ran"
        said = trace.read_text().split() if trace.exists() else []
        trace.unlink(missing_ok=True)
        return said

    def load(self, subject: str = "", agreed: Mapping[str, str] | None = None, **options: Any) -> Any:
        """The worker's answer to a Load; `agreed` is what was agreed to so far where nothing is said."""
        self.generation += 1
        self.parent.worker.send(
            Load(
                subject=subject or f"{self.folder / 'model.py'}:Model", generation=self.generation,
                agreed=self.agreed if agreed is None else agreed, **options,
            )
        )  # fmt: skip
        return self._answer(Loaded, NeedsTrust, Failure)

    def run(self) -> Any:
        """The worker's answer to a Run of noise."""
        self.generation += 1
        path = str(self.folder / f"{self.generation}.inspect")
        spec = InputSpec(kind="generated", value="noise", options={"steps": 5})
        self.parent.worker.send(Run(path=path, input=spec, generation=self.generation))
        return self._answer(Finished, NeedsTrust, Failure)

    def _answer(self, *kinds: type[Any]) -> Any:
        while True:
            event = self.parent.wait(*kinds)
            if event.generation == self.generation:
                return event

    def agree(self, asked: Any) -> None:
        """Agree to what was asked about."""
        assert isinstance(asked, NeedsTrust), asked
        self.agreed |= {file.path: file.sha256 for file in asked.files}

    def asked(self, answer: Any) -> dict[str, str]:
        """{file, as seen from the folder: "new" or "changed"} of an answer."""
        assert isinstance(answer, NeedsTrust), answer
        return {str(Path(file.path).relative_to(self.folder)): file.what for file in answer.files}
