"""What a target is: something that reads bytes from outside, and what must be true of it whatever the bytes are.

For any bytes it reads them right, or refuses them in one plain sentence, within seconds and within memory. Everything else
is a finding.
"""

from __future__ import annotations

import importlib
import re
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CORPUS, FINDINGS = HERE / "corpus", HERE / "findings"
MOST_SECONDS = 5.0
"""Of processor time, of this process: a machine that is busy with other things makes no finding."""
MOST_MEMORY = 1 << 30
"""Bytes by which the most memory that was ever taken may grow at one input."""
MOST_OF_A_SENTENCE = 300
WORDS_OF_PROGRAMS = re.compile(
    r"index out of range|unpack|NoneType|invalid literal|list indices|codec can't|values to unpack|object (is|has|of)\b"
    r"|\w(Error|Exception)\b|Errno|Traceback|reshape|(?<![\w'\"])b['\"]|\bnp\.|<class|could not convert|positional argument"
    r"|buffer|bytes-like|unhashable|subscriptable"
)
"""What Python and libraries say to those who write programs."""


class FoundError(AssertionError):
    """A finding: what is said is what is wrong."""


@dataclass(frozen=True, slots=True)
class Target:
    """One reader.

    Attributes:
        reads: what, for the table.
        follows: packages whose branches guide the search.
        attempt: reads `data`, in a folder of its own; "" or what was refused, as it was said. Raises whatever is wrong.
        refusals: exceptions that are a refusal.
        most: bytes of an input. slow: whether one takes a process, so that few are tried.
    """

    reads: str
    follows: tuple[str, ...]
    attempt: Callable[[bytes, Path], None]
    refusals: tuple[type[Exception], ...]
    most: int = 1 << 14
    slow: bool = False


def targets() -> list[str]:
    """Names of all targets: the files beside this one."""
    return sorted(path.stem for path in (HERE / "targets").glob("*.py") if path.stem != "__init__")


def load(name: str) -> Target:
    """A target by its name."""
    found: Target = importlib.import_module(f"targets.{name}").TARGET
    return found


def seeds(name: str) -> list[Path]:
    """The inputs from which mutants are made."""
    return sorted(path for path in (CORPUS / name).glob("*") if path.is_file())


def findings(name: str) -> list[Path]:
    """Inputs that were findings once."""
    return sorted(path for path in (FINDINGS / name).glob("*") if path.is_file())


def tried(target: Target, data: bytes, scratch: Path) -> str:
    """ "read" or "refused". Raises FoundError, or whatever the reader raised that it should not."""
    scratch.mkdir()
    memory, began = _most_memory(), time.process_time()
    try:
        target.attempt(data, scratch)
        outcome = "read"
    except target.refusals as problem:
        require_sentence(str(problem).replace(str(scratch), scratch.name), data)
        outcome = "refused"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    taken, grown = time.process_time() - began, _most_memory() - memory
    if taken > MOST_SECONDS:
        raise FoundError(f"it took {taken:.1f} s of processor time")
    if grown > MOST_MEMORY:
        raise FoundError(f"it took {grown >> 20} MB")
    return outcome


def require_sentence(text: str, data: bytes = b"") -> None:
    """Raises FoundError for a refusal that is not one plain sentence; it may quote what stands in the `data`."""
    plain = not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    if not text or not plain or len(text) > MOST_OF_A_SENTENCE:
        raise FoundError(f"a refusal is not one plain sentence ({len(text)} characters): {text[:400]!r}")
    said = [one for one in WORDS_OF_PROGRAMS.finditer(text) if one.group().encode() not in data]
    if said:
        raise FoundError(f"a refusal says {said[0].group()!r}, words of programs: {text!r}")


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
