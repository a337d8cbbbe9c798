"""The menu entry and the types of files: what is written, what desktops make of it, and that all of it goes again."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from inspector.capture import Writer, capture_of_index, open_any, pack
from inspector.cli import cli
from inspector.records import Channel, Frame, Page, RunStart
from inspector.workspace.desktop import entry as written
from inspector.workspace.desktop.install import DesktopError, data_folder, install, installed, remove

SPACE = "{http://www.freedesktop.org/standards/shared-mime-info}"


def entry_of(data: Path) -> configparser.SectionProxy:
    """The menu entry, as an ini file."""
    found = configparser.ConfigParser(interpolation=None, strict=True)
    found.optionxform = str  # type: ignore[method-assign,assignment]
    found.read(data / "applications" / "sequence-inspector.desktop", encoding="utf-8")
    return found["Desktop Entry"]


def tree(folder: Path) -> set[str]:
    """Files below a folder, as paths."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in place of the PATH; what a test puts there is all that is found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def test_install_writes_entry_icon_and_types_and_remove_takes_exactly_them_away(no_programs: Path) -> None:
    data = data_folder()
    (data / "applications").mkdir(parents=True)
    (data / "applications" / "other.desktop").write_text("[Desktop Entry]\n")
    done = install()
    assert len(done.paths) == 3 and all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in done.paths)
    assert [line.split()[0] for line in done.lacking] == ["update-mime-database", "update-desktop-database"]
    told = entry_of(data)
    words = shlex.split(told["Exec"])
    assert words[-1] == "%F" and Path(words[0]).is_absolute() and os.access(words[0], os.X_OK)
    assert told["TryExec"] == words[0] and told["Terminal"] == "false" and installed() == told["Exec"]
    before = tree(data)
    install()
    assert tree(data) == before
    assert set(remove().paths) == set(done.paths)
    assert tree(data) == {"applications/other.desktop"} and installed() == ""
    assert remove().paths == ()


def test_the_command_of_the_entry_starts_this_installation(no_programs: Path) -> None:
    install()
    words = shlex.split(entry_of(data_folder())["Exec"])[:-1]
    told = subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0 and told.stdout.startswith("inspector, version")


@pytest.mark.parametrize(
    "path", ["/opt/a b/inspector", '/q"uote/$HOME/`x`/inspector', "/back\\slash/inspector", "/per%cent/inspector"]
)
def test_arguments_of_the_entry_are_quoted_by_its_rules(path: str) -> None:
    """Read back as the specification says: string escapes, then quotes, then field codes."""
    line = next(one for one in written.entry([path]).splitlines() if one.startswith("Exec=")).removeprefix("Exec=")
    assert line.endswith(" %F")
    unescaped = line.removesuffix(" %F").replace("\\\\", "\\")
    if unescaped.startswith('"'):
        inside, found, at = unescaped[1:-1], "", 0
        while at < len(inside):
            at += inside[at] == "\\"
            found += inside[at]
            at += 1
        unescaped = found
    assert unescaped.replace("%%", "%") == path


def test_other_systems_are_told_that_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.workspace.desktop.install.sys", SimpleNamespace(platform="darwin"))
    with pytest.raises(DesktopError, match="On macOS this command does nothing yet"):
        install()
    told = CliRunner().invoke(cli, ["desktop", "--remove"])
    assert told.exit_code == 1 and "does nothing yet" in told.stderr
    assert not data_folder().exists()


def test_a_place_that_cannot_be_written_is_said_in_one_sentence(no_programs: Path) -> None:
    data_folder().mkdir(parents=True)
    (data_folder() / "applications").write_text("a file in the way")
    with pytest.raises(DesktopError, match=r"applications.* cannot be written|Cannot write") as told:
        install()
    assert "\n" not in str(told.value)


def test_a_relative_data_folder_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "here")
    assert data_folder() == Path.home() / ".local" / "share"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture with one page."""
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="a run")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(3, 2)))
        writer.write(Page("rnn:h", 0, (0, 0), np.ones((3, 2), np.float32)))
    return tmp_path / "a.inspect"


def test_the_types_match_captures_and_nothing_else(capture: Path) -> None:
    """The rules are followed here by hand, from the file as it is written."""
    root = ElementTree.fromstring(written.types())
    kind = root.find(f"{SPACE}mime-type")
    assert kind is not None and kind.get("type") == "application/x-inspector-capture"
    magic = kind.find(f"{SPACE}magic")
    assert magic is not None

    def matches(rule: ElementTree.Element, content: bytes) -> bool:
        wanted = rule.get("value", "")
        raw = int(wanted, 16).to_bytes(4, "big") if rule.get("type") == "big32" else (
            wanted.encode().decode("unicode_escape").encode("latin1"))  # fmt: skip
        first, _, last = rule.get("offset", "").partition(":")
        here = any(content[at : at + len(raw)] == raw for at in range(int(first), int(last or first) + 1))
        below = rule.findall(f"{SPACE}match")
        return here and (not below or any(matches(one, content) for one in below))

    def recognised(path: Path) -> bool:
        return any(matches(rule, path.read_bytes()) for rule in magic.findall(f"{SPACE}match"))

    packed = pack(capture)
    other = capture.parent / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("index.sqlite", b"SQLite format 3\0" + bytes(200))
    assert recognised(packed) and recognised(capture / "index.sqlite")
    assert not recognised(other)


def test_a_capture_opens_by_its_index(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_any(capture / "index.sqlite").path == capture
    monkeypatch.chdir(capture)
    assert capture_of_index(Path("index.sqlite")) == capture
    assert capture_of_index(capture) == capture


@pytest.mark.skipif(
    not all(map(shutil.which, ("xdg-mime", "gio", "update-mime-database", "update-desktop-database"))),
    reason="the programs of a desktop are not installed",
)
def test_a_desktop_knows_captures_and_opens_them_with_inspector(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_DIRS", "/usr/share")
    packed = pack(capture)
    assert install().lacking == ()

    def said(*words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, timeout=30).stdout

    kind = "application/x-inspector-capture"
    assert kind in said("gio", "info", "-a", "standard::content-type", str(packed))
    assert kind in said("gio", "info", "-a", "standard::content-type", str(capture / "index.sqlite"))
    assert "sequence-inspector.desktop" in said("xdg-mime", "query", "default", kind)
    assert "sequence-inspector.desktop" in said("gio", "mime", "application/x-inspector-session")
    remove()
    assert "sequence-inspector" not in said("xdg-mime", "query", "default", kind) + said("gio", "mime", kind)
    assert kind not in said("gio", "info", "-a", "standard::content-type", str(capture / "index.sqlite"))
