"""Messages over a TCP connection between two that know one secret.

The handshake: each side sends 32 random bytes and proves by HMAC-SHA256 over both that it knows the secret, which never
travels. From then on each message is its length (4 bytes), its kind (1), its body, and an HMAC over direction, number,
kind and body: nobody in between can put one in, change one, leave one out or repeat one. Nothing is encrypted.

Every read has a time by which it must be complete, and a bound on its length that is checked before anything is read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from enum import IntEnum

GREETING = b"inspector listen 2\n"
NONCE, PROOF = 32, 32
HANDSHAKE_SECONDS = 5.0
MESSAGE_SECONDS = 30.0
"""A message whose first byte has arrived is complete after so long, or the connection ends."""
MAX_BODY = 17 << 20
_HEAD = struct.Struct("!IB")


class WireError(Exception):
    """The connection is of no more use."""


class RefusedError(WireError):
    """The other side does not know the secret."""


class Kind(IntEnum):
    """What a message is."""

    HELLO = 1
    WELCOME = 2
    RECORD = 3
    PAGE = 4
    KEPT = 5
    ALIVE = 6
    FAULT = 7
    END = 8
    CONTROL = 9
    FILE = 10


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was read."""

    kind: Kind
    body: bytes


class Wire:
    """One side of a connection after the handshake. One thread reads and one writes at a time."""

    def __init__(self, connection: socket.socket, key: bytes, *, listens: bool) -> None:
        self._connection, self._key = connection, key
        self._out, self._in = (b"L", b"S") if listens else (b"S", b"L")
        self._sent = self._received = 0

    def send(self, kind: Kind, body: bytes = b"") -> None:
        """Send a message. Raises WireError."""
        code = self._code(self._out, self._sent, kind, body)
        self._sent += 1
        try:
            self._connection.settimeout(MESSAGE_SECONDS)
            self._connection.sendall(_HEAD.pack(len(body), kind) + body + code)
        except OSError as problem:
            raise WireError(f"the connection was lost ({problem})") from None

    def receive(self, patience: float, most: int = MAX_BODY) -> Message | None:
        """The next message; None where none begins within so many seconds. Raises WireError."""
        first = self._first_byte(patience)
        if first is None:
            return None
        end = time.monotonic() + MESSAGE_SECONDS
        length, kind = _HEAD.unpack(first + read_exactly(self._connection, _HEAD.size - 1, end))
        if length > most or kind not in {int(one) for one in Kind}:
            raise WireError(f"a message of kind {kind} with {length} bytes arrived; at most {most} are read")
        body = read_exactly(self._connection, length, end)
        code = read_exactly(self._connection, PROOF, end)
        if not hmac.compare_digest(code, self._code(self._in, self._received, kind, body)):
            raise WireError("a message that does not carry the code of the other side arrived")
        self._received += 1
        return Message(Kind(kind), body)

    def _first_byte(self, patience: float) -> bytes | None:
        try:
            self._connection.settimeout(patience)  # 0: what is there already
            first = self._connection.recv(1)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError as problem:
            raise WireError(f"the connection was lost ({problem})") from None
        if not first:
            raise WireError("the other side closed the connection")
        return first

    def _code(self, direction: bytes, number: int, kind: int, body: bytes) -> bytes:
        code = hmac.new(self._key, direction + struct.pack("!QB", number, kind), hashlib.sha256)
        code.update(body)
        return code.digest()


def read_exactly(connection: socket.socket, length: int, end: float) -> bytes:
    """So many bytes by a time of `time.monotonic`; memory grows with what arrives. Raises WireError."""
    found = bytearray()
    while len(found) < length:
        left = end - time.monotonic()
        if left <= 0:
            raise WireError("the other side is too slow")
        try:
            connection.settimeout(left)
            piece = connection.recv(min(length - len(found), 1 << 16))
        except TimeoutError:
            raise WireError("the other side is too slow") from None
        except OSError as problem:
            raise WireError(f"the connection was lost ({problem})") from None
        if not piece:
            raise WireError("the other side closed the connection")
        found += piece
    return bytes(found)


def _proof(secret: bytes, role: bytes, listener: bytes, sender: bytes) -> bytes:
    return hmac.digest(secret, b"inspector " + role + listener + sender, "sha256")


def as_listener(connection: socket.socket, secret: bytes) -> Wire:
    """The listener's side of the handshake. Raises WireError; RefusedError for a wrong secret."""
    end = time.monotonic() + HANDSHAKE_SECONDS
    own = secrets.token_bytes(NONCE)
    _send(connection, GREETING + own)
    answer = read_exactly(connection, NONCE + PROOF, end)
    other, proof = answer[:NONCE], answer[NONCE:]
    if not hmac.compare_digest(proof, _proof(secret, b"sender", own, other)):
        _send(connection, bytes(PROOF))  # a proof of nothing: the sender is told, and learns nothing else
        raise RefusedError("the secret is another one")
    _send(connection, _proof(secret, b"listener", own, other))
    return Wire(connection, _proof(secret, b"key", own, other), listens=True)


def as_sender(connection: socket.socket, secret: bytes) -> Wire:
    """The sender's side. Raises WireError; RefusedError where the listener does not prove that it knows the secret."""
    end = time.monotonic() + HANDSHAKE_SECONDS
    greeting = read_exactly(connection, len(GREETING) + NONCE, end)
    if not greeting.startswith(GREETING):
        raise RefusedError("what answers there is no listener of this version of inspector")
    other, own = greeting[len(GREETING) :], secrets.token_bytes(NONCE)
    _send(connection, own + _proof(secret, b"sender", other, own))
    if not hmac.compare_digest(read_exactly(connection, PROOF, end), _proof(secret, b"listener", other, own)):
        raise RefusedError("the listener has another secret")
    return Wire(connection, _proof(secret, b"key", other, own), listens=False)


def _send(connection: socket.socket, data: bytes) -> None:
    try:
        connection.settimeout(HANDSHAKE_SECONDS)
        connection.sendall(data)
    except OSError as problem:
        raise WireError(f"the connection was lost ({problem})") from None
