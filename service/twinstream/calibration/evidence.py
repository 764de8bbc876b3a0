"""What two runs hold, as it is compared so far, and what they do not decide.

Rules of this package: it is fed with all events of two runs and fetches nothing; whether two runs are equal
under a comparison file is asked of a function that its caller gives (`Verify`), and that is the comparison
itself. What is told from numbers of events has its threshold here, with the reason beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.decode.formats.envelope import opened
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, Path, path_text

FEWEST_EVENTS = 20
"""Fewer events of a side show no noise apart from chance, and no order."""
ALWAYS = 0.5
"""The share of pairs from which on a field counts as one that always differs: values may meet by chance."""
SELDOM = 0.1
"""The largest share of what a rule is told from that may contradict it: a real difference is no noise."""
FEWEST_SEEN = 10
"""Fewer differing pairs show no noise of a field."""
OFTEN = 0.05
"""The share of pairs from which on it is noise that a number differs by little, or an array in its order."""

PairedPlaces = tuple[int, int]
"""The indexes of two events, one of each run."""


class RunEvent(NamedTuple):
    """An event of a run: its record, its kind, what is compared of its value so far.

    `marked`: its headers say which attempt wrote it.
    """

    record: bytes
    kind: str
    value: Any
    marked: bool = False


class Runs(NamedTuple):
    """The events of both runs, in their order. `cut`: each may go on behind what was read."""

    left: Sequence[RunEvent]
    right: Sequence[RunEvent]
    cut: bool = False


class Subset(NamedTuple):
    """Some events of both runs, by index, in their order."""

    left: Sequence[int]
    right: Sequence[int]


Verify = Callable[[Spec, Subset], bool]
"""Whether these events of both runs are equal under a comparison file."""


class Undecided(Exception):  # noqa: N818 - a result
    """The runs do not tell, and nothing is proposed; the text is a sentence that says why and what helps."""


def bare_record(record: bytes) -> bytes:
    """The value alone of a record in an envelope, for a file that has ceased to name more of it."""
    value = opened(record).value
    assert value is not None, "what has no value is no event"
    return value


def can_be_named(path: Path) -> bool:
    """Whether a comparison file can name a member: not the value itself, nor one below an empty name."""
    return bool(path) and all(path)


def field_text(path: Path) -> str:
    r"""The path as a comparison file has it.

    >>> print(field_text(("$oid", "a.b")))
    \$oid.a\.b
    """
    text = path_text(path)
    return f"\\{text}" if text.startswith("$") else text


def scalars(value: Any, at: Path = ()) -> Iterator[tuple[Path, str | bytes]]:
    """The members that are plain values, with a key for each that is equal for equal ones; null is absent.

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
    """The plain members of some events, by path: one key for each event, None where it has no value."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.count = len(values)
        self._of: dict[Path, list[str | bytes | None]] = {}
        for place, value in enumerate(values):
            for path, key in scalars(value):
                column = self._of.get(path)
                if column is None:
                    column = self._of[path] = [None] * self.count
                column[place] = key

    @property
    def paths(self) -> list[Path]:
        """The paths that any event has."""
        return list(self._of)

    def __getitem__(self, path: Path) -> list[str | bytes | None]:
        return self._of.get(path) or [None] * self.count

    def is_key(self, path: Path) -> bool:
        """Whether every event has a value there that can name something: text or a whole number."""
        return all(key is not None and not _is_fraction(key) for key in self[path])

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


def has(value: Any, path: Path) -> bool:
    """Whether there is a member at a path."""
    return next(members(value, path), ABSENT) is not ABSENT
