"""A worker with `keep: hashes`: what it saves and says, and how it reads records again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import pytest

from tests.support.workers import SPEC, Bench
from twinstream.checkpoints import format as checkpoint
from twinstream.core.events import Place, Side
from twinstream.errors import CheckpointError
from twinstream.matcher.worker import Worker
from twinstream.reporting.record_refetch import GONE, NOT_READ, REPLACED
from twinstream.status.comparison import ResetRequest, UnmatchedSample

HASHES = f"{SPEC}keep: hashes\nidentity: [k, n]\n"
HIDDEN = "zqhidden"
LEFT, RIGHT = Side


def bench(spec: str = HASHES, **more: Any) -> Bench:
    """Topics with a difference of each kind, and events that wait; all but `n` is hidden."""
    made = Bench(spec.replace("show: [k, n]", "show: [n]"), **more)
    made.write_both(*((f"{HIDDEN}-{n}", n) for n in range(5)))
    made.write(LEFT, (f"{HIDDEN}-a", 10), (f"{HIDDEN}-a", 11), (f"{HIDDEN}-b", 20), (f"{HIDDEN}-b", 21))
    made.write(RIGHT, (f"{HIDDEN}-a", 11), (f"{HIDDEN}-a", 10), (f"{HIDDEN}-b", 21))
    for side, fare in ((LEFT, 1), (RIGHT, 2)):
        changed = {"k": f"{HIDDEN}-c", "n": 30, "fare": fare, "note": f"{HIDDEN}-{fare}"}
        made.source.append(side, 0, orjson.dumps(changed))
        made.source.append(side, 0, orjson.dumps({"k": f"{HIDDEN}-c", "n": 31}))
    for key in "bc":  # where both sides meet again differences are closed
        made.write_both(*((f"{HIDDEN}-{key}", 100 + n) for n in range(20)))
    made.write(LEFT, (f"{HIDDEN}-d", 40))
    return made


def read_all(found: Bench) -> Worker:
    """A worker that has read all and said nothing of it."""
    worker = found.started()
    read(worker)
    return worker


def read(worker: Worker) -> None:
    """Let a worker read, and say nothing of it."""
    for _ in range(4):
        worker._reader.read()


def texts(found: Bench) -> str:
    """The texts of all divergences."""
    return "\n".join(report.text for report in found.reports().values())


def in_words(note: bytes) -> str:
    """A note in place of a record, as a sentence tells it."""
    return note.decode().strip("‹›")


def saved(found: Bench) -> list[str]:
    """All that is saved, as texts."""
    stored = found.storage.stored
    parts = [checkpoint.decode(stored.head), *map(checkpoint.decode, stored.bodies)]
    return [*map(str, parts), *(report.decode() for report in stored.divergences.values())]


def test_nothing_of_an_event_is_saved_or_said_but_what_may_be_shown() -> None:
    found = bench()
    status = found.run(found.started(), steps=5)
    assert status.verdict == "DIVERGED"
    assert status.unmatched.reference > 0
    said = [publication.model_dump_json() for publication in found.publisher.published]
    assert not [text for text in (*said, *saved(found)) if HIDDEN in text]
    with_records = bench(HASHES.replace("keep: hashes", ""))
    with_records.run(steps=5)
    assert HIDDEN in "".join(saved(with_records))
    assert '"n": 30' in str([report.reference for report in found.reports().values()]).replace("'", '"')


def test_the_same_differences_are_found_and_told_as_with_the_records() -> None:
    secret = b"one secret for both of them"
    hashed = bench(secret=secret)
    plain = bench(HASHES.replace("keep: hashes", ""), secret=secret)
    for one in (hashed, plain):
        one.run(one.started(), steps=5)
    found, expected = (
        {(r.kind, str(r.positions), r.text) for r in one.reports().values()} for one in (hashed, plain)
    )
    assert found == expected
    assert {kind for kind, *_ in found} == {"missing", "changed", "reordered"}
    changed = next(report for report in hashed.reports().values() if report.kind == "changed")
    assert list(changed.fields) == ["fare", "note"]
    assert hashed.status().accounts == plain.status().accounts
    assert hashed.status().coverage == plain.status().coverage


def test_after_a_restart_the_state_goes_on_and_reports_have_the_same_ids() -> None:
    found = bench()
    before = found.run(found.started(), steps=5)
    texts_before = {key: report.text for key, report in found.reports().items()}
    found.restarted()
    found.write(RIGHT, (f"{HIDDEN}-d", 40))
    after = found.run(found.restarted(), steps=5)
    assert {key: report.text for key, report in found.reports().items()} == texts_before
    assert after.unmatched.reference == before.unmatched.reference - 1
    assert after.matched == before.matched + 1


def test_state_of_another_secret_is_refused_by_name() -> None:
    found = bench()
    found.run(found.started(), steps=5)
    found.storage.lease, found.secret = None, b"another secret of the tests"
    with pytest.raises(CheckpointError, match="made with another secret"):
        found.worker().start()


def test_a_record_that_is_gone_is_said_to_be_gone() -> None:
    found = bench()
    worker = read_all(found)
    found.source.retain(LEFT, 0, 10)
    found.run(worker, steps=5)
    assert "an event (Kafka no longer has it)" in texts(found)
    gone = next(report for report in found.reports().values() if report.kind == "missing")
    assert gone.reference == GONE.decode()
    assert gone.scope == {}


def test_another_record_at_its_place_is_never_shown_for_it() -> None:
    found = bench()
    worker = read_all(found)
    rows = found.source._topics[LEFT].rows[0]
    rows[:] = [(orjson.dumps({"k": "zebra", "n": 99}), 0, ()) for _ in rows]
    found.run(worker, steps=5)
    assert in_words(REPLACED) in texts(found)
    assert '"n":99' not in texts(found)  # A hash may have these digits.
    assert "zebra" not in texts(found)


def test_what_could_not_be_read_is_read_when_kafka_answers_again() -> None:
    found = bench()
    worker = read_all(found)
    found.source.down = "away"
    found.run(worker, steps=2)
    assert any(NOT_READ.decode() in text for text in saved(found))
    found.source.down = None
    found.run(worker, steps=2)
    assert in_words(NOT_READ) not in texts(found)
    assert not any(NOT_READ.decode() in text for text in saved(found))


def test_many_differences_are_told_bit_by_bit_where_little_can_be_read_at_a_time() -> None:
    found = Bench(HASHES)
    for key in range(30):
        found.write(LEFT, (key, -1))
        found.write_both(*((key, n) for n in range(20)))
    whole = found.source.recall
    stuck = (LEFT, 0, 0)

    def little(places: Iterable[Place], seconds: float) -> Mapping[Place, bytes | None]:
        return whole([place for place in sorted(places) if place != stuck][:7], seconds)

    found.source.recall = little  # type: ignore[method-assign]
    for _ in range(20):
        found.run()
    lacking = [report for report in found.reports().values() if in_words(NOT_READ) in report.text]
    assert len(found.reports()) == 30
    assert [report.positions.reference and report.positions.reference.offset for report in lacking] == [0]


def test_of_events_that_wait_those_that_are_overdue_are_read_again_once_kafka_answers() -> None:
    found = Bench(HASHES)
    worker = found.started()
    found.write(LEFT, ("a", 1), at_ms=1000)
    found.write(LEFT, ("c", 1), at_ms=99_000)
    found.write_both(("b", 1), at_ms=2000)
    found.write_both(("b", 2), at_ms=100_000)

    def shown() -> list[tuple[bool, Any]]:
        last = next(one for one in reversed(found.publisher.published) if isinstance(one, UnmatchedSample))
        return [(event.overdue, event.value) for event in last.events]

    read(worker)
    found.source.down = "away"
    found.run(worker)
    assert shown() == [(True, NOT_READ.decode()), (False, NOT_READ.decode())]
    found.source.down = None
    found.run(worker)
    assert shown() == [(True, {"k": "a", "n": 1}), (False, NOT_READ.decode())]
    found.run(worker)
    sent = [one for one in found.publisher.published if isinstance(one, UnmatchedSample)]
    assert sent[-1] != sent[-2], "nothing is sent again where nothing has changed"


@pytest.mark.parametrize("start", [None, "now"])
def test_a_comparison_that_is_reset_begins_anew_with_any_secret(start: Any) -> None:
    found = bench()
    worker = found.started()
    found.run(worker, steps=5)
    request = ResetRequest(id="r", by="ann", reason="mended", address="127.0.0.1", start=start)
    if start == "now":  # which waits for a moment at which nothing is open
        found.write(RIGHT, (f"{HIDDEN}-d", 40))
        found.write_both(*((f"{HIDDEN}-a", n) for n in range(50, 70)))
        found.run(worker, steps=5)
    assert found.reset(worker, request)
    found.secret = b"another secret of the tests"
    status = found.run(found.restarted(), steps=5)
    assert status.reset_count == 1
    assert status.verdict == ("DIVERGED" if start is None else "PENDING")
