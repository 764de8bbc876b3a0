"""What `twinstream calibrate --brokers` says of topics that change while it reads them, made up here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from click import BadParameter
from click.testing import CliRunner

import twinstream.cli.commands.calibrate as module
from loadtest.memory import MemorySource
from twinstream.core.events import Side
from twinstream.errors import SettingsError

LEFT, RIGHT = Side
EVENTS = 40


class Changing(MemorySource):
    """Two topics with the same events; `change` happens once the reference is read."""

    def __init__(self, change: Callable[[Changing], None]) -> None:
        super().__init__(batch=7)
        self._change: Callable[[Changing], None] | None = change
        for side in Side:
            self.write(side)

    def write(self, side: Side, version: int = 1) -> None:
        for n in range(EVENTS):
            self.append(side, 0, json.dumps({"k": n % 3, "n": n, "v": version}).encode(), n)

    def poll(self, side: Side, timeout: float) -> object:  # type: ignore[override]
        if side is RIGHT and self._change is not None:
            change, self._change = self._change, None
            change(self)
        return super().poll(side, timeout)


def calibrate(monkeypatch: pytest.MonkeyPatch, change: Callable[[Changing], None]) -> int:
    @contextmanager
    def topics_of(*_: object, **__: object) -> Iterator[MemorySource]:
        yield Changing(change)

    monkeypatch.setattr(module, "topics_of", topics_of)
    asked = ["--brokers", "b:9092", "--reference", "one", "--candidate", "two", "--identity", "n"]
    run = CliRunner().invoke(module.calibrate, asked, standalone_mode=False)
    if isinstance(run.exception, SettingsError):
        raise run.exception
    return int(run.return_value)


def test_records_that_come_meanwhile_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calibrate(monkeypatch, lambda source: source.write(LEFT)) == 0


def anew(source: Changing) -> None:
    source.create_anew(RIGHT)
    source.write(RIGHT, version=2)


ANEW = (
    "two partition 0 (candidate) was deleted and created anew: offset 40 was next, and the new topic begins "
    "there at 0 and ends at 40"
)
ADDED = (
    "one partition 1 (reference) was added, which begins at offset 0: events of one key may now stand in two "
    "partitions"
)


@pytest.mark.parametrize(
    ("change", "reason"), [(anew, ANEW), (lambda source: source.add_partition(LEFT), ADDED)]
)
def test_a_topic_that_changes_while_it_is_read_ends_it(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Changing], None], reason: str
) -> None:
    with pytest.raises(SettingsError) as ended:
        calibrate(monkeypatch, change)
    assert str(ended.value) == f"{reason}: so it is unknown what was read; calibrate again"


def test_a_start_at_a_barrier_is_refused_as_the_proposals_decide_which_barrier_it_is(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    text = "version: 1\nname: t\nreference: {topic: a}\ncandidate: {topic: b}\nstart: barrier\n"
    file.write_text(
        f"{text}kinds: {{b: {{where: {{t: b}}}}, e: {{}}}}\norder: {{barrier: b, inner: unordered}}\n"
    )
    asked = [str(file), "--reference", "one.jsonl", "--candidate", "two.jsonl"]
    run = CliRunner().invoke(module.calibrate, asked, standalone_mode=False)
    assert isinstance(run.exception, SettingsError)
    assert "calibrate with a file without `start`" in str(run.exception)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["k", "k"], "`k` is given twice"),
        (["k", "at"], "--key k, at: no file can have that order: `equality.ignore`: may not name `at`"),
        (["size"], "--key size: no file can have that order: `equality.quantum`: may not name `size.w`"),
    ],
)
def test_a_key_that_can_decide_no_order_is_refused_by_its_name(
    tmp_path: Path, given: list[str], said: str
) -> None:
    file = tmp_path / "spec.yaml"
    text = "version: 1\nname: t\nreference: {topic: a}\ncandidate: {topic: b}\norder: total\nidentity: [id]\n"
    file.write_text(f"{text}equality: {{quantum: {{size.w: 1}}}}\n")
    paths = [tmp_path / name for name in ("one.jsonl", "two.jsonl")]
    for run, path in enumerate(paths):
        rows = [{"id": n, "k": n % 5, "at": f"{run}{n % 7}", "size": {"w": 1}} for n in range(100)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in Random(run).sample(rows, 100)))
    keys = [part for key in given for part in ("--key", key)]
    asked = [str(file), "--reference", str(paths[0]), "--candidate", str(paths[1]), *keys]
    answer = CliRunner().invoke(module.calibrate, asked, standalone_mode=False)
    assert isinstance(answer.exception, SettingsError | BadParameter)
    assert said in str(answer.exception)
