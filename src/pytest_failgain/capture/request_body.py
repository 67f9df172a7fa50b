"""A request's body as the client meant it, however it was sent."""

from __future__ import annotations

import io
import zlib
from email.message import Message

LARGEST_BODY = 64 * 1024 * 1024
_LONGEST_LINE = 1024


class BodyError(Exception):
    """A body that can't be taken, with the HTTP status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def read_body(headers: Message, stream: io.BufferedIOBase, limit: int = LARGEST_BODY) -> bytes:
    """The body behind `headers`, in one piece and uncompressed; b"" where there is none.

    Raises:
        BodyError: when it is longer than `limit` bytes, broken, or compressed in an unknown way.
    """
    if "chunked" in (headers.get("Transfer-Encoding") or "").lower():
        body = _chunked(stream, limit)
    else:
        body = _exactly(stream, _length(headers.get("Content-Length") or "0", 10, limit))
    return _uncompressed(body, (headers.get("Content-Encoding") or "").strip().lower(), limit)


def _chunked(stream: io.BufferedIOBase, limit: int) -> bytes:
    pieces, taken = [], 0
    while True:
        size = _length(_line(stream).partition(";")[0].strip(), 16, limit)
        taken += size
        if taken > limit:
            raise _too_long(limit)
        if size == 0:
            break
        pieces.append(_exactly(stream, size))
        _line(stream)
    while _line(stream).strip():
        pass  # trailers, which say nothing about the body
    return b"".join(pieces)


def _line(stream: io.BufferedIOBase) -> str:
    line = stream.readline(_LONGEST_LINE)
    if len(line) >= _LONGEST_LINE:
        raise BodyError(400, "a line between the chunks of the body is too long")
    return line.decode("latin-1")


def _length(text: str, base: int, limit: int) -> int:
    # int() would also take signs, spaces and underscores.
    digits = "0123456789abcdef"[:base]
    if not text or text.lower().strip(digits):
        raise BodyError(400, f"the body's length {text[:40]!r} is no number")
    if len(text) > 16 or int(text, base) > limit:
        raise _too_long(limit)
    return int(text, base)


def _exactly(stream: io.BufferedIOBase, size: int) -> bytes:
    body = stream.read(size)
    if len(body) < size:
        raise BodyError(400, f"the body broke off after {len(body)} of {size} bytes")
    return body


def _uncompressed(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise BodyError(415, f"the body is compressed as {encoding!r}; send it plain or as gzip")
    return unpacked(body, limit)


def unpacked(body: bytes, limit: int = LARGEST_BODY) -> bytes:
    """What gzip, or zlib as "deflate", packed.

    Raises:
        BodyError: when it is broken, or unpacks to more than `limit` bytes.
    """
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # either header
    try:
        whole = unpacking.decompress(body, limit + 1)
    except zlib.error as error:
        raise BodyError(400, f"the compressed body is broken: {error}") from None
    if len(whole) > limit:
        raise _too_long(limit)
    if not unpacking.eof:
        raise BodyError(400, "the compressed body broke off")
    return whole


def _too_long(limit: int) -> BodyError:
    return BodyError(413, f"the body is longer than {limit} bytes")
