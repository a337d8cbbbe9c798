"""The script that shows a rule's fault on its own: a small training with it, the same without it, and with the remedy.

What a rule found is put at its head as a comment. That text comes from models and captures, so nothing in it may end
the comment, and none of it stands in the first two lines, where Python reads the encoding of a file from comments
(PEP 263).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from inspector.diagnosis.rule import RULES, Rule
from inspector.records import Finding
from inspector.records.plain_text import plain_line
from inspector.registry import instead
from inspector.workspace.cases import case_text

WIDTH = 116
MOST = 5
"""Findings whose sentences are written; of others their number."""
HEAD = (
    "# A small training with one fault, beside the same training without it and with the remedy.\n"
    "# Run it as: python THIS_FILE ill healthy cured (or one of them), which needs torch and sequence-inspector.\n"
    "# Each version writes its capture into a new temporary folder, which it prints.\n"
)


class NoCaseError(ValueError):
    """There is no such rule, or no script for it; the message says which there are."""


def rule_of(name: str) -> tuple[str, Rule]:
    """(key, rule) by the key or the number of a rule ("contracting-weight", "IN205"). Raises NoCaseError."""
    for key, rule in RULES.items():
        if name.casefold() in (key.casefold(), rule.id.casefold()):
            return key, rule
    known = [word for key, rule in RULES.items() for word in (key, rule.id)]
    raise NoCaseError(f"There is no rule {name!r}; {instead(name, known)}.")


def has_case(name: str) -> bool:
    """Whether there is a script for a rule, by its key or number."""
    try:
        return case_text(_file(rule_of(name)[0])) is not None
    except NoCaseError:
        return False


def reproduce(name: str, findings: Sequence[Finding] = ()) -> str:
    """The script of a rule, by its key or number, with what it found in a comment at its head.

    The script is complete: written to a file, it runs. Raises NoCaseError.
    """
    key, rule = rule_of(name)
    text = case_text(_file(key))
    if text is None:
        raise NoCaseError(f"There is no script yet that shows what {rule.id} ({key}) finds.")
    said = [f"{rule.id} {key}: {rule.summary}"]
    said += [f"Found{_where(one)}: {one.message}" for one in findings[:MOST]]
    if len(findings) > MOST:
        said.append(f"Found {len(findings) - MOST} times more.")
    comment = "".join(f"{line}\n" for one in said for line in _comment(one))
    return f"{HEAD}{comment}{text}"


def default_name(name: str) -> Path:
    """What a file of the script is called where no name is given. Raises NoCaseError."""
    key, rule = rule_of(name)
    return Path(f"{rule.id}-{key}.py")


def _file(key: str) -> str:
    """Cases are named as their rules."""
    return key.replace("-", "_")


def _where(finding: Finding) -> str:
    return f" at {finding.place}" if finding.place and finding.place not in finding.message else ""


def _comment(text: str) -> list[str]:
    """Lines that begin with "# ", whatever the text contains."""
    shown = plain_line(text)
    return textwrap.wrap(shown, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
