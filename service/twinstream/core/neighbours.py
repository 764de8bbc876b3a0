"""Neighbours: what shards by partition tell each other, so that none takes a crossing for a difference.

A shard by partition sees its own partitions only. An event *crosses* when the candidate writes it into a
partition of another shard than the reference: each of two shards then has one half of a pair. To the one,
an event of the reference has no partner, to the other one of the candidate; and where the order relates
them to others, each takes that for a proof. One matcher would have paired them.

Let the key of an event be what it would be dealt by (`sharding.key_of`): events that may be dependent or
equal have one key. If all events of a key, of both sides, are in one shard, it finds what one matcher
would find.

1. *A difference counts when its key is in no other shard.* Until then it is held, and the shard asks the
   others for its key. A neighbour answers when it has read all that stood in its partitions when it heard
   the question, from what waits there: if the key crosses into it, it has halves that nothing pairs. If
   none has any, one matcher that reads the topics in this order has proven the difference before anything
   crosses.
   Barriers with a copy in each partition are dealt with it. An event of the epoch may still come to a
   neighbour that has not passed as many barriers as the one that asks, so it waits until it has. The
   copies of one barrier have to be equal, as with one matcher: so each shard tells the latest it has
   passed. A difference between barriers stands in every shard alike, and so crosses nothing.
2. *Events that depend on nothing* prove nothing, since no clock may prove by partition. Both halves
   become overdue. Each shard tells what is overdue there; the same form, overdue on the one side here and
   on the other side there, crosses.
3. *A key in several shards on both sides*, so that all pairs keep their shard, is a hole to one matcher,
   too. It is found by a sample of the keys: the smallest of a hash, so that all shards sample the same
   ones. The sample also shows at once that the versions deal all their keys differently.
4. *Time* is that of the whole side: each shard tells when its partitions were written to. So events
   become overdue also where nothing comes to a partition while others go on, as they do with one matcher.
   Of times that one has read quicker than it tells them, some are not told; then events become overdue
   later.

What crosses is a hole. A shard that has one itself answers nothing, since it may have lost what is asked
for: a doubt never becomes a proof.

Rules of this file: pure; a note is plain data. Only notes that were replaced since this shard began are
believed: the last one of a process that is gone stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from heapq import nsmallest
from typing import Any, NamedTuple

from twinstream.core.events import Form, Side
from twinstream.core.orders import BARRIER
from twinstream.core.sharding import KeyOf, Offsets, Shard

Note = Mapping[str, Any]
SAMPLED = 256
"""Keys in a sample; each is 16 bytes of a note."""
TOLD = 500
"""Keys that are asked for, and overdue forms of a side that are told, at a time: one is enough."""
CURE = "so the work cannot be divided by partition: begin anew with `--shard-by key`"


HASHED = 16
"""The characters of a hash."""
BARRIERS, NOWHERE = "barriers", ""
"""What is asked for in the place of a barrier, and what it crosses with."""


def hashed(key: bytes, secret: bytes = b"") -> str:
    """A key as notes have it: 64 bits, so that two keys are taken for one once in many lives.

    The secret, of at most 64 bytes, is that of all shards: without it nobody finds the key by trying.
    """
    return blake2b(key, digest_size=8, key=secret).hexdigest()


def facing(key: str) -> str:
    """What crosses with a key: itself, or the same of the other side."""
    if key == BARRIERS:
        return NOWHERE
    return key if len(key) == HASHED else f"{key[:HASHED]}{Side(int(key[HASHED:])).other.value}"


class Sample:
    """Some of the keys that were met: those with the smallest hashes."""

    def __init__(self, secret: bytes = b"") -> None:
        self.keys: set[str] = set()
        self._secret = secret
        self._below = "g"  # behind every hash

    def note(self, key: bytes) -> None:
        """Note that an event of a key was met. Complexity: about 1 µs."""
        if (name := hashed(key, self._secret)) < self._below:
            self.keys.add(name)
            if len(self.keys) > 2 * SAMPLED:
                self.keys = set(nsmallest(SAMPLED, self.keys))
                self._below = max(self.keys)


class Asking:
    """The differences of a shard that wait for the word of its neighbours: since when, and their keys.

    `key_of` is what events are dealt by, `classed` whether that is a class of dependent events. `lost`: what
    is held was restored with keys of another secret, so that nobody can be asked for it any more.
    """

    def __init__(self, key_of: KeyOf, classed: Callable[[Form], bool], secret: bytes = b"") -> None:
        self.held_at: int | None = None
        self.keys: dict[str, None] = {}
        self.lost = False
        self._key_of, self._classed, self._secret = key_of, classed, secret

    @property
    def secret_name(self) -> str:
        """What tells the secret from another one."""
        return hashed(b"", self._secret)

    def hold(self, moment: int) -> None:
        """A difference was proven at a moment."""
        self.held_at = moment if self.held_at is None else min(self.held_at, moment)

    def suspect(self, side: Side, form: Form) -> None:
        """An event of a side is part of a difference."""
        if len(self.keys) < TOLD:
            self.keys[self.key(side, form)] = None

    def key(self, side: Side, form: Form) -> str:
        """The key of an event as notes have it: with its side, where only its like can cross.

        A barrier has a copy everywhere, and crosses nowhere.
        """
        if form[0] is BARRIER:
            return BARRIERS
        name = hashed(self._key_of(form), self._secret)
        return name if self._classed(form) else f"{name}{side.value}"

    def drop_held(self, moment: int) -> bool:
        """Forget what was proven behind a moment; whether there was any."""
        return self.held_at is not None and self.held_at > moment and self.take() is not None

    def take(self) -> int | None:
        """The moment of what was held, which is not any more."""
        moment, self.held_at, self.lost = self.held_at, None, False
        self.keys.clear()
        return moment

    def snapshot(self) -> dict[str, Any]:
        """The state as plain data; empty where nothing is held."""
        if self.held_at is None:
            return {}
        return {"held_at": self.held_at, "keys": list(self.keys), "secret": self.secret_name}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a `snapshot`."""
        self.held_at, self.keys = state.get("held_at"), dict.fromkeys(state.get("keys", ()))
        self.lost = self.held_at is not None and state.get("secret") != self.secret_name


