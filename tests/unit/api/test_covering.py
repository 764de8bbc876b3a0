"""What several shards have seen is told as if one had seen all of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.statuses import START, coverage, expectation, status
from tests.support.streams import LEFT, record, spec
from twinstream.api.state.merging import merged
from twinstream.explain.coverage import SeenEvents, seen_by_all
from twinstream.explain.masking import Mask
from twinstream.spec.codec.codec import Codec
from twinstream.status.comparison import ShardStatus

SPEC = spec("{per_key: [k]}")
values = st.none() | st.integers(0, 1)
shapes = values | st.fixed_dictionaries({}, optional={"x": values})
fields = st.fixed_dictionaries({"w": st.integers(0, 1)}, optional={"v": shapes})
events = st.lists(fields, max_size=6)


def shard(events: list[dict[str, Any]]) -> ShardStatus:
    """What a shard says that has seen some events."""
    codec = Codec(SPEC)
    seen = SeenEvents(SPEC, codec, Mask.of(SPEC, b"a secret of all shards"))
    seen.note(LEFT, codec.forms([record(event) for event in events])[0])
    told = coverage(10).model_copy(update=seen.told())
    return ShardStatus(status=status(coverage=told), constants=seen.constants())


@given(events, events)
def test_fields_and_keys_are_those_of_all_events(
    one: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    here, there = [{"k": 1, **event} for event in one], [{"k": 2, **event} for event in other]
    together = seen_by_all([shard(here), shard(there)])
    whole = shard(here + there).status.coverage
    assert together["kinds"] == whole.kinds
    assert (together["keys"], together["events"]) == (whole.keys, whole.events)


def test_the_notes_are_of_all_shards() -> None:
    same = [{"k": 1, "v": None, "w": 3}] * 15
    shards = {0: shard(same), 1: shard([{**event, "k": 2} for event in same])}
    notes = merged(expectation(shards=2), shards, START).coverage.notes
    assert notes == ["`v` was always null", "`w` never varied"]
