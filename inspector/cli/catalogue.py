"""`inspector catalogue`: every entry of every registry, with what it declares."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from inspector.capture.logs import LogReader
from inspector.cli.columns import width_of
from inspector.cli.fault import Fault
from inspector.records import Entry
from inspector.transport.run_client import ask_catalog
from inspector.transport.terminal import complain, say
from inspector.workspace.samples import list_samples, samples_elsewhere
from inspector.workspace.trainings import list_trainings

ENGINE = ("quantities", "inputs", "loaders", "probes", "cells", "cures")
KINDS = (*ENGINE, "logs", "rules", "panels", "pictures", "samples")


@click.command()
@click.argument("kinds", nargs=-1, type=click.Choice(KINDS), metavar="[KIND]…")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def catalogue(kinds: tuple[str, ...], as_json: bool) -> None:
    """List quantities, inputs, loaders, probes, cells, cures, logs, rules, panels, pictures, samples, with options."""
    listed: dict[str, list[Entry]] = {}
    broken: list[str] = []
    for kind, entries, problems in _asked(kinds or KINDS):
        listed[kind] = entries
        broken += problems
    for line in dict.fromkeys(broken):
        complain(f"Broken: {line}")
    if as_json:
        click.echo(json.dumps({kind: [_said(e) for e in entries] for kind, entries in listed.items()}, indent=1))
        return
    for kind, entries in listed.items():
        say(f"{kind}:")
        width = width_of([entry.key for entry in entries])
        for entry in entries:
            say(f"  {entry.key:<{width}}  {entry.summary}{_notes(entry)}")
            for option in entry.options:
                say(f"  {'':<{width}}    {option.name}: {option.expected}. {option.help}{_default(option.default)}")


def _asked(kinds: Iterable[str]) -> Iterable[tuple[str, list[Entry], list[str]]]:
    """(kind, its entries, its broken ones), from the process where each kind is known."""
    wanted = set(kinds)
    if wanted & set(ENGINE):
        catalog = ask_catalog()
        if catalog is None:
            raise Fault("The worker, which knows the quantities, did not start.", 1)
        yield from ((kind, list(getattr(catalog, kind)), list(catalog.broken)) for kind in ENGINE if kind in wanted)
    if "logs" in wanted:
        from inspector.capture.logs import LOGS

        yield "logs", [log_entry(key, reader) for key, reader in LOGS.items()], _broken(LOGS)
    if "rules" in wanted:
        from inspector.diagnosis import RULES

        yield "rules", [Entry(key=key, title=r.title, summary=r.summary) for key, r in RULES.items()], _broken(RULES)
    if "panels" in wanted:
        from inspector.gui.panel.registry import PANELS, ordered

        panels = [
            Entry(key=key, title=p.title, summary=p.hint.partition(". ")[0], order=p.tab_order) for key, p in ordered()
        ]
        yield "panels", panels, _broken(PANELS)
    if "pictures" in wanted:
        from inspector.gui.panel.overview.pictures import PICTURES, pictures_in_order

        small = [
            Entry(key=key, title=p.title, summary=f"On the overview; leads to {p.panel}", order=p.order)
            for key, p in pictures_in_order()
        ]
        yield "pictures", small, _broken(PICTURES)
    if "samples" in wanted:
        found = [Entry(key=sample.name, title=sample.title, summary=sample.shows) for sample in list_samples()]
        found += [Entry(key=one.name, title=one.title, summary=one.shows) for one in list_trainings()]
        yield "samples", found, samples_elsewhere()[1]


def log_entry(key: str, reader: LogReader) -> Entry:
    """What a reader of logs declares."""
    magic = tuple(head.hex() for head in reader.magic)
    names = tuple(reader.names)
    return Entry(
        key=key, title=reader.title, summary=reader.summary, order=reader.order, magic=magic, choices=names
    )  # fmt: skip


def _broken(registry: Any) -> list[str]:
    return [f"{bad.origin}: {bad.reason}" for bad in registry.broken]


def _said(entry: Entry) -> dict[str, Any]:
    """The fields that are not empty."""
    return {name: value for name, value in asdict(entry).items() if value or name == "default"}


def _notes(entry: Entry) -> str:
    """In brackets: computed by default, needs, cost, suffixes, choices."""
    notes = [
        "default" if entry.default else "",
        f"needs {' and '.join(entry.needs)}" if entry.needs else "",
        f"cost: {entry.cost}" if entry.cost else "",
        " ".join(entry.suffixes), ", ".join(entry.choices),
    ]  # fmt: skip
    said = "; ".join(note for note in notes if note)
    return f" ({said})" if said else ""


def _default(value: Any) -> str:
    return f" [{value}]" if value not in (None, "", [], ()) and value != [None, None] else ""