class Passed(NamedTuple):
    """How many barriers a side has passed, and the forms of the latest of them."""

    number: int
    latest: list[str]

    def differs(self, other: Passed) -> bool:
        """Whether a barrier is not equal to the one that has its number in another shard."""
        count = min(self.number, other.number)
        own, theirs = (one.latest[: max(0, len(one.latest) - one.number + count)] for one in (self, other))
        return any(mine != their for mine, their in zip(reversed(own), reversed(theirs), strict=False))


NONE = (Passed(0, []), Passed(0, []))


class _Question(NamedTuple):
    """What a neighbour asks for, and how far to read, and to how many barriers, before it is answered."""

    name: tuple[str, int]
    keys: frozenset[str]
    until: Offsets
    barriers: Sequence[int]


class Neighbours:
    """What one shard says to the others and hears of them. `run` names this process, and no other.

    Call `hear` with the notes of all shards, then ask for `crossing` and `confirmed`, and `say` what is to be
    told to them.
    """

    def __init__(self, shard: Shard, run: str, sample: Sample) -> None:
        self._shard, self._run, self._sample = shard, run, sample
        self._said = self._number = 0
        self._barriers = [0, 0]
        self._asked: frozenset[str] = frozenset()
        self._overdue: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        self._passed: Sequence[Passed] = NONE
        self._first: dict[int, Any] = {}
        self._notes: dict[int, Note] = {}
        self._questions: dict[int, _Question] = {}
        self._answered: dict[int, tuple[str, int]] = {}
        self._met: dict[str, None] = {}

    # -- saying --------------------------------------------------------------------------------------------

    def say(
        self,
        asked: Iterable[str],
        overdue: Sequence[Iterable[str]],
        times: Mapping[str, Any],
        passed: Sequence[Passed] = NONE,
    ) -> Note:
        """What to tell the others: keys of what is held, overdue forms, own times, barriers by side."""
        keys = frozenset(asked)
        if not (keys and self._asked):  # what is asked stays until it is decided: one difference is enough
            self._asked = keys
            self._number += 1
            self._barriers = [one.number for one in passed]
        self._overdue, self._passed = (frozenset(overdue[0]), frozenset(overdue[1])), passed
        self._said += 1
        return {
            "run": self._run,
            "said": self._said,
            "times": times,
            "sample": sorted(self._sample.keys),
            "asked": [self._number, sorted(self._asked), self._barriers],
            "answered": {str(number): list(name) for number, name in self._answered.items()},
            "met": list(self._met),
            "passed": [list(one) for one in passed],
            "overdue": [sorted(forms) for forms in self._overdue],
        }

    def answer(self, positions: Offsets, waiting: Callable[[], Iterable[str]]) -> None:
        """Answer the questions up to which has been read; `waiting` are the keys of all that waits here."""
        due = {
            number: question
            for number, question in self._questions.items()
            if all(one.number >= least for one, least in zip(self._passed, question.barriers, strict=True))
            and all(
                positions[side].get(partition, 0) >= until
                for side in Side
                for partition, until in question.until[side].items()
            )
        }
        if not due:
            return
        here = {*map(facing, waiting()), *map(facing, self._asked), *self._sample.keys}
        for number, question in due.items():
            self._met.update(dict.fromkeys(question.keys & here))
            self._answered[number] = question.name
            del self._questions[number]

    # -- hearing -------------------------------------------------------------------------------------------

    def hear(self, notes: Mapping[int, Note], ends: Offsets | None) -> None:
        """Take the newest notes of all; `ends` are those of the own partitions, as of now, if known."""
        for number, note in notes.items():
            name = (note["run"], note["said"])
            if number == self._shard.number or self._first.setdefault(number, name) == name:
                continue
            self._notes[number] = note
            asked, keys, barriers = note["asked"]
            question = (note["run"], asked)
            waits = self._questions.get(number)
            if not keys or self._answered.get(number) == question:
                self._questions.pop(number, None)
            elif ends is not None and (waits is None or waits.name != question):
                self._questions[number] = _Question(question, frozenset(keys), ends, barriers)

    def crossing(self) -> str | None:
        """A sentence on what crosses, if anything does."""
        for number, note in sorted(self._notes.items()):
            if not self._sample.keys.isdisjoint(note["sample"]) or not self._asked.isdisjoint(note["met"]):
                return f"events of one key stand in {self._both(number)}, {CURE}"
            told = (Passed(*one) for one in note["passed"])
            if any(mine.differs(theirs) for mine, theirs in zip(self._passed, told, strict=True)):
                return f"the copies of one barrier in {self._both(number)} are not equal"
            if any(not self._overdue[side].isdisjoint(note["overdue"][side.other]) for side in Side):
                return (
                    f"two equal events, one of each version, wait without a partner in {self._both(number)}, "
                    f"{CURE}"
                )
        return f"events of one key stand in partitions of several shards, {CURE}" if self._met else None

    def _both(self, other: int) -> str:
        one, two = sorted((self._shard.number, other))
        return f"partitions of shard {one} and of shard {two}"

    def confirmed(self) -> bool:
        """Whether all others have answered what is asked now. Asked first: `crossing`."""
        own, name = str(self._shard.number), [self._run, self._number]
        return (
            bool(self._asked)
            and len(self._notes) == self._shard.of - 1
            and all(note["answered"].get(own) == name for note in self._notes.values())
        )

    def times(self) -> list[Mapping[str, Any]]:
        """What the others have told of their times."""
        return [note["times"] for note in self._notes.values()]
