"""Finds the partitions of recorded input, which are needed before the first event.

A barrier may have a copy in each partition (`copies: per_partition`), so an epoch is complete only when all
partitions have delivered their copy. Kafka knows the partitions of a topic; for recorded input they are found
by reading it twice, the second time from a temporary file.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, cast

from twinstream.core.events import Side
from twinstream.ports import Line

IN_MEMORY_BYTES = 64 << 20
"""Input up to this size needs no temporary file."""

Partitions = tuple[frozenset[int], frozenset[int]]
"""The partitions of the reference and of the candidate."""


def with_partitions(lines: Iterable[Line]) -> tuple[Partitions, Iterator[Line]]:
    """The partitions of all events, and the lines again. Complexity: O(1) memory beyond `IN_MEMORY_BYTES`."""
    spool = cast("IO[bytes]", SpooledTemporaryFile(IN_MEMORY_BYTES))  # noqa: SIM115 - closed when read
    found: tuple[set[int], set[int]] = (set(), set())
    for line in lines:
        if line.record is not None:
            found[line.side].add(line.partition)
        marshal.dump((int(line.side), *line[1:-1], list(line.headers)), spool)
    spool.seek(0)
    return (frozenset(found[0]), frozenset(found[1])), _read_again(spool)


def _read_again(spool: IO[bytes]) -> Iterator[Line]:
    with spool:
        while True:
            try:
                side, *rest = marshal.load(spool)
            except EOFError:
                return
            yield Line(Side(side), *rest)
