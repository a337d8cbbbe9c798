"""Putting the entry, the icon and the types of files where the desktop of this user looks, and taking them away.

Places: XDG Base Directory Specification 0.8 and Icon Theme Specification 0.13. Nothing outside the user's own data
folder is written; what the desktop derives from these files is made anew by its own programs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from inspector.capture import CaptureError, write_atomically
from inspector.capture.regular import in_words
from inspector.workspace.desktop.entry import NAME, command, entry, types

PATIENCE = 30.0
"""Seconds that a program of the desktop gets to update its database."""
UPDATES = (
    ("update-mime-database", "mime", "shared-mime-info", "files of captures are not recognised"),
    ("update-desktop-database", "applications", "desktop-file-utils", "a double click does not open captures yet"),
)
"""(program, folder that it is given, its package on Debian, what lacks without it)."""
AFTER_REMOVAL = "the desktop may offer it until it reads its folders again"


class DesktopError(Exception):
    """Why nothing was installed or removed, as one sentence."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was written or removed, and what of it has no effect yet."""

    paths: tuple[Path, ...]
    lacking: tuple[str, ...]


def data_folder() -> Path:
    """Where this user's data are: XDG_DATA_HOME, which has to be absolute, else ~/.local/share."""
    named = os.environ.get("XDG_DATA_HOME", "")
    return Path(named) if named.startswith("/") else Path.home() / ".local" / "share"


def own_files() -> dict[Path, bytes]:
    """What is written, by its place."""
    data = data_folder()
    return {
        _entry_file(): entry(command()).encode(),
        data / "mime" / "packages" / f"{NAME}.xml": types().encode(),
        data / "icons" / "hicolor" / "scalable" / "apps" / f"{NAME}.svg": icon(),
    }


def icon() -> bytes:
    """The icon, as SVG."""
    return files("inspector.workspace.desktop").joinpath("icon.svg").read_bytes()


def installed() -> str:
    """The line of the installed menu entry that starts the program, or "" where there is none."""
    try:
        lines = _entry_file().read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("Exec=") for line in lines if line.startswith("Exec=")), "")


def install() -> Done:
    """Write the files; those of an earlier installation are replaced. Raises DesktopError."""
    _check_system()
    written = own_files()
    for path, content in written.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
            path.chmod(0o644)
        except OSError as problem:
            raise DesktopError(f"{path} cannot be written: {in_words(problem)}.") from None
        except CaptureError as problem:
            raise DesktopError(str(problem)) from None
    return Done(tuple(written), _updated())


def remove() -> Done:
    """Take them away again; what is not there is no error. Raises DesktopError."""
    _check_system()
    removed = []
    for path in own_files():
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise DesktopError(f"{path} cannot be removed: {in_words(problem)}.") from None
        removed.append(path)
    return Done(tuple(removed), _updated(AFTER_REMOVAL) if removed else ())


def _entry_file() -> Path:
    return data_folder() / "applications" / f"{NAME}.desktop"


def _check_system() -> None:
    if sys.platform in ("win32", "darwin"):
        name = "Windows" if sys.platform == "win32" else "macOS"
        raise DesktopError(
            f"On {name} this command does nothing yet: menu entry and file types are made on Linux only."
        )


def _updated(lacks: str = "") -> tuple[str, ...]:
    """Let the desktop read its folders again; one line for what could not be done, and what `lacks` then."""
    lacking = []
    for program, folder, package, without in UPDATES:
        found = shutil.which(program)
        where = data_folder() / folder
        if found is None:
            lacking.append(f"{program} is not on this machine (Debian package {package}), so {lacks or without}.")
        elif not _succeeds([found, str(where)]):
            lacking.append(f"{program} {where} failed, so {lacks or without}.")
    return tuple(lacking)


def _succeeds(words: list[str]) -> bool:
    quiet = subprocess.DEVNULL
    try:
        return subprocess.run(words, stdin=quiet, stdout=quiet, stderr=quiet, timeout=PATIENCE).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
