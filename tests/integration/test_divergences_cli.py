"""`twinstream divergences` as a user runs it, on a running service; and the version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.support.commands import twinstream
from tests.support.server import Served, served
from tests.support.statuses import NAME, divergence, expectation, status
from twinstream.api.state.board import Board

FOUND = 600
"""More than the service gives at once."""


@pytest.fixture
def service() -> Iterator[Served]:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        found = [divergence(f"d-{number}") for number in range(FOUND)]
        service.publish(status(at=datetime.now(UTC)), *found, divergence("m-1", kind="missing"))
        yield service


def test_all_divergences_are_listed_newest_first_beyond_what_the_service_gives_at_once(
    service: Served,
) -> None:
    code, out, err = twinstream("divergences", NAME, "--service", service.url, "--limit", "1000", "--json")
    assert (code, err) == (0, "")
    listing = json.loads(out)
    assert [each["id"] for each in listing["items"]] == ["m-1", *(f"d-{n}" for n in reversed(range(FOUND)))]
    assert listing["next"] is None


def test_they_are_told_as_a_person_reads_them_and_picked_by_kind(service: Served) -> None:
    code, out, err = twinstream("divergences", NAME, "--service", service.url, "--kind", "missing")
    assert (code, err) == (0, "")
    assert out.startswith("missing · ")
    assert "id m-1" in out.splitlines()[0]
    code, out, _ = twinstream("divergences", NAME, "--service", service.url, "--limit", "2", "--json")
    listing = json.loads(out)
    assert ([each["id"] for each in listing["items"]], code) == (["m-1", f"d-{FOUND - 1}"], 0)
    assert listing["next"] is not None


def test_examples_of_what_known_differences_explain_are_listed_when_asked_for(service: Served) -> None:
    service.publish(divergence("known", explained="PRICE-17"))
    code, out, _ = twinstream("divergences", NAME, "--service", service.url, "--limit", "1", "--json")
    assert (code, [each["id"] for each in json.loads(out)["items"]]) == (0, ["m-1"])
    code, out, err = twinstream("divergences", NAME, "--service", service.url, "--explained")
    assert (code, err, out.count(" id ")) == (0, "", 1)
    assert out.splitlines()[0].endswith("id known · explained by PRICE-17")
    code, out, _ = twinstream("explain", "known", "--service", service.url)
    assert (code, out.splitlines()[0].endswith("explained by PRICE-17")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nobody",), 2, "There is no comparison 'nobody'"),
        ((NAME, "--kind", "odd"), 2, "'odd' is not one of"),
        ((NAME, "--limit", "0"), 2, "0 is not in the range"),
        ((NAME, "--service", "http://127.0.0.1:1"), 4, "cannot be reached"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(
    service: Served, arguments: tuple[str, ...], code: int, said: str
) -> None:
    found, out, err = twinstream("divergences", "--service", service.url, *arguments)
    assert (found, out) == (code, "")
    assert said in err


def test_the_version_is_told_to_programs_too() -> None:
    code, out, _ = twinstream("version", "--json")
    assert code == 0
    assert twinstream("version")[1].strip() == json.loads(out)["version"]
