"""One file to mail: a stored (never compressed) zip of a capture, which is read in place."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import sqlite3
import tempfile
import zipfile
import zlib
from io import BufferedReader
from pathlib import Path

from inspector.capture.appending import PAGE_FILES, folder_to_disk, to_disk
from inspector.capture.connection import Connection, check_files
from inspector.capture.control import FOLDER as CONTROL
from inspector.capture.encrypted import encrypted
from inspector.capture.layout import INDEX, PACKED_SUFFIX, SUFFIX, CaptureError, page_file
from inspector.capture.own_files import is_own, require_own, require_room
from inspector.capture.private import private_file
from inspector.capture.regular import in_words, open_regular
from inspector.capture.target import HEADER_BYTES, has_our_id, is_ours
from inspector.capture.writer import SQLITE_SAYS
from inspector.records.unreadable import why_unreadable

_PAGE_FILE = re.compile(r"pages-(\d{4,9})\.bin\Z")
MAX_INDEX_BYTES = 1 << 30
_LOCAL_HEADER = 30
_PRIVATE = "inspector-"
_OF_WRITING = (
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_DELETE,
)  # fmt: skip
"""What SQLite reports of a copy of an index, and not of the index that is read."""
WAIT = 5.0
"""Seconds for which an index that is locked is tried again."""
_PIECE = 1 << 20


def pack(path: Path | str, to: Path | str | None = None, *, overwrite: bool = False) -> Path:
    """Write the capture at `path` as one file and return its path. A run in progress is packed as it is.

    With `overwrite` an existing packed capture is replaced; any other file never is. Damage is packed unchanged: the
    one file then shows the same damage. Raises CaptureError.
    """
    source = Path(path)
    source = source if source.name else source.absolute()  # `pack .` within a capture
    if not source.name or not source.is_dir():
        raise CaptureError(f"There is no capture at {source} to pack.")
    check_files(source / INDEX)
    if not is_ours(source / INDEX):
        raise CaptureError(f"There is no capture at {source} to pack.")
    target = Path(to) if to is not None else source.with_name(source.name.removesuffix(SUFFIX) + PACKED_SUFFIX)
    _check_file(target, overwrite)
    try:
        with tempfile.TemporaryDirectory(prefix=_PRIVATE) as private:
            _pack(source, Path(private) / INDEX, target)
    except OSError as problem:  # of the folder for temporary files too
        raise CaptureError(f"Cannot write {target}: {_why(problem)}.") from None
    return target


def _pack(source: Path, index: Path, target: Path) -> None:
    """Write the file by way of a copy of the index, and of one under another name. Raises OSError or CaptureError."""
    numbers = _copy_index(source / INDEX, index)
    named = (source / page_file(number) for number in sorted(numbers))
    pages = [page for page in named if os.path.lexists(page)]  # a missing one is damage, to be shown as such
    partial = target.with_name(f".{target.name[:40]}-{secrets.token_hex(4)}")
    try:
        require_room(target.parent, [*pages, index])
        with private_file(partial) as out:
            with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
                for file in (index, *pages):
                    _add(archive, file)
            out.flush()
            os.fsync(out.fileno())  # before it gets the name of one that may be there
        partial.replace(target)
    finally:
        with contextlib.suppress(OSError):  # a disk that can only be read refuses to remove what is not there
            partial.unlink(missing_ok=True)


def copy_capture(path: Path, target: Path) -> None:
    """Copy the capture at `path`, as it is now, into a new folder, which gets its name once it is whole on the disk.

    A run may be writing it: the index is a consistent copy, and pages are copied after it. Raises CaptureError.
    """
    if os.path.lexists(target):
        raise CaptureError(f"{target} exists already; choose another name.")
    partial = target.with_name(f".{target.name[:40]}-{secrets.token_hex(4)}")
    try:
        require_room(target.parent, _copied(path))
        partial.mkdir(mode=0o700)
        _copy_index(path / INDEX, partial / INDEX)
        shutil.copytree(path, partial, ignore=_not_copied, dirs_exist_ok=True)
        _to_disk(partial)
        partial.rename(target)
        folder_to_disk(target.parent)
    except (OSError, shutil.Error) as problem:
        raise CaptureError(f"Cannot save to {target}: {_why(problem)}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _to_disk(folder: Path) -> None:
    """Return when what a folder holds is on the disk, names too: a power cut after its new name leaves all of it.
    Raises OSError."""
    for at, _, names in os.walk(folder):
        for name in names:
            with Path(at, name).open("rb" if os.name == "posix" else "r+b") as file:
                to_disk(file.fileno())
        folder_to_disk(Path(at))


def _why(problem: OSError) -> str:
    """Why something could not be written, as the end of a sentence; with the file where that is a temporary one."""
    if not problem.strerror:
        return "some of its files could not be copied"
    file = Path(str(problem.filename or ""))
    private = any(part.name.startswith(_PRIVATE) for part in (file, file.parent))
    return in_words(problem) + (f" ({file})" if private else "")


def _not_copied(folder: str, names: list[str]) -> list[str]:
    """The index, which is copied apart, what windows ask of the training that writes it, and what is no file of its
    own: a link in a capture that somebody else made may lead to a private file, a pipe or a device."""
    return [name for name in names if name.startswith(INDEX) or name == CONTROL or not is_own(Path(folder, name))]


def _copied(path: Path) -> list[Path]:
    """The files of a capture but its index. Raises CaptureError where one with numbers is a link; OSError."""
    for one in path.iterdir():
        if _PAGE_FILE.match(one.name):
            require_own(one, "copied")
    return [
        Path(folder, name)
        for folder, folders, names in os.walk(path)
        for name in set(names).difference(_not_copied(folder, [*folders, *names]))
    ]


def _add(archive: zipfile.ZipFile, path: Path) -> None:
    """One file as it is now; a page file may grow meanwhile. Raises CaptureError where it is not a file."""
    require_own(path, "packed")
    try:
        source = open_regular(path)
    except OSError as problem:
        raise CaptureError(f"{path} cannot be packed: {in_words(problem)}.") from None
    with source, archive.open(zipfile.ZipInfo(path.name), "w", force_zip64=True) as member:
        shutil.copyfileobj(source, member, _PIECE)


def _check_file(target: Path, overwrite: bool) -> None:
    """Raise CaptureError where a file is in the way."""
    if "\0" in str(target):
        raise CaptureError(f"{str(target)!r} is not a file name.")
    if not os.path.lexists(target):
        return
    if not _is_packed(target):
        raise CaptureError(f"{target} exists and is not a packed capture, so it is not replaced; choose another name.")
    if not overwrite:
        raise CaptureError(
            f"{target} already exists; choose another name, or replace it with --overwrite (overwrite=True)."
        )


def _is_packed(path: Path) -> bool:
    """Whether a file is a packed capture: an archive with the index of a capture."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive, archive.open(INDEX) as index:
            return has_our_id(index.read(HEADER_BYTES))
    except (zipfile.BadZipFile, zlib.error, OSError, KeyError, ValueError, RuntimeError, EOFError):
        return False


