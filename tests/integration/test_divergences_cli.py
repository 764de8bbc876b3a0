"""`twinstream divergences` as a user runs it, on a running service; and the version."""

from __future__ import annotations

import json

from tests.support.commands import said
from tests.support.server import Served
from tests.support.statuses import NAME, divergence

FOUND = 600
"""More than the service gives at once."""


def listed(service: Served, *options: str) -> str:
    return said("divergences", NAME, "--service", service.url, *options)


def test_divergences_are_listed_newest_first_beyond_what_the_service_gives_at_once_and_picked_by_kind(
    service: Served,
) -> None:
    service.publish(
        *[divergence(f"d-{number}") for number in range(FOUND)], divergence("m-1", kind="missing")
    )
    ids = ["m-1", *(f"d-{number}" for number in reversed(range(FOUND)))]
    for limit in (1000, 2):
        listing = json.loads(listed(service, "--limit", str(limit), "--json"))
        assert [each["id"] for each in listing["items"]] == ids[:limit]
        assert (listing["next"] is None) == (limit == 1000)
    missing = listed(service, "--kind", "missing")
    assert missing.startswith("missing · ")
    assert "id m-1" in missing.splitlines()[0]


def test_examples_of_what_known_differences_explain_are_listed_when_asked_for(service: Served) -> None:
    service.publish(divergence("m-1"), divergence("known", explained="PRICE-17"))
    assert [each["id"] for each in json.loads(listed(service, "--json"))["items"]] == ["m-1"]
    out = listed(service, "--explained")
    assert out.count(" id ") == 1
    assert out.splitlines()[0].endswith("id known · explained by PRICE-17")
    out = said("explain", "known", "--service", service.url)
    assert out.splitlines()[0].endswith("explained by PRICE-17")


def test_the_version_is_told_to_programs_too() -> None:
    assert said("version").strip() == json.loads(said("version", "--json"))["version"]
