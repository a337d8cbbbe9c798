"""Many sequences, one after the other: a folder of files, the lines of a file, a subject's examples, its own data.

A sequence that cannot be read is an item with its problem, and the next ones follow. Nothing is unpickled, and no code
is run but the subject's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

from inspector.capture.regular import in_words, open_regular, path_of
from inspector.engine.errors import InputError, model_error
from inspector.engine.model.batch import selected
from inspector.engine.model.named_batches import of_example
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS, input_options, make_input
from inspector.records import InputSpec, counted

EXAMPLES, OWN = "examples", "subject"
"""Words instead of a path: the subject's examples, and its own data."""
NAME_LETTERS = 60
READ_ONCE = (
    "The data of {} can be gone through once only (a {}); give a sequence, or a function that returns an iterable."
)
WEIGHTS = frozenset({".bin", ".safetensors", ".pt", ".pth", ".msgpack", ".h5"})
"""How names of files of weights end in a folder of Hugging Face's."""
OWN_OPTIONS = ("lines", "most", "number")
"""Options of a data set itself; others belong to the input that reads each sequence."""


@dataclass(frozen=True, slots=True)
class Item:
    """One sequence: its name, and a batch of it alone, or the reason why it could not be read."""

    name: str
    batch: Batch | None = None
    problem: str = ""


def items(subject: Subject, spec: InputSpec, seed: int) -> Iterator[Item]:
    """The sequences of a data set (see records.data_spec), in order, read as they are wanted.

    Raises InputError at the first one where the source as a whole cannot be read.
    """
    most = spec.options.get("most")
    found = _of_source(subject, spec, seed)
    return found if most is None else islice(found, int(most))


def numbered(subject: Subject, spec: InputSpec, seed: int, number: int) -> Batch:
    """One sequence of a data set, counted from 0, alone. Raises InputError."""
    found = next(islice(_of_source(subject, spec, seed), number, None), None)
    if found is None:
        raise InputError(f"{spec.value} has no sequence {number} (counted from 0).")
    if found.batch is None:
        raise InputError(found.problem)
    found.batch.title = found.batch.title or found.name
    return found.batch


def total_of(subject: Subject, spec: InputSpec) -> int | None:
    """How many sequences there will be, where that is known before they are read (a file may have several)."""
    most = spec.options.get("most")
    count: int | None = None
    if spec.value == EXAMPLES:
        count = len(subject.examples)
    elif spec.value == OWN and not callable(subject.data) and hasattr(subject.data, "__len__"):
        count = len(subject.data)
    return count if most is None or count is None else min(count, int(most))


def _of_source(subject: Subject, spec: InputSpec, seed: int) -> Iterator[Item]:
    if spec.value == EXAMPLES:
        if not subject.examples:
            raise InputError(f"{subject.name} has no examples.")
        return (_made(str(name), of_example, subject, one, str(name)) for name, one in subject.examples.items())
    if spec.value == OWN:
        return _own(subject)
    path = path_of(spec.value)
    if not spec.value or not path.exists():
        raise InputError(
            f"There is no file or folder {spec.value or '(no name)'}; expected one, '{EXAMPLES}', or '{OWN}' for the "
            "model's own data."
        )
    if subject.declared:
        raise InputError(f"{subject.name} reads several inputs by name: give many sequences of it as its `data`.")
    if spec.options.get("lines"):
        return _lines(subject, path, spec, seed)
    return _files(subject, _paths(path), spec, seed)


