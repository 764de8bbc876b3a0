"""What a worker says of what happens to the topics themselves, while it runs and while it is away."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import pytest

from loadtest.memory import MemorySource
from tests.support.saying import TOPICS, control_record
from tests.support.workers import RETRY_STORE_SECONDS, SPEC, Bench
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.events import LIFE, Side
from twinstream.intake.topic_monitor import PATIENCE_SECONDS
from twinstream.ports import Batch, Gap, Positions, TopicsLook
from twinstream.spec.decode.headers import Headers, attempt_headers, input_header
from twinstream.status.comparison import ComparisonStatus

EVENTS = [("a", number) for number in range(10)]
LEFT, RIGHT = Side


def _record(number: int, key: str = "a") -> bytes:
    return b'{"k": "%s", "n": %d}' % (key.encode(), number)


def _create_anew(source: MemorySource, records: int = 0) -> None:
    source.create_anew(RIGHT)
    for number in range(records):
        source.append(RIGHT, 0, _record(number))


def _take_two_records(source: MemorySource) -> None:
    for number in (11, 12):
        source.append(LEFT, 0, _record(number))
    source.retain(LEFT, 0, 12)


def _add_a_partition(source: MemorySource) -> None:
    for side in Side:
        source.add_partition(side)
        source.append(side, 1, _record(1, key="b"))


OF_BOTH = "of test.reference partition 0 (reference)"
ANOTHER = "test.candidate partition 0 (candidate) was deleted and created anew"
BELOW = "was next, but the partition ends below it"


@pytest.mark.parametrize("running", [True, False], ids=["running", "after a pause"])
@pytest.mark.parametrize(
    ("do", "told"),
    [
        pytest.param(
            _create_anew,
            [ANOTHER, f"offset 10 of test.candidate partition 0 (candidate) {BELOW}"],
            id="a topic created anew, with both offsets",
        ),
        pytest.param(
            partial(_create_anew, records=12),
            ["begins there at 0 and ends at 12"],
            id="one that has grown as long all the same",
        ),
        pytest.param(
            lambda source: source.create_anew(RIGHT, partitions=2),
            [ANOTHER, "test.candidate partition 1 (candidate) was added, which begins at offset 0"],
            id="one with more partitions",
        ),
        pytest.param(
            lambda source: source.cut_off(LEFT, 0, 4),
            [f"offset 10 {OF_BOTH} {BELOW}"],
            id="a partition cut off below what was read",
        ),
        pytest.param(
            _take_two_records,
            [f"Kafka no longer has offsets 10–11 {OF_BOTH};"],
            id="records that retention took",
        ),
        pytest.param(
            _add_a_partition,
            [
                f"test.{name} partition 1 ({name}) was added, which begins at offset 0"
                for name in ("reference", "candidate")
            ],
            id="a partition that was added",
        ),
        pytest.param(
            lambda source: source.set_cleanup_policy(RIGHT, "compact,delete"),
            ["test.candidate (candidate) is compacted now (cleanup.policy compact,delete)"],
            id="a topic that becomes compacted",
        ),
    ],
)
def test_what_is_done_to_a_topic_is_a_hole_that_says_what(
    bench: Bench, do: Callable[[MemorySource], None], told: list[str], running: bool
) -> None:
    worker = bench.started()
    bench.write_both(*EVENTS)
    assert bench.run().verdict == "EQUIVALENT"
    if not running:
        worker.stop()
    do(bench.source)
    if not running:
        bench.started()
    bench.run()
    status = bench.run()
    assert status.verdict == "INCONCLUSIVE"
    reasons = [hole.reason for hole in status.holes]
    assert all(any(one in reason for reason in reasons) for one in told), reasons
    assert status.matched == (11 if do is _add_a_partition else 10)


class Shuffled(MemorySource):
    """Topics of which partitions are read in an order of chance, some records of each at a time."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        super().__init__(partitions=3, batch=self._chance.choice([1, 3, 1000]))

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        places = list(self._next[side].items())
        self._chance.shuffle(places)
        self._next[side] = dict(places)
        return super().poll(side, timeout)


