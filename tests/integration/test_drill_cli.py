"""What `twinstream drill` refuses, and what it says then."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.drilled import rides
from tests.support.service import spec_file
from tests.support.stack import MakeTopic
from twinstream.adapters.kafka.drill import DrillTopics

NOWHERE = ["--brokers", "127.0.0.1:1", "--redis", "redis://127.0.0.1:1"]
PROMETHEUS = ["--kind", "drop", "--prometheus", "http://127.0.0.1:1"]


def run(*arguments: str | Path) -> tuple[int, str]:
    """The exit code, and what is said on standard error; nothing is on standard output."""
    code, out, err = twinstream("drill", *arguments)
    assert out == ""
    return code, err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give a comparison file, and --kind for the difference"),
        (["--kind", "drop", "--field", "n"], "--field is for --kind field"),
        (["--kind", "drop", "--bind", "127.0.0.1:0"], "--bind has no meaning without --prometheus"),
        (["--kind", "drop", "--page"], "--page has no meaning without --prometheus"),
        (
            ["--kind", "drop", "--alertmanager", "http://x"],
            "--alertmanager has no meaning without --prometheus",
        ),
        (
            PROMETHEUS,
            "Prometheus has to scrape the drill: give --scrape-file, a file of its file_sd_configs, or",
        ),
        (
            [*PROMETHEUS, "--scrape-file", "x.txt"],
            "--scrape-file x.txt must end with .json or .yml, or Prometheus",
        ),
        (["--kind", "drop", "--bind", "0.0.0.0:0"], "flag --bind: '0.0.0.0:0' is not a loopback address"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, options: list[str], said: str) -> None:
    code, err = run(spec_file(tmp_path, "rides", "a", "b"), *NOWHERE, *options)
    assert code == 2
    assert said in err


def test_a_service_that_asks_for_tokens_needs_one_of_the_drill(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("read prometheus q7VQ2d0yS3cHkz0c9JmT4w\n")
    config = tmp_path / "settings.yaml"
    config.write_text(f"token_file: {tokens}\n")
    spec = spec_file(tmp_path, "rides", "a", "b")
    code, err = run(spec, *PROMETHEUS, *NOWHERE, "--config", config, "--bind", "0.0.0.0:0")
    assert code == 2
    assert "the drill's service asks for tokens: give it one of its token file in TWINSTREAM_TOKEN" in err


@pytest.mark.requires_kafka
def test_kafka_and_redis_that_cannot_be_reached_are_named(
    kafka: Kafka, topic: MakeTopic, tmp_path: Path
) -> None:
    names = topic(), topic()
    spec = spec_file(tmp_path, "rides", *names)
    code, err = run(spec, "--kind", "drop", *NOWHERE)
    assert code == 4
    assert err.startswith("Error: kafka at 127.0.0.1:1 does not answer")
    writer = DrillTopics(kafka.brokers, {})
    writer.write([(name, record) for name in names for record in rides(60)])
    there = ("--brokers", kafka.brokers, "--redis", "redis://127.0.0.1:1")
    code, _, err = twinstream("drill", spec, "--kind", "drop", *there)
    assert code == 4
    assert err.startswith("Error: redis at 127.0.0.1:1 cannot be used")
    assert writer.found() == []


@pytest.mark.requires_kafka
def test_topics_that_are_empty_or_missing_are_named(kafka: Kafka, topic: MakeTopic, tmp_path: Path) -> None:
    there = ["--brokers", kafka.brokers, "--redis", "redis://127.0.0.1:1"]
    names = topic(), topic()
    code, err = run(spec_file(tmp_path, "rides", *names), "--kind", "drop", *there)
    assert code == 2
    assert err == (
        f"twinstream: topic {names[0]} has no record to copy: drill when the pipelines have written\n"
    )
    code, err = run(spec_file(tmp_path, "rides", names[0], "nowhere"), "--kind", "drop", *there)
    assert code == 2
    assert err == "twinstream: topic nowhere: there is no such topic\n"
