"""`twinstream replay` as a user runs it: on an answer of `check`, and on a running service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import twinstream
from tests.support.server import Served
from tests.support.statuses import NAME, divergence
from twinstream.cli.commands.replay import UNLISTED
from twinstream.testing import check

OLD = {
    "version": 1,
    "name": "rides",
    "reference": {"topic": "rides.v1"},
    "candidate": {"topic": "rides.v2"},
    "order": "unordered",
    "identity": ["ride"],
}
REFERENCE = [{"ride": "a", "fare": 1, "at": 1}, {"ride": "b", "fare": 1, "at": 1}, {"ride": "c", "fare": 1}]
CANDIDATE = [{"ride": "a", "fare": 1, "at": 2}, {"ride": "b", "fare": 2, "at": 2}]


def run(*arguments: str | Path, stdin: bytes = b"") -> tuple[int, str, str]:
    return twinstream("replay", *arguments, stdin=stdin)


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(check(OLD, REFERENCE, CANDIDATE).to_dict()))
    return path


@pytest.fixture
def looser(tmp_path: Path) -> Path:
    path = tmp_path / "looser.yaml"
    path.write_text(json.dumps({**OLD, "equality": {"ignore": ["at"]}}))
    return path


def test_what_the_new_rules_would_have_hidden_is_told_with_examples(answer: Path, looser: Path) -> None:
    code, out, err = run("--spec", looser, "--divergences", answer)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "3 divergences with the new rules:"
    assert lines[1].split() == ["1", *["hidden:", "no", "difference", "any", "more"]]
    assert lines[2].strip().startswith("changed ")
    assert lines[2].endswith(": the events are equal")
    assert lines[3].split()[:2] == ["2", "reported:"]


def test_an_answer_a_line_and_standard_input_are_taken_alike(answer: Path, looser: Path) -> None:
    examples = json.loads(answer.read_text())["examples"]
    lines = "\n".join(map(json.dumps, examples)).encode()
    code, out, _ = run("--spec", looser, "--divergences", "-", "--json", stdin=lines)
    assert (code, out) == run("--spec", looser, "--divergences", answer, "--json")[:2]
    found = json.loads(out)
    assert found["outcomes"] == {"hidden": 1, "explained": 0, "equal": 0, "reported": 2, "unknown": 0}
    assert {item["id"] for item in found["items"]} == {example["id"] for example in examples}


def test_rules_that_hide_nothing_end_with_0(answer: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.yaml"
    same.write_text(json.dumps(OLD))
    assert run("--spec", same, "--divergences", answer)[0] == 0


def test_of_more_divergences_than_an_answer_lists_the_others_are_unknown(tmp_path: Path) -> None:
    rows = [{"ride": f"{number}", "fare": 1, "at": 1} for number in range(101)]
    later = [{**row, "fare": 2} for row in rows[:100]] + [{**rows[100], "at": 2}]
    answer, looser = tmp_path / "answer.json", tmp_path / "looser.yaml"
    answer.write_text(json.dumps(check(OLD, rows, later).to_dict()))
    looser.write_text(json.dumps({**OLD, "equality": {"ignore": ["at"]}}))
    code, out, _ = run("--spec", looser, "--divergences", answer)
    assert (code, out.splitlines()[-1]) == (3, UNLISTED)
    assert json.loads(run("--spec", looser, "--divergences", answer, "--json")[1])["all_listed"] is False


def test_an_empty_file_and_one_without_a_list_are_refused(looser: Path, tmp_path: Path) -> None:
    code, _, err = run("--spec", looser, "--divergences", "-")
    assert (code, err.startswith("twinstream: -: is empty: give an answer of")) == (2, True), err
    (tmp_path / "null.json").write_text('{"examples": null}')
    code, _, err = run("--spec", looser, "--divergences", tmp_path / "null.json")
    assert (code, "has no list of divergences" in err) == (2, True), err


@pytest.mark.parametrize("total", [None, "5", True])
def test_a_count_that_is_no_number_is_refused(looser: Path, tmp_path: Path, total: object) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"divergences": {"total": total}, "examples": []}))
    code, out, err = run("--spec", looser, "--divergences", kept)
    assert (code, out, "kept.json: `divergences.total` is not a number" in err) == (2, "", True)


def test_masked_values_of_a_service_are_unknown_and_read_from_kafka_if_asked(
    service: Served, tmp_path: Path
) -> None:
    file = tmp_path / "new.yaml"
    topics = {"reference": {"topic": "ads.reference"}, "candidate": {"topic": "ads.candidate"}}
    file.write_text(json.dumps({**OLD, **topics, "name": NAME, "identity": ["ad_id"]}))
    masked = {"ad_id": 17, "campaign_id": "‹text, 3 characters›"}
    service.publish(divergence("d-1", kind="changed", reference=masked, candidate=masked))
    given = ("--spec", file, "--name", NAME, "--service", service.url)
    code, out, _ = run(*given)
    assert (code, "--brokers reads the records" in out) == (3, True)
    code, _, err = run(*given, "--brokers", "127.0.0.1:9")
    away = "twinstream: kafka at 127.0.0.1:9 does not answer: nothing listens on port 9 of 127.0.0.1: "
    assert (code, err.startswith(away)) == (4, True)
