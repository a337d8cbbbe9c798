"""What `inspector diagnose` says of the rules that had nothing to look at, and how they get it."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.capture import LogView
from inspector.diagnosis import RULES, Diagnosis
from inspector.diagnosis.report.compose import OF_A_LOG
from inspector.diagnosis.rule import Captured
from inspector.diagnosis.words import not_looked
from inspector.records import command
from inspector.workspace.its_model import words_of

BEFORE_TRAINING = ("structure/", "trial/")
"""How the quantities begin that `inspector preflight` computes, all of them."""


def unseen(found: Diagnosis, view: Captured) -> Iterator[str]:
    """A sentence for each reason why rules had nothing to look at, with the command that computes what they need."""
    if isinstance(view, LogView):
        yield OF_A_LOG
    keys: dict[str, list[str]] = {}
    needs: dict[str, dict[str, None]] = {}
    for one in not_looked(found, view, RULES):
        if one.key in found.silent:
            keys.setdefault(one.why, []).append(one.key)
            needs.setdefault(one.why, {}).update(dict.fromkeys(one.needs))
    for why, some in keys.items():
        how = " and ".join(f"`{one}`" for one in _commands(words_of(view.start), list(needs[why])))
        yield f"Nothing to look at was captured for {', '.join(some)}: {why}{f'; run {how}' if how else ''}."


def _commands(model: tuple[str, ...], needs: list[str]) -> Iterator[str]:
    """Those that compute some quantities: all tests of structure and trial steps are one command."""
    others = [need for need in needs if not need.startswith(BEFORE_TRAINING)]
    if len(others) < len(needs):
        yield command("preflight", *model, "--out", "NAME.inspect")
    if others:
        yield command("run", *model, *(word for need in others for word in ("--with", need)))
