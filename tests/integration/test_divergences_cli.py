"""`twinstream divergences` and `explain` as a user runs them, on a service and on an answer; the version."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.commands import said, twinstream
from tests.support.server import Served
from tests.support.statuses import NAME, diverged, divergence, later, status
from twinstream.status.comparison import Health
from twinstream.status.groups import Group
from twinstream.testing import check

FOUND = 600
"""More than the service gives at once."""


def listed(service: Served, *options: str) -> str:
    return said("divergences", NAME, "--service", service.url, *options)


def test_divergences_are_listed_newest_first_beyond_what_the_service_gives_at_once_and_picked_by_kind(
    service: Served,
) -> None:
    service.publish(
        *[divergence(f"{number:016x}") for number in range(FOUND)], divergence("f" * 16, kind="missing")
    )
    ids = ["f" * 16, *(f"{number:016x}" for number in reversed(range(FOUND)))]
    for limit in (1000, 2):
        listing = json.loads(listed(service, "--limit", str(limit), "--json"))
        assert [each["id"] for each in listing["items"]] == ids[:limit]
        assert (listing["next"] is None) == (limit == 1000)
    missing = listed(service, "--kind", "missing")
    assert missing.startswith("missing · ")
    assert f"id {'f' * 16}" in missing.splitlines()[0]


def test_an_empty_list_is_not_shown_as_complete_while_health_is_degraded(service: Served) -> None:
    service.publish(status(health=Health(status="degraded", reasons=["The owner has died."])))
    for options in ((), ("--json",), ("--by", "field")):
        code, _, err = twinstream("divergences", NAME, "--service", service.url, *options)
        assert (code, err) == (0, "twinstream: none is listed, but health is degraded: The owner has died.\n")
    service.publish(status(at=later(1.0)))
    assert listed(service) == ""


def test_examples_of_what_known_differences_explain_are_listed_when_asked_for(service: Served) -> None:
    service.publish(divergence("m-1"), divergence("known", explained="PRICE-17"))
    assert [each["id"] for each in json.loads(listed(service, "--json"))["items"]] == ["m-1"]
    out = listed(service, "--explained")
    assert out.count(" id ") == 1
    assert out.splitlines()[0].endswith("id known · explained by PRICE-17")
    out = said("explain", "known", "--service", service.url)
    assert out.splitlines()[0].endswith("explained by PRICE-17")


def test_divergences_are_summed_up_by_the_fields_that_differ(service: Served) -> None:
    groups = [
        Group(kind="changed", fields=["fare"], count=7868, examples=["d-1", "d-2"], text="7,868 changed."),
        Group(kind="missing", fields=[], count=3, text="3 missing.", cause="All are in partition 3."),
    ]
    service.publish(diverged(groups=groups))
    assert listed(service, "--by", "field").splitlines() == [
        "- 7,868 changed.",
        "  for example d-1, d-2",
        "- 3 missing. All are in partition 3.",
    ]
    told = json.loads(listed(service, "--by", "field", "--kind", "missing", "--json"))
    assert [group["count"] for group in told["groups"]] == [3]
    assert "- 7,868 changed.\n" in said("status", NAME, "--service", service.url, code=1)


def test_a_divergence_of_a_service_is_explained_by_the_comparison_that_has_it(service: Served) -> None:
    service.publish(divergence("d-1"))
    asked = ("explain", "d-1", "--service", service.url)
    for more in ((), ("--comparison", NAME)):
        assert "id d-1" in said(*asked, *more).splitlines()[0]
    assert json.loads(said(*asked, "--json"))["comparison"] == NAME


def test_divergences_of_an_answer_are_explained_all_or_one_by_the_beginning_of_its_id(
    tmp_path: Path,
) -> None:
    """Both taxis have swapped their rides."""
    rides = [{"taxi": taxi, "ride": ride} for taxi, ride in ((7, "a"), (9, "b"), (7, "c"), (9, "d"))]
    found = check({"order": {"per_key": ["taxi"]}}, rides, rides[2:] + rides[:2]).to_dict()
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(found, indent=2))
    out = said("explain", "--from", answer)
    assert out.count("reordered · ") == 2
    assert out.count("╳") == 2
    assert "so their order matters" in out
    assert not out.startswith("\n")
    one, other = (example["id"] for example in found["examples"])
    out = said("explain", one[:8], "--from", "-", stdin=answer.read_bytes())
    assert out.startswith(f"reordered · a before c → c before a · taxi 7 · id {one}\n")
    assert json.loads(said("explain", other, "--from", answer, "--json"))["scope"] == {"taxi": 9}


def test_the_version_is_told_to_programs_too() -> None:
    assert said("version").strip() == json.loads(said("version", "--json"))["version"]
