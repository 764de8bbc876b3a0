"""A worker that checks each side by itself: status, gate, metrics, and what survives a restart."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from tests.support.saying import VERSIONS
from tests.support.workers import Bench, board_of
from twinstream.api.metrics import StatusCollector
from twinstream.api.state.entry import View
from twinstream.core.events import Side
from twinstream.core.state.snapshot import snapshot
from twinstream.spec.lint.topics import Topic
from twinstream.spec.load import loads
from twinstream.status.comparison import CheckedSide, ComparisonStatus

LEFT, RIGHT = Side
HEAD = f"""\
{VERSIONS}control: test.control
order: unordered
identity: [n]
evidence: {{matched: 1, seconds: 0}}
"""
ONCE = "{id: once, once: [n], horizon: 1m}"
LATE = "{id: late, closed_windows: {end: end}}"


class Checked(Bench):
    """A bench whose events are windows, and whose versions report their batches."""

    def put(self, side: Side, *numbers: int, **more: Any) -> None:
        for number in numbers:
            value = {"n": number, "end": 100 * number, **more}
            self.source.append(side, 0, orjson.dumps(value), 1000 + number, key=b"%d" % number)

    def put_both(self, *numbers: int) -> None:
        for side in Side:
            self.put(side, *numbers)

    def found(self, place: int = 0, side: str = "candidate") -> CheckedSide:
        found = getattr(self.settled().checks[place], side)
        assert isinstance(found, CheckedSide)
        return found

    def view(self, status: ComparisonStatus | None = None) -> View:
        """What a process shows of the last status."""
        board = board_of(loads(self.spec), self.clock)
        board.accept(status or self.status())
        return board.view("test")


def bench(*checks: str, more: str = "") -> Checked:
    return Checked(spec=f"{HEAD}checks: [{', '.join(checks)}]\n{more}")


def test_a_candidate_that_violates_a_check_fails_the_gate_and_stays_equivalent() -> None:
    made = bench(ONCE)
    made.put_both(1, 2, 1)
    made.put(LEFT, 3)
    made.put(RIGHT, 3)
    status = made.settled()
    assert status.verdict == "EQUIVALENT"
    gate = made.view(status).gate
    assert (gate.answer, gate.violations, gate.to_decide) == ("fail", 2, "")
    assert gate.reason == (
        "The candidate violates the check `once`: 1 violation: the record at test.candidate 0:2 is a second "
        "one of its key, after that at offset 0 of partition 0."
    )


def test_a_reference_that_violates_a_check_alone_leaves_the_gate_undecided() -> None:
    made = bench("{id: reference-alone, not_null: [m], side: reference}")
    made.put_both(1, 2)
    gate = made.view(made.settled()).gate
    assert gate.answer == "undecided"
    assert gate.reason.startswith("No difference so far, but the reference violates the check")
    assert gate.to_decide.startswith("A check must hold, but the reference violates the check")


@pytest.mark.parametrize(("gate", "answer"), [("undecided", "undecided"), ("ignore", "pass")])
def test_a_check_says_itself_what_it_makes_of_the_gate(gate: str, answer: str) -> None:
    made = bench(ONCE.replace("}", f", gate: {gate}}}"))
    made.put_both(1, 2, 1)
    assert made.view(made.settled()).gate.answer == answer
    assert made.found().violations == 1


def test_violations_are_counted_by_check_and_side_for_prometheus() -> None:
    made = bench(ONCE, "{id: keyed, key_partition: [n], side: candidate}")
    made.put_both(1, 2, 1)
    view, registry = made.view(made.settled()), CollectorRegistry()
    registry.register(StatusCollector(lambda: [view], made.clock.now))
    found = {}
    for check in ("once", "keyed"):
        for side in ("reference", "candidate"):
            labels = {"comparison": "test", "check": check, "side": side}
            found[check, side] = registry.get_sample_value("twinstream_check_violations_total", labels)
    assert found == {
        ("once", "reference"): 1,
        ("once", "candidate"): 1,
        ("keyed", "reference"): None,
        ("keyed", "candidate"): 0,
    }


def test_what_was_found_and_what_is_remembered_survive_a_crash() -> None:
    made = bench(ONCE, LATE)
    made.put_both(1, 2, 1)
    assert made.found().violations == 1
    made.restarted()
    made.storage.down = "away"
    assert made.found().state == "violated", "it was saved before the crash"
    made.storage.down = None
    made.put(RIGHT, 2)
    assert made.found().violations == 2, "2 was read before the crash"
    assert made.found().checked == 4


def test_a_late_row_is_found_by_the_control_records_whenever_they_are_heard() -> None:
    made = bench(LATE)
    made.put_both(1, 2)
    assert made.found().state == "undecided"
    assert made.found().reason == (
        "no control record of this version has been heard that names this topic, and has a watermark"
    )
    for side in Side:
        made.finish(side, 0, 0, written=1, watermark=100)
        made.finish(side, 1, 1, written=2, watermark=200)
    made.put_both(3)
    made.put(RIGHT, 1)
    assert (made.found().state, made.found().violations) == ("violated", 1)
    assert made.found(side="reference").state == "holds"
    assert made.view().gate.answer == "fail"


def test_a_control_topic_that_is_away_leaves_the_gate_undecided() -> None:
    made = bench(LATE)
    made.source.control_topic = None
    made.put_both(1)
    status = made.settled()
    assert status.health.reasons == ["topic test.control: there is no such topic"]
    assert made.view(status).gate.answer == "undecided"
    made.source.control_topic = Topic(1, "delete")
    for side in Side:
        made.finish(side, 0, 0, watermark=0)
    assert made.view(made.settled()).gate.answer == "pass"


def test_a_watermark_that_goes_back_names_its_control_record() -> None:
    made = bench("{id: mark, watermark: never_back}")
    made.put_both(1)
    for batch, watermark in enumerate((100, 60)):
        made.finish(LEFT, batch, batch, watermark=100)
        made.finish(RIGHT, batch, batch, watermark=watermark)
    found = made.found()
    (violation,) = found.first
    assert (found.checked, found.violations) == (2, 1)
    assert (violation.position.topic, violation.position.offset) == ("test.control", 3)
    assert violation.problem == "has a watermark 40 ms below that of batch 0"
    assert made.found(side="reference").state == "holds"


def test_lost_input_leaves_a_check_undecided_and_says_which() -> None:
    made = bench(ONCE)
    made.put_both(1, 2, 3)
    made.settled()
    for side in Side:
        made.put(side, 4)
        made.source.retain(side, 0, 4)
    made.put_both(4)
    found = made.found()
    assert found.state == "undecided"
    assert found.reason.startswith("input was not checked: Kafka no longer has offset 3 of test.candidate")


def test_a_topic_that_was_created_anew_violates_nothing() -> None:
    made = bench(ONCE)
    made.put_both(1, 2, 3)
    made.settled()
    made.source.looks = False
    made.source.create_anew(RIGHT)
    made.put(RIGHT, 1, 2, 3, 4)
    made.put(RIGHT, 2, 2)
    made.run()
    made.source.looks = True
    found = made.found()
    assert found.state == "undecided"
    assert found.violations > 0


def test_a_file_without_checks_saves_nothing_of_them() -> None:
    made = Checked(spec=HEAD)
    made.put_both(1)
    assert made.settled().checks == []
    assert made.at_work is not None
    assert "checks" not in snapshot(made.at_work.comparison)
    assert "checks" in snapshot(bench(ONCE).started().comparison)


def test_a_violation_counts_also_behind_an_event_that_may_be_a_copy_and_over_a_restart() -> None:
    rule = "{id: DUP, when: {divergences: [duplicate]}, owner: us, expires: 2999-01-01, ceiling: {count: 9}}"
    made = bench(
        "{id: typed, types: {n: integer}}",
        more=f"known_differences: [{rule}]\nlimits: {{duplicate_horizon: 5}}\n",
    )
    made.spec = made.spec.replace("order: unordered", "order: total")
    made.put_both(*range(20))
    made.put(RIGHT, 3)
    made.put_both(*range(20, 40))
    made.finds("INCONCLUSIVE", "it may be a copy of an event more than 5 offsets before it")
    assert made.found().state == "holds"
    made.restarted()
    for side in Side:
        made.put(side, 41, n="text")
    assert (made.found().state, made.found().violations) == ("violated", 1)
    assert made.view().gate.answer == "fail"


@pytest.mark.parametrize("keep", ["records", "hashes"])
def test_checks_find_the_same_whatever_is_kept_of_events(keep: str) -> None:
    made = bench(ONCE, "{id: keyed, key_partition: [n]}", more=f"keep: {keep}\n")
    made.put_both(1, 2, 1)
    assert [(made.found(place).state, made.found(place).violations) for place in range(2)] == [
        ("violated", 1),
        ("holds", 0),
    ]


@pytest.mark.parametrize("lacks", ["checkpoint", "look"])
def test_a_violation_is_announced_once_it_is_saved_and_a_look_vouches_for_its_topic(lacks: str) -> None:
    made = bench(ONCE)
    made.put_both(1, 2)
    made.settled()
    made.storage.down = "away" if lacks == "checkpoint" else None
    made.source.looks = lacks != "look"
    made.put_both(1)
    found = made.found()
    assert (found.state, found.violations) == ("undecided", 1)
    assert found.reason.startswith("a violation was found; it is announced once")
    assert made.view().gate.answer == "undecided"
    made.storage.down, made.source.looks = None, True
    assert made.found().state == "violated"
    assert made.view().gate.answer == "fail"


def test_rows_that_are_held_until_the_start_are_judged_where_they_stand() -> None:
    made = bench(LATE, more="kinds: {day: {where: {n: 0}}, view: {}}\nstart: barrier\n")
    made.spec = made.spec.replace("order: unordered", "order: {barrier: day, inner: unordered}")
    made.put(RIGHT, 0)
    for batch, number in enumerate((1, 2, 3, 4)):
        made.put(RIGHT, number)
        made.finish(RIGHT, batch, batch, watermark=100 * number)
    assert made.settled().verdict == "PENDING"
    made.put(LEFT, 0, 1, 2, 3, 4)
    assert (made.found().checked, made.found().violations) == (5, 0)
    made.put(RIGHT, 1)
    assert made.found().violations == 1
