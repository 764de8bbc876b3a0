"""A comparison begins anew on real Kafka and Redis, also where the service is killed right after."""

from __future__ import annotations

import httpx
import pytest

from tests.support.cases import NOTHING, Case, Serve
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess
from tests.support.waiting import eventually

pytestmark = whole_product()


@pytest.fixture
def case(serve: Serve) -> Case:
    """A service whose comparison has diverged, with three partitions a side."""
    case = serve(partitions=3)
    case.write.both(range(500))
    case.write.reference(3, -1)
    case.write.both(range(500, 1000))
    case.service.answers("fail")
    case.service.shows(unmatched=NOTHING)
    return case


def matched_anew(service: ServiceProcess, matched: int) -> None:
    """The new comparison has matched so many, passes, and knows of no difference."""
    service.passes_with(matched)
    status = service.get("")
    assert (status["divergences"]["total"], status["holes"]) == (0, [])
    (record,) = status["resets"]
    assert (record["by"], record["before"]["verdict"]) == ("ann", "DIVERGED")
    assert service.divergences() == []


def test_a_diverged_comparison_begins_anew_now_and_passes_also_after_a_restart(case: Case) -> None:
    service, write, _ = case
    response = service.reset()
    assert response.status_code == 200, response.text
    assert response.json()["before"]["divergences"] == 1
    write.both(range(1000, 1200))
    matched_anew(service, 200)
    service.stop()
    service.start()
    write.both(range(1200, 1300))
    matched_anew(service, 300)


def test_a_service_that_is_killed_right_after_goes_on_with_the_new_comparison(case: Case) -> None:
    service, write, _ = case
    assert service.reset().status_code == 200
    service.kill()
    write.both(range(1000, 1200))
    service.start()
    matched_anew(service, 200)


def test_a_service_that_is_killed_while_it_resets_goes_on_with_the_old_comparison_or_the_new_one(
    case: Case,
) -> None:
    service, write, _ = case
    with pytest.raises(httpx.HTTPError):
        service.reset(seconds=0.001)
    service.kill()
    write.both(range(1000, 1200))
    service.start()
    eventually(lambda: service.get("")["matched"] in (200, 1200), seconds=60, what="all pairs match")
    status = service.get("")
    if status["resets"]:
        matched_anew(service, 200)
    else:
        service.answers("fail")
        assert len(service.divergences()) == 1


def test_a_reset_to_what_the_file_says_finds_the_same_difference_again(case: Case) -> None:
    service = case.service
    (before,) = service.divergences()
    assert service.reset(start=None).status_code == 200
    service.shows(reset_count=1, seconds=30)
    service.answers("fail")
    (after,) = service.divergences()
    assert after["id"] == before["id"]