def _copy_index(source: Path, target: Path) -> set[int]:
    """A consistent copy, even while the writer writes, in a journal mode that opens read-only.

    Returns the numbers of the page files to which it refers. Raises CaptureError where it cannot be read, OSError where
    the copy cannot be written.
    """
    try:
        with contextlib.closing(sqlite3.connect(target)) as copy:
            with Connection(source, wait=WAIT) as reader:
                reader.backup(copy)
            copy.execute("DELETE FROM lease")
            copy.commit()
            copy.execute("PRAGMA journal_mode=DELETE")
            found = copy.execute("SELECT DISTINCT file FROM pages")
            return {n for (n,) in found if type(n) is int and 0 <= n < PAGE_FILES}
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorcode", 0)
        if code in _OF_WRITING or code & 0xFF in _OF_WRITING:
            full = code & 0xFF == sqlite3.SQLITE_FULL
            why = os.strerror(errno.ENOSPC) if full else SQLITE_SAYS.get(code & 0xFF, str(problem))
            raise OSError(errno.EIO, why, str(target)) from None
        raise CaptureError(f"The index of {source.parent.name} cannot be read ({why_unreadable(problem)}).") from None


def unpack_index(archive: Path, folder: Path) -> dict[int, tuple[int, int]]:
    """Extract the index of a packed capture into `folder`; {page file number: (start, length) in the archive}."""
    try:
        with open_regular(archive) as file, zipfile.ZipFile(file) as packed:
            members = packed.infolist()
            _check_members(archive, members)
            spans = {}
            for member in members:
                match = _PAGE_FILE.match(member.filename)
                if match:
                    spans[int(match.group(1))] = (_data_start(archive, file, member), member.file_size)
            (folder / INDEX).write_bytes(packed.read(INDEX))
            return spans
    except OSError as problem:
        raise CaptureError(f"{archive} cannot be read: {why_unreadable(problem)}.") from None
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError, RuntimeError) as problem:
        raise CaptureError(f"{archive} is not a capture: {why_unreadable(problem)}.") from None


def _check_members(archive: Path, members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if INDEX not in names:
        raise CaptureError(f"{archive} is not a packed capture: it holds no {INDEX}.")
    locked = encrypted(members)
    if locked is not None:
        raise CaptureError(f"{archive} is not read: {locked}.")
    if len(set(names)) != len(names):
        raise CaptureError(f"{archive} holds two files of one name; it was not made by `inspector pack`.")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise CaptureError(
                f"{archive} holds compressed files; a packed capture is stored. Unpack it and open the folder."
            )
        if member.filename != INDEX and not _PAGE_FILE.match(member.filename):
            raise CaptureError(f"{archive} holds files that do not belong to a capture.")
        if member.filename == INDEX and member.file_size > MAX_INDEX_BYTES:
            raise CaptureError(
                f"{archive} has an index of {member.file_size} bytes; at most {MAX_INDEX_BYTES} are read."
            )


def _data_start(archive: Path, file: BufferedReader, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: its local header's name and extra field may differ from the directory's."""
    file.seek(member.header_offset)
    header = file.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise CaptureError(f"{archive} is damaged: {member.filename} has no header.")
    name, extra = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    return member.header_offset + _LOCAL_HEADER + name + extra
