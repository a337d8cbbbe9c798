"""One file to mail: a stored (never compressed) zip of a capture, which opens directly by memory map."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import tempfile
import zipfile
import zlib
from pathlib import Path

from inspector.capture.layout import INDEX, PACKED_SUFFIX, SUFFIX, CaptureError
from inspector.capture.target import HEADER_BYTES, has_our_id, is_ours, page_files

_PAGE_FILE = re.compile(r"pages-(\d{4})\.bin\Z")
MAX_INDEX_BYTES = 1 << 30
_LOCAL_HEADER = 30


def pack(path: Path | str, to: Path | str | None = None, *, overwrite: bool = False) -> Path:
    """Write the capture at `path` as one file and return where. A run in progress is packed as it stands.

    With `overwrite` a packed capture that lies there is replaced; any other file never is. Raises CaptureError.
    """
    source = Path(path)
    target = Path(to) if to is not None else source.with_name(source.name.removesuffix(SUFFIX) + PACKED_SUFFIX)
    if not is_ours(source / INDEX):
        raise CaptureError(f"There is no capture at {source} to pack.")
    _check_file(target, overwrite)
    with tempfile.TemporaryDirectory(prefix="inspector-") as private:
        index = Path(private) / INDEX
        numbers = _copy_index(source / INDEX, index)
        partial = target.with_name(f".{target.name[:40]}-{secrets.token_hex(4)}")
        try:
            with zipfile.ZipFile(partial, "x", zipfile.ZIP_STORED, allowZip64=True) as archive:
                archive.write(index, INDEX)
                for number, page in sorted(page_files(source).items()):
                    if number in numbers:
                        archive.write(page, page.name)
            partial.replace(target)
        except OSError as problem:
            raise CaptureError(f"Cannot write {target}: {problem.strerror or problem}.") from None
        finally:
            partial.unlink(missing_ok=True)
    return target


def _check_file(target: Path, overwrite: bool) -> None:
    """Raise CaptureError where a file is in the way."""
    if not os.path.lexists(target):
        return
    if not _is_packed(target):
        raise CaptureError(f"{target} exists and is no packed capture, so it is not replaced; choose another name.")
    if not overwrite:
        raise CaptureError(
            f"{target} already exists; choose another name, or replace it with --overwrite (overwrite=True)."
        )


def _is_packed(path: Path) -> bool:
    """Whether a file is a packed capture: an archive that holds an index of ours."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive, archive.open(INDEX) as index:
            return has_our_id(index.read(HEADER_BYTES))
    except (zipfile.BadZipFile, zlib.error, OSError, KeyError, ValueError, RuntimeError, EOFError):
        return False


def _copy_index(source: Path, target: Path) -> set[int]:
    """A consistent copy, whatever the writer does meanwhile, in a journal mode that opens read-only.

    Returns the numbers of the page files that it speaks of.
    """
    reader = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    copy = sqlite3.connect(target)
    try:
        reader.backup(copy)
        copy.execute("DELETE FROM lease")
        copy.commit()
        copy.execute("PRAGMA journal_mode=DELETE")
        return {number for (number,) in copy.execute("SELECT DISTINCT file FROM pages")}
    except sqlite3.Error as problem:
        raise CaptureError(f"The index of {source.parent.name} cannot be read ({problem}).") from None
    finally:
        reader.close()
        copy.close()


def unpack_index(archive: Path, folder: Path) -> dict[int, tuple[int, int]]:
    """Extract the index of a packed capture into `folder`; {page file number: (start, length) in the archive}."""
    try:
        with zipfile.ZipFile(archive) as packed:
            members = packed.infolist()
            _check_members(archive, members)
            spans = {}
            for member in members:
                match = _PAGE_FILE.match(member.filename)
                if match:
                    spans[int(match.group(1))] = (_data_start(archive, member), member.file_size)
            (folder / INDEX).write_bytes(packed.read(INDEX))
            return spans
    except (zipfile.BadZipFile, OSError, KeyError, NotImplementedError, EOFError) as problem:
        raise CaptureError(f"{archive} is not a capture: {problem}.") from None


def _check_members(archive: Path, members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if INDEX not in names:
        raise CaptureError(f"{archive} is not a packed capture: it holds no {INDEX}.")
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


def _data_start(archive: Path, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: its local header's name and extra field may differ from the directory's."""
    with archive.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise CaptureError(f"{archive} is damaged: {member.filename} has no header.")
    name, extra = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    return member.header_offset + _LOCAL_HEADER + name + extra
