"""Versions that mark what they write and say what they have done, under the running service on real Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases import NOTHING
from tests.support.marks import whole_product
from tests.support.versions import INPUT, KEYS, MakePair
from tests.support.waiting import eventually
from twinstream.spec.decode.headers import input_header

pytestmark = whole_product()

CLOCK = """
order: unordered
overdue: {clock: input}
show: [n]
"""
START = CLOCK + "start: {at: input}\n"
REPLAYS = """
order: {per_key: [k]}
duplicates: {policy: replays, horizon: 3}
"""


def test_exactly_the_dropped_row_is_missing_in_a_bag_and_a_late_partner_marks_it(pair_of: MakePair) -> None:
    pair = pair_of(CLOCK)
    pair.service.start()
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


def test_a_candidate_of_today_is_compared_from_its_first_batch_on_and_over_a_kill(pair_of: MakePair) -> None:
    pair = pair_of(START, first=905)
    for _ in range(20):
        pair.reference.work(50)
    pair.service.start()
    eventually(lambda: "the candidate has not said" in pair.status()["reason"], what="it waits")
    assert (pair.status()["verdict"], pair.service.gate()) == ("PENDING", "undecided")
    pair.candidate.work(15)
    pair.candidate.work(80)
    status = pair.service.shows(matched=80, verdict="EQUIVALENT")  # 920 to 999, which are vouched for
    assert status["events"] == {"reference": 100, "candidate": 80}, "of the reference one more batch is read"
    assert status["accounts"]["reference"]["before_start"] == 20
    pair.service.kill()
    pair.service.start()
    pair.reference.work(100)
    pair.candidate.work(100, drops=frozenset({1017}))
    pair.service.shows(verdict="DIVERGED")
    (found,) = pair.service.divergences()
    assert (found["kind"], found["reference"]) == ("missing", {"n": 1017})
    assert pair.status()["matched"] == 179


@pytest.mark.nightly
def test_a_retry_after_a_kill_in_the_middle_of_a_batch_is_told(pair_of: MakePair) -> None:
    pair = pair_of(REPLAYS)
    pair.service.start()
    rows = range(40)
    pair.reference.attempt("e/0.0", rows)
    pair.reference.say()

    def saved(count: int) -> dict[str, Any] | None:
        status = pair.status()
        return status if sum(status["verified_up_to"]["candidate"].values()) == count else None

    pair.candidate.attempt("e/0.0", rows[:25])
    eventually(lambda: saved(25), what="a part of the batch is read and saved")
    pair.service.kill()
    pair.service.start()
    pair.candidate.attempt("e/0.1", sorted(rows, key=lambda n: -(n % KEYS)))  # key by key
    pair.candidate.say()
    pair.service.answers("pass")
    status = eventually(lambda: saved(25 + len(rows)), what="the retry is read and saved")
    assert (status["matched"], status["accounts"]["candidate"]["replayed"]) == (len(rows), 25)