def _own(subject: Subject) -> Iterator[Item]:
    """The subject's data: each as an example is written."""
    given = subject.data
    if given is None:
        raise InputError(f"{subject.name} gives no data of its own; give a path, or `data` in the subject.")
    given = given() if callable(given) else given
    if isinstance(given, Iterator) and given is subject.data:
        raise InputError(READ_ONCE.format(subject.name, type(given).__name__))
    pairs = given.items() if hasattr(given, "items") else ((f"sequence {n}", one) for n, one in enumerate(given))
    iterator = iter(pairs)
    for number in range(1 << 62):
        try:
            name, one = next(iterator)
        except StopIteration:
            return
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            problem = model_error(fault, f"The data of {subject.name}")
            yield Item(f"after {counted(number, 'sequence')}", None, f"{problem} No further one was read.")
            return
        yield _made(str(name), of_example, subject, one, str(name))


def _lines(subject: Subject, path: Path, spec: InputSpec, seed: int) -> Iterator[Item]:
    """Each line that is not empty as if it had been typed."""
    if not path.is_file():
        raise InputError(f"{path.name} is not a file, so it has no lines; without `lines` it is read as a folder.")
    kind = _typed_kind(subject)
    options = _reading(kind, spec)
    try:
        with open_regular(path) as stream, TextIOWrapper(stream, encoding="utf-8", newline="\n") as file:
            for line in file:
                text = line.rstrip("\r\n")
                if text.strip():
                    name = text if len(text) <= NAME_LETTERS else text[: NAME_LETTERS - 1] + "…"
                    yield _made(name, make_input, subject, InputSpec(kind=kind, value=text, options=options), seed)
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text, so it has no lines to read.") from None
    except OSError as problem:
        raise InputError(f"{path.name} cannot be read: {in_words(problem)}.") from None


def _typed_kind(subject: Subject) -> str:
    """The input that reads a typed line: text where there is a vocabulary or an encoder, else ids; or numbers."""
    if subject.kind == "tokens":
        return "text" if subject.encode is not None or subject.vocabulary is not None else "ids"
    return "vectors"


def _reading(kind: str, spec: InputSpec) -> dict[str, Any]:
    """The options that belong to the input that reads each sequence."""
    known = {option.name for option in input_options(INPUTS[kind]) or ()} if kind in INPUTS else set[str]()
    return {name: value for name, value in spec.options.items() if name in known and _is_set(name, value)}


def _is_set(name: str, value: Any) -> bool:
    return name not in OWN_OPTIONS and value not in (None, False, "")


def _paths(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return [path]
    found = [one for one in path.iterdir() if not one.name.startswith(".") and not one.is_dir()]
    if not found:
        raise InputError(f"The folder {path.name} holds no files.")
    weights = [one.name for one in found if one.suffix.lower() in WEIGHTS]
    if (path / "config.json").is_file() and weights:
        raise InputError(
            f"The folder {path.name} holds no sequences: it is a folder of Hugging Face's with a model's weights "
            f"({weights[0]}) and its config.json; expected a folder of texts, arrays or recordings."
        )
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    """file2 before file10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _files(subject: Subject, paths: Iterable[Path], spec: InputSpec, seed: int) -> Iterator[Item]:
    """Each file as `--input` reads it; an array of several sequences is as many."""
    options = {name: value for name, value in spec.options.items() if _is_set(name, value)}
    for path in paths:
        whole = _made(path.name, make_input, subject, InputSpec(kind="file", value=str(path), options=options), seed)
        if whole.batch is None or whole.batch.size == 1:
            yield whole
            continue
        for number in range(whole.batch.size):
            yield Item(f"{path.name}[{number}]", _alone(whole.batch, number))


def _alone(batch: Batch, number: int) -> Batch:
    """One sequence of a batch without the padding that the others needed."""
    one = selected(batch, [number], None if batch.targets is None else batch.targets[number : number + 1])
    named = {
        name: part if part.tensor is None or not part.axis else replace(part, tensor=part.tensor[:, : part.lengths[0]])
        for name, part in one.named.items()
    }
    return Batch.of(named, one.primary, targets=one.targets, title=batch.title)


def _made(name: str, make: Callable[..., Batch], *given: Any) -> Item:
    try:
        return Item(name, make(*given))
    except InputError as problem:
        return Item(name, None, str(problem))
