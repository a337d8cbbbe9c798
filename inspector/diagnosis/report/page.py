"""A report as one HTML page: nothing is fetched, no script is in it, and what a browser may load is forbidden in it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from inspector.diagnosis.report.contents import Figure, Numbers, Report, Shown, Support, Written
from inspector.diagnosis.report.rows import code, definitions, element, link, paragraphs, said, table, text
from inspector.diagnosis.report.style import style
from inspector.records.dates import at_utc
from inspector.version import __version__

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(report: Report) -> str:
    """The page."""
    title = f"{report.title}: report"
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{text(title)}</title><style>{style(report.style)}</style>"
    )
    body = _top(report) + element("main", _findings(report) + _others(report) + _unseen(report) + _about(report))
    foot = element("footer", element("p", f"Made by inspector {text(__version__)}.", klass="soft"))
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}{foot}</body></html>\n'


def _top(report: Report) -> str:
    """What was found in a sentence, and links to everything."""
    items = "".join(
        f"<li>{link(_name(n), f'{shown.finding.severity}: {shown.finding.message}')}</li>"
        for n, shown in enumerate(report.findings, 1)
    )
    parts = [("cures", "Cures that were tried", report.tried), ("figures", "What was captured", report.figures)]
    parts += [("notes", "Notes", report.notes)]
    parts += [("unseen", "What was not looked at", True), ("run", "What was run", True)]  # type: ignore[list-item]
    items += "".join(f"<li>{link(name, words)}</li>" for name, words, there in parts if there)
    remarks = "".join(element("p", text(line), klass="soft") for line in report.remarks)
    return element("header", f"<h1>{text(report.title)}</h1><p>{text(report.sentence)}.</p>{remarks}") + element(
        "nav", f"<ul>{items}</ul>", **{"aria-label": "Contents"}
    )


def _name(number: int) -> str:
    return f"finding-{number}"


def _findings(report: Report) -> str:
    if not report.findings:
        return ""
    shown = "".join(_finding(n, one) for n, one in enumerate(report.findings, 1))
    return element("section", f"<h2>Findings</h2>{shown}", id="findings")


def _finding(number: int, shown: Shown) -> str:
    """One finding, with what it rests on and what to do."""
    one = shown.finding
    badge = element("span", text(one.severity), klass="badge")
    rows = [
        ("rule", text(f"{one.id} {one.rule}")),
        ("where", text(shown.where)),
        ("steps", text(_some(one.steps))),
        ("iterations", text(_some(one.iterations))),
        ("how sure", said(one.sure)),
        ("wrong if", said(one.unless)),
        ("remedy", said(one.remedy)),
        ("code", code(one.code) if one.code else ""),
        ("reference", text(one.reference)),
        ("figure", ", ".join(link(figure.name, figure.caption) for figure in shown.support.before)),
    ]
    parts = [
        f"<h3>{badge}{text(one.message)}</h3>", definitions(rows), "".join(map(_figure, shown.support.figures)),
        _numbers(shown.numbers), _notes(shown.notes), _commands(shown.support),
    ]  # fmt: skip
    return element("article", "".join(parts), id=_name(number), klass=one.severity)


def _some(numbers: Sequence[int], most: int = 12) -> str:
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(f"{number:,}" for number in numbers[:most]) + more


def _figure(one: Figure) -> str:
    below = text(one.caption) + (code(one.command) if one.command else "")
    drawn = element("div", one.markup, klass="wide", tabindex="0", role="region", **{"aria-label": one.caption})
    named = {"id": one.name} if one.name else {}
    return element("figure", f"{drawn}<figcaption>{below}</figcaption>", **named)


def _numbers(numbers: Sequence[Numbers]) -> str:
    if not numbers:
        return ""
    head = ["channel", "shape", "unit", "smallest", "largest", "at the finding"]
    rows = [[one.channel, one.shape, one.unit, _short(one.least), _short(one.greatest), _said(one)] for one in numbers]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table(head, rows, "The evidence in numbers")


def _said(one: Numbers) -> str:
    values = "; ".join(f"{words}: {_short(value) or 'not a finite number'}" for words, value in one.at)
    return ". ".join(filter(None, (values, one.problem)))


def _short(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else ""


def _commands(own: Support) -> str:
    rows = [("open it there", code(own.opens) if own.opens else ""), ("save it", "".join(map(code, own.saves)))]
    return definitions(rows) if any(value for _, value in rows) else ""


def _notes(notes: Sequence[Written]) -> str:
    found = ""
    for note in notes:
        when = at_utc(note.written) if note.written else ""
        about = element("p", text(" · ".join(filter(None, (note.about, when)))), klass="soft")
        found += element("blockquote", about + paragraphs(note.text))
    return found


def _others(report: Report) -> str:
    """Cures, figures of what was captured, and notes on no finding."""
    figures = "".join(map(_figure, report.figures))
    tried = "".join(map(paragraphs, report.tried))
    found = element("section", f"<h2>Cures that were tried</h2>{tried}", id="cures") if tried else ""
    found += element("section", f"<h2>What was captured</h2>{figures}", id="figures") if report.figures else ""
    if report.without_figures:
        found += element("p", text(report.without_figures), klass="soft")
    if report.notes:
        found += element("section", f"<h2>Notes</h2>{_notes(report.notes)}", id="notes")
    return found


def _unseen(report: Report) -> str:
    rows = table(("not looked at", "why"), report.unseen) if report.unseen else "<p>Every rule has judged.</p>"
    clear = f"<p>{text('Looked at, and nothing found: ' + ', '.join(report.clear) + '.')}</p>" if report.clear else ""
    return element("section", f"<h2>What was not looked at</h2>{rows}{clear}", id="unseen")


def _about(report: Report) -> str:
    rows = [(what, text(value)) for what, value in report.about]
    opens = [("open it", code(report.opens))] if report.opens else []
    return element("section", f"<h2>What was run</h2>{definitions([*rows, *opens])}", id="run")