@pytest.mark.parametrize("order", ["{per_key: [k]}", "total"])
@pytest.mark.parametrize("seed", range(20))
def test_the_same_topics_differ_in_nothing_though_a_key_is_in_all_partitions(order: str, seed: int) -> None:
    bench = Bench(SPEC.replace("{per_key: [k]}", order), source=Shuffled(seed))
    for number in range(60):
        for side in Side:
            bench.source.append(side, number * 7 % 3, _record(number, key="ab"[number % 2]), number)
    worker = bench.started()
    for _ in range(60):
        assert bench.run(worker, steps=1).verdict != "DIVERGED", seed
    assert "are in two partitions" in bench.status().reason


class Behind(MemorySource):
    """Topics of two partitions, some of which cannot be fetched: their ends are those known before."""

    def __init__(self) -> None:
        super().__init__(partitions=2)
        self._shut: Mapping[Side, Mapping[int, int]] = {}

    def shut(self, places: Mapping[Side, int]) -> None:
        ends = super().ends()
        self._shut = {side: {place: ends[side].get(place, 0)} for side, place in places.items()}

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        self.pause(side, self._shut.get(side, ()))
        return super().poll(side, timeout)

    def ends(self) -> Mapping[Side, Mapping[int, int]]:
        return {side: {**ends, **self._shut.get(side, {})} for side, ends in super().ends().items()}


class Prompt(Behind):
    """The same with a look that is made when it is requested, and not when it is used."""

    def look(self) -> int:
        number = super().look()
        self._made = super().seen()
        return number

    def seen(self) -> TopicsLook:
        return self._made if hasattr(self, "_made") else super().seen()


@pytest.mark.parametrize("more", ["", "on_divergence: halt\n", "limits: {unmatched_events: 2}\n"])
@pytest.mark.parametrize("restart", [False, True], ids=["on", "restart"])
@pytest.mark.parametrize("later_ms", [0, 10_000])
@pytest.mark.parametrize("apart_ms", [0, 1])
def test_a_key_in_two_partitions_makes_no_difference_though_one_is_read_late(
    more: str, later_ms: int, apart_ms: int, *, restart: bool
) -> None:
    bench = Bench(SPEC + more, source=(source := Behind()))
    for side in Side:
        for number, (partition, key) in enumerate(((1, "a"), (0, "a"), (0, "b"), (1, "c"))):
            at_ms = number * apart_ms + later_ms * side
            source.append(side, partition, _record(number, key=key), at_ms)
    source.shut({LEFT: 1, RIGHT: 0})
    seen = [bench.run(bench.started()).verdict]
    if restart:
        seen.append(bench.run(bench.restarted()).verdict)
    bench.clock.advance(PATIENCE_SECONDS - 5)
    seen.append(bench.run().verdict)
    source.shut({})
    seen += [bench.run().verdict, bench.run().verdict]
    assert set(seen[:-2]) == {"INCONCLUSIVE"}
    assert seen[-1] == "INCONCLUSIVE"
    assert "are in two partitions" in bench.status().reason


def test_a_difference_waits_no_longer_than_a_while_for_a_partition_that_is_not_read() -> None:
    bench = Bench(SPEC, source=(source := Behind()))
    for number, side in enumerate((LEFT, LEFT, RIGHT)):
        source.append(side, 0, _record(number))
    source.append(RIGHT, 1, _record(9, key="c"))
    source.shut({RIGHT: 1})
    waiting = bench.run(bench.started())
    bench.clock.advance(10 * PATIENCE_SECONDS)
    assert (waiting.verdict, bench.run().verdict) == ("INCONCLUSIVE", "INCONCLUSIVE"), "nothing was tried"
    for _ in range(int(PATIENCE_SECONDS)):
        bench.clock.advance(1)
        status = bench.run()
    assert status.verdict == "DIVERGED"
    assert "all their partitions read as far" in waiting.reason


class Marked(MemorySource):
    """A mark of a transaction is behind each last record: a look tells it until its end is heard of."""

    heard = False

    def seen(self) -> TopicsLook:
        seen = super().seen()
        if self.heard:
            return seen
        ends = {side: {place: end + 1 for place, end in of.items()} for side, of in seen.ends.items()}
        return seen._replace(ends=ends)


def test_a_difference_does_not_wait_for_a_mark_of_a_transaction_once_the_end_behind_it_is_heard_of() -> None:
    bench = Bench(SPEC, source=(source := Marked()))
    for number, side in enumerate((LEFT, LEFT, RIGHT)):
        source.append(side, 0, _record(number))
    waiting = bench.run(bench.started())
    source.heard = True
    assert (waiting.verdict, bench.run().verdict) == ("INCONCLUSIVE", "DIVERGED")


