"""A comparison begins anew on real Kafka and Redis, also where the service is killed right after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.embedded.kafka import Kafka
from tests.support.cases import Case, serving
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product()


@pytest.fixture
def case(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Case]:
    """A service whose comparison has diverged, with three partitions a side."""
    topics = topic(partitions=3), topic(partitions=3)
    with serving(tmp_path, kafka.brokers, redis_url, topics) as case:
        case.write.both(range(500))
        case.write.reference(3, -1)
        case.write.both(range(500, 1000))
        eventually(lambda: case.service.gate() == "fail", seconds=60, what="the gate fails")
        eventually(lambda: case.service.get("")["unmatched"] == {"reference": 0, "candidate": 0}, what="rest")
        yield case


def reset(service: ServiceProcess, **more: Any) -> httpx.Response:
    name = service.get("")["name"]
    body = {"reason": "the candidate is mended", "by": "ann", **more}
    return httpx.post(
        f"{service.address}/v1/comparisons/{name}/reset", json=body, timeout=60, trust_env=False
    )


def matched_anew(service: ServiceProcess, matched: int) -> None:
    """The new comparison has matched so many, passes, and knows of no difference."""
    eventually(lambda: service.get("")["matched"] == matched, seconds=60, what=f"{matched} pairs match")
    eventually(lambda: service.gate() == "pass", seconds=60, what="the gate passes")
    status = service.get("")
    assert (status["divergences"]["total"], status["holes"]) == (0, [])
    assert [(record["by"], record["before"]["verdict"]) for record in status["resets"]] == [
        ("ann", "DIVERGED")
    ]
    assert service.get("/divergences")["items"] == []


def test_a_diverged_comparison_begins_anew_now_and_passes_also_after_a_restart(case: Case) -> None:
    service, write, _ = case
    response = reset(service, start="now")
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
    assert reset(service, start="now").status_code == 200
    service.kill()
    write.both(range(1000, 1200))
    service.start()
    matched_anew(service, 200)


def test_a_service_that_is_killed_while_it_resets_goes_on_with_the_old_comparison_or_the_new_one(
    case: Case,
) -> None:
    service, write, _ = case
    name = service.get("")["name"]
    url = f"{service.address}/v1/comparisons/{name}/reset"
    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.HTTPError):
        client.post(url, json={"reason": "mended", "by": "ann", "start": "now"}, timeout=0.001)
    service.kill()
    write.both(range(1000, 1200))
    service.start()
    eventually(lambda: service.get("")["matched"] in (200, 1200), seconds=60, what="all pairs match")
    status = service.get("")
    if status["resets"]:
        matched_anew(service, 200)
    else:
        eventually(lambda: service.gate() == "fail", seconds=60, what="the gate fails")
        assert len(service.get("/divergences")["items"]) == 1


def test_a_reset_to_what_the_file_says_finds_the_same_difference_again(case: Case) -> None:
    service, _, _ = case
    (before,) = service.get("/divergences")["items"]
    assert reset(service).status_code == 200
    eventually(lambda: service.get("")["reset_count"] == 1, seconds=30, what="the reset is recorded")
    eventually(lambda: service.gate() == "fail", seconds=60, what="the gate fails")
    (after,) = service.get("/divergences")["items"]
    assert after["id"] == before["id"]


def test_a_standby_refuses_and_the_owner_is_untouched(case: Case, kafka: Kafka, redis_url: str) -> None:
    service = case.service
    standby = ServiceProcess(service.spec, kafka.brokers, redis_url)
    standby.start()
    try:
        eventually(lambda: "stands by" in standby.get("")["reason"], seconds=30, what="it stands by")
        response = reset(standby)
    finally:
        standby.stop()
    assert response.status_code == 409
    assert "another process owns this comparison" in response.json()["detail"]
    assert service.gate() == "fail"
