"""Messages between two processes: a header in JSON, raw bytes, and sometimes an open file.

Both sides use it, so standard library only, and little of it, since a worker's start waits for each
import: what `json` imports would make it half as long again. A length of four bytes, the header,
and as many blobs as its "blobs" has sizes. Where a command's "file" is true, one more byte follows,
and with it an open file.

A command has a "token" that nobody can guess, and what answers it has the same.
"""

from __future__ import annotations

import _json  # what `json` is made of
import os
import struct

TYPE_CHECKING = False  # as in `typing`, which would have to be imported
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Read = Callable[[int], bytes]  # exactly so many bytes, or fewer at the end
    Write = Callable[[bytes], object]  # all of them

HEADER = 1 << 24  # bytes, at most
PIECE = 1 << 20  # bytes of a read
ACCESS, LAUNCH = 32, 104  # bytes of the runtime's records: emulator/runtime/trace.h holds them

Header = dict[str, "Any"]  # as JSON has it
Message = tuple[Header, list[bytes]]


class Garbled(Exception):
    """What came is no message, or more than was asked for."""


class _AsJson:
    """How `json.loads` reads, for its scanner."""

    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant = float, int, float


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


_scan = _json.make_scanner(_AsJson)  # type: ignore[arg-type]  # it looks at attributes
_pieces = _json.make_encoder(
    None, _refuse, _json.encode_basestring_ascii, None, ":", ",", False, False, True
)


def _loads(text: str) -> Any:
    """As `json.loads`, of what `_pieces` makes: without space around. Raises ValueError."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    if end < len(text):
        raise ValueError("more than one value of JSON")
    return value


def send(write: Write, header: Header, blobs: Sequence[bytes] = ()) -> None:
    """Write a message. Raises OSError where nobody listens."""
    text = "".join(_pieces({**header, "blobs": [len(blob) for blob in blobs]}, 0)).encode()
    write(struct.pack("<I", len(text)) + text)
    for blob in blobs:
        write(blob)


def receive(read: Read, most: int | None = None) -> Message | None:
    """The next message; None where there is no other. With more than `most` bytes of blobs, or
    none that is one: Garbled."""
    if not (length := read(4)):
        return None
    if len(length) < 4 or (size := struct.unpack("<I", length)[0]) > HEADER:
        raise Garbled
    try:
        header = _loads(read(size).decode())
        sizes = header.pop("blobs")
        if not all(isinstance(n, int) and n >= 0 for n in sizes):
            raise Garbled
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Garbled from None
    if most is not None and sum(sizes) > most:
        raise Garbled
    return header, [_whole(read, size) for size in sizes]


def _whole(read: Read, size: int) -> bytes:
    if len(blob := read(size)) < size:
        raise Garbled
    return blob


# --- inside


class Channel:
    """What a process apart has of its channel to the one that asks: an open file."""

    def __init__(self, file: int) -> None:
        self._file, self._token = file, ""

    def command(self) -> Header | None:
        """The next command, with its "blobs", and a "file" where one is handed over. None where
        nobody asks any more."""
        if not (message := receive(self._read)):
            return None
        header, blobs = message
        self._token = header.pop("token")
        if header.pop("file"):
            header["file"] = self._take()
        return {**header, "blobs": blobs}

    def tell(self, header: Header, blobs: Sequence[bytes] = ()) -> None:
        """Answer it."""
        send(self._write, {**header, "token": self._token}, blobs)

    def _read(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size and (piece := os.read(self._file, min(size - len(got), PIECE))):
            got += piece
        return bytes(got)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def _take(self) -> int:
        import socket  # most processes do without

        with socket.socket(fileno=os.dup(self._file)) as taking:
            return socket.recv_fds(taking, 1, 1)[1][0]
