"""What is written twice, by a driver that is killed or a task that is tried beside itself, counts once."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.processes import Process
from deploy.embedded.spark import submit
from tests.integration.spark.conftest import ORIGIN, Pipelines, Record, attempts, compared
from tests.support import spark_job
from tests.support.spark import SOCKETS
from tests.support.spark_cluster import SETTINGS, cluster
from tests.support.waiting import eventually
from twinstream.spark import KafkaSink
from twinstream.spec.decode.control import control_record

pytestmark = [
    SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.nightly,
    pytest.mark.timeout(600),
]  # fmt: skip
EVENTS = [{"k": "ab"[n % 2], "n": n} for n in range(24)]
"""Each key is in a partition of its own, so one task writes it: five records of each in a batch."""
TREE = Path(__file__).parents[3]


@pytest.fixture
def plain(pipelines: Pipelines, events: str) -> str:
    """The output of a version that nothing happens to."""
    out = pipelines.topic()
    sink = KafkaSink(brokers=pipelines.kafka.brokers, topic=out, query="q", version="0", origin=ORIGIN)
    pipelines.run(pipelines.records(events), sink)
    return out


@pytest.fixture
def events(pipelines: Pipelines) -> str:
    return pipelines.input(EVENTS, partitions=2)


def job(pipelines: Pipelines, name: str, given: dict[str, Any], master: str = "local[1]") -> Process:
    """The program of `spark_job`, submitted to a master."""
    given = {**given, "brokers": pipelines.kafka.brokers, "checkpoint": str(pipelines.folder / "checkpoint")}
    conf = {"spark.sql.shuffle.partitions": "2", **(SETTINGS if master.startswith("spark:") else {})}
    script = Path(spark_job.__file__)
    return submit(name, script, [json.dumps(given)], folder=pipelines.folder, master=master, conf=conf)


@pytest.fixture(autouse=True)
def _from_this_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs import what this process imports."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(TREE / "service"), str(TREE))))


def finish(process: Process) -> None:
    """Wait until a program has ended well."""
    eventually(lambda: not process.running, seconds=240, what="the program ends")
    assert process.exit_code == 0, process.where()


def numbers(records: list[Record]) -> Counter[int]:
    """How often each event of the input was written."""
    return Counter(json.loads(record.value or b"")["n"] for record in records)


def assert_counts_once(pipelines: Pipelines, plain: str, again: str, copies: int) -> None:
    """With their marks the copies are replays, and without these each of them is a difference."""
    answer = compared(pipelines, plain, again)
    assert (answer["verdict"], answer["matched"]) == ("EQUIVALENT", len(EVENTS))
    assert answer["accounts"]["candidate"]["replayed"] == copies
    without = compared(pipelines, plain, again, "")
    assert (without["verdict"], without["divergences"]["total"]) == ("DIVERGED", copies)
    assert without["divergences"]["by_kind"]["duplicate"] == copies


def test_a_driver_that_is_killed_behind_its_write_writes_copies_that_count_once(
    pipelines: Pipelines, plain: str, events: str
) -> None:
    out, control, held = pipelines.topic(), pipelines.topic(), pipelines.folder / "held"
    given = {"events": events, "topic": out, "control": control}
    with job(pipelines, "killed", {**given, "held": str(held)}) as process:
        process.wait_until_ready(held.exists, seconds=120)
        assert len(pipelines.read(out)) == 20, "all of the second batch is written"
        process.kill()
    with job(pipelines, "again", given) as process:
        finish(process)
    written = numbers(pipelines.read(out))
    assert written == Counter({n: 2 if 10 <= n < 20 else 1 for n in range(len(EVENTS))})
    assert_counts_once(pipelines, plain, out, 10)
    told = [control_record(record.value) for record in pipelines.read(control)]
    assert [record.batch for record in told] == [0, 1, 1, 2]
    assert len({record.query_id for record in told}) == 1
    assert len({record.run_id for record in told}) == 2


def test_a_task_that_is_overtaken_by_its_second_attempt_writes_copies_that_count_once(
    pipelines: Pipelines, plain: str, events: str
) -> None:
    out, control = pipelines.topic(), pipelines.topic()
    given = {"events": events, "topic": out, "control": control, "slow": 8}
    with cluster(pipelines.folder) as master, job(pipelines, "slow", given, master) as process:
        finish(process)
    written = pipelines.read(out)
    of_slow = [one for one in written if one.key == b"a" and one.headers["twinstream-batch"] == b"1"]
    wrote = {attempt.rpartition(".")[2]: count for attempt, count in attempts(of_slow).items()}
    assert wrote == {"0": 3, "1": 5}, "the first attempt wrote what comes before the slow row, the second all"
    copies = len(written) - len(EVENTS)
    assert copies >= 3
    assert_counts_once(pipelines, plain, out, copies)