@pytest.mark.parametrize("clock", ["arrival", "event_time, field: ts, unit: s"])
@pytest.mark.parametrize("order", ["unordered", "{per_key: [k]}"])
def test_a_clock_proves_nothing_of_a_partition_that_was_idle_and_is_read_late(order: str, clock: str) -> None:
    overdue = f"overdue: {{clock: {clock}, after: 10s, proves: true}}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", order) + overdue, source=(source := Prompt()))

    def write(time: int) -> None:
        for side in Side:
            for partition in range(2):
                value = b'{"k": "%d", "n": %d, "ts": %d}' % (partition, time, time)
                source.append(side, partition, value, int(bench.clock.now().timestamp()) * 1000)

    begun = int(bench.clock.now().timestamp())
    for second in range(20):
        write(begun + second)
        bench.run(steps=1)
    for _ in range(90):
        bench.run(steps=1)
    source.shut({RIGHT: 1})
    for second in range(20, 200):
        write(begun + second)
    seen = [bench.run(steps=1).verdict]
    source.shut({})
    seen += [bench.run(steps=5).verdict for _ in range(4)]
    assert "DIVERGED" not in seen
    assert bench.status().verdict == "EQUIVALENT"


@pytest.mark.parametrize("apart", [0, 1, 5])
def test_an_event_that_is_late_in_both_versions_is_given_time_for_its_partner(apart: int) -> None:
    overdue = "overdue: {clock: event_time, field: ts, unit: s, after: 10s, proves: true}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", "unordered") + overdue)
    begun = int(bench.clock.now().timestamp())

    def write(side: Side, number: int, time: int) -> None:
        row = b'{"k": "a", "n": %d, "ts": %d}' % (number, begun + time)
        bench.source.append(side, 0, row, int(bench.clock.now().timestamp()) * 1000)

    seen = []
    for second in range(60):
        for side, late_at in ((LEFT, 30), (RIGHT, 30 + apart)):
            write(side, second, second)
            if second == late_at:
                write(side, 1000, 15)
        if second > 45:
            write(LEFT, 2000 + second, 20)
        seen.append(bench.run(steps=1).verdict)
    assert "DIVERGED" not in seen[:45]
    assert seen[-1] == "DIVERGED", "the events of the last seconds have no partners"


@pytest.mark.parametrize("clock", ["arrival", "event_time, field: ts, unit: s"])
def test_a_clock_proves_nothing_of_a_partition_that_cannot_be_fetched(clock: str) -> None:
    overdue = f"overdue: {{clock: {clock}, after: 10s, proves: true}}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", "unordered") + overdue, source=(source := Behind()))
    begun = int(bench.clock.now().timestamp())

    def go_on(seconds: int) -> str:
        for _ in range(seconds):
            for side in Side:
                second = sum(source.topics()[side].ends.values())
                row = b'{"k": "a", "n": %d, "ts": %d}' % (second, begun + second)
                source.append(side, second % 2, row, (begun + second) * 1000)
            bench.run(steps=1)
        return bench.status().verdict

    assert go_on(10) == "EQUIVALENT"
    source.shut({RIGHT: 1})
    assert go_on(60) == "INCONCLUSIVE"
    source.shut({})
    assert go_on(5) == "EQUIVALENT"


def test_rows_of_a_partition_that_is_read_late_are_no_retry_of_a_forgotten_batch() -> None:
    replays = "duplicates: {policy: replays, horizon: 10}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", "unordered") + replays, source=(source := Prompt()))
    for batch in range(60):
        for side in Side:
            for partition in range(2):
                headers = attempt_headers(Attempt("q", batch, f"x{batch}", partition, 0))
                source.append(side, partition, _record(batch), batch, headers)
        if batch in (20, 40):
            source.shut({RIGHT: 1} if batch == 20 else {})
        bench.run(steps=1)
    status = bench.settled()
    assert (status.verdict, status.matched, status.holes) == ("EQUIVALENT", 120, [])


