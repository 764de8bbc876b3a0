"""The running service begins at the first input that both versions have consumed, on real Kafka."""

from __future__ import annotations

from tests.support.marks import whole_product
from tests.support.versions import MakePair
from tests.support.waiting import eventually

pytestmark = whole_product()

START = """
order: unordered
start: {at: input}
overdue: {clock: input}
show: [n]
"""


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


def test_reading_may_begin_at_the_ends_of_both_topics(pair_of: MakePair) -> None:
    pair = pair_of(START, "--from", "latest")
    for version in (pair.reference, pair.candidate):
        version.work(100)
    pair.service.start()
    eventually(lambda: pair.status()["checkpoint"]["sequence"], what="the start is found and saved")
    for version in (pair.reference, pair.candidate):
        version.work(100)
    status = pair.service.shows(verdict="EQUIVALENT")
    assert (status["matched"], status["events"]["reference"]) == (100, 100)


def test_an_event_that_names_no_input_is_no_safe_start_and_never_a_difference(pair_of: MakePair) -> None:
    pair = pair_of(START, first=50)
    pair.service.start()
    for version in (pair.reference, pair.candidate):
        version.work(60)
    eventually(lambda: pair.status()["checkpoint"]["sequence"], what="the start is found and saved")
    pair.reference.put({"n": "sum"}, 0, [])
    for version in (pair.reference, pair.candidate):
        version.work(50)
    eventually(lambda: "does not name the one record" in pair.status()["reason"], what="it says why")
    status = pair.status()
    assert (status["verdict"], status["divergences"]["total"]) == ("PENDING", 0)
    assert pair.service.gate() == "undecided"
