"""The events of two runs as compared so far, and the error for questions that they do not decide.

Rules of this package: it is fed with all events of two runs and fetches nothing. The caller gives a function
(`Verify`) that says whether two runs are equal under a comparison file; it is the comparison itself. Every
conclusion from numbers of events has a threshold, with its reason beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from twinstream.core.events import Side
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.decode.formats.envelope import opened
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import Path, path_text, read

FEWEST_EVENTS = 20
"""With fewer events of a side, neither noise nor an order can be told from chance."""
ALWAYS = 0.5
"""From this share of pairs on, a field counts as always different: its values may be equal by chance."""
SELDOM = 0.1
"""At most this share of a rule's evidence may contradict it: a real difference is no noise."""
FEWEST_SEEN = 10
"""Fewer differing pairs do not show that a field is noisy."""
OFTEN = 0.05
"""From this share of pairs on, a small difference of a number or another order of an array is noise."""

PairedPlaces = tuple[int, int]
"""The indexes of two events, one of each run."""


class RunEvent(NamedTuple):
    """An event of a run: its record, its kind, and the compared part of its value so far.

    `marked`: its headers name the attempt that wrote it. `partition`: events of several have no order.
    """

    record: bytes
    kind: str
    value: Any
    marked: bool = False
    partition: int = 0


class Runs(NamedTuple):
    """The events of both runs, in their order. `cut`: the runs that may continue after the events read."""

    left: Sequence[RunEvent]
    right: Sequence[RunEvent]
    cut: Set[Side] = frozenset()


class Subset(NamedTuple):
    """Some events of both runs, by index, in their order."""

    left: Sequence[int]
    right: Sequence[int]


Verify = Callable[[Spec, Subset], bool]
"""Whether these events of both runs are equal under a comparison file."""


class Undecided(Exception):  # noqa: N818 - a result
    """The runs do not decide, so nothing is proposed; the text is a sentence that says why and what helps."""


def bare_record(record: bytes) -> bytes:
    """The value alone of a record in an envelope, for a file that no longer names other parts of it."""
    value = opened(record).value
    assert value is not None, "what has no value is no event"
    return value


def can_be_named(path: Path) -> bool:
    """Whether a comparison file can name a member: not the whole value, nor a member below an empty name."""
    return bool(path) and all(path)


def field_text(path: Path) -> str:
    r"""The path as a comparison file has it.

    >>> print(field_text(("$oid", "a.b")))
    \$oid.a\.b
    """
    text = path_text(path)
    return f"\\{text}" if text.startswith("$") else text


def scalars(value: Any, at: Path = ()) -> Iterator[tuple[Path, str | bytes]]:
    """The members that are plain values, each with a key that is equal for equal values; null is absent.

    >>> list(scalars({"a": 1, "b": {"c": "x", "d": None}, "e": [1]}))
    [(('a',), b'1'), (('b', 'c'), 'x')]
    """
    if type(value) is dict:
        for name, member in value.items():
            yield from scalars(member, (*at, name))
    elif type(value) is str:
        yield at, value
    elif value is not None and type(value) is not list:
        yield at, canonical_value(value)


class Members:
    """The plain members of some events, by path: one key for each event, None where it is null or absent."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.count = len(values)
        self._of: defaultdict[Path, list[str | bytes | None]] = defaultdict(lambda: [None] * self.count)
        self._values = values
        for place, value in enumerate(values):
            for path, key in scalars(value):
                self._of[path][place] = key

    @property
    def paths(self) -> list[Path]:
        """The paths that any event has."""
        return list(self._of)

    def __getitem__(self, path: Path) -> list[str | bytes | None]:
        return self._of.get(path) or [None] * self.count

    def is_key(self, path: Path) -> bool:
        """Whether every event has a value there that can name something: a text or a whole number."""
        return all(key is not None and not _is_fraction(key) for key in self[path])

    def is_order_key(self, path: Path) -> bool:
        """Whether every event has such a value there, or null, which an order takes for a value."""
        return all(
            read(value, path) is None if key is None else not _is_fraction(key)
            for key, value in zip(self[path], self._values, strict=True)
        )

    def rows(self, paths: Sequence[Path]) -> list[tuple[str | bytes | None, ...]]:
        """The keys at some paths, event by event."""
        return list(zip(*(self[path] for path in paths), strict=True)) if paths else [()] * self.count


def _is_fraction(key: str | bytes) -> bool:
    return type(key) is bytes and (b"." in key or b"e-" in key)


def members(value: Any, path: Path) -> Iterator[Any]:
    """The members at a path, through arrays on the way and at its end."""
    if type(value) is list:
        for item in value:
            yield from members(item, path)
    elif not path:
        yield value
    elif type(value) is dict and path[0] in value:
        yield from members(value[path[0]], path[1:])
