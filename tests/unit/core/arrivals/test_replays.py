"""What a retry has written again, told from what was really written twice."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.retries import Reader, Row, attempt, replays, rows
from tests.support.streams import LEFT, RIGHT
from twinstream.core.accounting.certainty import Certainty
from twinstream.core.arrivals import replays as module
from twinstream.core.arrivals.replays import Replays, WrittenRow
from twinstream.core.events import Side
from twinstream.core.order import Lanes
from twinstream.core.rules import Rules


class Told(Replays):
    """One side that is fed words, and its holes."""

    def __init__(self, horizon: int = 10) -> None:
        super().__init__(Side.RIGHT, horizon)
        self.offset = 0
        self.reasons: list[str] = []

    def new(self, text: str, query: str = "q") -> str:
        """The names of the rows that are new."""
        found = ""
        for row in rows(text, query):
            if self.feed(self.written(row)):
                found += row.value["k"]
        return found

    def written(self, row: Row) -> WrittenRow:
        """A row at the next offset."""
        self.offset += 1
        return WrittenRow(row.attempt, str(row.value).encode(), (row.partition, self.offset - 1))

    def restarted(self) -> Told:
        """A process that goes on from the state, with the same holes so far."""
        told = Told(self._horizon)
        told.restore(self.state())
        told.offset, told.reasons = self.offset, self.holes()
        return told

    def holes(self) -> list[str]:
        """Why something could not be judged, so far."""
        self.reasons += [found.hole.reason for found in self.take_closed().holes]
        return self.reasons


# -- new, or a replay --------------------------------------------------------------------------------------


def test_a_lower_batch_of_a_new_query_is_no_concern() -> None:
    told = Told(horizon=1)
    assert told.new("90/e/0.0:a 91/e/0.0:b", query="old") == "ab"
    assert told.new("0/e/0.0:a 1/e/0.0:b", query="new") == "ab"
    assert told.holes() == []


def test_records_without_marks_are_counted() -> None:
    told = Told()
    told.new(":ab 1/e/0.0:a")
    assert told.unmarked == 2


# -- attempts that do not agree ----------------------------------------------------------------------------


def test_attempts_that_differ_are_a_hole_that_says_where() -> None:
    told = Told()
    told.new("1/e/0.0:ax 1/f/0.0:ay", query="views")
    assert told.holes() == []
    assert list(told.disagreeing()) == [
        "query views of the candidate writes batch 1 again, and no attempt has come to all of it yet"
    ]
    told.end()
    (reason,) = told.holes()
    assert "query views of the candidate wrote batch 1 several times with different rows" in reason
    assert "partition" in reason
    assert "offset" in reason
    assert list(told.disagreeing()) == []


def test_the_position_of_a_hole_is_that_of_what_the_retry_added() -> None:
    told = Told()
    told.new("1/e/0.0:abx 1/f/0.0:abya")
    told.end()
    (found,) = told.take_closed().holes
    assert found.hole[1:] == (Side.RIGHT, 0, 6)


# -- what lies before the start ----------------------------------------------------------------------------


def _before(told: Told, text: str, *, by_place: bool = False) -> None:
    """Rows that lie before the start."""
    for row in rows(text):
        told.note_before(told.written(row), by_place=by_place)


@pytest.mark.parametrize(("by_place", "new"), [(True, "b"), (False, "ab")])
def test_a_copy_of_what_lies_before_the_start_is_behind_it_only_by_its_place(
    by_place: bool, new: str
) -> None:
    told = Told()
    _before(told, "1/e/0.0:a", by_place=by_place)
    assert told.new("1/f/0.0:ab") == new


def test_attempts_agree_on_both_sides_of_the_start_or_not_at_all() -> None:
    told = Told()
    _before(told, "1/e/0.0:x")
    _before(told, "1/f/0.0:y")
    told.end()
    assert told.holes() == [], "nothing of it lies behind the start"
    assert told.new("1/f/0.0:a") == "a"
    told.end()
    assert len(told.holes()) == 1


def test_what_lies_before_the_start_opens_a_batch_again_and_is_forgotten_like_any_row() -> None:
    told = Told(horizon=2)
    told.new("1/e/0.0:a 2/e/0.0:a")
    _before(told, "1/f/0.0:x")
    told.end()
    assert len(told.holes()) == 1
    told.new("3/e/0.0:a 4/e/0.0:a")
    _before(told, "1/g/0.0:z")
    assert len(told.holes()) == 1, "only a row that counts is missed"


# -- when that is decided ----------------------------------------------------------------------------------

BAD = "1/e/0.0:x@0 1/f/0.0:y@0"


@pytest.mark.parametrize("restarts", [False, True])
def test_an_idle_partition_is_not_waited_for_where_all_is_read(restarts: bool) -> None:
    told = Told()
    told.expect([0, 1])
    told.new(f"{BAD} 2/e/0.0:z@0")
    for number in range(1, 5):
        told.note_request(number)
    assert told.holes() == [], "the ends that the looks found are not read"
    told = told.restarted() if restarts else told
    told.note_read(1)
    assert len(told.holes()) == 1, "all up to the first look is read, though later ones are under way"
    assert [batch for batch, _ in told.open()] == [(Side.RIGHT, "q", 2)]


def test_a_row_of_an_earlier_batch_that_is_read_late_is_closed_by_a_look_requested_behind_it() -> None:
    told = Told()
    told.expect([0, 1, 2])
    told.new("2/e/0.0:z@0")
    told.note_request(1)
    told.new("1/e/0.0:x@1 1/f/0.0:y@1")
    told.note_read(1)
    assert told.holes() == []
    told.note_request(2)
    told.note_read(2)
    assert len(told.holes()) == 1


def test_of_many_requested_looks_the_last_and_some_before_are_kept() -> None:
    told = Told()
    told.expect([0, 1])
    for batch in range(1, 301):
        told.new(f"{batch}/e/0.0:x@0")
        told.note_request(batch)
    (query,) = told.state()["queries"]
    assert len(query["requests"]) <= module.REQUESTS_KEPT
    assert query["requests"][-1] == [300, 300]
    told.note_read(300)
    assert [batch for (_, _, batch), _ in told.open()] == [300]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_batch_opened_again_beside_an_idle_partition_is_closed_by_looks_behind_a_later_one(
    restarts: bool,
) -> None:
    told = Told()
    told.expect([0, 1])
    told.new("3/e/0.0:a@0 5/e/0.0:b@0")
    told.note_request(1)
    told.note_read(1)
    told.note_request(2)
    told.new("3/f/0.0:ac@0")
    told.note_request(3)
    told = told.restarted() if restarts else told
    told.note_read(3)
    assert (Side.RIGHT, "q", 3) in dict(told.open()), "its retry may still write"
    told.new("5/f/0.0:b@0")
    told.note_read(3)
    assert (Side.RIGHT, "q", 3) in dict(told.open()), "the look was requested before"
    told.note_request(4)
    told.note_read(4)
    assert (Side.RIGHT, "q", 3) not in dict(told.open())


# -- the horizon -------------------------------------------------------------------------------------------


def test_what_is_older_than_the_horizon_cannot_be_judged() -> None:
    told = Told(horizon=2)
    assert told.new("1/e/0.0:a 2/e/0.0:b 1/f/0.0:a 3/e/0.0:c 2/f/0.0:b") == "abc"
    assert told.holes() == []
    assert told.new("1/f/0.0:aa 1/g/0.0:a") == "aaa", "they are taken as events"
    (reason,) = told.holes()
    assert "query q of the candidate wrote batch 1 again (partition 0 offset 5)" in reason
    assert "2 batches further; only the last 2 are remembered (duplicates.horizon)" in reason


def test_a_batch_is_decided_before_it_is_forgotten() -> None:
    told = Told(horizon=1)
    told.new(f"{BAD} 3/e/0.0:a@1 2/e/0.0:a@0")
    assert len(told.holes()) == 1


def test_a_partition_that_is_read_late_finds_its_batches() -> None:
    told = Told(horizon=1)
    told.expect([0, 1])
    assert told.new("".join(f"{number}/e/0.0:{'abcdef'[number]}@0 " for number in range(6))) == "abcdef"
    assert told.new("0/e/0.0:a@1 0/f/0.0:aa@1 4/f/0.0:e@1") == "a"
    assert told.holes() == []


def test_memory_is_bounded_where_a_partition_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_LIMIT", 6)
    told = Told(horizon=2)
    told.expect([0, 1])
    told.new("0/e/0.0:abc", query="old")
    told.new("".join(f"{number}/e/0.0:ab " for number in range(4)))
    assert told.new("2/f/0.0:ab") == ""
    assert told.new("0/f/0.0:a", query="old") == "a"
    assert told.new("1/f/0.0:a") == "a"
    assert len(told.holes()) == 2


# -- a difference waits for open batches -------------------------------------------------------------------


class Written:
    """Batches of both sides, each row at the next offset of its partition."""

    def __init__(self, horizon: int = 10) -> None:
        rules = Rules(canonical=bytes, order=Lanes(), replay_horizon=horizon)
        self.certainty = Certainty(rules)
        assert self.certainty.retries is not None
        self.retries = self.certainty.retries
        self.next = Counter[tuple[Side, int]]()

    def closed(self, side: Side, text: str) -> tuple[int | None, int]:
        """Write rows; the moment of a difference that counts, and how many holes there are new."""
        for row in rows(text):
            place = row.partition, self.next[side, row.partition]
            self.next[side, row.partition] += 1
            self.retries[side].feed(WrittenRow(row.attempt, str(row.value).encode(), place))
        _, holes = self.certainty.settle_batches(side)
        return self.certainty.proven.at, len(holes)

    def hold(self, moment: int, *places: tuple[Side, int]) -> bool:
        """Whether a difference is held that events at these offsets prove; without any, all may."""
        proof = [(side, 0, offset) for side, offset in places]
        return bool(self.certainty.prove(moment, self.certainty.needs(proof or None)))


def test_a_difference_is_held_until_the_batches_are_closed_that_were_open() -> None:
    written = Written()
    written.closed(LEFT, "1/e/0.0:a")
    written.closed(RIGHT, "5/e/0.0:a")
    assert written.hold(7)
    assert written.hold(3)
    assert written.closed(LEFT, "2/e/0.0:a") == (None, 0)
    assert written.closed(RIGHT, "6/e/0.0:a") == (3, 0)
    assert not written.certainty.proven.waits_for_batches


def test_a_difference_in_attempts_that_do_not_agree_is_dropped() -> None:
    written = Written()
    written.closed(RIGHT, "1/e/0.0:x 1/f/0.0:y")
    assert written.hold(7)
    assert written.closed(RIGHT, "2/e/0.0:a") == (None, 1)
    assert not written.certainty.proven.waits_for_batches


def test_a_difference_that_was_found_before_a_bad_batch_stays() -> None:
    written = Written()
    written.closed(LEFT, "1/e/0.0:a")
    assert written.hold(7)
    assert written.closed(RIGHT, "1/e/0.0:x 1/f/0.0:y 2/e/0.0:a") == (None, 1)
    assert written.closed(LEFT, "2/e/0.0:a") == (7, 0)


def test_a_difference_waits_for_no_batch_that_begins_behind_what_proves_it() -> None:
    written = Written()
    written.closed(LEFT, "1/e/0.0:a 2/e/0.0:b")
    assert written.hold(7, (LEFT, 1), (RIGHT, 5))
    assert written.closed(RIGHT, "1/e/0.0:a") == (None, 0)
    assert written.closed(LEFT, "3/e/0.0:c") == (7, 0)
    sooner = Written()
    sooner.closed(LEFT, "1/e/0.0:a 2/e/0.0:b")
    assert not sooner.hold(7, (LEFT, 0), (RIGHT, 5))


def test_each_difference_waits_for_its_own_batches() -> None:
    written = Written()
    written.closed(LEFT, "1/e/0.0:a")
    assert written.hold(3, (LEFT, 0))
    written.closed(RIGHT, "1/e/0.0:x 1/f/0.0:y")
    assert written.hold(7, (LEFT, 0), (RIGHT, 1))
    assert written.closed(RIGHT, "2/e/0.0:a") == (None, 1)
    assert written.closed(LEFT, "2/e/0.0:a") == (3, 0)


def test_what_is_held_is_known_over_a_restart() -> None:
    written = Written()
    written.closed(LEFT, "1/e/0.0:a")
    assert written.hold(7, (LEFT, 0))
    again = Written()
    again.certainty.restore(written.certainty.state(whole=True), None)
    assert again.closed(LEFT, "2/e/0.0:a") == (7, 0)


# -- in a comparison ---------------------------------------------------------------------------------------


def value(marks: str, number: int) -> Row:
    return Row(attempt(marks), {"k": 1, "n": number})


def test_a_difference_counts_when_no_retry_of_its_batch_can_come() -> None:
    reader = Reader(replays("total"))
    reader.comparison.certainty.moment = 5
    reader.read(LEFT, [value("1/e/0.0", 1)])
    reader.read(RIGHT, [value("1/x/0.0", 2)])
    assert not reader.comparison.diverged
    assert reader.comparison.proven.waits_for_batches
    reader.comparison.certainty.moment = 9
    reader.comparison.arrivals.finish_batch(LEFT, "q", 1)
    assert not reader.comparison.diverged
    reader.comparison.arrivals.finish_batch(RIGHT, "q", 1)
    assert reader.comparison.proven.at == 5
    assert not reader.comparison.proven.waits_for_batches


def diverges(reader: Reader, left: list[Row], right: list[Row], *, left_first: bool) -> bool:
    """Whether the sides differ for sure, where a batch of the right is a hole."""
    sides = [(LEFT, left), (RIGHT, right)]
    for side, some in sides if left_first else reversed(sides):
        reader.read(side, some)
    reader.end()
    assert len(reader.reasons()) == 1, "the bad batch is a hole"
    return reader.comparison.diverged


@pytest.mark.parametrize("left_first", [True, False])
@pytest.mark.parametrize(
    ("order", "before", "diverged"),
    [
        ("total", "4/x/0.0", True),
        ("total", "5/z/0.0", False),
        ("unordered", "4/x/0.0", True),
        ("{dependent: [{pair: ['*', '*'], same: [k]}]}", "4/x/0.0", True),
        ("{dependent: [{pair: ['*', '*'], same: [k]}]}", "5/z/0.0", False),
    ],
)
def test_a_difference_counts_if_it_stands_before_a_bad_batch_whichever_side_is_read_first(
    order: str, before: str, left_first: bool, diverged: bool
) -> None:
    right = [value(before, 2), value("5/x/0.0", 3), value("5/y/0.0", 4), value("6/y/0.0", 5)]
    found = diverges(Reader(replays(order)), [value("1/e/0.0", 1)], right, left_first=left_first)
    assert found == diverged


BARRIERS = (
    "{{barrier: [end], inner: {inner}}}\nkinds: {{end: {{where: {{k: end}}}}, row: {{where: {{k: row}}}}}}"
)


@pytest.mark.parametrize("left_first", [True, False])
@pytest.mark.parametrize(
    ("inner", "end", "diverged"),
    [("total", 1, True), ("total", 9, True), ("unordered", 1, False), ("unordered", 9, True)],
)
def test_with_a_tolerance_an_event_in_a_row_or_a_barrier_proves_a_difference_before_a_bad_batch(
    inner: str, end: int, left_first: bool, diverged: bool
) -> None:
    more = "equality: {tolerance: {n: {abs: 0.5}}}\nidentity: [i]\n"
    reader = Reader(replays(BARRIERS.format(inner=inner), more=more))

    def written(marks: str, kind: str, number: float) -> Row:
        return Row(attempt(marks), {"k": kind, "i": 0, "n": number})

    left = [written("1/e/0.0", "row", 1), written("1/e/0.0", "end", 1)]
    bad = [written("5/x/0.0", "row", 3), written("5/y/0.0", "row", 4)]
    right = [written("1/x/0.0", "end", end), *bad, written("6/y/0.0", "end", 7)]
    assert diverges(reader, left, right, left_first=left_first) == diverged


def test_copies_of_a_barrier_that_are_written_again_are_rows_of_their_partition() -> None:
    order = "{barrier: [end], inner: unordered, copies: per_partition}"
    first, again = attempt("1/e/0.0"), attempt("1/e/0.1")
    for written in ([(first, 1), (again, 0), (again, 1)], [(again, 0), (again, 1), (first, 1)]):
        reader = Reader(replays(order, more="kinds: {end: {where: {k: end}}}\n"), partitions=2)
        for by, partition in written:
            reader.read(RIGHT, [Row(by, {"k": "end"}, partition)])
        reader.read(LEFT, [Row(first, {"k": "end"}, partition) for partition in range(2)])
        reader.end()
        assert (reader.comparison.diverged, reader.reasons(), reader.replayed(RIGHT)) == (False, [], 1)


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
def test_a_row_that_a_retry_wrote_to_another_partition_is_a_hole_where_barriers_have_copies(
    partitions: tuple[int, int],
) -> None:
    """Whether it lies before the barrier would depend on the partition that is read first."""
    order = "{barrier: [end], inner: unordered, copies: per_partition}"
    reader = Reader(replays(order, more="kinds: {end: {where: {k: end}}, x: {}}\n"), partitions=2)

    def wrote(marks: str, partition: int, *names: str) -> list[Row]:
        return [Row(attempt(marks), {"k": name[:3], "n": name}, partition) for name in names]

    written = {
        0: wrote("1/e/0.0", 0, "x", "end0") + wrote("1/e/0.1", 0, "end0", "end1"),
        1: wrote("1/e/0.0", 1, "end0") + wrote("1/e/0.1", 1, "x", "end0", "end1"),
    }
    reader.read(LEFT, wrote("1/e/0.0", 0, "x", "end0", "end1") + wrote("1/e/0.0", 1, "end0", "end1"))
    for partition in partitions:
        reader.read(RIGHT, written[partition])
    reader.end()
    assert not reader.comparison.diverged
    assert ["several times with different rows" in reason for reason in reader.reasons()] == [True]


def test_where_a_comparison_halts_its_difference_still_waits_for_the_batch() -> None:
    for more, diverged in (("2/y/0.0", True), ("1/y/0.0", False)):
        reader = Reader(replays("total", more="on_divergence: halt\n"))
        reader.read(LEFT, [value("1/e/0.0", 1), value("2/e/0.0", 3)])
        reader.read(RIGHT, [value("1/x/0.0", 2)])
        assert reader.comparison.halted
        assert not reader.comparison.diverged
        reader.read(RIGHT, [value(more, 1)])
        assert reader.comparison.diverged == diverged, (
            "what stands behind it may be written again as it likes"
        )
        reader.end()
        assert reader.comparison.diverged == diverged
        assert len(reader.reasons()) == (not diverged)


@pytest.mark.parametrize("restarts", [False, True])
def test_differences_of_a_batch_that_ends_as_a_hole_are_tainted_and_what_completes_them_is_too(
    restarts: bool,
) -> None:
    reader = Reader(replays("total"))
    reader.read(LEFT, [value("1/e/0.0", number) for number in range(40)])
    reader.read(RIGHT, [value("1/x/0.0", 99), *(value("1/y/0.0", number) for number in range(40))])
    reader.comparison.review()
    (found,) = reader.comparison.take_closed()
    assert not found.tainted
    assert reader.comparison.take_closed() == []
    if restarts:
        reader.restart()
    reader.read(RIGHT, [value("2/y/0.0", 1)])
    strays = [stray for side in Side for stray in reader.comparison.differences.unpaired.all(side)]
    assert [stray.divergence.tainted for stray in strays] == [True]
    assert reader.comparison.take_tainted() == [found.number]
    assert not reader.comparison.proven.waits_for_batches


def test_a_policy_that_is_strict_remembers_nothing() -> None:
    reader = Reader("unordered")
    reader.read(LEFT, rows("1/e/0.0:a 1/f/0.0:a"))
    assert reader.comparison.retries is None
    assert reader.comparison.unmatched(LEFT) == 2
    reader.comparison.arrivals.finish_batch(LEFT, "q", 1)
    reader.comparison.arrivals.note_request(1)
    reader.comparison.arrivals.note_read(LEFT, 1)
