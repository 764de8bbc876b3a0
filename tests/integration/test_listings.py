"""What differs and what waits, as a program pages, picks and exports it over HTTP."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.support.server import Served
from tests.support.statuses import NAME, START, divergence, status, unmatched
from twinstream.status.common import Sides
from twinstream.status.comparison import UnmatchedSample

BASE = f"/v1/comparisons/{NAME}"


@pytest.fixture
def found(service: Served) -> None:
    """Some divergences, each of which has something that the others have not."""
    rich = {"country": "FR", "ad_id": 17, "large": 1e31, "none": -0.0, "at": {"x": 1, "y": [2]}}
    service.publish(
        divergence("a", kind="missing", scope={"ad_id": 3}, fields={}),
        divergence("b", scope=rich, first_seen=START + timedelta(minutes=1)),
        divergence("c", explained="PRICE-17"),
        divergence("d", late=12.5, kind="missing"),
        divergence("e", tainted=True),
        divergence("f", provisional=True),
        divergence("g", fields={"price": Sides[Any](reference=1, candidate=2)}),
    )


PICKED = {
    "": "bgfeda",
    "kind=missing": "da",
    "scope=ad_id=3": "a",
    "scope=country=FR": "b",
    "scope=country=%22FR%22&scope=ad_id=17": "b",
    "scope=country=FR&scope=ad_id=3": "",
    "scope=ad_id=17.0&scope=none=0": "b",
    "scope=large=10000000000000000000000000000000": "b",
    "scope=at={%22y%22:[2],%22x%22:1.0}": "b",
    "scope=ad_id=17x": "",
    "scope=ad_id=%2217%22": "",
    "field=price": "g",
    "field=price&field=campaign_id": "",
    "from=2026-03-01T12:00:30Z": "b",
    "to=2026-03-01T12:00:30Z": "gfeda",
    "from=2026-03-01T13:00:00%2B01:00&to=2026-03-01T12:01:00Z": "gfeda",
    "explained=true": "c",
    "explained=false": "bgfeda",
    "late=true": "d",
    "late=false&kind=missing": "a",
    "tainted=true": "e",
    "provisional=true": "f",
}


@pytest.mark.usefixtures("found")
def test_divergences_are_picked(http: httpx.Client) -> None:
    listed, exported = {}, {}
    for query in PICKED:
        page = http.get(f"{BASE}/divergences?{query}").raise_for_status().json()
        listed[query] = "".join(item["id"] for item in page["items"])
        lines = http.get(f"{BASE}/divergences.ndjson?{query}").text.splitlines()
        exported[query] = "".join(json.loads(line)["id"] for line in lines)
    assert listed == exported == PICKED


def test_a_cursor_goes_on_where_it_stood_although_new_ones_come(service: Served, http: httpx.Client) -> None:
    ids = [f"{number:016x}" for number in range(7)]
    service.publish(*map(divergence, ids[:6]))
    seen, cursor = [], ""
    for _ in range(3):
        page = http.get(f"{BASE}/divergences?limit=2{cursor}").json()
        seen += [item["id"] for item in page["items"]]
        cursor = f"&cursor={page['next']}"
        service.publish(divergence(ids[6]), divergence(ids[4], kind="missing"))
    assert seen == ids[5::-1]
    assert page["next"] is None


def test_everything_that_names_a_divergence_is_exported_a_line_each(
    service: Served, http: httpx.Client
) -> None:
    ids = [f"{number:016x}" for number in range(1500)]
    service.publish(*map(divergence, ids))
    for response in (
        http.get(f"{BASE}/divergences.ndjson"),
        http.get(f"{BASE}/divergences", headers={"Accept": "application/x-ndjson"}),
    ):
        assert response.headers["content-type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in response.text.splitlines()]
        assert [line["id"] for line in lines] == ids[::-1]
        position = {"topic": "ads.reference", "partition": 1, "offset": 2504}
        assert lines[0]["positions"]["reference"] == position
        assert {"kind", "scope", "first_seen"} <= lines[0].keys()
        assert "c-7" not in response.text, "no values"


def test_what_waits_is_listed_oldest_first_with_its_age(service: Served, http: httpx.Client) -> None:
    old = unmatched(7, seconds=-30, overdue=True)
    sample = (old, unmatched(9, seconds=-10), unmatched(4, side="candidate", seconds=-20))
    service.publish(status(at=START), UnmatchedSample(comparison=NAME, events=sample))
    items = http.get(f"{BASE}/unmatched").json()["items"]
    ages = [(item["position"]["offset"], item["age_seconds"]) for item in items]
    assert ages == [(7, 30.0), (4, 20.0), (9, 10.0)]
    assert items[0]["value"] == {"ad_id": 17, "campaign_id": "‹text, 3 characters, #3fa9c21e›"}
    for query, offsets in (("side=candidate", [4]), ("overdue=true", [7]), ("overdue=false", [4, 9])):
        found = http.get(f"{BASE}/unmatched?{query}").json()["items"]
        assert [item["position"]["offset"] for item in found] == offsets


def test_a_page_of_what_waits_goes_on_although_some_have_been_matched(
    service: Served, http: httpx.Client
) -> None:
    waiting = [unmatched(offset, seconds=offset / 10) for offset in range(6)]
    service.publish(UnmatchedSample(comparison=NAME, events=tuple(waiting)))
    first = http.get(f"{BASE}/unmatched", params={"limit": 3}).json()
    service.publish(UnmatchedSample(comparison=NAME, events=tuple(waiting[4:])))
    second = http.get(f"{BASE}/unmatched", params={"limit": 3, "cursor": first["next"]}).json()
    assert [item["position"]["offset"] for item in first["items"] + second["items"]] == [0, 1, 2, 4, 5]
    assert second["next"] is None


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("rest", ["", "/gate", "/progress", "/history", "/divergences", "/unmatched"])
def test_what_a_client_has_already_is_not_sent_again(http: httpx.Client, rest: str) -> None:
    first = http.get(BASE + rest)
    again = http.get(BASE + rest, headers={"If-None-Match": first.headers["etag"]})
    if rest == "/gate":  # It says how old it is.
        assert again.status_code in (200, 304)
    else:
        assert (again.status_code, again.content) == (304, b"")


HEADS = ["/", "/healthz", "/readyz", "/metrics", "/v1/comparisons", BASE, "/v1/events", f"{BASE}/nothing"]
PARTS = ["gate", "gate/strict", "divergences", "divergences.ndjson", "divergences/a"]


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("path", [*HEADS, *(f"{BASE}/{part}" for part in PARTS)])
def test_head_is_answered_as_get_is_without_a_body(service: Served, http: httpx.Client, path: str) -> None:
    head = http.head(path)
    assert head.content == b""
    with http.stream("GET", path) as get:
        told = get.status_code, get.headers["content-type"]
    assert (head.status_code, head.headers["content-type"]) == told
    assert service.call(lambda: service.board.listeners) <= 1
