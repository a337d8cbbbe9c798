"""Where a listener is, and the secret that it shares with those who send to it."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from inspector.capture.whole_file import replace_whole
from inspector.records.plain_text import shortened

SCHEME = "tcp://"
DEFAULT_PORT = 7411
VARIABLE = "INSPECTOR_SECRET"
LEAST_SECRET = 16
"""Characters of a secret: a shorter one could be guessed from one recorded handshake."""
MOST_SECRET = 1 << 16
"""Bytes of a secret's file: a device without an end is none. A pipe may be, as of a program that keeps passwords."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}\Z")


@dataclass(frozen=True, slots=True)
class Address:
    """A listener, and the name that the capture is to have there."""

    host: str
    port: int = DEFAULT_PORT
    name: str = "run"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{host}:{self.port}/{self.name}"


def address_of(text: str) -> Address:
    """The address in `tcp://host:port/name`; port and name may be left out. Raises ValueError."""
    rest, _, name = text.removeprefix(SCHEME).partition("/")
    host, port = rest, ""
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif ":" in rest:
        host, _, port = rest.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0
    known = not port or 0 < number < 65536
    if not text.startswith(SCHEME) or not host or not known or (name and not safe_name(name)):
        raise ValueError(
            f"{shortened(text, 100)!r} is no address of a listener; expected for example tcp://127.0.0.1:7411/run."
        )
    return Address(host, number or DEFAULT_PORT, name or "run")


def safe_name(name: str) -> bool:
    """Whether a name can be part of a folder's name everywhere."""
    return _NAME.match(name) is not None


def secret_of(given: str | bytes | Path | None) -> bytes:
    """A secret that was given, read from a file, or from the environment's INSPECTOR_SECRET. Raises ValueError."""
    found: str | bytes = os.environ.get(VARIABLE, "") if given is None else b""
    if isinstance(given, Path):
        try:
            with given.open("rb") as file:
                found = file.read(MOST_SECRET + 1)
        except OSError as problem:
            raise ValueError(f"The secret's file {given} cannot be read ({problem.strerror or problem}).") from None
    elif given is not None:
        found = given
    if len(found) > MOST_SECRET:
        raise ValueError(f"The secret has more than {MOST_SECRET:,} bytes; expected a line of text.")
    secret = (found.encode() if isinstance(found, str) else found).strip()
    if len(secret) < LEAST_SECRET:
        raise ValueError(
            f"The secret has {len(secret)} characters; expected at least {LEAST_SECRET}, "
            f"as secret=…, a file's Path, or in {VARIABLE}."
        )
    return secret


def secret_in(path: Path) -> bytes:
    """The secret in a file, which is made, private to its user, where it does not exist. Raises ValueError, OSError."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_name(f".{path.name[:40]}-{secrets.token_hex(4)}.part")
        replace_whole(made, f"{secrets.token_hex(32)}\n".encode(), synchronised=True)
        _take_name(made, path)
    return secret_of(path)


def _take_name(made: Path, path: Path) -> None:
    """Of two listeners that make one secret the first keeps it: half a secret, or none, is never at that name."""
    try:
        os.link(made, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        made.replace(path)
    finally:
        with suppress(OSError):
            made.unlink(missing_ok=True)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
