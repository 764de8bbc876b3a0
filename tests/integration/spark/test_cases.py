"""The acceptance cases through the Spark job: it says of two topics what `check --brokers` says of them.

A topic has no end, so `check --open` is the measure: an event without a partner may still find it. While one
waits, `check` says PENDING; a job goes on to say EQUIVALENT, of all before it. Ids are not compared, since
they are made of values that may be shown, and `check` shows all: the places of both records are.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.integration.spark.conftest import Pipelines
from tests.integration.spark.test_matcher import Running
from tests.integration.test_cases import FOLDERS
from tests.support.spark import SOCKETS
from tests.support.waiting import eventually
from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.files.jsonl import LineShape, read_pair, read_trace
from twinstream.adapters.files.lines import InputFile
from twinstream.adapters.kafka.results import ResultsTopics
from twinstream.adapters.kafka.source import KafkaSource, record_reader
from twinstream.api.state.merging import merged
from twinstream.bootstrap import expectation
from twinstream.core.events import Side
from twinstream.errors import SettingsError
from twinstream.explain.divergence import NAMES
from twinstream.offline.bounded import BoundedCheck
from twinstream.offline.check import check
from twinstream.ports import Line
from twinstream.processes.standby import REPORTS_TOLD, Bulletin
from twinstream.spark.matcher.claim import make_topics
from twinstream.spark.matcher.job import job_of
from twinstream.spec.file.model import Spec
from twinstream.spec.laws.emits import service_refusal
from twinstream.spec.lint.sharding import refusal_by_key
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.comparison import ComparisonStatus

pytestmark = [
    SOCKETS,
    pytest.mark.nightly,
    pytest.mark.requires_kafka,
    pytest.mark.requires_spark,
    pytest.mark.timeout(1200),
]

AT_ONCE = 2
"""Queries that run at the same time: each waits most of the time."""
SHARDS = 2
LEAST = 110
"""At least so many cases can be run, so that none is left out unseen."""
SAMPLE = 20
"""So many of them run each night, by chance: each takes twelve seconds beside the other tests."""


@dataclass(frozen=True)
class Case:
    """A comparison, the records of both sides, and what `check` says of them in the end."""

    name: str
    text: str
    lines: list[Line]
    verdict: str

    @property
    def spec(self) -> Spec:
        return loads(self.text)

    @property
    def shards(self) -> int:
        return 1 if refusal_by_key(self.spec, SHARDS) else SHARDS

    def ends(self, side: Side) -> dict[int, int]:
        """By partition the number of records."""
        partitions = [line.partition for line in self.lines if line.side is side]
        return {number: partitions.count(number) for number in range(1 + max(partitions, default=0))}


def cases() -> Iterator[Case]:
    """All cases with an answer and with records, whose comparison a job accepts."""
    for folder in FOLDERS:
        expected = json.loads((folder / "expected.json").read_text())
        if expected["expect"].get("exit_code") == 2:
            continue
        text = (folder / "spec.yaml").read_text()
        spec = loads(text)
        lines = [line for line in _lines(folder, spec, expected.get("stdin")) if not _is_end(line)]
        if lines and not (service_refusal(spec) or refusal_by_key(spec, 1)):
            yield Case(folder.name, with_evidence(text), lines, expected["expect"]["verdict"])


def with_evidence(text: str) -> str:
    """A comparison file that asks for one pair and no more."""
    evidence = {"matched": 1, "seconds": 0, "may_be_absent": list(loads(text).kinds)}
    return f"{text}\nevidence: {json.dumps(evidence)}\n"


def _lines(folder: Path, spec: Spec, stdin: str | None) -> Iterator[Line]:
    """The records of a case as they were written, with their keys."""
    shapes = {side: LineShape(spec.decode_of(side).format, keyed=True) for side in Side}
    if (folder / "reference.jsonl").exists():
        plain = {side: shape._replace(keyed=False) for side, shape in shapes.items()}
        left, right = (InputFile(folder / f"{NAMES[side]}.jsonl") for side in Side)
        return read_pair(left, right, "alternate", plain)
    return read_trace(InputFile(folder / (stdin or "trace.jsonl")), shapes)


def _is_end(line: Line) -> bool:
    return line.record is None and not line.tombstone


def write(pipelines: Pipelines, case: Case) -> None:
    """Make both topics, and write the records with their times, keys and headers."""
    names = {side: case.spec.version_of(side).topic for side in Side}
    pipelines.kafka.create_topics({names[side]: len(case.ends(side)) for side in Side})
    producer = Producer({"bootstrap.servers": pipelines.kafka.brokers, "enable.idempotence": True})
    for line in case.lines:
        headers: Any = list(line.headers)
        producer.produce(
            names[line.side],
            line.record,
            line.key,
            line.partition,
            timestamp=line.timestamp_ms,
            headers=headers,
        )
    assert producer.flush(30) == 0


# -- what both say -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What a job, or `check`, says of two topics."""

    verdict: str
    matched: int
    unmatched: dict[str, int]
    accounts: dict[str, dict[str, int]]
    kinds: dict[Any, int]
    places: set[tuple[Any, ...]]
    holes: int


