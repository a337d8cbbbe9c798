"""`inspector desktop`: a menu entry, an icon and file types, so that captures open by a double click."""

from __future__ import annotations

import click

from inspector.cli.fault import Fault
from inspector.transport.terminal import say
from inspector.workspace.desktop.install import DesktopError, Done, data_folder, install, installed, remove

FOLDERS = (
    "A capture that is a folder (NAME.inspect) opens by its file index.sqlite, or when it is dropped on the window: "
    "no desktop knows types of folders."
)


@click.command("desktop")
@click.option("--install", "wanted", flag_value="install", help="Write them, or write them anew.")
@click.option("--remove", "wanted", flag_value="remove", help="Take them away.")
def desktop(wanted: str | None) -> None:
    """Put inspector into the desktop's menu, for this user, and let its files open by a double click (Linux)."""
    if wanted is None:
        started = installed()
        say(f"The menu entry in {data_folder()} starts {started}" if started else "There is no menu entry; see --help.")
        return
    try:
        done = install() if wanted == "install" else remove()
    except DesktopError as problem:
        raise Fault(str(problem), 1) from None
    _tell(done, wanted == "install")


def _tell(done: Done, written: bool) -> None:
    if not done.paths:
        say("Nothing was installed, so nothing was removed.")
    for path in done.paths:
        say(f"{'wrote' if written else 'removed'} {path}")
    for line in (*done.lacking, *((FOLDERS,) if written else ())):
        say(line, err=True)
