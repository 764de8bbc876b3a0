"""What `twinstream lint --brokers` says of the topics, which are made up here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

import twinstream.adapters.kafka.watch as module
from twinstream.cli.commands.lint import lint
from twinstream.spec.lint.topics import Topic

FILE = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\norder: {per_key: [k]}\n"


def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **topics: Topic) -> str:
    """What lint prints, without the line breaks that depend on the width."""

    def described(_brokers: str, names: Iterable[str], _properties: object) -> dict[str, Topic | None]:
        return {name: topics.get(name) for name in names}

    monkeypatch.setattr(module, "describe", described)
    file = tmp_path / "spec.yaml"
    file.write_text(FILE)
    run = CliRunner().invoke(lint, [str(file), "--brokers", "b:9092"], standalone_mode=False)
    assert run.return_value == (0 if set(topics) == {"r", "c"} else 2)
    return " ".join(run.output.split())


def test_topics_that_fit_are_told_with_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = said(tmp_path, monkeypatch, r=Topic(3, "delete"), c=Topic(3, "delete"))
    assert "reference.topic r has 3 partitions, cleanup.policy delete" in out
    assert "candidate.topic c has 3 partitions, cleanup.policy delete They fit this comparison." in out
    assert "Refused" not in out


def test_a_topic_that_is_missing_is_told_beside_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = said(tmp_path, monkeypatch, r=Topic(1, "delete"))
    assert "reference.topic r has 1 partition, cleanup.policy delete" in out
    assert "candidate.topic there is no topic c They do not fit: see Refused." in out
    assert out.endswith("Refused candidate.topic there is no topic c")
