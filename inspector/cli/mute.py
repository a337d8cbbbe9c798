"""`inspector mute`: findings that a project does not want to see, in its file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from inspector.capture.regular import in_words
from inspector.cli.fault import Fault
from inspector.diagnosis import NoCaseError, Settings, SettingsError, project_file, read_settings, rule_of
from inspector.diagnosis.muting import change_mutes
from inspector.diagnosis.settings import Mute
from inspector.records import counted
from inspector.transport.terminal import say

SCHEMA = "inspector-mutes-1"


@click.command("mute")
@click.argument("rule", required=False)
@click.option("--place", default="*", help="Only at places that match this pattern: layers.0.attn, extra.*.")
@click.option("--reason", default="", help="Why, for whoever reads the file.")
@click.option("--off", is_flag=True, help="No longer mute it.")
@click.option("--project", type=click.Path(dir_okay=False), help="The file; else the nearest inspector.toml, or a new.")
@click.option("--json", "as_json", is_flag=True, help="The list as JSON.")
def mute_(rule: str | None, place: str, reason: str, off: bool, project: str | None, as_json: bool) -> None:
    """Mute the findings of a RULE (IN402 or its key) in the project's file, at all places or at some; without RULE list
    what is muted."""
    file = None if project is None else Path(project)
    done = ""
    try:
        if rule is not None:
            mute = Mute(rule_of(rule)[1].id, place, reason)
            path = _off(mute, file) if off else change_mutes(mute, Path.cwd(), file=file)
            where = "" if place == "*" else f" at {place}"
            done = f"{path}: {mute.rule}{where} is {'no longer muted' if off else 'muted'}."
        elif off or place != "*" or reason:
            raise Fault("--place, --reason and --off are about a RULE; expected its number or key.")
        path_ = file or project_file(Path.cwd())
        settings = Settings() if path_ is None else read_settings(path_)
    except (SettingsError, NoCaseError) as problem:
        raise Fault(str(problem)) from None
    except OSError as problem:
        raise Fault(f"{file or 'inspector.toml'} cannot be used: {in_words(problem)}.") from None
    if done:
        say(done, err=as_json)
    if as_json:
        told = {"schema": SCHEMA, "file": settings.file, "muted": [asdict(one) for one in settings.muted]}
        click.echo(json.dumps(told, indent=1))
    elif rule is None:
        _list(settings)


def _off(mute: Mute, file: Path | None) -> Path:
    """A file may have the rule by its number or by its key."""
    try:
        return change_mutes(mute, Path.cwd(), on=False, file=file)
    except SettingsError:
        key = rule_of(mute.rule)[0]
        return change_mutes(Mute(key, mute.place), Path.cwd(), on=False, file=file)


def _list(settings: Settings) -> None:
    for one in settings.muted:
        place = "" if one.place == "*" else f" at {one.place}"
        say(f"{rule_of(one.rule)[1].id} {rule_of(one.rule)[0]}{place}{f': {one.reason}' if one.reason else ''}")
    if settings.file:
        say(f"{settings.file}: {counted(len(settings.muted), 'mute')}.", err=True)
    else:
        say("There is no inspector.toml here or above; nothing is muted.", err=True)
