"""Why something could not be read, in words for who wants to read it.

Readers index into what a damaged file says, and fail in Python's words or a library's: "tuple index out of range",
"cannot reshape array of size 3 into shape (2, 4)". They tell who writes programs something, and nobody else.
"""

from __future__ import annotations

import errno
import json
import re
import struct
import zlib

from inspector.records.plain_text import plain_line

DO_NOT_FIT = "it ends too early, or its parts do not fit together"
LONGEST = 160
_OF_PROGRAMS = (
    IndexError, KeyError, TypeError, AttributeError, ArithmeticError, AssertionError, NotImplementedError, struct.error,
    zlib.error,
)  # fmt: skip
_WORDS_OF_PROGRAMS = re.compile(
    r"invalid literal|convert string|not convert|to unpack|unpack requires|out of range|out of bounds|codec|NoneType"
    r"|<class|<ast\.|\bobject (?:is|has|does|of)\b|argument|reshape|\bdtype\b|\bdescr\b|\bnp\.|(?<![\w'\"])b['\"]"
    r"|is not a valid [A-Z]|Error -?\d|Errno|buffer|bytes-like|expected str|ordinal|must be (?:an?|str|int|of|in) "
    r"|iterable|subscript|invalid combination|sequence element|seek|array is too big|maximum supported"
    r"|setting an array|INTERNAL ASSERT",
    re.IGNORECASE,
)
_CLASS = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Warning): ")


def why_unreadable(problem: BaseException, longest: int = LONGEST) -> str:
    """Why, as the end of a sentence on one line, from what was raised: its own words, unless they are of programs."""
    if type(problem).__module__.partition(".")[0] == "inspector":  # a sentence of this program
        return plain_line(" ".join(str(problem).split()).rstrip("."), longest)
    if isinstance(problem, UnicodeDecodeError):
        return f"byte {problem.start:,} is no text in {problem.encoding.upper()}"
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg[:1].lower()}{problem.msg[1:]} in line {problem.lineno:,}, column {problem.colno:,}"
    if isinstance(problem, OSError) and problem.strerror:  # a place that no file has is an "invalid argument"
        return DO_NOT_FIT if problem.errno == errno.EINVAL else problem.strerror.rstrip(".")
    if isinstance(problem, EOFError):
        return "it ends too early"
    if isinstance(problem, (RecursionError, MemoryError)):
        return "it is nested too deeply" if isinstance(problem, RecursionError) else "it asks for too much memory"
    if isinstance(problem, _OF_PROGRAMS):
        return DO_NOT_FIT
    return in_plain_words(str(problem), longest)


def in_plain_words(said: str, longest: int = LONGEST) -> str:
    """The same from the words of an exception alone, as another process prints them ("ValueError: …")."""
    named = _CLASS.match(" ".join(said.split()))
    words = " ".join(said.split())[named.end() if named else 0 :].rstrip(".")
    of_programs = named is not None and named.group().removesuffix(": ") in {one.__name__ for one in _OF_PROGRAMS}
    if not words or of_programs or _WORDS_OF_PROGRAMS.search(words):
        return DO_NOT_FIT
    return plain_line(words, longest)
