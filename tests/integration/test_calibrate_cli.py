"""`twinstream calibrate` as a user runs it, on files and on a real broker."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.noise import run_of, with_noise
from tests.support.stack import MakeTopic

NOISE = ("clock", "wobble", "null", "keys")


def lines(events: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = Random(11)
    one = run_of(random, 100)
    (tmp_path / "one.jsonl").write_bytes(lines(one))
    (tmp_path / "two.jsonl").write_bytes(lines(with_noise(random, one, NOISE)))
    return tmp_path


FILES = ("--reference", "one.jsonl", "--candidate", "two.jsonl")


def calibrate(
    folder: Path, *options: str, runs: tuple[str, ...] = FILES, stdin: bytes = b""
) -> tuple[int, str, str]:
    return twinstream("calibrate", *options, *runs, folder=folder, stdin=stdin)


def test_the_file_that_is_printed_makes_check_pass(folder: Path) -> None:
    code, out, err = calibrate(folder)
    assert code == 0
    assert "order: {per_key: [taxi]}" in out
    assert "# processed_at: differed in 100 of 100 pairs." in out
    assert "#   Hides: any change of `processed_at`." in out
    assert err.startswith("PROPOSED The runs are equal with 4 proposals")
    (folder / "spec.yaml").write_text(out)
    assert twinstream("check", "spec.yaml", *FILES, folder=folder)[0] == 0
    assert twinstream("lint", "spec.yaml", folder=folder)[0] == 0
    for option in (("--key", "taxi"), ("--identity", "ride")):
        assert calibrate(folder, *option)[0] == 0


def test_packed_files_and_standard_input_are_read(folder: Path) -> None:
    (folder / "one.jsonl.gz").write_bytes(gzip.compress((folder / "one.jsonl").read_bytes()))
    two = (folder / "two.jsonl").read_bytes()
    (folder / "two.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(two))
    packed = ("--reference", "one.jsonl.gz", "--candidate")
    told = calibrate(folder)
    assert calibrate(folder, runs=(*packed, "two.jsonl.zst")) == told
    assert calibrate(folder, runs=(*packed, "-"), stdin=two) == told


def test_everything_is_there_as_one_object_and_the_file_where_it_is_asked_for(folder: Path) -> None:
    code, out, err = calibrate(folder, "--json", "--output", "spec.yaml")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["result"], found["pairs"], found["paired_by"]) == ("proposed", 100, ["ride"])
    assert found["events"] == {"reference": 100, "candidate": 100}
    proposed = [(one["key"], one["value"]) for one in found["proposals"]]
    assert ("order", {"per_key": ["taxi"]}) in proposed
    assert ("identity", ["ride"]) in proposed, "what it has paired by is in the file"
    assert found["file"] == (folder / "spec.yaml").read_text()


def test_equal_runs_ask_for_nothing(folder: Path) -> None:
    (folder / "two.jsonl").write_bytes((folder / "one.jsonl").read_bytes())
    code, out, err = calibrate(folder)
    assert (code, "order: total" in out) == (0, True)
    assert err.startswith("EQUAL The runs are equal as they are")


def test_what_no_rule_explains_exits_with_1_and_is_told(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "two.jsonl").read_bytes().splitlines()]
    rows[40]["fare"] += 1
    (folder / "two.jsonl").write_bytes(lines(rows))
    code, out, err = calibrate(folder)
    assert code == 1
    assert "ignore: [processed_at]" in out
    assert "fare differed in 1 of 100 pairs, and stays compared" in err
    assert "where: event " in err
    assert "1. changed" in err
    (folder / "spec.yaml").write_text(out)
    assert twinstream("check", "spec.yaml", *FILES, folder=folder)[0] == 1
    (left,) = json.loads(calibrate(folder, "--json")[1])["unexplained"]
    assert (left["field"], left["differed"], len(left["places"])) == ("fare", 1, 1)


def test_too_little_exits_with_3_and_proposes_nothing(folder: Path) -> None:
    code, out, err = calibrate(folder, "--max-records", "10")
    assert (code, out) == (3, "")
    assert "the reference has 10 events to compare; at least 20 are needed" in err


@pytest.mark.requires_kafka
@pytest.mark.timeout(180)
def test_two_topics_are_read_as_far_as_asked(folder: Path, kafka: Kafka, topic: MakeTopic) -> None:
    """Two partitions by taxi, so that only the order of a taxi is kept; and a range of what stands there."""
    topics = [topic(partitions=2), topic(partitions=2), topic(partitions=2)]
    producer = Producer({"bootstrap.servers": kafka.brokers})
    for name, file in zip(topics, ("one.jsonl", "two.jsonl", "one.jsonl"), strict=True):
        for line in (folder / file).read_bytes().splitlines():
            producer.produce(name, line, partition=json.loads(line)["taxi"] % 2)
    assert producer.flush(30) == 0
    asked = ("--brokers", kafka.brokers, "--reference", topics[0], "--candidate", topics[1])
    code, out, _ = calibrate(folder, "--json", runs=asked)
    found = json.loads(out)
    assert (code, found["result"], found["events"]) == (0, "proposed", {"reference": 100, "candidate": 100})
    assert {"equality.ignore", "order"} <= {proposal["key"] for proposal in found["proposals"]}
    assert f"reference: {{topic: {topics[0]}}}" in found["file"]

    same = ("--brokers", kafka.brokers, "--reference", topics[0], "--candidate", topics[2])
    code, out, err = calibrate(folder, runs=same)
    assert (code, "{per_key: [taxi]}" in out) == (0, True), f"nothing moved, and no order can be total: {err}"

    half = ("--reference-offsets", "0:0-30", "--candidate-offsets", "0:0-30")
    found = json.loads(calibrate(folder, *half, "--json", runs=asked)[1])
    assert found["events"] == {"reference": 30, "candidate": 30}
    assert found["cut"]

    code, _, err = calibrate(folder, "--reference-offsets", "5:0-10", runs=asked)
    assert code == 2
    assert f"topic {topics[0]} has no partition 5" in err

    code, _, err = calibrate(folder, runs=(*asked[:-1], "nowhere"))
    assert (code, err) == (2, "twinstream: topic nowhere: there is no such topic\n")

    compacted = topic(config={"cleanup.policy": "compact"})
    code, _, err = calibrate(folder, runs=(*asked[:-1], compacted))
    assert code == 2
    assert "compaction removes records that are to be compared" in err