def test_a_partition_that_is_not_read_holds_back_what_is_verified() -> None:
    bench = Bench(SPEC, source=(source := Behind()))
    begun = bench.clock.now()

    def go_on(steps: int) -> float:
        """How far all is verified, in seconds since the start; an event always waits."""
        for number in range(steps):
            at_ms = int(bench.clock.now().timestamp() * 1000)
            second = at_ms // 1000
            for side in Side:
                source.append(side, number % 2, _record(second, key="ab"[number % 2]), at_ms)
            source.append(LEFT, 0, _record(second, key="late"), at_ms)
            status = bench.run(steps=1)
            source.append(RIGHT, 0, _record(second, key="late"), at_ms)
        assert status.verdict == "EQUIVALENT"
        assert status.verified_through is not None
        return (status.verified_through - begun).total_seconds()

    bench.started()
    step = RETRY_STORE_SECONDS
    assert go_on(10) == pytest.approx(10 * step, abs=2 * step)
    source.shut({LEFT: 1, RIGHT: 1})
    assert go_on(20) == pytest.approx(10 * step, abs=2 * step)
    source.shut({})
    assert go_on(5) == pytest.approx(35 * step, abs=2 * step)


def test_a_change_is_noted_once_and_stays_noted_over_a_restart(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    assert bench.run(bench.restarted()).hole_count == 0
    bench.source.add_partition(Side.LEFT)
    assert bench.run().hole_count == 1
    assert bench.run().hole_count == 1
    assert bench.run(bench.restarted()).hole_count == 1


def test_a_topic_that_is_gone_degrades_health_and_is_a_hole_when_it_comes_back(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    bench.source.delete(Side.RIGHT)
    status = bench.run()
    assert status.verdict == "EQUIVALENT"
    assert status.health.reasons == ["the candidate's topic test.candidate is not there any more"]
    bench.source.create_anew(Side.RIGHT)
    status = bench.run()
    assert (status.verdict, status.health.status) == ("INCONCLUSIVE", "ok")


def test_a_compacted_topic_is_refused_at_the_start(bench: Bench) -> None:
    bench.source.set_cleanup_policy(Side.LEFT, "compact")
    reason = bench.refused().reason
    assert "the reference's topic test.reference has cleanup.policy compact" in reason
    bench.source.set_cleanup_policy(Side.LEFT, "delete")
    bench.started()


# -- offsets that come again -------------------------------------------------------------------------------


def _cut_off(source: MemorySource) -> None:
    source.cut_off(RIGHT, 0, 10)


BACK = pytest.mark.parametrize("go_back", [_create_anew, _cut_off], ids=["created anew", "cut off"])
KINDS = "kinds: {night: {where: {k: night}}, row: {}}\n"
ORDERS = {
    "sequence": "order: {per_key: [k]}\n",
    "bag": "order: unordered\n",
    "rules": "order: {dependent: [{pair: [event, event], same: [k]}]}\n",
    "epochs": f"{KINDS}order: {{barrier: night, inner: {{per_key: [k]}}}}\n",
    "copies": f"{KINDS}order: {{barrier: night, copies: per_partition, inner: unordered}}\n",
    "table": f"{KINDS}order: {{barrier: night, inner: unordered}}\n"
    "emits: {upsert: {key: [k], settled_by: barrier}}\n",
}


def _counted(status: ComparisonStatus) -> None:
    """The accounts add up, and an event that is unmatched is one that was consumed."""
    for account in (status.accounts.reference, status.accounts.candidate):
        counts = account.model_dump()
        assert counts.pop("consumed") == sum(counts.values())
        assert min(counts.values()) >= 0


@BACK
def test_a_difference_whose_scope_is_open_stays_when_its_offsets_come_again(
    bench: Bench, go_back: Callable[[MemorySource], None]
) -> None:
    bench.started()
    bench.write_both(*[("z", number) for number in range(20)])
    bench.write(LEFT, ("a", 1), ("a", 2))
    bench.write(RIGHT, ("a", 2))
    before = bench.settled()
    (found,) = bench.reports().values()
    assert (before.verdict, found.provisional) == ("DIVERGED", True)
    go_back(bench.source)
    bench.run()
    others = [("b", number) for number in range(30)]
    bench.write(RIGHT, *others)
    bench.run()
    bench.write(LEFT, *others)
    for _ in range(3):
        status = bench.settled()
        assert (status.verdict, status.divergences.total) == ("DIVERGED", before.divergences.total)
        assert status.matched == 50
        assert bench.reports()[found.id].positions == found.positions
        _counted(status)
        bench.restarted()


@pytest.mark.parametrize("stop", range(6))
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_a_matcher_restarts_at_any_time_after_offsets_have_come_again(order: str, stop: int) -> None:
    """Both lives of the topic have events that wait, some of them equal; restarts change nothing."""

    def told(restarts: bool) -> ComparisonStatus:
        bench = Bench(spec=SPEC.replace("order: {per_key: [k]}\n", order))
        bench.started()
        script: list[Callable[[], object]] = [
            lambda: bench.write(LEFT, ("a", 1), ("b", 1), ("c", 1)),
            lambda: bench.source.create_anew(LEFT),
            lambda: bench.write(LEFT, ("a", 1), ("c", 2)),
            lambda: bench.write(RIGHT, ("c", 3), ("a", 1), ("a", 1)),
            lambda: bench.write_both(("night", 1), ("a", 2)),
            lambda: bench.write_both(("b", 1), ("night", 2)),
        ]
        for number, step in enumerate(script):
            step()
            bench.settled()
            if restarts and number >= stop:
                bench.restarted()
        return bench.settled()

    found, undisturbed = told(True), told(False)
    _counted(found)
    assert (found.verdict, found.accounts) == ("INCONCLUSIVE", undisturbed.accounts)
    assert (found.matched, found.divergences) == (undisturbed.matched, undisturbed.divergences)
    assert [hole.reason for hole in found.holes] == [hole.reason for hole in undisturbed.holes]


@pytest.mark.parametrize("keep", ["records", "hashes"])
def test_what_has_offsets_that_came_again_is_told_with_those_of_kafka(keep: str) -> None:
    bench = Bench(spec=f"{SPEC}keep: {keep}\n")
    bench.started()
    bench.write(RIGHT, ("a", 1), ("a", 2))
    bench.run()
    bench.source.create_anew(RIGHT)
    bench.run()
    bench.write(RIGHT, ("a", 3))
    bench.write(LEFT, ("a", 4), ("a", 3))
    status = bench.settled()
    assert status.divergences.total
    places = [report.positions.candidate for report in bench.reports().values()]
    assert all(place is None or place.offset < 2 for place in places)
    published = [publication.model_dump_json() for publication in bench.publisher.published]
    assert not any(str(LIFE)[:10] in text for text in published)
    assert status.verified_up_to.candidate == {"0": 0}


def test_differences_of_one_offset_in_two_lives_of_a_topic_are_two(bench: Bench) -> None:
    bench.started()
    for number in range(2):
        bench.write(LEFT, ("a", 1), ("a", 2))
        bench.write(RIGHT, ("a", 2), ("a", 1))
        bench.write_both(*[("a", number) for number in range(3, 20)])
        bench.settled()
        if not number:
            for side in Side:
                bench.source.create_anew(side)
            bench.run()
    assert bench.status().divergences.total == 2
    assert len(bench.reports()) == 2


def test_a_clock_proves_at_rest_what_the_last_records_prove() -> None:
    overdue = "overdue: {after: 10s, proves: true}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", "unordered") + overdue)
    begun_ms = int(bench.clock.now().timestamp() * 1000)
    bench.write(LEFT, ("lost", 1), at_ms=begun_ms)
    bench.run(bench.started())
    for second in range(11):
        bench.write_both(("a", second), at_ms=begun_ms + second * 1000)
        bench.run(steps=1)
    for _ in range(10):
        status = bench.run(steps=1)
    assert (status.verdict, status.suspicions) == ("DIVERGED", 0)


