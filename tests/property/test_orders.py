"""The engine under every form of order, against the plain matcher and the definition of equivalence."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.oracle import PlainMatcher, equivalent
from tests.support.orders import NO_KINDS, Event, as_callable
from tests.support.searching import examples
from tests.support.streams import LEFT, RIGHT, Driver
from tests.support.worlds import World, world, worlds
from twinstream.core.events import Side

cuts = st.lists(st.booleans(), min_size=6, max_size=6)


def same_trace(world: World) -> bool:
    """Whether the streams are equivalent, by the definition."""
    return equivalent(world.events(LEFT), world.events(RIGHT), world.dependent, world.letter)


def plain_matcher(world: World) -> PlainMatcher[tuple[int, Event]]:
    """The plain matcher of numbered events."""
    return PlainMatcher(lambda a, b: world.dependent(a[1], b[1]), lambda a, b: world.equal(a[1], b[1]))


def check_accounts(driver: Driver) -> None:
    """Every event that was fed is in one account, and the unmatched ones are exactly those held."""
    comparison = driver.comparison
    for side in Side:
        accounts = dict(vars(comparison.accounts[side]))
        assert accounts.pop("consumed") == driver.offsets[side]
        settled = comparison.matched + sum(accounts.values())
        assert driver.offsets[side] == settled + comparison.unmatched(side)
        assert comparison.unmatched(side) == len(driver.held(side))


def names(driver: Driver, *, copies: str = "duplicate") -> list[tuple[str, int, int]]:
    """What differs, as far as it is known: kind (a duplicate is named `copies`), offset by side or -1."""
    found = [*driver.findings(), *driver.comparison.provisional()]
    return sorted(
        (
            finding.kind.replace("duplicate", copies),
            -1 if finding.left is None else finding.left[2],
            -1 if finding.right is None else finding.right[2],
        )
        for finding in (divergence.finding for divergence in found)
    )


def outcome(driver: Driver, *, copies: str = "duplicate") -> dict[str, Any]:
    comparison = driver.comparison
    held = driver.waiting if comparison.halted else driver.held
    return {
        "diverged": comparison.diverged,
        "holes": comparison.holes,
        "matched": comparison.matched,
        "matched_by_kind": dict(comparison.ledger.matched_by_kind),
        "accounts": comparison.accounts,
        "held": list(map(held, Side)),
        "findings": names(driver, copies=copies),
        "survey": comparison.survey((True, True)),
        "verified": [comparison.verified_up_to(side, {0: driver.offsets[side]}) for side in Side],
    }


def check_every_prefix(world: World, driver: Driver) -> None:
    """The engine says what the plain matcher says, from the first step to the one that decides."""
    plain = plain_matcher(world)
    for step, batch in zip(world.steps, world.batches(), strict=True):
        if step.event is None:
            plain.end(step.side)
        else:
            plain.feed(step.side, (driver.offsets[step.side], step.event))
        driver.take([batch])
        check_accounts(driver)
        assert driver.comparison.diverged == plain.diverged
        if not plain.diverged:
            assert [driver.held(side) for side in Side] == [
                [place for place, _ in held] for held in plain.unmatched
            ]
    assert driver.comparison.holes == []


@given(worlds())
def test_the_plain_matcher_says_what_the_definition_says(world: World) -> None:
    plain = plain_matcher(world)
    for number, step in enumerate(world.steps):
        if step.event is not None:
            plain.feed(step.side, (number, step.event))
    for side in Side:
        plain.end(side)
    assert plain.equivalent is same_trace(world)


@given(worlds())
def test_an_order_is_symmetric_and_gives_equal_events_equal_dependences(world: World) -> None:
    everything = [*world.events(LEFT), *world.events(RIGHT)]
    for a in everything:
        for b in everything:
            assert world.dependent(a, b) == world.dependent(b, a)
            if world.equal(a, b):
                assert all(world.dependent(a, c) == world.dependent(b, c) for c in everything)


@given(worlds())
def test_after_every_prefix_the_engine_says_what_the_plain_matcher_says(world: World) -> None:
    check_every_prefix(world, world.driver())


@given(worlds())
def test_an_order_as_a_function_says_the_same_after_every_prefix(world: World) -> None:
    check_every_prefix(world, world.driver(as_callable(world.order)))


@given(worlds(), cuts)
def test_accounts_hold_all_along_and_at_the_end_the_engine_says_what_the_definition_says(
    world: World, cuts: list[bool]
) -> None:
    driver = world.driver()
    for batch in world.batches(cuts):
        driver.take([batch])
        check_accounts(driver)
        driver.comparison.review()
        check_accounts(driver)
    driver.end()
    assert driver.comparison.diverged is not same_trace(world)
    assert bool(driver.findings()) is driver.comparison.diverged
    assert [driver.held(side) for side in Side] == [[], []]
    check_accounts(driver)


@given(worlds(), cuts)
def test_what_is_verified_ends_at_the_first_event_that_is_unmatched_or_divergent(
    world: World, cuts: list[bool]
) -> None:
    driver = world.driver()
    for batch in world.batches(cuts):
        driver.take([batch], review=True)
        driver.comparison.survey((True, True))
        places = driver.places()
        for side in Side:
            divergent = [offset for owner, offset in places if owner is side]
            first = min([*driver.held(side), *divergent], default=driver.offsets[side])
            assert driver.comparison.verified_up_to(side, {0: driver.offsets[side]}) == {0: first}


@given(worlds(), cuts)
def test_a_halt_takes_in_nothing_behind_the_first_difference(world: World, cuts: list[bool]) -> None:
    driver, plain = world.driver(on_divergence="halt"), plain_matcher(world)
    driver.take(world.batches(cuts))
    late = matched = 0
    for number, step in enumerate(world.steps):
        if step.event is None:
            plain.end(step.side)
        else:
            late += plain.diverged
            plain.feed(step.side, (number, step.event))
        if not plain.diverged:
            matched = sum(step.event is not None for step in world.steps[: number + 1])
            matched -= sum(map(len, plain.unmatched))
    assert driver.comparison.diverged == driver.comparison.halted == plain.diverged
    assert sum(account.ignored for account in driver.comparison.accounts) == late
    assert 2 * driver.comparison.matched == matched
    driver.comparison.review()
    assert bool(names(driver)) == plain.diverged
    driver.end()
    assert 2 * driver.comparison.matched == matched or not plain.diverged


KNOWN = {
    "id": "fewer",
    "when": {"divergences": ["missing"]},
    "owner": "us",
    "expires": "2100-01-01",
    "ceiling": {"count": 1},
}
HALTS: list[dict[str, Any]] = [
    {"on_divergence": "halt", **more}
    for more in (
        {},
        {"limits": {"unmatched_events": 3}},
        {"identity": ["type"], "equality": {"tolerance": {"v": {"abs": 1}}}},
        {"known_differences": [KNOWN]},
    )
]


COPY_BESIDE_A_BARRIER = world(
    '{"barrier": ["b"], "inner": "total"}', "L:a/v=1 L:a/v=2 L:b R:a/v=1 R:a/v=1 R:a/v=2 R:b"
)
"""The epoch of the surplus copy ends in the batch in which the copy and its event come."""


@examples(200)
@example(world('"unordered"', "L:. R:a/v=1 R:a/v=2", kinds=NO_KINDS), [False], [True], False, HALTS[0])
@example(COPY_BESIDE_A_BARRIER, [True], [False], False, {})
@given(worlds(), cuts, cuts, st.booleans(), st.just({}) | st.sampled_from(HALTS))
def test_the_size_of_batches_changes_nothing_also_where_a_comparison_halts(
    world: World, some: list[bool], others: list[bool], review: bool, more: dict[str, Any]
) -> None:
    outcomes = []
    for way in (some, others):
        driver = world.driver(**more)
        driver.take(world.batches(way), review=bool(more) and review)
        review = not review
        driver.comparison.review()
        outcomes.append(outcome(driver) | {"halted": driver.comparison.halted})
    assert outcomes[0] == outcomes[1]


MIRROR = {"missing": "extra", "extra": "missing"}


@given(worlds(), cuts)
def test_swapping_the_sides_mirrors_the_answer(world: World, cuts: list[bool]) -> None:
    one, other = (way.driver() for way in (world, world.swapped()))
    for driver, way in ((one, world), (other, world.swapped())):
        driver.take(way.batches(cuts), review=True)
    assert one.comparison.diverged == other.comparison.diverged
    assert one.comparison.matched == other.comparison.matched
    assert [one.held(side) for side in Side] == [other.held(side.other) for side in Side]
    for driver in (one, other):
        driver.end()
    kinds = [sorted(kind for kind, _, _ in names(driver, copies="extra")) for driver in (one, other)]
    assert kinds[0] == sorted(MIRROR.get(kind, kind) for kind in kinds[1])


@given(worlds(), cuts, st.booleans())
def test_a_restart_at_any_place_changes_nothing(world: World, cuts: list[bool], review: bool) -> None:
    """Copies are no duplicates here: what matched before a restart is known by checksums of its bytes."""
    batches = world.batches(cuts)
    calm = world.driver()
    calm.take(batches, review=review)
    calm.comparison.review()
    expected = outcome(calm, copies="extra")
    for place in range(len(batches) + 1):
        driver = world.driver()
        driver.take(batches[: place // 2], review=review)
        driver.findings()
        driver.restart()
        driver.take(batches[place // 2 : place], review=review)
        driver.findings()
        driver.restart()
        driver.take(batches[place:], review=review)
        driver.comparison.review()
        assert outcome(driver, copies="extra") == expected


@given(worlds(), cuts, st.sampled_from([{}, {"identity": ["k"]}]))
def test_accounts_hold_where_the_clock_proves(world: World, cuts: list[bool], more: dict[str, Any]) -> None:
    driver = world.driver(overdue={"after": "20s", "proves": True}, **more)
    for batch in world.batches(cuts):
        driver.take([batch], review=True)
        first = driver.comparison.survey((True, True))
        check_accounts(driver)
        assert driver.comparison.survey((True, True)) == first
    driver.end()
    check_accounts(driver)
    driver.places()
