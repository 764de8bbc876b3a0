"""`twinstream explain` as a user runs it: on an answer that `check` has written, and on a running service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import said
from tests.support.server import Served
from tests.support.statuses import NAME, divergence
from twinstream.testing import check

RIDES = [{"taxi": taxi, "ride": ride} for taxi, ride in ((7, "a"), (9, "b"), (7, "c"), (9, "d"))]


def run(*arguments: str, stdin: bytes = b"") -> str:
    return said("explain", *arguments, stdin=stdin)


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    """An answer with two divergences: both taxis have swapped their rides."""
    found = check({"order": {"per_key": ["taxi"]}}, RIDES, RIDES[2:] + RIDES[:2])
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(found.to_dict(), indent=2))
    return path


def test_all_divergences_of_an_answer_are_explained(answer: Path) -> None:
    out = run("--from", str(answer))
    assert out.count("reordered · taxi ") == 2
    assert out.count("╳") == 2
    assert "whose events must keep their order" in out
    assert not out.startswith("\n")


def test_one_of_them_is_named_by_the_beginning_of_its_id(answer: Path) -> None:
    ids = [example["id"] for example in json.loads(answer.read_text())["examples"]]
    out = run(ids[0][:8], "--from", "-", stdin=answer.read_bytes())
    assert out.startswith(f"reordered · taxi 7 · id {ids[0]}\n")
    assert json.loads(run(ids[1], "--from", str(answer), "--json"))["scope"] == {"taxi": 9}


def test_a_divergence_of_a_service_is_found_in_the_comparison_that_has_it(service: Served) -> None:
    service.publish(divergence("d-1"))
    for more in ((), ("--comparison", NAME)):
        assert "id d-1" in run("d-1", "--service", service.url, *more).splitlines()[0]
    assert json.loads(run("d-1", "--service", service.url, "--json"))["comparison"] == NAME
