"""Reads recorded input line by line: plain files, `.gz`, `.zst`, and `-` for standard input.

Rules of this file:

- Memory does not grow with the size of a file: it is read in blocks, and a line longer than `LINE_BYTES` is
  refused.
- A compressed file that ends too early is refused. The missing end would look like a difference.
- Every failure is an InputError of one sentence, since each is about a file that a user named.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from twinstream.errors import InputError

BLOCK_BYTES = 1 << 20
PACKED_BYTES = 1 << 14
"""Read from a .zst file at a time: it may unpack to thousands of times as much."""
LINE_BYTES = 64 << 20
"""Kafka refuses records of more than 1 MiB by default; a longer line cannot hold one."""
STANDARD_INPUT = "-"
_SPACE = b" \t\r\n"
"""The white space of JSON; Python strips more."""
_MARKS = {b"\xef\xbb\xbf": "a byte order mark", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class InputFile:
    """A file that is read once. `name` is as the user gave it.

    `size` is its size on disk in bytes, None if unknown; `taken` is how many of those were read.
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        self.size = self._size()
        self.taken = 0

    def _size(self) -> int | None:
        try:
            found = os.stat(self.name)  # noqa: PTH116 - `-` is a name, too
        except (OSError, ValueError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def same_as(self, other: InputFile) -> bool:
        """Whether both names mean the same file or stream."""
        if self.name == other.name == STANDARD_INPUT:
            return True
        try:
            return os.path.samestat(self._stat(), other._stat())
        except (OSError, ValueError):
            return False

    def _stat(self) -> os.stat_result:
        return os.stat(0 if self.name == STANDARD_INPUT else self.name)  # noqa: PTH116

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank, stripped of white space, numbered from 1.

        Raises InputError if the file cannot be read to its end, does not begin like a UTF-8 text, or has a
        line of more than `LINE_BYTES`.
        """
        with self._opened() as (raw, stream):
            number, rest = 1, b""
            while block := self._block(raw, stream):
                *whole, rest = (rest + block).split(b"\n")
                for line in whole:
                    if stripped := self._checked(line, number):
                        yield number, stripped
                    number += 1
                if len(rest) > LINE_BYTES:
                    raise InputError(self.name, number, f"is longer than {LINE_BYTES >> 20} MiB")
            if stripped := self._checked(rest, number):
                yield number, stripped

    def _checked(self, line: bytes, number: int) -> bytes:
        if number == 1:
            for mark, what in _MARKS.items():
                if line.startswith(mark):
                    raise InputError(self.name, 1, f"begins with {what}; save the file as plain UTF-8")
        return line.strip(_SPACE)

    @contextmanager
    def _opened(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """The file on disk, and its unpacked content."""
        if self.name == STANDARD_INPUT:
            if sys.stdin is None:
                raise InputError(self.name, None, "standard input is closed")
            yield sys.stdin.buffer, sys.stdin.buffer
            return
        try:
            raw = Path(self.name).open("rb")  # noqa: SIM115 - closed below; only opening it may fail here
        except (OSError, ValueError) as error:
            raise InputError(self.name, None, f"cannot be read: {_problem(error)}") from None
        with raw:
            yield raw, _unpacked(self.name, raw)

    def _block(self, raw: BinaryIO, stream: BinaryIO) -> bytes:
        """The next block of the content; empty at the end."""
        try:
            block = stream.read1(BLOCK_BYTES)  # type: ignore[attr-defined]
        except EOFError:
            problem = "ends in the middle of its packed data; was it copied before it was complete?"
            raise InputError(self.name, None, problem) from None
        except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            suffix = Path(self.name).suffix
            problem = f"is damaged, or is no {suffix} file: {_problem(error)}"
            raise InputError(self.name, None, problem) from None
        except OSError as error:
            raise InputError(self.name, None, f"cannot be read: {_problem(error)}") from None
        self.taken = raw.tell() if self.size is not None else self.taken + len(block)
        return cast("bytes", block)


def _problem(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _unpacked(name: str, raw: BinaryIO) -> BinaryIO:
    if name.endswith(".gz"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=raw))
    if name.endswith(".zst"):
        return cast("BinaryIO", io.BufferedReader(_ZstdReader(raw), BLOCK_BYTES))
    return raw


class _ZstdReader(io.RawIOBase):
    """Unpacks all frames of a .zst file; the library's own reader accepts a truncated one as complete."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside = False
        self._left = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """True: it can only be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill `buffer` with the result of one step; 0 at the end. Raises EOFError inside a frame."""
        while not self._ready:
            chunk = self._left or self._packed.read(PACKED_BYTES)
            if not chunk:
                if self._inside:
                    raise EOFError
                return 0
            self._unpack(chunk)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unpack(self, chunk: bytes) -> None:
        self._ready = memoryview(self._frame.decompress(chunk))
        self._inside, self._left = not self._frame.eof, b""
        if self._frame.eof:
            self._left = self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