class Open(MemorySource):
    """There is an open transaction in a partition: it is told at once, and nothing of it is readable."""

    opened, records = 1, 5

    def ends(self) -> Mapping[Side, Mapping[int, int]]:
        ends = super().ends()
        return {**ends, RIGHT: {**ends[RIGHT], self.opened: ends[RIGHT].get(self.opened, 0) + self.records}}

    def seen(self) -> TopicsLook:
        return super().seen()._replace(written=self.ends())


def test_the_records_of_an_open_transaction_are_not_verified() -> None:
    bench = Bench(SPEC, source=(source := Open(partitions=2)))
    begun = bench.clock.now()
    for side in Side:
        for partition, key in enumerate("ab"):
            source.append(side, partition, _record(1, key=key), int(begun.timestamp() * 1000))
    source.records = 0
    for _ in range(5):
        bench.run(steps=1)
    source.records, opened_at = 5, bench.clock.now()
    for _ in range(30):
        bench.run(steps=1)
    verified = bench.status().verified_through
    assert bench.status().verdict == "EQUIVALENT"
    assert verified is not None
    assert begun < verified <= opened_at


@pytest.mark.parametrize("proves", ["false", "true"])
@pytest.mark.parametrize("clock", ["arrival", "event_time, field: ts, unit: s"])
def test_beside_an_open_transaction_a_lost_event_is_suspected_and_not_proven(clock: str, proves: str) -> None:
    overdue = f"overdue: {{clock: {clock}, after: 10s, proves: {proves}}}\n"
    bench = Bench(
        SPEC.replace("{per_key: [k]}", "unordered") + overdue, source=(source := Open(partitions=2))
    )
    seen = []
    for second in range(60):
        now = int(bench.clock.now().timestamp())
        for side in Side:
            if second != 20 or side is LEFT:
                for partition in range(2 if second == 0 else 1):
                    source.append(
                        side, partition, b'{"k": "a", "n": %d, "ts": %d}' % (second, now), now * 1000
                    )
        seen.append(bench.run(steps=1).verdict)
    assert "DIVERGED" not in seen
    assert bench.status().unmatched.reference == 1
    assert (seen[-1] == "INCONCLUSIVE") == (clock == "arrival")


