"""Retries of batches under the running service on real Kafka, told by the headers of their records."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.marks import whole_product
from tests.support.versions import KEYS, MakePair, Pair
from tests.support.waiting import eventually

pytestmark = whole_product()

HORIZON = 3
REPLAYS = f"""
order: {{per_key: [k]}}
duplicates: {{policy: replays, horizon: {HORIZON}}}
show: [k, n]
"""
ROWS = range(40)


@pytest.fixture
def pair(pair_of: MakePair) -> Pair:
    pair = pair_of(REPLAYS)
    pair.service.start()
    return pair


def batch(pair: Pair, number: int) -> list[int]:
    """The rows of a batch, which the reference writes once."""
    rows = [number * len(ROWS) + n for n in ROWS]
    pair.reference.attempt("e/0.0", rows)
    pair.reference.say()
    return rows


def key_by_key(rows: list[int]) -> list[int]:
    """The same rows in another order, which is that of each key."""
    return sorted(rows, key=lambda n: -(n % KEYS))


def read(pair: Pair, rows: int) -> dict[str, Any]:
    """The status once so many rows of the candidate are read, and saved."""

    def saved() -> dict[str, Any] | None:
        status = pair.status()
        consumed = status["accounts"]["candidate"]["consumed"]
        return status if status["verified_up_to"]["candidate"] and consumed >= rows else None

    return eventually(saved, what=f"{rows} rows of the candidate are read")


def hole(pair: Pair) -> dict[str, Any]:
    """The status once there is a hole, which makes the gate undecided."""
    status = pair.service.shows(hole_count=1)
    assert (status["verdict"], pair.service.gate()) == ("INCONCLUSIVE", "undecided")
    return status


def test_a_candidate_that_writes_everything_twice_in_one_attempt_is_found(pair: Pair) -> None:
    rows = batch(pair, 0)
    pair.candidate.attempt("e/0.0", [n for n in rows for _ in range(2)])
    read(pair, 2 * len(ROWS))
    assert pair.status()["verdict"] != "DIVERGED", "a retry may still come"
    pair.candidate.say()
    pair.service.shows(verdict="DIVERGED")
    for number in range(1, 4):
        pair.candidate.attempt("e/0.0", batch(pair, number))
        pair.candidate.say()
    eventually(lambda: pair.status()["closed_divergences"]["total"] == len(ROWS), what="all are told")
    found = pair.service.divergences()
    assert {one["kind"] for one in found} <= {"extra", "duplicate"}
    assert {one["candidate"]["n"] for one in found} == set(rows)
    assert pair.status()["accounts"]["candidate"]["replayed"] == 0


def test_a_retry_whose_rows_come_in_another_order_is_no_alarm(pair: Pair) -> None:
    rows = batch(pair, 0)
    pair.candidate.attempt("e/0.0", rows[:25])
    pair.candidate.attempt("e/0.1", key_by_key(rows))
    pair.candidate.attempt("f/0.0", rows[7:] + rows[:7])
    pair.candidate.say()
    pair.service.answers("pass")
    status = read(pair, 25 + 2 * len(ROWS))
    assert (status["verdict"], status["hole_count"]) == ("EQUIVALENT", 0)
    assert (status["matched"], status["accounts"]["candidate"]["replayed"]) == (len(ROWS), 25 + len(ROWS))


def test_a_retry_with_other_rows_is_a_hole_and_no_difference(pair: Pair) -> None:
    rows = batch(pair, 0)
    pair.candidate.attempt("e/0.0", rows[:25])
    pair.candidate.attempt("e/0.1", rows[5:])
    pair.candidate.say()
    status = hole(pair)
    assert status["holes"][0]["side"] == "candidate"
    assert "query query-1.9.0 of the candidate wrote batch 0 several times" in status["reason"]


def test_a_retry_after_a_kill_in_the_middle_of_a_batch_is_told(pair: Pair) -> None:
    rows = batch(pair, 0)
    pair.candidate.attempt("e/0.0", rows[:25])
    read(pair, 25)
    eventually(lambda: sum(pair.status()["verified_up_to"]["candidate"].values()) == 25, what="it is saved")
    pair.service.kill()
    pair.service.start()
    pair.candidate.attempt("e/0.1", key_by_key(rows))
    pair.candidate.say()
    pair.service.answers("pass")
    status = read(pair, 25 + len(ROWS))
    assert (status["matched"], status["accounts"]["candidate"]["replayed"]) == (len(ROWS), 25)


def test_what_is_remembered_is_bounded_by_the_horizon_and_survives_a_kill(pair: Pair) -> None:
    written = []
    for number in range(2 * HORIZON):
        written.append(batch(pair, number))
        pair.candidate.attempt("e/0.0", written[-1])
        pair.candidate.say()
    count = len(ROWS) * len(written)
    read(pair, count)
    pair.service.answers("pass")
    pair.service.kill()
    pair.service.start()
    pair.candidate.batch = 2 * HORIZON - 2
    pair.candidate.attempt("late/0.0", written[pair.candidate.batch][::-1])
    status = read(pair, count + len(ROWS))
    assert (status["hole_count"], status["divergences"]["total"]) == (0, 0)
    assert status["accounts"]["candidate"]["replayed"] == len(ROWS)
    pair.candidate.batch = 0
    pair.candidate.attempt("late/0.0", written[0])
    assert f"only the last {HORIZON} are remembered" in hole(pair)["reason"]