def place_of(report: Mapping[str, Any]) -> tuple[Any, ...]:
    """The kind of a difference, and where its records are."""
    positions = [report["positions"][name] or {} for name in ("reference", "candidate")]
    return (report["kind"], *((one.get("partition"), one.get("offset")) for one in positions))


def of_check(pipelines: Pipelines, case: Case) -> Answer:
    """The answer of `check --open --require-evidence`.

    It takes no topics in which an order may be broken, where a job tells when it is, and looks for no start
    in them. Then it gets the records as they were recorded.
    """
    asked = {"open_ended": True, "allow_empty": False, "evidence": True}
    spec, names = case.spec, {side: case.spec.version_of(side).topic for side in Side}
    more: dict[str, Any] = {"headers": spec.reads_marks, "keys": spec.reads_keys}
    begin: Any = "earliest"
    if spec.start.at == "offsets":
        begin = {Side.LEFT: spec.start.reference, Side.RIGHT: spec.start.candidate}
    source = KafkaSource(pipelines.kafka.brokers, spec.name, names, {}, record_reader(spec), **more)
    with closing(source), suppress(SettingsError):
        if spec.start.at in ("earliest", "offsets"):
            bounded = BoundedCheck(spec, source, begin, "latest", spec.overdue.after, SystemClock())
            return of_told(bounded.run(iter, **asked))
    return of_told(check(spec, case.lines, **asked))


def of_told(told: Mapping[str, Any]) -> Answer:
    return Answer(
        told["verdict"],
        told["matched"],
        told["unmatched"],
        told["accounts"],
        told["divergences"]["by_kind"],
        {place_of(example) for example in told["examples"]},
        len(told["holes"]),
    )


def of_job(pipelines: Pipelines, case: Case) -> Answer:
    """The answer of a job that has read all."""
    results, brokers = f"{case.name}.results", pipelines.kafka.brokers
    make_topics(brokers, results, {})
    job = job_of(case.spec, brokers, results, case.shards)
    with closing(ResultsTopics(brokers, results, {})) as topics:
        query = Running(pipelines.spark, job, pipelines.folder / case.name)
        try:
            look, what = partial(_settled, case, topics, query), f"{case.name} is settled"
            answer = eventually(look, seconds=300, what=what, every_seconds=0.2)
        finally:
            query.stop()
    assert answer is not None
    return answer


def _settled(case: Case, topics: ResultsTopics, query: Running) -> Answer | None:
    assert query.exception() is None, query.exception()
    topics.read()
    said = {
        shard: Bulletin.model_validate_json(told.bulletin) for (_, shard), told in topics.statuses.items()
    }
    if len(said) < case.shards:
        return None
    status = _whole(case, said)
    read = all(
        {part.partition: part.position for part in parts} == case.ends(side)
        for side, parts in zip(Side, (status.progress.reference, status.progress.candidate), strict=True)
    )
    if not read or "checkpoint" in status.difference_awaits:
        return None
    waiting = status.unmatched.reference + status.unmatched.candidate
    accounts = status.accounts.model_dump()
    if case.spec.folding is None:
        for account in accounts.values():
            del account["superseded"]
    shown = [report.model_dump() for bulletin in said.values() for report in bulletin.reports]
    kept = [json.loads(report) for shard in topics.reports.values() for _, report in shard.values()]
    return Answer(
        "PENDING" if status.verdict == "EQUIVALENT" and waiting else status.verdict,
        status.matched,
        status.unmatched.model_dump(),
        accounts,
        {**status.divergences.by_kind},
        {place_of(report) for report in shown + kept},
        len(status.holes),
    )


def _whole(case: Case, said: Mapping[int, Bulletin]) -> ComparisonStatus:
    if case.shards == 1:
        return said[0].said.status
    parts = {shard: bulletin.said for shard, bulletin in said.items()}
    return merged(expectation(ComparisonFile(case.spec, case.text), case.shards), parts, datetime.now(UTC))


def differences(pipelines: Pipelines, case: Case) -> list[str]:
    """What the job says otherwise than `check`."""
    write(pipelines, case)
    theirs, mine = of_check(pipelines, case), of_job(pipelines, case)
    told = min(len(theirs.places), REPORTS_TOLD)  # No more are told of those that may change yet.
    if len(mine.places) >= told and mine.places <= theirs.places:
        mine = replace(mine, places=theirs.places)
    found = [
        f"{case.name}: {name} is {value!r}, and for check {getattr(theirs, name)!r}"
        for name, value in vars(mine).items()
        if value != getattr(theirs, name)
    ]
    if mine.verdict in ("EQUIVALENT", "DIVERGED") and mine.verdict != case.verdict:
        found.append(f"{case.name}: {mine.verdict}, and in the end for check {case.verdict}")
    return found


def compared(pipelines: Pipelines, compared: list[Case]) -> list[str]:
    """What jobs say otherwise than `check`."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [one for some in pool.map(partial(differences, pipelines), compared) for one in some]


def test_a_job_says_of_the_cases_what_check_says(pipelines: Pipelines) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    runnable = list(cases())
    assert len(runnable) >= LEAST
    assert compared(pipelines, random.Random(seed).sample(runnable, SAMPLE)) == []
