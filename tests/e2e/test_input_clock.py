"""The running service on the clock of the input: headers and control records as a pipeline writes them."""

from __future__ import annotations

import pytest

from tests.support.cases import NOTHING
from tests.support.marks import whole_product
from tests.support.versions import INPUT, MakePair, Pair
from tests.support.waiting import eventually
from twinstream.spec.decode.headers import input_header

pytestmark = whole_product()

CLOCK = """
order: unordered
overdue: {clock: input, window_end: end}
show: [n, end]
"""


@pytest.fixture
def pair(pair_of: MakePair) -> Pair:
    pair = pair_of(CLOCK)
    pair.service.start()
    return pair


def test_exactly_the_dropped_row_is_missing_in_a_bag_and_a_late_partner_marks_it(pair: Pair) -> None:
    pair.reference.work(100)
    pair.candidate.work(60, drops=frozenset({17}))
    status = pair.service.shows(verdict="DIVERGED")
    assert status["matched"] == 59
    (found,) = pair.service.divergences()
    assert (found["kind"], found["reference"], found["late"]) == ("missing", {"n": 17}, None)
    assert status["frontier"]["candidate"] == {"at": f"{INPUT} 0: 60", "held_back_by": None}
    pair.service.kill()
    pair.service.start()
    pair.candidate.put({"n": 17}, 1, [input_header(INPUT, 0, 17)])
    pair.candidate.work(40)
    late = eventually(
        lambda: next((each for each in pair.service.divergences() if each["late"] is not None), None),
        what="it is late",
    )
    assert (late["id"], late["kind"]) == (found["id"], "missing")
    pair.service.shows(matched=99, unmatched=NOTHING)
    assert len(pair.service.divergences()) == 1


def test_a_candidate_that_stands_still_is_no_difference_and_its_part_of_a_batch_neither(pair: Pair) -> None:
    pair.reference.work(50)
    pair.candidate.work(20)
    pair.candidate.put({"n": 21}, 0, [input_header(INPUT, 0, 21)])
    pair.candidate.flush()
    pair.reference.work(50)
    pair.service.shows(matched=21)
    heard = f"{INPUT} 0: 100"
    eventually(lambda: pair.status()["frontier"]["reference"]["at"] == heard, what="the reference is heard")
    assert pair.service.shows(verdict="EQUIVALENT")["suspicions"] == 0  # what is there is vouched for
    assert pair.service.divergences() == []


def test_a_window_is_missing_when_a_batch_behind_its_watermark_is_read(pair: Pair) -> None:
    for pipeline in (pair.reference, pair.candidate):
        pipeline.work(5)
    pair.reference.put({"end": 60_000}, 0, [])
    pair.reference.say(watermark=60_000)
    pair.candidate.say(watermark=60_000)
    eventually(lambda: pair.status()["events"]["reference"] == 6, what="the window is read")
    assert pair.service.divergences() == []
    pair.candidate.say(watermark=61_000)
    (found,) = eventually(pair.service.divergences, what="a divergence")
    assert (found["kind"], found["reference"]) == ("missing", {"end": 60_000})
