"""Sequences as they are typed and as files: text, ids, vectors, tables, arrays, many in one file."""

from __future__ import annotations

from pathlib import Path

from target import Target
from torch import nn

from inspector.engine.errors import InputError
from inspector.engine.model.subject import Subject
from inspector.engine.registries import make_input
from inspector.engine.sources import items
from inspector.records import InputSpec

LETTERS = Subject(model=nn.Embedding(4, 2), vocabulary=["a", "b", " ", "\n"], name="letters")
VECTORS = Subject(model=nn.GRU(3, 2), name="vectors")
FILES = (".txt", ".ids", ".csv", ".npy", ".npz", "")
FORMS = ("text", "ids", "vectors", *FILES, "lines")


def attempt(data: bytes, scratch: Path) -> None:
    """The first byte says what it is given as, the second to which model."""
    form, subject = FORMS[(data or b"\0")[0] % len(FORMS)], (LETTERS, VECTORS)[data[1:2] > b"\x7f"]
    content = data[2:]
    if form in ("text", "ids", "vectors"):
        make_input(subject, InputSpec(kind=form, value=content.decode(errors="surrogateescape")), 0)
        return
    path = scratch / f"s{form if form in FILES else '.txt'}"
    path.write_bytes(content)
    if form == "lines":
        spec = InputSpec(kind="sequences", value=str(path), options={"lines": True, "most": 50})
        problem = next((one.problem for one in items(subject, spec, 0) if one.problem), "")
        if problem:
            raise InputError(problem)
    else:
        make_input(subject, InputSpec(kind="file", value=str(path)), 0)


TARGET = Target(
    "sequences, typed and as files",
    ("inspector.engine.inputs", "inspector.engine.sources", "inspector.engine.model"),
    attempt,
    (InputError,),
)
