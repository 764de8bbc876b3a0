"""What a shard of a Spark job does where it cannot take a batch, or cannot save what it has taken."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from random import Random
from unittest.mock import patch

import orjson
import pytest

from loadtest.memory import MemorySource
from tests.support.saying import VERSIONS, finish
from tests.support.spark_tasks import AT_INPUT, MemoryLookout, Tasks
from twinstream.core.events import Side
from twinstream.errors import CheckpointError, SourceError
from twinstream.ports import TopicsLook
from twinstream.spark.matcher import processor
from twinstream.spark.matcher.job import start_found
from twinstream.spark.matcher.source import FedSource
from twinstream.spec.decode.headers import input_header
from twinstream.spec.load import loads

LEFT, RIGHT = Side
PLAIN = VERSIONS + "order: unordered\nshow: [n]\nevidence: {matched: 1, seconds: 0}\n"
PER_KEY = PLAIN.replace("unordered", "{per_key: [k]}")
BARRIER = VERSIONS + (
    "kinds: {day: {where: {t: day}}, row: {}}\norder: {barrier: day, inner: unordered}\nshow: [n]\n"
    "evidence: {matched: 1, seconds: 0}\nstart: {at: barrier}\n"
)


@pytest.fixture
def source() -> Iterator[MemorySource]:
    yield MemorySource()
    processor._alive.clear()


def write(source: MemorySource, side: Side, partition: int, *offsets: int) -> None:
    for offset in offsets:
        record = orjson.dumps({"n": [partition, offset]})
        source.append(side, 0, record, 0, [input_header("in", partition, offset)])


def begun(source: MemorySource) -> Tasks:
    """A job that has begun, while a version has come to an input of which the other has said nothing."""
    for side in Side:
        write(source, side, 0, 0, 1)
        finish(source, side, 0, 2, since={})
    found = start_found(loads(AT_INPUT), MemoryLookout(source), pytest.fail)
    tasks = Tasks.of(AT_INPUT, source, "run", 2, found=found)
    tasks.batch((1, 1))
    write(source, LEFT, 0, 2)
    write(source, LEFT, 1, 0)
    finish(source, LEFT, 1, {0: 3, 1: 1}, since={})
    return tasks


def test_a_batch_waits_for_a_control_record_and_fails_without_it_with_nothing_taken(
    source: MemorySource,
) -> None:
    tasks = begun(source)
    with patch.object(processor, "WAIT_SECONDS", 0.2), pytest.raises(SourceError) as failed:
        tasks.batch((1, 0))
    assert str(failed.value) == (
        "the reference is not read on: it has an event that comes from in partition 1, of which the "
        "candidate has not said where it begins"
    )
    write(source, RIGHT, 0, 2)
    write(source, RIGHT, 1, 0)
    finish(source, RIGHT, 1, {0: 3, 1: 1}, since={})
    for _ in range(3):
        tasks.batch((1, 1))
    status = tasks.status()
    assert (status.verdict, status.matched, status.unmatched.reference) == ("EQUIVALENT", 1, 0), status.reason
    assert status.accounts.reference.before_start == 1, "the candidate told where its batch ended alone"


def test_a_control_record_that_comes_while_a_batch_waits_ends_the_wait(source: MemorySource) -> None:
    tasks = begun(source)
    timer = threading.Timer(0.3, lambda: finish(source, RIGHT, 1, {0: 3, 1: 1}, since={}))
    timer.start()
    tasks.batch((1, 0))
    timer.join()
    assert sum(bulletin.said.status.events.reference for bulletin in tasks.said.values()) == 2


def test_what_was_read_before_the_start_was_found_is_not_lost_in_silence(source: MemorySource) -> None:
    tasks = Tasks.of(BARRIER, source, "run", 1)
    source.append(LEFT, 0, b'{"n": 1}')
    tasks.batch((1, 0))
    source.append(LEFT, 0, b'{"n": 2}')
    tasks.batch((1, 0))
    tasks.lose_processes()
    source.append(RIGHT, 0, b'{"n": 1}')
    with pytest.raises(CheckpointError, match="before it had found the start of the comparison; what it had"):
        tasks.batch((0, 1))


def test_a_start_that_is_found_before_a_process_ends_is_kept(source: MemorySource) -> None:
    tasks = Tasks.of(BARRIER, source, "run", 1)
    for side in Side:
        for record in (b'{"n": 1}', b'{"t": "day"}', b'{"n": 2}'):
            source.append(side, 0, record)
    tasks.batch((1, 1))
    tasks.lose_processes()
    for side in Side:
        source.append(side, 0, b'{"n": 3}')
    for _ in range(2):
        tasks.batch((1, 1))
    status = tasks.status()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 3), status.reason


def test_what_was_corrected_too_late_is_told_with_what_was_left_out_and_what_to_do(
    source: MemorySource,
) -> None:
    def policy(name: str) -> None:
        for side in Side:
            source.set_cleanup_policy(side, name)

    policy("compact")
    tasks = Tasks.of(PLAIN, source, "run", 1)
    told = []
    for corrected in (False, True):
        if corrected:
            policy("delete")
            tasks.lose_processes()
        for side in Side:
            write(source, side, 0, 0)
        tasks.batch((1, 1))
        told.append(tasks.status().waiting_for)
    sentence = (
        "the job found this and has left records out since, so give --checkpoint a new location once it is "
        "corrected: the reference's topic test.reference has cleanup.policy compact: compaction removes "
        "records that are to be compared; use a topic without it"
    )
    assert told == [sentence, sentence]


def test_a_python_worker_keeps_no_copy_of_a_shard_that_another_has_taken_since(source: MemorySource) -> None:
    tasks, pools = Tasks.of(PLAIN, source, "run", 4), [{}, {}, {}]  # type: ignore[var-annotated]
    for batch in range(12):
        tasks.now_ms = batch * (processor.BEAT_MS + 1)
        for number in range(4):
            with patch.object(processor, "_alive", pools[(batch + number) % 3]):
                tasks._take(number, None)
    taken = [live.taken_ms for pool in pools for live in pool.values()]
    assert len(taken) == 8, "of the last batch, and of the one before"
    assert min(taken) == tasks.now_ms - processor.BEAT_MS - 1


def test_a_copy_of_a_shard_stays_whose_timer_is_not_due_in_a_batch_without_its_records(
    source: MemorySource,
) -> None:
    tasks = Tasks.of(PLAIN, source, "run", 2)
    for tasks.now_ms, numbers in ((0, (0, 1)), (processor.BEAT_MS, (1,)), (processor.BEAT_MS + 200, (1,))):
        for number in numbers:
            tasks._take(number, None)
    assert sorted(shard for *_, shard in processor._alive) == [0, 1]


def test_a_state_that_is_longer_than_spark_takes_at_once_is_saved_in_pieces_and_comes_back_whole(
    source: MemorySource,
) -> None:
    random = Random(7)
    tasks = Tasks.of(PLAIN, source, "run", 1)
    records = [orjson.dumps({"n": random.randbytes(60).hex()}) for _ in range(2_000)]
    for place, record in enumerate(records):
        source.append(LEFT, 0, record)
        if place % 500 == 499:
            tasks.batch((1, 0))
    tasks.lose_processes()
    for record in records[1:]:
        source.append(RIGHT, 0, record)
    for _ in range(4):
        tasks.batch((1, 1))
    status = tasks.status()
    assert (status.matched, status.unmatched.reference, status.unmatched.candidate) == (1_999, 1, 0)
    tasks.lose_processes()
    source.append(RIGHT, 0, records[0])
    for _ in range(2):
        tasks.batch((1, 1))
    assert (tasks.status().matched, tasks.status().verdict) == (2_000, "EQUIVALENT")
    parts = [part for part, _ in tasks.handles[0].variables["pieces"]._values]
    assert len(parts) < 2 * len(set(parts)), "the pieces of what was longer have left"


def test_a_partition_ends_behind_its_last_record_whatever_marks_of_transactions_follow(
    source: MemorySource,
) -> None:
    write(source, LEFT, 0, 0, 1)
    marked = {side: topic._replace(ends={0: topic.ends[0] + 1}) for side, topic in source.topics().items()}
    fed = FedSource(marked, MemoryLookout(source))
    fed.assign({LEFT: {0: 1}, RIGHT: {0: 0}})
    assert fed.ends() == {LEFT: {0: 3}, RIGHT: {0: 0}}, "the reference has a record to be read"
    fed.reached(LEFT, 0, 2, 3)
    source.add_partition(RIGHT)
    fed.extend(RIGHT, 1, 0)
    assert fed.ends() == {LEFT: {0: 2}, RIGHT: {0: 0, 1: 0}}


def test_what_is_written_while_a_batch_runs_is_not_owed_by_its_look(source: MemorySource) -> None:
    """A task is told a later end than the batch was planned with: a busy stream never comes up to that."""
    write(source, LEFT, 0, 0, 1)
    fed = FedSource(source.topics(), MemoryLookout(source))
    fed.look()
    fed.reached(LEFT, 0, 7, 7)
    assert fed.seen().ends[LEFT] == {0: 2}
    fed.reached(LEFT, 0, 1, 2)
    assert fed.seen().ends[LEFT] == {0: 1}, "it leaves out marks"
    write(source, LEFT, 0, 2)
    fed.look()
    assert (fed.seen().ends[LEFT], fed.seen().written[LEFT]) == ({0: 3}, {0: 3}), "there are new records"


def test_marks_of_a_partition_of_which_no_task_had_a_record_are_no_records(source: MemorySource) -> None:
    write(source, LEFT, 0, 0, 1)
    lookout = MemoryLookout(source)
    lookout.ended = lambda _, positions: dict.fromkeys(positions, 3)  # type: ignore[method-assign]
    fed = FedSource(source.topics(), lookout)
    fed.reached(LEFT, 0, 2, 2)
    write(source, LEFT, 0, 2)  # It stands for the mark.
    fed.look()
    fed.find_marks({(LEFT, 0)})
    assert fed.seen().written[LEFT] == {0: 3}, "the task has told less, but later"
    fed.find_marks(set())
    assert fed.seen().written[LEFT] == {0: 2}


def test_records_of_an_open_transaction_are_owed_to_what_proves_and_not_to_what_suspects(
    source: MemorySource,
) -> None:
    lookout = MemoryLookout(source)
    look = TopicsLook(1, source.topics(), {LEFT: {0: 3}}, {LEFT: {0: 5}})
    lookout.seen = lambda: look  # type: ignore[method-assign]
    fed = FedSource(source.topics(), lookout)
    fed.reached(LEFT, 0, 2, 3)  # A mark follows the last record, and the open transaction follows that.
    assert (fed.seen().ends, fed.seen().written) == ({LEFT: {0: 2}}, {LEFT: {0: 5}})


def test_what_was_written_since_the_last_batch_is_not_verified(source: MemorySource) -> None:
    tasks = Tasks.of(PLAIN, source, "run", 1)
    for side in Side:
        source.append(side, 0, b'{"n": 1}')
    for polls in ((1, 1), (0, 0), (0, 0)):
        tasks.batch(polls)
    assert (before := tasks.status().verified_through) is not None
    source.append(LEFT, 0, b'{"n": 2}')
    written = datetime.now(UTC)
    for _ in range(3):
        tasks.batch((0, 0))
    assert (status := tasks.status()).verified_through is not None
    assert before <= status.verified_through <= written


@pytest.mark.parametrize("shards", [1, 4])
def test_a_shard_of_some_keys_knows_when_the_partition_begins(source: MemorySource, shards: int) -> None:
    for side in Side:
        for second in range(200):
            if second != 3 or side is LEFT:
                key = "rare" if second in (3, 103) else "often"
                source.append(side, 0, b'{"k": "%b", "n": %d}' % (key.encode(), second), second * 1000)
    tasks = Tasks.of(PER_KEY, source, "run", shards)
    for _ in range(4):
        tasks.batch((1, 1))
    status = tasks.status()
    assert (status.verdict, status.matched) == ("DIVERGED", 198), status.reason


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("retained", [0, 8])
def test_a_shard_knows_when_a_topic_began_though_another_has_its_first_record(
    source: MemorySource, retained: int, *, again: bool
) -> None:
    """The candidate starts an hour late; by then retention may have taken what the reference began with."""
    tasks = Tasks.of(PER_KEY, source, "run", 2)

    def write(sides: Iterable[Side], hours: int) -> None:
        for side in sides:
            for key in range(8):
                source.append(side, 0, b'{"k": %d, "n": %d}' % (key, hours), hours * 3_600_000)

    write((LEFT,), 0)
    with patch.object(processor, "runs_again", lambda: again):
        tasks.batch((1, 1))
    source.retain(LEFT, 0, retained)
    for _ in range(3):
        write(Side, 1)
        tasks.batch((1, 1))
    assert tasks.status().verdict == "PENDING"
    assert "no safe start" in tasks.status().reason


@pytest.mark.parametrize("lost", [False, True])
def test_a_shard_asks_when_a_topic_began_until_it_has_records_of_both_sides(
    source: MemorySource, lost: bool
) -> None:
    """The candidate starts an hour late, with a record of the other shard; then a process may be lost."""
    tasks = Tasks.of(PER_KEY, source, "run", 2)

    def write(side: Side, keys: Iterable[int], hours: int) -> None:
        for key in keys:
            source.append(side, 0, b'{"k": %d, "n": %d}' % (key, hours), hours * 3_600_000)

    write(LEFT, range(8), 0)
    tasks.batch((1, 0))
    for side in Side:
        write(side, [0], 1)
    tasks.batch((1, 1))
    if lost:
        tasks.lose_processes()
    for _ in range(3):
        for side in Side:
            write(side, range(8), 2)
        tasks.batch((1, 1))
    for said in tasks.said.values():
        assert said.said.status.verdict == "PENDING"
        assert "no safe start" in said.said.status.reason


@pytest.mark.parametrize(("late_hours", "lost"), [(0, False), (0, True), (1, False)])
def test_a_shard_without_a_record_knows_when_the_topics_began(
    source: MemorySource, late_hours: int, *, lost: bool
) -> None:
    """Days later, when its first record comes, retention may have taken what the candidate began with."""
    tasks = Tasks.of(PER_KEY, source, "run", 2)
    for day in range(4):
        for side in Side:
            hours = 24 * day + late_hours * (side is RIGHT)
            source.append(side, 0, b'{"k": 0, "n": %d}' % day, 3_600_000 * hours)
        tasks.batch((1, 1))
    source.retain(RIGHT, 0, 3)
    if lost:
        tasks.lose_processes()
    for key in range(1, 12):
        for side in Side:
            source.append(side, 0, b'{"k": %d, "n": 0}' % key, 3_600_000 * 80)
    for _ in range(3):
        tasks.batch((1, 1))
    verdicts = {said.said.status.verdict for said in tasks.said.values()}
    assert verdicts == ({"PENDING"} if late_hours else {"EQUIVALENT"}), tasks.status().reason


def test_a_shard_without_a_record_reads_on_while_nobody_knows_when_the_topics_began(
    source: MemorySource,
) -> None:
    tasks = Tasks.of(PER_KEY, source, "run", 2)
    tasks.batch((0, 0))
    with patch.object(MemorySource, "begins_ms", side_effect=SourceError("it begins with an open one")):
        source.append(LEFT, 0, b'{"k": 0, "n": 0}', 0)
        tasks.batch((1, 0))
    source.append(RIGHT, 0, b'{"k": 0, "n": 0}', 0)
    tasks.batch((0, 1))
    assert tasks.status().verdict == "EQUIVALENT"


def test_a_task_that_runs_again_needs_no_beginning_of_topics_that_have_begun(source: MemorySource) -> None:
    tasks = Tasks.of(PER_KEY, source, "run", 1)
    for number in range(2):
        for side in Side:
            source.append(side, 0, b'{"k": 1, "n": %d}' % number)
        with (
            patch.object(MemorySource, "begins_ms", side_effect=SourceError("it begins with an open one"))
            if number
            else nullcontext(),
            patch.object(processor, "runs_again", lambda: number > 0),  # noqa: B023 - used at once
        ):
            processor._alive.clear()
            tasks.batch((1, 1))
    assert (tasks.status().verdict, tasks.status().matched) == ("EQUIVALENT", 2)
