"""Messages between a judge and the process of a model: a header in JSON, then raw bytes.

Standard library only: both sides use it. A length of four bytes, the header, and as many blobs as
its "blobs" has sizes.
"""

import json
import socket
import struct
from collections.abc import Callable, Sequence

HEADER = 1 << 20  # bytes, at most


class Garbled(Exception):
    """What came is no message, or more than was asked for."""


def send(to: socket.socket, header: dict, blobs: Sequence[bytes] = ()) -> None:
    """Write a message. Raises OSError where nobody listens."""
    text = json.dumps({**header, "blobs": [len(blob) for blob in blobs]}).encode()
    to.sendall(struct.pack("<I", len(text)) + text)
    for blob in blobs:
        to.sendall(blob)


def receive(
    read: Callable[[int], bytes], most: int | None = None
) -> tuple[dict, list[bytes]] | None:
    """The next message, by `read`, which gives exactly so many bytes, or fewer at the end. None
    where there is no other. With more than `most` bytes of blobs, or none that is one: Garbled."""
    if not (length := read(4)):
        return None
    if len(length) < 4 or (size := struct.unpack("<I", length)[0]) > HEADER:
        raise Garbled
    try:
        header = json.loads(read(size))
        sizes = header.pop("blobs")
        if not all(isinstance(n, int) and n >= 0 for n in sizes):
            raise Garbled
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Garbled from None
    if most is not None and sum(sizes) > most:
        raise Garbled
    return header, [_whole(read, size) for size in sizes]


def _whole(read: Callable[[int], bytes], size: int) -> bytes:
    if len(blob := read(size)) < size:
        raise Garbled
    return blob


def reader(connection: socket.socket) -> Callable[[int], bytes]:
    """What `receive` reads with."""

    def read(size: int) -> bytes:
        got = bytearray()
        while len(got) < size and (piece := connection.recv(min(size - len(got), 1 << 20))):
            got += piece
        return bytes(got)

    return read