class Transactions(Prompt):
    """Two partitions of the candidate always have open transactions: told at once, and readable once over.

    Nothing is ever written to the last partition.
    """

    def __init__(self) -> None:
        super().__init__()
        for side in (LEFT, RIGHT, LEFT, RIGHT):
            self.add_partition(side)
        self._open: dict[int, list[tuple[bytes, int, Headers]]] = {1: [], 2: []}

    def put(self, partition: int, record: bytes, at_ms: int, headers: Headers = ()) -> None:
        """A record in the open transaction of a partition."""
        self._open[partition].append((record, at_ms, headers))

    def commit(self, partition: int) -> None:
        """Commit all but the last record, which is the first of the next transaction."""
        rows = self._open[partition]
        for row in rows[:-1]:
            self.append(RIGHT, partition, *row)
        del rows[:-1]

    def ends(self) -> Mapping[Side, Mapping[int, int]]:
        shut = self._shut.get(RIGHT, {})
        return self._with_open(super().ends(), [place for place in self._open if place not in shut])

    def look(self) -> int:
        number = super().look()
        self._made = self._made._replace(written=self._with_open(self._made.ends, self._open))
        return number

    def _with_open(self, ends: Positions, partitions: Iterable[int]) -> Positions:
        more = {
            partition: ends[RIGHT].get(partition, 0) + len(self._open[partition]) for partition in partitions
        }
        return {**ends, RIGHT: {**ends[RIGHT], **more}}


