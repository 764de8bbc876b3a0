"""What the benchmark of saving feeds."""

from loadtest.overhead import Feed
from twinstream.core.events import Side


def taken(stream) -> list[bytes]:
    """What comes until there is nothing just now."""
    found = []
    while (batch := next(stream)) is not None:
        found += batch.records
    return found


def test_partners_come_in_the_order_of_those_that_wait():
    feed = Feed(held=10)
    streams = feed.streams()
    waiting = taken(streams[Side.LEFT])
    assert len(set(waiting)) == 10
    feed.ask(Side.RIGHT, 10)
    assert sorted(taken(streams[Side.RIGHT])) == sorted(waiting)


def test_those_that_are_held_stay_without_partners():
    feed = Feed(held=10)
    streams = feed.streams()
    waiting = taken(streams[Side.LEFT])
    feed.begin_pairs()
    for side in Side:
        feed.ask(side, 20)
    left, right = (sorted(taken(streams[side])) for side in Side)
    assert left == right
    assert not set(left) & set(waiting)
