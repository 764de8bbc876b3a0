"""Reads recorded input line by line: plain files, `.gz`, `.zst`, and `-` for standard input.

Rules of this file:

- Memory does not grow with the size of a file: it is read in blocks, and a line longer than `LINE_BYTES` is
  refused.
- A compressed file that ends too early is refused. The missing end would look like a difference.
- Every failure is an InputError of one sentence, since each is about a file that a user named.
"""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import cast

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
        number, pieces, size = 1, [b""], 0  # Pieces of a line are joined once, however many it has.
        for block in self._blocks():
            if b"\n" in block:
                *whole, rest = b"".join((*pieces, block)).split(b"\n")
                for line in whole:
                    if stripped := self._checked(line, number):
                        yield number, stripped
                    number += 1
                pieces, size = [rest], len(rest)
            else:
                pieces.append(block)
                size += len(block)
            if size > LINE_BYTES:
                raise InputError(self.name, number, f"is longer than {LINE_BYTES >> 20} MiB")
        if stripped := self._checked(b"".join(pieces), number):
            yield number, stripped

    def _checked(self, line: bytes, number: int) -> bytes:
        if number == 1:
            for mark, what in _MARKS.items():
                if line.startswith(mark):
                    raise InputError(self.name, 1, f"begins with {what}; save the file as plain UTF-8")
        return line.strip(_SPACE)

    def _blocks(self) -> Iterator[bytes]:
        """The unpacked content. Raises InputError if it cannot be read to its end."""
        try:
            with self._opened() as raw:
                for block in _unpacked(self.name, raw):
                    self.taken = raw.tell() if self.size is not None else self.taken + len(block)
                    yield block
                return
        except EOFError:
            problem = "ends in the middle of its packed data; was it copied before it was complete?"
        except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            problem = f"is damaged, or is no {Path(self.name).suffix} file: {error}"
        except (OSError, ValueError) as error:
            problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(self.name, None, problem)

    def _opened(self) -> AbstractContextManager[BufferedIOBase]:
        if self.name != STANDARD_INPUT:
            return Path(self.name).open("rb")
        if sys.stdin is None:
            raise InputError(self.name, None, "standard input is closed")
        return nullcontext(cast("BufferedIOBase", sys.stdin.buffer))


def _unpacked(name: str, raw: BufferedIOBase) -> Iterator[bytes]:
    """The content of a file, in blocks. Raises EOFError if a packed one ends too early, or has no byte."""
    if name.endswith((".gz", ".zst")) and not cast("BufferedReader", raw).peek(1):
        raise EOFError
    if name.endswith(".zst"):
        return _frames(raw)
    stream = gzip.GzipFile(fileobj=raw) if name.endswith(".gz") else raw
    return iter(lambda: stream.read1(BLOCK_BYTES), b"")


def _frames(packed: BufferedIOBase) -> Iterator[bytes]:
    """The content of all frames; the library's own reader takes a truncated file as complete."""
    frame, inside, left = zstandard.ZstdDecompressor().decompressobj(), False, b""
    while chunk := left or packed.read(PACKED_BYTES):
        unpacked = frame.decompress(chunk)
        for begin in range(0, len(unpacked), BLOCK_BYTES):
            yield unpacked[begin : begin + BLOCK_BYTES]
        inside, left = not frame.eof, b""
        if frame.eof:
            left = frame.unused_data
            frame = zstandard.ZstdDecompressor().decompressobj()
    if inside:
        raise EOFError
