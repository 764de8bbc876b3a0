"""`twinstream explain` as a user runs it: on an answer that `check` has written, and on a running service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.commands import twinstream
from tests.support.server import Served, served
from tests.support.statuses import NAME, divergence, expectation, status
from twinstream.api.state.board import Board
from twinstream.testing import check

RIDES = [{"taxi": taxi, "ride": ride} for taxi, ride in ((7, "a"), (9, "b"), (7, "c"), (9, "d"))]


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    return twinstream("explain", *arguments, stdin=stdin)


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    """An answer with two divergences: both taxis have swapped their rides."""
    found = check({"order": {"per_key": ["taxi"]}}, RIDES, RIDES[2:] + RIDES[:2])
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(found.to_dict(), indent=2))
    return path


@pytest.fixture
def service() -> Iterator[Served]:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        service.publish(status(at=datetime.now(UTC)), divergence("d-1"))
        yield service


def test_all_divergences_of_an_answer_are_explained(answer: Path) -> None:
    code, out, err = run("--from", str(answer))
    assert (code, err) == (0, "")
    assert out.count("reordered · taxi ") == 2
    assert out.count("╳") == 2
    assert "whose events must keep their order" in out
    assert not out.startswith("\n")


def test_one_of_them_is_named_by_the_beginning_of_its_id(answer: Path) -> None:
    ids = [example["id"] for example in json.loads(answer.read_text())["examples"]]
    code, out, _ = run(ids[0][:8], "--from", "-", stdin=answer.read_bytes())
    assert code == 0
    assert out.startswith(f"reordered · taxi 7 · id {ids[0]}\n")
    code, out, _ = run(ids[1], "--from", str(answer), "--json")
    assert json.loads(out)["scope"] == {"taxi": 9}


def test_a_divergence_that_is_not_there_is_named_with_those_that_are(answer: Path) -> None:
    code, out, err = run("zz", "--from", str(answer))
    assert (code, out) == (2, "")
    assert f"{answer} has no divergence 'zz'; it has " in err
    code, _, err = run("", "--from", str(answer))
    assert code == 2
    assert "'' is the beginning of several: " in err


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"examples":[{"id":"a"}]}', '{"examples":5}'])
def test_a_file_that_is_no_answer_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(text)
    code, out, err = run("--from", str(path))
    assert (code, out) == (2, "")
    assert err == f"twinstream: {path}: is no answer of `twinstream check --json`\n"


def test_an_answer_without_a_divergence_is_told(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(check({"order": "total"}, RIDES, RIDES).to_dict()))
    code, _, err = run("--from", str(path))
    assert code == 2
    assert err == f"twinstream: {path}: has no divergence to explain\n"


def test_a_divergence_of_a_service_is_found_in_the_comparison_that_has_it(service: Served) -> None:
    for more in ((), ("--comparison", NAME)):
        code, out, err = run("d-1", "--service", service.url, *more)
        assert (code, err) == (0, "")
        assert "id d-1" in out.splitlines()[0]
    code, out, _ = run("d-1", "--service", service.url, "--json")
    assert json.loads(out)["comparison"] == NAME


def test_a_service_without_it_exits_with_2_and_no_service_with_4(service: Served) -> None:
    code, _, err = run("d-2", "--service", service.url)
    assert code == 2
    assert f"no comparison of the service keeps a divergence 'd-2'; it has {NAME}" in err
    code, _, err = run("d-2", "--service", service.url, "--comparison", NAME)
    assert code == 2
    assert "keeps no divergence" in err
    code, _, err = run("d-1", "--service", "http://127.0.0.1:1")
    assert code == 4
    assert "cannot be reached" in err


def test_an_id_or_a_file_is_needed(answer: Path) -> None:
    code, _, err = run()
    assert code == 2
    assert "name a divergence by its ID, or give --from FILE" in err
    code, _, err = run("--from", str(answer), "--comparison", "x")
    assert code == 2
    assert "--comparison is for a service" in err
