"""A trial that begins beside a comparison under way finds no difference that whole streams do not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import permutations
from random import Random
from typing import NamedTuple

import orjson
from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from twinstream.adapters.memory import ManualClock, MemorySource
from twinstream.core.events import Side
from twinstream.ports import Batch
from twinstream.runtime.course import Course
from twinstream.runtime.midway import hindrance
from twinstream.runtime.resets import Resets
from twinstream.spec.codec import Codec
from twinstream.spec.load import loads
from twinstream.spec.masking import Mask, fresh_secret
from twinstream.spec.model import Spec
from twinstream.spec.sharding import ALL
from twinstream.spec.trial import midway

Row = tuple[object, int]
"""The members k and n of an event."""
Depends = Callable[[Row, Row], bool]

BASE = "version: 1\nname: test\nreference: {topic: a}\ncandidate: {topic: b}\n"
PROVES = "overdue: {after: 5s, proves: true}\n"
CASES = 5
KINDS = "kinds: {day: {where: {k: day}}, ride: {}}\n"
BLIND = "equality: {ignore: [n]}\n"


class Rules(NamedTuple):
    """Rules of a file, which events they relate, and whether they tell n."""

    text: str
    depends: Depends
    blind: bool = False


def _day(one: Row, other: Row) -> bool:
    return "day" in (one[0], other[0])


def _key(one: Row, other: Row) -> bool:
    return one[0] == other[0]


ORDERS: Sequence[tuple[str, Depends]] = (
    ("unordered", lambda _one, _other: False),
    ("total", lambda _one, _other: True),
    ("{per_key: [k]}", _key),
    ("{barrier: day, inner: unordered}", _day),
    ("{barrier: day, inner: {per_key: [k]}}", lambda one, other: _day(one, other) or _key(one, other)),
    ("{by_key: [k], inner: {dependent: [[day, day]]}}", lambda one, other: one[0] == other[0] == "day"),
    ("{dependent: [[day, ride]]}", lambda one, other: _day(one, other) and not _key(one, other)),
    ("{dependent: [[day, ride], {pair: [ride, ride], same: [k]}]}",
     lambda one, other: (_day(one, other) != _key(one, other))),
)  # fmt: skip
RULES = (
    *(Rules(f"{KINDS}order: {order}\n", depends) for order, depends in ORDERS),
    *(Rules(f"{KINDS}order: {order}\n{BLIND}", depends, blind=True) for order, depends in ORDERS),
    Rules(f"{KINDS}order: {{per_key: [k, n]}}\n", lambda one, other: one == other),
)
PAIRS = [
    (live, trial)
    for live, trial in permutations(RULES, 2)
    if midway(loads(BASE + live.text), loads(BASE + trial.text)).refusal is None
]

Stretch = tuple[tuple[int, int], int]
"""How many events of each side come next, and how many seconds later."""


def _stream(random: Random) -> list[Row]:
    return [(random.choice((0, 1, 1, "day")), random.randrange(2)) for _ in range(random.randint(2, 10))]


def _pace(random: Random) -> list[Stretch]:
    """Now and then both sides have come equally far."""
    return [
        ((count, random.choice((count, random.randrange(5)))), random.randrange(3))
        for count in (random.randrange(4) for _ in range(5))
    ]


def _equal(stream: list[Row], rules: Rules, random: Random) -> list[Row]:
    """The stream, with places swapped that the rules do not relate, and numbers changed that they ignore."""
    found = [(key, random.randrange(2) if rules.blind else number) for key, number in stream]
    for _ in range(3 * len(found)):
        at = random.randrange(len(found) - 1)
        if not rules.depends(found[at], found[at + 1]):
            found[at : at + 2] = reversed(found[at : at + 2])
    return found


def _faulty(stream: list[Row], random: Random) -> list[Row]:
    """The stream without an event, or with one twice or changed; or as it is."""
    at = random.randrange(len(stream))
    key, number = one = stream[at]
    return [*stream[:at], *random.choice(([], [one], [one] * 2, [(key, 1 - number)])), *stream[at + 1 :]]


class Feed(NamedTuple):
    """Both streams, in the stretches in which they come."""

    left: list[Row]
    right: list[Row]
    stretches: Sequence[Stretch]

    def batches(self) -> list[Batch]:
        """What comes of which side, and when; the rest in the end."""
        streams, read, at_ms, found = (self.left, self.right), [0, 0], 0, []
        for counts, seconds in (*self.stretches, ((99, 99), 1)):
            at_ms += seconds * 1000
            for side in Side:
                rows = streams[side][read[side] : read[side] + counts[side]]
                if rows:
                    records = [orjson.dumps({"k": key, "n": number}) for key, number in rows]
                    offsets = [*range(read[side], read[side] + len(rows))]
                    found.append(Batch(side, 0, records, offsets, [at_ms] * len(rows)))
                read[side] += len(rows)
        return found


@cache
def _spec(text: str) -> Spec:
    return loads(BASE + text)


def _course(text: str) -> Course:
    spec = _spec(text)
    mask = Mask.of(spec, fresh_secret())
    course = Course(spec, Codec(spec), MemorySource(), ManualClock(), ALL, None, None, Resets(), mask)
    course.intake.begin({side: {0: 0} for side in Side})
    return course


def _take(course: Course, batch: Batch) -> None:
    course.comparison.moment += len(batch.records)
    course.intake.take(batch)
    course.comparison.review()
    course.intake.survey((True, True))


class Told(NamedTuple):
    """What there is to be told of a comparison in the end."""

    diverged: bool
    accounts: list[dict[str, int]]
    kinds: Counter[str]


def _ended(course: Course) -> Told:
    """What is told once both sides have ended."""
    comparison = course.comparison
    for side in Side:
        comparison.end(side)
    comparison.review()
    accounts = [dict(vars(account)) for account in comparison.accounts]
    return Told(comparison.diverged, accounts, Counter(comparison.ledger.closed_by_kind))


def _alone(text: str, batches: Iterable[Batch]) -> Told:
    course = _course(text)
    for batch in batches:
        _take(course, batch)
    return _ended(course)


class Tried(NamedTuple):
    """What a trial has come to, and what lies behind its beginning: that which waited, and what came."""

    told: Told
    behind: list[Batch]


def _tried(live: str, trial: str, batches: Sequence[Batch], attach_at: int) -> Tried | None:
    """A trial that is given to a comparison under way at some step; None where it does not begin."""
    course, beside, behind = _course(live), None, []
    spec = _spec(trial)
    rule = midway(_spec(live), spec)
    for number, batch in enumerate(batches):
        if beside is None and number >= attach_at and hindrance(course, rule) is None:
            beside, behind = course.beside_from_here(spec, Codec(spec)), _waiting(course)
        _take(course, batch)
        if beside is not None:
            _take(beside, batch)
            behind.append(batch)
    return None if beside is None else Tried(_ended(beside), behind)


def _waiting(course: Course) -> list[Batch]:
    course.comparison.settle()
    found = []
    for side in Side:
        held = list(course.comparison.ledger.held.of(side))
        rows = [(event[0][3], event[2], event[3]) for event in held]
        if rows:
            found.append(Batch(side, 0, *map(list, zip(*rows, strict=True))))
    return found


class Case(NamedTuple):
    """Two streams as they come, and the step at which a trial is given to the comparison of them."""

    batches: list[Batch]
    attach_at: int


def _case(rules: Rules, random: Random, *, faulty: bool = False) -> Case:
    """A case of which both sides are equal by these rules, or nearly so."""
    left = _stream(random)
    right = _equal(left, rules, random)
    feed = Feed(left, _faulty(right, random) if faulty else right, _pace(random))
    return Case(batches := feed.batches(), random.randrange(len(batches)))


@examples(150)
@given(st.sampled_from(PAIRS), st.sampled_from(["", PROVES]), st.integers(0, 1 << 32))
def test_what_agrees_by_the_rules_on_trial_agrees_from_wherever_these_begin(
    pair: tuple[Rules, Rules], clock: str, seed: int
) -> None:
    live, trial = (rules.text + clock for rules in pair)
    for number in range(CASES):
        case = _case(pair[1], Random(seed + number))
        if not _alone(trial, case.batches).diverged:
            tried = _tried(live, trial, *case)
            assert tried is None or tried.told.kinds.total() == 0, (number, case)


@examples(100)
@given(st.sampled_from(PAIRS), st.integers(0, 1 << 32))
def test_a_trial_comes_to_what_its_rules_come_to_alone_on_what_lies_behind_its_beginning(
    pair: tuple[Rules, Rules], seed: int
) -> None:
    live, trial = (rules.text for rules in pair)
    for number in range(CASES):
        tried = _tried(live, trial, *_case(pair[1], Random(seed + number), faulty=True))
        assert tried is None or tried.told == _alone(trial, tried.behind), number
