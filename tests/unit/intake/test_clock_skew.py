"""How old something is, is told by the latest of the clocks, and once told no clock can change it."""

from __future__ import annotations

import pytest

from loadtest.memory import ManualClock, MemoryRelay, MemoryStorage
from twinstream.intake.clock_skew import APART_SECONDS, ClockSkew, OldestStamp

TRUE = 1_700_000_000.0
HOUR = 3600.0


class Hands:
    """A host's clock and a store's, each set by hand, and what a matcher makes of them."""

    def __init__(self, host: float = 0.0, store: float | None = 0.0) -> None:
        self.clock = ManualClock(TRUE + host)
        self.storage = MemoryStorage()
        if store is not None:
            self.storage.clock = lambda: TRUE + store + self.clock.monotonic()
        self.timepieces = ClockSkew(self.clock)
        self.ask()

    def ask(self) -> None:
        self.timepieces.ask(MemoryRelay(self.storage, "owner"))

    def age(self, seconds_ago: float, *stamps: OldestStamp) -> float:
        """How old an event is taken for that was stamped so long ago, by the true time."""
        stamped = TRUE + self.clock.monotonic() - seconds_ago
        found = self.timepieces.moment_of(int(stamped * 1000), stamps)
        return round(self.clock.monotonic() - found, 2)


@pytest.mark.parametrize(
    ("host", "store", "age"),
    [(0, 0, 60), (-HOUR, 0, 60), (0, -HOUR, 60), (HOUR, 0, 60 + HOUR), (0, HOUR, 60 + HOUR), (0, None, 60)],
)
def test_the_latest_clock_tells_how_old_an_event_is(host: float, store: float | None, age: float) -> None:
    assert Hands(host, store).age(60) == age


def test_where_both_clocks_are_behind_what_was_read_tells_and_goes_on_with_the_time_that_passes() -> None:
    hands = Hands(-HOUR, -HOUR)
    assert hands.age(60) == 60 - HOUR, "nothing that was read tells otherwise"
    read_now = OldestStamp(int(TRUE * 1000), 0.0)
    assert hands.age(60, read_now) == 60
    hands.clock.advance(100)
    assert hands.age(160, read_now) == 160
    long_ago = OldestStamp(int((TRUE - 2 * HOUR) * 1000), 0.0)
    assert hands.age(160, long_ago, read_now) == 160, "what was written long ago and read now says less"


def test_a_time_in_another_unit_is_no_clock() -> None:
    assert Hands().age(60, OldestStamp(int(TRUE * 1_000_000), 0.0)) == 60


@pytest.mark.parametrize(("jump", "way"), [(HOUR, "3,600 s ahead of"), (-86_400.0, "86,400 s behind")])
def test_a_clock_that_jumps_is_named_at_once_and_no_more_when_it_is_right_again(
    jump: float, way: str
) -> None:
    hands = Hands()
    assert hands.timepieces.trouble() is None
    hands.clock.set(jump)
    sentence = hands.timepieces.trouble()
    assert sentence is not None
    assert sentence.startswith(f"the clock of this host is {way} that of Redis: one of them is wrong")
    hands.clock.set(-jump)
    assert hands.timepieces.trouble() is None


@pytest.mark.parametrize(
    ("host", "store"), [(-APART_SECONDS, 0.0), (APART_SECONDS, 0.0), (-HOUR, None)], ids=str
)
def test_clocks_that_differ_a_little_or_one_that_nobody_contradicts_are_no_trouble(
    host: float, store: float | None
) -> None:
    assert Hands(host, store).timepieces.trouble() is None


def test_an_answer_that_took_long_is_no_trouble_that_its_time_on_the_way_explains() -> None:
    hands = Hands(store=None)
    hands.storage.clock = lambda: hands.clock.advance(HOUR) or TRUE
    hands.ask()
    assert hands.timepieces.trouble() is None


def test_a_store_that_does_not_say_is_asked_again_and_what_it_said_goes_on() -> None:
    hands = Hands(store=HOUR)
    hands.storage.down = "the store is away"
    hands.clock.advance(10.0)
    hands.ask()
    assert hands.timepieces.trouble() is not None
    hands.storage.down, hands.storage.clock = None, lambda: TRUE + hands.clock.monotonic()
    hands.ask()
    assert hands.timepieces.trouble() is None