def _in_transactions(spec: str, seconds: int, lost: int = -1) -> tuple[Bench, list[ComparisonStatus]]:
    """All partitions go on, the candidate's last two in transactions of ten seconds; one event is lost."""
    bench = Bench(spec, source=(source := Transactions()))
    seen = []
    for number in range(seconds // 2):
        now = int(bench.clock.now().timestamp())
        for partition in range(3):
            headers = attempt_headers(Attempt("q", number, "e", partition, 0))
            row = b'{"k": "%d", "n": %d, "ts": %d}' % (partition, number, now), now * 1000, headers
            source.append(LEFT, partition, *row)
            if partition:
                source.put(partition, *row)
            elif number != lost:
                source.append(RIGHT, partition, *row)
        if number % 5 in {2, 4}:
            source.commit(number % 5 // 2)
        seen.append(bench.run(steps=5))
    return bench, seen


@pytest.mark.parametrize("clock", ["arrival", "event_time, field: ts, unit: s"])
@pytest.mark.parametrize("order", ["unordered", "{per_key: [k]}"])
@pytest.mark.parametrize("policy", ["strict", "replays"])
def test_a_lost_event_is_proven_though_there_is_always_an_open_transaction(
    order: str, clock: str, policy: str
) -> None:
    overdue = f"overdue: {{clock: {clock}, after: 30s, proves: true}}\nduplicates: {{policy: {policy}}}\n"
    spec = SPEC.replace("{per_key: [k]}", order) + overdue
    _, undisturbed = _in_transactions(spec, 200)
    assert {status.verdict for status in undisturbed[20:]} == {"EQUIVALENT"}
    bench, seen = _in_transactions(spec, 200, lost=20)
    assert seen[-1].verdict == "DIVERGED"
    assert seen[-1].divergences.total == 1
    (report,) = bench.reports().values()
    assert report.positions.reference is not None
    assert (report.kind, report.positions.reference.offset) == ("missing", 20)


@pytest.mark.parametrize("order", ["unordered", "{per_key: [k]}"])
def test_nothing_is_proven_of_an_open_transaction_in_a_partition_that_is_not_fetched(order: str) -> None:
    """A consumer that does not fetch is not told of it either; a look is."""
    overdue = "overdue: {after: 10s, proves: true}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", order) + overdue, source=(source := Transactions()))

    def go_on(seconds: int) -> str:
        for _ in range(seconds // 2):
            at_ms = int(bench.clock.now().timestamp() * 1000)
            for side in Side:
                source.append(side, 0, _record(at_ms), at_ms)
            verdict = bench.run(steps=5).verdict
        return verdict

    assert go_on(20) == "EQUIVALENT"
    source.shut({RIGHT: 1})
    row = _record(1, key="b"), int(bench.clock.now().timestamp() * 1000)
    source.append(LEFT, 1, *row)
    source.put(1, *row)
    assert go_on(60) == "INCONCLUSIVE"
    source.put(1, _record(2, key="b"), row[1])
    source.append(LEFT, 1, _record(2, key="b"), row[1])
    source.commit(1)
    source.shut({})
    assert go_on(4) == "INCONCLUSIVE"
    source.put(1, _record(3, key="b"), row[1])
    source.commit(1)
    assert go_on(4) == "EQUIVALENT"


def test_what_is_verified_is_no_older_than_the_last_transaction() -> None:
    bench, seen = _in_transactions(SPEC, 200)
    for status in seen[20:]:
        assert status.verified_through is not None
    verified = bench.status().verified_through
    assert verified is not None
    assert (bench.clock.now() - verified).total_seconds() < 20


def test_a_time_in_the_future_verifies_nothing_of_a_partition_that_is_not_read() -> None:
    bench = Bench(SPEC, source=(source := Prompt()))

    def write(*partitions: int, ahead_s: int = 0) -> None:
        for side in Side:
            for partition in partitions:
                at_ms = int(bench.clock.now().timestamp() + ahead_s) * 1000
                source.append(side, partition, _record(at_ms, key="ab"[partition]), at_ms)

    for _ in range(10):
        write(0, 1)
        bench.run(steps=1)
    write(1)
    write(1, ahead_s=25)
    bench.run(steps=1)
    source.shut({LEFT: 1, RIGHT: 1})
    shut_at = bench.clock.now()
    for _ in range(10):
        write(0, 1)
        bench.run(steps=1)
    verified = bench.status().verified_through
    assert verified is not None
    assert verified <= shut_at


@pytest.mark.parametrize("clock", ["arrival", "event_time, field: ts, unit: s"])
@pytest.mark.parametrize("order", ["unordered", "{per_key: [k]}"])
@pytest.mark.parametrize("late_s", [0, 4])
@pytest.mark.parametrize("proves", ["false", "true"])
def test_nothing_is_proven_of_a_partition_that_is_not_fetched_by_times_in_the_future(
    order: str, clock: str, proves: str, late_s: int
) -> None:
    overdue = f"overdue: {{clock: {clock}, after: 10s, proves: {proves}, max_jump: 1d}}\n"
    overdue = overdue if clock != "arrival" else overdue.replace(", max_jump: 1d", "")
    bench = Bench(SPEC.replace("{per_key: [k]}", order) + overdue, source=(source := Prompt()))

    def write(side: Side, partition: int, number: int, ahead_s: int = 0) -> None:
        now = int(bench.clock.now().timestamp()) + ahead_s
        source.append(
            side, partition, b'{"k": "%d", "n": %d, "ts": %d}' % (partition, number, now), now * 1000
        )

    def on(number: int, *late: int) -> str:
        for side in Side:
            for partition in range(2):
                if (side, partition) != (RIGHT, 1) or not late:
                    write(side, partition, number)
        return bench.run(steps=1).verdict

    seen = [on(number) for number in range(20)]
    source.shut({RIGHT: 1})
    for side in Side:
        write(side, 1, 20)
        write(side, 0, 20)
    seen += [bench.run(steps=1).verdict for _ in range(late_s)]
    for side in Side:
        write(side, 0, 21, ahead_s=3600)
    seen += [bench.run(steps=1).verdict for _ in range(30)]
    source.shut({})
    seen += [bench.run(steps=3).verdict for _ in range(3)]
    assert "DIVERGED" not in seen
    assert seen[-1] == "EQUIVALENT"


@pytest.mark.parametrize("order", ["unordered", "{per_key: [k]}"])
@pytest.mark.parametrize("late", [False, True])
def test_a_partition_that_becomes_idle_at_rest_proves_nothing_of_what_it_has_not_read(
    order: str, *, late: bool
) -> None:
    overdue = "overdue: {clock: event_time, field: ts, unit: s, after: 10s, idle_after: 60s, proves: true}\n"
    bench = Bench(SPEC.replace("{per_key: [k]}", order) + overdue, source=(source := Prompt()))
    begun = int(bench.clock.now().timestamp())
    bench.started()

    def write(side: Side, partition: int, second: int) -> None:
        value = b'{"k": "%d", "n": %d, "ts": %d}' % (partition, second, begun + second)
        source.append(side, partition, value, (begun + second) * 1000)

    def quiet_s() -> float:
        times = bench.at_work.comparison.clocks.times
        assert times is not None
        return times._sides[RIGHT][1].quiet_s

    second = 0
    while quiet_s() < 40:  # The candidate's second partition pauses, and all else goes on.
        for side in Side:
            for partition in range(2):
                if second < 20 or (side, partition) != (RIGHT, 1):
                    write(side, partition, second)
        second += 1
        bench.run(steps=1)
    while quiet_s() < 58:
        bench.run(steps=1)
    source.shut({RIGHT: 1} if late else {})
    for paused in range(20, second):
        write(RIGHT, 1, paused)
    seen = [bench.run(steps=1).verdict for _ in range(2)]
    source.shut({})
    seen += [bench.run(steps=3).verdict for _ in range(3)]
    assert "DIVERGED" not in seen
    assert seen[-1] == "EQUIVALENT"


def test_transactions_in_partitions_that_are_seldom_written_hold_back_no_more_than_their_own_time() -> None:
    bench = Bench(SPEC, source=(source := Open(partitions=3)))

    def write(partition: int) -> None:
        for side in Side:
            at_ms = int(bench.clock.now().timestamp() * 1000)
            source.append(side, partition, _record(at_ms, key="abc"[partition]), at_ms)

    write(1)
    write(2)
    for second in range(120):
        write(0)
        source.opened = 1 + second // 5 % 2  # There is always one that is open.
        bench.run(steps=1)
    verified = bench.status().verified_through
    assert verified is not None
    assert (bench.clock.now() - verified).total_seconds() < 30


INPUT = """
version: 1
name: test
reference: {topic: test.reference, version: "1"}
candidate: {topic: test.candidate, version: "2"}
order: {per_key: [k]}
overdue: {clock: input}
control: test.control
evidence: {matched: 1, seconds: 0}
known_differences:
  - {id: LOST, when: {divergences: [missing]}, owner: ann, expires: 2999-01-01, ceiling: {count: 9}}
"""


def test_beside_an_open_transaction_the_clock_of_the_input_proves_and_ends_a_dispute() -> None:
    bench = Bench(INPUT, source=(source := Open(partitions=2)))
    bench.started()
    for second in range(30):
        for side in Side:
            at_ms = int(bench.clock.now().timestamp() * 1000)
            keys = ["a", "a", "a"] if second == 5 else [f"k{second}"]
            for number, key in enumerate(keys):
                if (side, second, number) == (RIGHT, 5, 0):
                    continue
                value = b'{"k": "%s", "n": %d}' % (key.encode(), number)
                source.append(side, 0, value, at_ms, [input_header("in", 0, 3 * second + number)])
            ends = MemorySource.ends(source)[side]
            source.say(control_record("12"[side], second, {"in": {0: 3 * second + 3}}, {TOPICS[side]: ends}))
        bench.run(steps=1)
    status = bench.status()
    assert (status.verdict, status.explained_by_rule) == ("EQUIVALENT", {"LOST": 1})
