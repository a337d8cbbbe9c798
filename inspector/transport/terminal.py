"""Output in a terminal: plain lines, whatever is in names, titles and messages from outside."""

from __future__ import annotations

import sys

import click

from inspector.records.plain_text import encodable, plain_line, plain_sentence, printed_piece


def say(text: str, *, err: bool = False) -> None:
    """One line."""
    _write(plain_line(text), err)


def complain(sentence: str) -> None:
    """Print an error as one line of stderr that is cut in the middle where it is too long."""
    _write(plain_sentence(sentence), True)


def say_details(text: str) -> None:
    """A traceback on stderr, line by line."""
    for line in text.rstrip("\n").split("\n"):
        _write(plain_line(line), True)


def pass_on(text: str, *, err: bool = False) -> None:
    """Print a piece of a model's output, complete except for its colours and control characters."""
    _write(printed_piece(text), err, end=False)


def _write(text: str, err: bool, *, end: bool = True) -> None:
    stream = sys.stderr if err else sys.stdout
    click.echo(encodable(text, getattr(stream, "encoding", None)), err=err, nl=end)
