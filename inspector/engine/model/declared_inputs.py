"""What a subject declares about each of its inputs: `inputs={"src": {"kind": "tokens", "vocabulary": …}, "tgt": …}`.

An entry is a mapping, any object with these attributes, or the kind alone as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, get_args

from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.batch import SEQUENCES, InputKind
from inspector.engine.wording import a_class, text_of
from inspector.records.plain_text import shortened

KINDS: tuple[str, ...] = get_args(InputKind)
MARKS = ("real", "padding")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredInput:
    """One input as its author declares it.

    Attributes:
        kind: see NamedInput.
        vocabulary, encode, size: for tokens: the label of every id; text to ids; how many ids there are.
        width, frames: for vectors: how many numbers a step has; how sound becomes vectors.
        shape: for an image, a state or another array: the shape of one sequence, without the batch axis.
        optional: it may be left out, and is None then.
        of, marks: for a mask that is made from the lengths of another input: the name of that input; whether True is
            "real" or "padding".
        axis: the step axis: its own name by default; that of another input, where both share their steps.
        grid: (rows, columns) of a picture cut into patches, which are its steps or the positions that the model attends
            to.
        picture: for vectors: (rows, columns) of the picture that the numbers of all steps are, one step after the other
            and row by row: digits read by rows of 8 pixels, or by single pixels, are (8, 8).
        before: names of the positions in front of a picture's patches, of tokens that stand for the whole picture.
        pixels: for an image: how a picture (h, w, 3), whole numbers from 0 to 255, becomes what the model reads.
        batch_dim: where the model wants the batch axis.
        padding: what fills up shorter sequences.
        modules: the modules that run over its steps; else recognised by their number of steps where no other axis has
            it.
        primary: whether its step axis is the run's; by default that of the first sequence is.
    """

    kind: InputKind
    vocabulary: Sequence[str] | None = None
    encode: Callable[[str], Tensor] | None = None
    size: int | None = None
    width: int | None = None
    frames: Callable[[Tensor, int], Tensor] | None = None
    shape: tuple[int, ...] | None = None
    optional: bool = False
    of: str = ""
    marks: str = "real"
    axis: str = ""
    grid: tuple[int, int] | None = None
    picture: tuple[int, int] | None = None
    before: Sequence[str] = ()
    pixels: Callable[[Any], Tensor] | None = None
    batch_dim: int = 0
    padding: float = 0
    modules: str | Sequence[str] = ()
    primary: bool = False

    @property
    def derived(self) -> bool:
        """Whether it is made from another input where it is not given, so that it may be left out."""
        return bool(self.of)


KEYS = tuple(part.name for part in fields(DeclaredInput))


def declare(inputs: Any, who: str) -> dict[str, DeclaredInput]:
    """The inputs of a subject (`who`) by name, in their order. Raises InputError for what cannot be one."""
    if not isinstance(inputs, Mapping):
        raise InputError(f"`inputs` of {who} is {a_class(inputs)}; expected name → description.")
    found = {_name(name, who): _declared(name, given, who) for name, given in inputs.items()}
    for name, one in found.items():
        if one.of and one.of not in found:
            raise InputError(f"The mask {name!r} of {who} is of {text_of(one.of)!r}; there are {', '.join(found)}.")
    if sum(one.primary for one in found.values()) > 1:
        raise InputError(f"Several inputs of {who} are declared primary; only one may be.")
    return found


def _name(name: object, who: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"{shortened(text_of(name), 40)!r} cannot name an input of {who}; expected an identifier.")
    return name


def _declared(name: str, given: Any, who: str) -> DeclaredInput:
    if isinstance(given, DeclaredInput):
        return given
    said: dict[str, Any] = {"kind": given} if isinstance(given, str) else dict(_items(given, name, who))
    unknown = [key for key in said if key not in KEYS]
    if unknown:
        raise InputError(f"The input {name!r} of {who} has no {text_of(unknown[0])!r}; it may have {', '.join(KEYS)}.")
    said = {key: value for key, value in said.items() if value is not None}
    kind = said.setdefault("kind", _kind_of(said))
    if kind not in KINDS:
        raise InputError(
            f"The kind of the input {name!r} of {who} is {text_of(kind)!r}; expected one of {', '.join(KINDS)}."
        )
    if said.get("marks", "real") not in MARKS:
        raise InputError(
            f"The mask {name!r} of {who} marks {text_of(said['marks'])!r}; expected one of {', '.join(MARKS)}."
        )
    if "shape" in said:
        said["shape"] = tuple(said["shape"])
    if "grid" in said:
        said["grid"] = two_sizes(said["grid"], f"The grid of the input {name!r} of {who}", "its patches")
    if "picture" in said:
        said["picture"] = two_sizes(said["picture"], f"The picture of the input {name!r} of {who}", "its pixels")
    return DeclaredInput(**said)


def two_sizes(given: Any, what: str, of: str) -> tuple[int, int]:
    """(rows, columns) as they are declared. Raises InputError."""
    sizes = tuple(given) if isinstance(given, (list, tuple)) else ()
    if len(sizes) != 2 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise InputError(f"{what} is {text_of(given)!r}; expected (rows, columns) of {of}.")
    return sizes


def _items(given: Any, name: str, who: str) -> Mapping[str, Any]:
    found = given if isinstance(given, Mapping) else getattr(given, "__dict__", None)
    if found is None:
        raise InputError(f"The input {name!r} of {who} is {a_class(given)}; expected {{'kind': 'tokens', …}}.")
    return found


def _kind_of(said: Mapping[str, Any]) -> str | None:
    """The kind, where the other fields leave only one."""
    telling = {"vocabulary": "tokens", "size": "tokens", "encode": "tokens", "width": "vectors", "frames": "vectors"}
    return "mask" if "of" in said else next((kind for key, kind in telling.items() if key in said), None)


def primary_of(inputs: Mapping[str, DeclaredInput], present: Sequence[str]) -> str:
    """The input that gives the run its step axis:
    the one declared primary, else the first sequence, else the first image, else the first of all."""
    said = [name for name in present if inputs[name].primary]
    sequences = [name for name in present if inputs[name].kind in SEQUENCES]
    images = [name for name in present if inputs[name].kind == "image"]
    return [*said, *sequences, *images, *present][0]
