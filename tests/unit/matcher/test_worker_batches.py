"""A batch that may be written again is finished when its version says so, on every clock."""

from __future__ import annotations

import orjson
import pytest

from tests.support.retries import rows
from tests.support.saying import VERSIONS
from tests.support.workers import Bench
from twinstream.core.events import Side

LEFT, RIGHT = Side
SPEC = (
    VERSIONS
    + """\
order: total
control: test.control
duplicates: {policy: replays}
evidence: {matched: 1, seconds: 0}
"""
)
CLOCKS = ["arrival", "input", "event_time, field: t, after: 10s"]


class Saying(Bench):
    """A bench whose versions mark what they write, and say what they have finished."""

    def put_out(self, side: Side, text: str) -> None:
        """Rows from words ``BATCH/EXECUTION/TASK.ATTEMPT:NAMES``."""
        for row in rows(text):
            self.source.append(side, 0, orjson.dumps(row.value), 0, row.headers)


@pytest.fixture(params=CLOCKS)
def bench(request: pytest.FixtureRequest) -> Saying:
    return Saying(spec=f"{SPEC}overdue: {{clock: {request.param}}}\n")


def test_a_difference_in_the_last_batch_counts_when_its_version_says_that_it_is_finished(
    bench: Saying,
) -> None:
    bench.put_out(LEFT, "1/e/0.0:ab")
    bench.put_out(RIGHT, "1/x/0.0:aab")
    status = bench.settled()
    assert status.verdict == "INCONCLUSIVE"
    assert "it counts once the batches open at that time are finished" in status.reason
    bench.finish(LEFT, 1, 10)
    assert bench.settled().verdict == "INCONCLUSIVE"
    bench.finish(RIGHT, 1, 10)
    assert bench.settled().verdict == "DIVERGED"


def test_a_retry_in_the_last_batch_that_differs_is_a_hole_when_the_batch_is_finished(bench: Saying) -> None:
    bench.put_out(LEFT, "1/e/0.0:ab")
    bench.put_out(RIGHT, "1/x/0.0:a 1/y/0.0:b")
    assert bench.settled().hole_count == 0
    bench.finish(RIGHT, 1, 10)
    status = bench.settled()
    assert (status.verdict, [hole.side for hole in status.holes]) == ("INCONCLUSIVE", ["candidate"])


def test_a_batch_is_not_finished_before_all_that_it_wrote_is_read(bench: Saying) -> None:
    bench.put_out(LEFT, "1/e/0.0:ab")
    bench.put_out(RIGHT, "1/x/0.0:b")
    bench.finish(LEFT, 1, 10)
    bench.finish(RIGHT, 1, 10, written=3)
    assert bench.settled().verdict == "INCONCLUSIVE"
    bench.put_out(RIGHT, "1/y/0.0:ab")
    status = bench.settled()
    assert status.accounts.candidate.replayed == 1
    assert status.verdict == "DIVERGED"


def test_what_a_version_has_said_outlasts_a_restart(bench: Saying) -> None:
    bench.finish(RIGHT, 7, 10)
    bench.settled()
    bench.finish(RIGHT, 0, 0, query_id="anew")
    status = bench.settled(bench.restarted())
    assert [hole.side for hole in status.holes] == ["candidate"]
    assert "it was created anew" in status.holes[0].reason
