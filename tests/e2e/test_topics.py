"""The running service, while something happens to its topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.cases import Case, Serve
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess
from tests.support.waiting import eventually
from twinstream.core.events import Side

pytestmark = whole_product()


@pytest.fixture
def passing(serve: Serve) -> Case:
    """A service that has matched a hundred pairs and passes."""
    case = serve()
    case.passes(range(100))
    return case


def _hole(service: ServiceProcess, beginning: str) -> dict[str, Any]:
    """The hole whose reason holds a text, once it is there; the gate is undecided then."""

    def found() -> dict[str, Any] | None:
        holes: list[dict[str, Any]] = service.get("")["holes"]
        return next((hole for hole in holes if beginning in hole["reason"]), None)

    hole = eventually(found, seconds=60, what=f"a hole: {beginning}")
    assert service.get("")["verdict"] == "INCONCLUSIVE"
    assert service.gate() == "undecided"
    return hole


def test_a_topic_created_anew_that_has_grown_as_long_is_a_hole_and_never_held_against_a_side(
    passing: Case,
) -> None:
    service, write, topics = passing
    matchers = service.matchers()
    topics.create_anew(Side.RIGHT)
    write.side(Side.RIGHT, range(1000, 1150))
    write.side(Side.LEFT, range(100, 250))
    hole = _hole(service, "was deleted and created anew")
    assert "begins there at 0" in hole["reason"]
    status = service.get("")
    assert status["verdict"] == "INCONCLUSIVE", "a difference that was called proven stays"
    assert status["divergences"]["total"] > 0
    assert all(found["tainted"] for found in service.divergences())
    assert service.matchers() == matchers, "it goes on and does not crash"


def test_records_deleted_while_a_side_waits_for_the_other_are_a_hole_with_both_offsets(
    serve: Serve, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("kafka: {queued.min.messages: 100, fetch.message.max.bytes: 10000}\n")
    service, write, topics = serve("--config", str(config), more="limits: {unmatched_events: 4000}\n")
    for begin in range(0, 8000, 500):
        write.side(Side.LEFT, range(begin, begin + 500))  # What stands in one batch is fetched as a whole.
    eventually(lambda: service.get("")["events"]["reference"] > 2000, seconds=60, what="it waits")
    topics.retain(Side.LEFT, 0, 7000)
    write.side(Side.RIGHT, range(8000))
    hole = _hole(service, "–6,999 of ")
    status = eventually(lambda: _read(service, 8000), seconds=60, what="the rest is read")
    first = int(hole["position"]["offset"])
    assert first in range(2001, 7000)
    assert hole["reason"].startswith(f"Kafka no longer has offsets {first:,}–")
    assert status["events"]["reference"] == 8000 - (7000 - first)
    assert (status["verdict"], service.gate()) == ("INCONCLUSIVE", "undecided")


def _read(service: ServiceProcess, total: int) -> dict[str, Any] | None:
    """The status once the topic of the reference is read to its end."""
    status: dict[str, Any] = service.get("")
    positions = [partition["position"] for partition in status["progress"]["reference"]]
    return status if positions == [total] else None


def test_an_empty_store_of_which_the_records_are_gone_is_a_hole_with_the_gap(
    passing: Case, redis_url: str
) -> None:
    service, _, topics = passing
    service.stop()
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    for side in Side:
        topics.retain(side, 0, 40)
    service.start()
    hole = _hole(service, "Kafka no longer has offsets 0–39 of ")
    assert hole["reason"].startswith("the state in the store was lost")
