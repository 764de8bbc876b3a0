"""`twinstream lint` as a user runs it, against files and against a real broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.stack import MakeTopic


def run(*arguments: str | Path) -> tuple[int, str, str]:
    return twinstream("lint", *arguments)


def write(folder: Path, order: Any, reference: str = "r", candidate: str = "c") -> Path:
    path = folder / "spec.yaml"
    sides = {"reference": {"topic": reference}, "candidate": {"topic": candidate}}
    kinds = {"night": {"where": {"type": "eod"}}, "ride": {}}
    path.write_text(json.dumps({"version": 1, "name": "rides", **sides, "kinds": kinds, "order": order}))
    return path


BARRIER = {"barrier": "night", "inner": {"per_key": ["taxi"]}}


def test_a_file_is_told_as_tables(tmp_path: Path) -> None:
    code, out, err = run(write(tmp_path, BARRIER))
    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    assert lines[0] == "rides: compared in order per taxi between equal night barriers"
    assert any(line.split() == ["night", "always", "always"] for line in lines)
    assert any(line.split() == ["ride", "taxi", "equal"] for line in lines)
    assert any(line.startswith("ride") and line.endswith("µs") for line in lines)
    assert "Warnings" in lines
    assert "Refused" not in lines
    assert "\x1b" not in out


def test_the_same_is_there_as_one_object(tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path, BARRIER), "--json")
    report = json.loads(out)
    assert code == 0
    assert report["matrix"][2] == {"first": "ride", "second": "ride", "when": "taxi equal"}
    assert {note["key"] for note in report["warnings"]} == {"order.barrier", "identity", "show"}


@pytest.mark.requires_kafka
@pytest.mark.timeout(180)
def test_what_topics_forbid_is_refused_and_what_they_allow_is_not(
    tmp_path: Path, kafka: Kafka, topic: MakeTopic
) -> None:
    wide, narrow = topic(partitions=3), topic()
    compacted = topic(config={"cleanup.policy": "compact"})
    asked = ("--brokers", kafka.brokers, "--json")
    assert run(write(tmp_path, BARRIER, narrow, topic()), *asked)[0] == 0
    code, out, _ = run(write(tmp_path, {"per_key": ["taxi"]}, wide, narrow), *asked[:2])
    assert code == 0
    assert f"{wide} has 3 partitions, cleanup.policy delete" in out
    assert "They fit this comparison." in out
    code, out, _ = run(write(tmp_path, BARRIER, wide, compacted), *asked)
    keys = [note["key"] for note in json.loads(out)["refused"]]
    assert (code, keys) == (2, ["order.barrier", "candidate.topic"])
    code, out, _ = run(write(tmp_path, BARRIER, narrow, "nobody-made-this"), "--brokers", kafka.brokers)
    assert code == 2
    assert "there is no topic nobody-made-this" in out
