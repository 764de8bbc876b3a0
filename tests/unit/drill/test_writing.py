"""In which order the copies are written."""

from __future__ import annotations

from tests.support.drilled import pair, spec_with
from twinstream.drill.planting import plan
from twinstream.drill.shadow import before, behind
from twinstream.spec.drills import Names

NAMES = Names("rides", "5f0c2e1a")
REPLAYS = "duplicates: {policy: replays}\n"


def test_both_halves_together_are_both_copies_in_their_order_and_in_turn() -> None:
    spec = spec_with()
    planted = plan(spec, pair(), "drop", "5f0c2e1a")
    first, second = before(NAMES, planted.pair, planted), behind(spec, NAMES, planted.pair, planted)
    every = [*first, *second.first]
    for topic, records in zip(NAMES.topics, planted.pair, strict=True):
        assert [record for name, record in every if name == topic] == records
    assert [name for name, _ in first[:4]] == [*NAMES.topics, *NAMES.topics]
    assert second.rest == []
    assert second.events == (200, 199)


def test_the_time_counts_from_the_record_at_which_the_difference_shows() -> None:
    spec = spec_with()
    planted = plan(spec, pair(), "duplicate", "5f0c2e1a")
    found = behind(spec, NAMES, planted.pair, planted)
    assert found.first[found.mark] == (NAMES.topics[1], planted.pair.candidate[planted.at])
    silent = plan(spec, pair(), "stall", "5f0c2e1a")
    assert behind(spec, NAMES, silent.pair, silent).mark == 0


def test_where_later_batches_have_to_follow_the_last_part_is_held_back() -> None:
    spec = spec_with(more=REPLAYS)
    planted = plan(spec, pair(), "duplicate", "5f0c2e1a")
    found = behind(spec, NAMES, planted.pair, planted)
    assert found.mark < len(found.first)
    assert found.rest
    assert sum(found.events) + len(found.rest) == 401
