"""The engine against the plain matcher and against the definition, on small streams full of equal events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle import PlainMatcher, equivalent, lcs_length
from tests.support.streams import LEFT, RIGHT, Batch, Driver, record, spec
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot

Value = dict[str, int]

ORDERS: dict[str, Callable[[Value, Value], bool]] = {
    "unordered": lambda *_: False,
    "total": lambda *_: True,
    "{per_key: [k]}": lambda a, b: a["k"] == b["k"],
    "{per_key: [k, v]}": lambda a, b: (a["k"], a["v"]) == (b["k"], b["v"]),
}
EQUALITIES: dict[str, Callable[[Value], Hashable]] = {
    "": lambda x: (x["k"], x["v"], x["n"]),
    "equality: {ignore: [n]}": lambda x: (x["k"], x["v"]),
    "equality: {compare_only: [v, k]}": lambda x: (x["k"], x["v"]),
}


class Step(NamedTuple):
    """An event of a side in one style of writing, or (no value) the end of the side."""

    side: Side
    value: Value | None
    style: int = 0


class Streams(NamedTuple):
    """Two streams as they came, and the rules for them."""

    order: str
    equality: str
    steps: list[Step]

    @property
    def dependent(self) -> Callable[[Value, Value], bool]:
        return ORDERS[self.order]

    @property
    def letter(self) -> Callable[[Value], Hashable]:
        return EQUALITIES[self.equality]

    def equal(self, a: Value, b: Value) -> bool:
        return self.letter(a) == self.letter(b)

    def driver(self) -> Driver:
        return Driver(spec(self.order, self.equality))

    def values(self, side: Side) -> list[Value]:
        return [step.value for step in self.steps if step.side is side and step.value is not None]

    def lanes(self) -> list[tuple[list[Hashable], list[Hashable]]]:
        """The letters of both sides, for each class of dependent events."""
        everything = [*self.values(LEFT), *self.values(RIGHT)]
        lanes: list[Value] = []
        for x in everything:
            if not any(self.dependent(x, y) or self.equal(x, y) for y in lanes):
                lanes.append(x)
        return [
            tuple(  # type: ignore[misc]
                [self.letter(x) for x in self.values(side) if self.dependent(x, lane) or self.equal(x, lane)]
                for side in Side
            )
            for lane in lanes
        ]


values = st.fixed_dictionaries({"k": st.integers(0, 2), "v": st.integers(0, 1), "n": st.integers(0, 1)})
sides = st.sampled_from(list(Side))
styles = st.integers(0, 3)


@st.composite
def streams(draw: st.DrawFn, max_events: int = 16) -> Streams:
    """Streams that are often nearly equivalent: one, and one with a few faults, interleaved at will."""
    left = draw(st.lists(values, max_size=max_events))
    right = list(left) if draw(st.booleans()) else draw(st.permutations(left))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(right)))
        if draw(st.booleans()):
            right.insert(place, draw(values))
        else:
            del right[place : place + 1]
    queues = {LEFT: left, RIGHT: right}
    ends = {side: draw(st.booleans()) for side in Side}
    steps = []
    taken = {LEFT: 0, RIGHT: 0}
    while rest := [side for side in Side if taken[side] < len(queues[side]) + ends[side]]:
        side = draw(st.sampled_from(rest))
        at = taken[side]
        taken[side] += 1
        steps.append(
            Step(side, queues[side][at], draw(styles)) if at < len(queues[side]) else Step(side, None)
        )
    return Streams(draw(st.sampled_from(list(ORDERS))), draw(st.sampled_from(list(EQUALITIES))), steps)


STEP_MS = 10_000


def one_by_one(steps: list[Step]) -> list[Batch]:
    return cut(steps, [True])


def cut(steps: list[Step], cuts: list[bool]) -> list[Batch]:
    """Runs of one side as batches, cut further where `cuts` (repeated) says so; a step takes ten seconds."""
    batches: list[list[int]] = []
    for place, step in enumerate(steps):
        before = steps[place - 1] if place else Step(step.side, None)
        if before.side is not step.side or None in (before.value, step.value) or cuts[place % len(cuts)]:
            batches.append([])
        batches[-1].append(place)
    return [
        Batch(
            steps[places[0]].side,
            [record(step.value, step.style) for place in places if (step := steps[place]).value is not None],
            [place * STEP_MS for place in places],
        )
        for places in batches
    ]


cuts = st.lists(st.booleans(), min_size=8, max_size=8)


def check_accounts(comparison: Comparison) -> None:
    """Every consumed event is in one account, and the unmatched ones are exactly those held."""
    for side in Side:
        account = comparison.accounts[side]
        settled = comparison.matched + account.ignored + account.undecodable + account.divergent
        assert account.consumed == settled + comparison.unmatched(side)
        assert comparison.unmatched(side) == len(comparison.waiting_events(side))


def outcome(driver: Driver) -> dict[str, Any]:
    """What a user can see of a comparison. A surplus event counts under one name:
    what matched is known by checksums of its bytes after a restart, and these differ between styles."""
    comparison = driver.comparison
    found = [*driver.findings(), *comparison.provisional()]
    return {
        "diverged": comparison.diverged,
        "matched": comparison.matched,
        "matched_by_kind": dict(comparison.ledger.matched_by_kind),
        "accounts": comparison.accounts,
        "held": [driver.held(side) for side in Side],
        "findings": sorted(
            (
                finding.kind.replace("duplicate", "extra"),
                -1 if finding.left is None else finding.left[2],
                -1 if finding.right is None else finding.right[2],
            )
            for finding, *_ in found
        ),
        "survey": comparison.survey((True, True)),
        "verified": [comparison.verified_up_to(side, {0: driver.offsets[side]}) for side in Side],
    }


@given(streams())
def test_after_every_prefix_the_engine_says_what_the_plain_matcher_says(streams: Streams) -> None:
    driver = streams.driver()
    plain = PlainMatcher[tuple[int, Value]](
        lambda a, b: streams.dependent(a[1], b[1]), lambda a, b: streams.equal(a[1], b[1])
    )
    for step, batch in zip(streams.steps, one_by_one(streams.steps), strict=True):
        if step.value is None:
            plain.end(step.side)
        else:
            plain.feed(step.side, (driver.offsets[step.side], step.value))
        driver.take([batch])
        check_accounts(driver.comparison)
        assert driver.comparison.diverged == plain.diverged
        if plain.diverged:
            return
        assert [driver.held(side) for side in Side] == [
            [place for place, _ in held] for held in plain.unmatched
        ]


@given(streams(), cuts)
def test_at_the_end_the_engine_says_what_the_definition_says(streams: Streams, cuts: list[bool]) -> None:
    driver = streams.driver()
    driver.take(cut(streams.steps, cuts), review=True)
    driver.end()
    same = equivalent(streams.values(LEFT), streams.values(RIGHT), streams.dependent, streams.letter)
    assert driver.comparison.diverged is not same
    assert bool(driver.findings()) is not same


@given(streams())
def test_the_plain_matcher_says_what_the_definition_says(streams: Streams) -> None:
    plain = PlainMatcher[Value](streams.dependent, streams.equal)
    for step in streams.steps:
        if step.value is not None:
            plain.feed(step.side, step.value)
    for side in Side:
        plain.end(side)
    same = equivalent(streams.values(LEFT), streams.values(RIGHT), streams.dependent, streams.letter)
    assert plain.equivalent is same


@given(streams(), cuts, cuts)
def test_the_size_of_batches_changes_nothing(streams: Streams, some: list[bool], others: list[bool]) -> None:
    outcomes = []
    for way in (some, others):
        driver = streams.driver()
        driver.take(cut(streams.steps, way))
        driver.comparison.review()
        outcomes.append(outcome(driver))
    assert outcomes[0] == outcomes[1]


@given(streams(), cuts)
def test_accounts_hold_after_every_batch(streams: Streams, cuts: list[bool]) -> None:
    driver = streams.driver()
    for batch in cut(streams.steps, cuts):
        driver.take([batch], review=True)
        check_accounts(driver.comparison)
    driver.end()
    check_accounts(driver.comparison)


@given(streams())
def test_differences_at_the_end_are_the_fewest_that_explain_the_streams(streams: Streams) -> None:
    """Counts fix missing and surplus events; a longest common subsequence fixes how many changed places."""
    driver = streams.driver()
    driver.take(one_by_one(streams.steps), review=True)
    driver.end()
    expected: Counter[str] = Counter()
    for left, right in streams.lanes():
        shared = Counter(left) & Counter(right)
        expected["missing"] += len(left) - shared.total()
        expected["surplus"] += len(right) - shared.total()
        in_order = streams.order != "unordered"
        expected["reordered"] += shared.total() - lcs_length(left, right) if in_order else 0
    found = Counter(driver.kinds())
    found["surplus"] = found.pop("extra", 0) + found.pop("duplicate", 0)
    assert +found == +expected


@given(streams())
def test_undoing_the_differences_makes_the_streams_equivalent(streams: Streams) -> None:
    driver = streams.driver()
    driver.take(one_by_one(streams.steps), review=True)
    driver.end()
    gone: tuple[set[int], set[int]] = (set(), set())
    for finding, *_ in driver.findings():
        for side, event in ((LEFT, finding.left), (RIGHT, finding.right)):
            if event is not None:
                assert event[2] not in gone[side], "an event is in one difference only"
                gone[side].add(event[2])
        if finding.kind == "reordered":
            assert finding.left is not None
            assert finding.right is not None
            moved = streams.values(LEFT)[finding.left[2]], streams.values(RIGHT)[finding.right[2]]
            assert streams.equal(*moved)
    rest = [[x for place, x in enumerate(streams.values(side)) if place not in gone[side]] for side in Side]
    assert equivalent(rest[0], rest[1], streams.dependent, streams.letter)


MIRROR = {"missing": "surplus", "extra": "missing", "duplicate": "missing"}


@given(streams(), cuts)
def test_swapping_the_sides_mirrors_the_answer(streams: Streams, cuts: list[bool]) -> None:
    swapped = streams._replace(steps=[step._replace(side=step.side.other) for step in streams.steps])
    drivers = []
    for way in (streams, swapped):
        driver = way.driver()
        driver.take(cut(way.steps, cuts))
        drivers.append(driver)
    one, other = drivers
    assert one.comparison.diverged == other.comparison.diverged
    assert one.comparison.matched == other.comparison.matched
    assert [one.held(side) for side in Side] == [other.held(side.other) for side in Side]
    for driver in drivers:
        driver.end()
    surplus = [kind.replace("extra", "surplus").replace("duplicate", "surplus") for kind in one.kinds()]
    assert sorted(surplus) == sorted(MIRROR.get(kind, kind) for kind in other.kinds())


@given(streams(), cuts, st.booleans())
def test_a_restart_at_any_place_changes_nothing(streams: Streams, cuts: list[bool], review: bool) -> None:
    batches = cut(streams.steps, cuts)
    undisturbed = streams.driver()
    undisturbed.take(batches, review=review)
    undisturbed.comparison.review()
    for place in range(len(batches) + 1):
        driver = streams.driver()
        driver.take(batches[:place], review=review)
        driver.findings()
        _restart(driver)
        driver.take(batches[place:], review=review)
        driver.comparison.review()
        assert outcome(driver) == outcome(undisturbed)


def _restart(driver: Driver) -> None:
    """Go on with a new comparison that knows only what a snapshot kept."""
    state = snapshot(driver.comparison)
    fresh = Comparison(driver.comparison.rules)
    restore(fresh, state, driver.codec.form, 0.0)
    again = snapshot(fresh)
    assert set(again.pop("recent")) == set(state.pop("recent"))
    assert again == state
    driver.comparison = fresh


@given(streams(), cuts, st.sampled_from(["", "identity: [k]\n"]))
def test_accounts_hold_where_the_clock_proves(streams: Streams, cuts: list[bool], identity: str) -> None:
    driver = Driver(spec(streams.order, f"{identity}overdue: {{after: 20s, proves: true}}"))
    for batch in cut(streams.steps, cuts):
        driver.take([batch], review=True)
        first = driver.comparison.survey((True, True))
        check_accounts(driver.comparison)
        assert driver.comparison.survey((True, True)) == first
    driver.end()
    check_accounts(driver.comparison)
    ids = [
        (side, event[2])
        for finding, *_ in driver.findings()
        for side, event in ((LEFT, finding.left), (RIGHT, finding.right))
        if event is not None
    ]
    assert len(ids) == len(set(ids)), "an event is in one difference only"
