"""What is said in a terminal: plain lines, whatever stands in names, titles and messages from outside."""

from __future__ import annotations

import sys

import click

from inspector.records.plain_text import encodable, plain_line, plain_sentence, printed_piece


def say(text: str, *, err: bool = False) -> None:
    """One line."""
    _write(plain_line(text), err)


def complain(sentence: str) -> None:
    """What went wrong, on one line of stderr that is cut in the middle where it is too long."""
    _write(plain_sentence(sentence), True)


def say_details(text: str) -> None:
    """A traceback on stderr, line by line."""
    for line in text.rstrip("\n").split("\n"):
        _write(plain_line(line), True)


def pass_on(text: str, *, err: bool = False) -> None:
    """A piece of what a model printed, whole but for its colours and control characters."""
    _write(printed_piece(text), err, end=False)


def _write(text: str, err: bool, *, end: bool = True) -> None:
    stream = sys.stderr if err else sys.stdout
    click.echo(encodable(text, getattr(stream, "encoding", None)), err=err, nl=end)
