"""A stretch of two topics is compared once: what counts at its edges, and what Kafka may do meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from loadtest.memory import ManualClock, MemorySource
from tests.support.retries import attempt
from tests.support.streams import LEFT, RIGHT, record, spec
from twinstream.core.events import Side
from twinstream.errors import SettingsError
from twinstream.offline.bounded import BoundedCheck, WatchLines
from twinstream.offline.offset_range import Edge, edge_of
from twinstream.ports import Line, Positions, Topic
from twinstream.spec.decode.headers import attempt_headers

SLACK = timedelta(seconds=1)
Written = Sequence[tuple[str, int]]
"""Values, with the millisecond at which each was written."""


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def topics(reference: Written, candidate: Written, partitions: int = 1) -> MemorySource:
    source = MemorySource(partitions)
    for side, rows in ((LEFT, reference), (RIGHT, candidate)):
        for value, moment in rows:
            source.append(side, 0, record({"k": value[0], "n": value[1:]}), moment)
    return source


PER_KEY = "{per_key: [k]}"


def bounded(
    source: MemorySource, begin: Edge = "earliest", end: Edge = "latest", order: str = PER_KEY, more: str = ""
) -> BoundedCheck:
    return BoundedCheck(spec(order, more), source, begin, end, SLACK, ManualClock())


def finished(run: BoundedCheck, watch: WatchLines = iter, *, open_ended: bool = False) -> dict[str, Any]:
    """The answer; what came where adds up in any."""
    answer = run.run(watch, open_ended=open_ended, allow_empty=False, evidence=False)
    for account in answer["accounts"].values():
        assert account["consumed"] == sum(account.values()) - account["consumed"]
    return answer


def check(source: MemorySource, *edges: Edge, **rules: Any) -> dict[str, Any]:
    return finished(bounded(source, *edges, **rules))


SIX: Written = [("a1", 1000), ("b1", 2000), ("a2", 3000), ("b2", 4000), ("a3", 5000), ("b3", 6000)]
LATER: Written = [(value, moment + 700) for value, moment in SIX]


def test_whole_topics_are_compared_from_their_beginning_to_their_end() -> None:
    answer = check(topics(SIX, LATER))
    assert (answer["verdict"], answer["matched"]) == ("EQUIVALENT", 6)
    part = {"from": 0, "to": 6, "read_from": 0, "read_to": 6}
    assert answer["ranges"]["reference"]["partitions"] == {"0": part}
    assert answer["ranges"]["candidate"]["last_at"] == "1970-01-01T00:00:06.700000+00:00"
    assert (answer["ranges"]["from"], answer["ranges"]["to"]) == ("earliest", "latest")


def test_partners_beyond_a_time_are_found_within_the_slack() -> None:
    """At 3.2 s the reference has written a2, and the candidate not yet; at 5.3 s the same of a3."""
    answer = check(topics(SIX, LATER), at(3200), at(5300))
    assert answer["verdict"] == "EQUIVALENT"
    reference, candidate = answer["ranges"]["reference"], answer["ranges"]["candidate"]
    assert (reference["partitions"]["0"]["from"], reference["partitions"]["0"]["to"]) == (3, 5)
    assert (reference["records"], candidate["records"]) == (2, 2)
    # b1 of the candidate and b3 of the reference: their partners are not even read.
    assert (reference["left_out"], candidate["left_out"]) == (1, 1)


END = ("z9", 9000)
SWAPPED: Written = [*LATER[:2], ("a3", 3700), ("b2", 4700), ("a2", 5700), ("b3", 6700), END]
REFERENCE_1 = edge_of("--from", ["reference:0=1"], "earliest")
CANDIDATE_5 = edge_of("--to", ["candidate:0=5"], "latest")
JUDGED: dict[str, tuple[Written, Written, Edge, Edge, str, dict[str, int]]] = {
    "versions that stopped have lost what is missing at the end":
        (SIX, LATER[:-1], "earliest", "latest", "DIVERGED", {"missing": 1}),
    "offsets are taken at their word":
        ([("x9", 0), *SIX], LATER, REFERENCE_1, "latest", "EQUIVALENT", {}),
    "and what lacks its partner within them is a difference":
        ([("x9", 0), *SIX], LATER, REFERENCE_1, CANDIDATE_5, "DIVERGED", {"missing": 1}),
    "events that changed places between two times are a difference":
        ([*SIX, END], SWAPPED, at(1500), at(5900), "DIVERGED", {"reordered": 1}),
    "a side that has not come as far as the end may still write what is missing":
        (SIX, LATER[:4], "earliest", at(6500), "INCONCLUSIVE", {"undecided": 2}),
    "but not b1, which was to be there 1 s after it was written: the candidate has come to 4.7 s":
        (SIX, [LATER[0], *LATER[2:4]], "earliest", at(6500), "DIVERGED", {"missing": 1, "undecided": 2}),
    "a side without a record decides nothing between times":
        (SIX, [], at(500), at(6500), "INCONCLUSIVE", {"undecided": 6}),
    "and has lost everything up to the end of what is there":
        (SIX, [], at(500), "latest", "DIVERGED", {"missing": 6}),
    "a version that began later than the range did not lose what was before":
        (SIX, LATER[3:], at(1500), "latest", "INCONCLUSIVE", {"undecided": 2}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "candidate", "begin", "end", "verdict", "found"), JUDGED.values(), ids=JUDGED
)
def test_what_counts_at_an_edge(
    reference: Written, candidate: Written, begin: Edge, end: Edge, verdict: str, found: dict[str, int]
) -> None:
    answer = check(topics(reference, candidate), begin, end)
    kinds = {**answer["divergences"]["by_kind"], "undecided": answer["ranges"]["undecided"]["total"]}
    assert (answer["verdict"], {kind: n for kind, n in kinds.items() if n}) == (verdict, found)


def test_late_events_of_before_the_start_are_not_compared_in_a_range_either() -> None:
    source = MemorySource(1)
    for side, times in ((LEFT, (120, 50, 130)), (RIGHT, (120, 130))):
        for number, time in enumerate(times):
            source.append(side, 0, record({"ts": time}), 2000 + 1000 * number)
    start = "start: {at: event_time, field: ts, from: 100, warm_up: 10}"
    answer = check(source, at(500), at(4500), order="unordered", more=start)
    assert (answer["verdict"], answer["accounts"]["reference"]["before_start"]) == ("EQUIVALENT", 1)


def test_a_loss_between_two_times_is_a_difference() -> None:
    lossy = [row for row in LATER if row[0] != "b2"]
    answer = check(topics(SIX, lossy), at(2500), at(5000))
    assert (answer["verdict"], answer["divergences"]["by_kind"]["missing"]) == ("DIVERGED", 1)
    assert answer["examples"][0]["reference"] == {"k": "b", "n": "2"}
    assert answer["decided_at"] is None


@pytest.mark.parametrize("order", ["unordered", "total", PER_KEY])
def test_a_loss_is_undecided_where_a_late_equal_event_has_taken_its_place(order: str) -> None:
    """The one at 3 s is paired with that at 5.6 s, and partners are at most a second apart."""
    after = [("x1", 5600), ("y1", 9000)]
    answer = check(topics([("x1", 3000), *after], after), at(1200), at(5000), order=order)
    assert answer["verdict"] == "INCONCLUSIVE"
    near = check(topics([("x1", 4900), *after], after), at(1200), at(5000), order=order)
    assert near["verdict"] == "EQUIVALENT", "for all that is known they are partners"


@pytest.mark.parametrize("order", ["total", PER_KEY])
def test_an_event_beside_the_range_that_changed_places_with_one_within_is_undecided(order: str) -> None:
    reference = [("x1", 4700), ("x2", 4800), ("x9", 5200), ("y1", 9000)]
    candidate = [("x9", 5200), ("x1", 5300), ("x2", 5400), ("y1", 9000)]
    answer = check(topics(reference, candidate), at(1200), at(5000), order=order)
    assert (answer["verdict"], answer["ranges"]["undecided"]["total"]) == ("INCONCLUSIVE", 1)


DAILY = "{barrier: day, inner: {per_key: [k]}}"
DAYS = "kinds: {day: {where: {k: d}}, event: {}}"


def test_nothing_counts_where_equal_barriers_may_belong_to_others() -> None:
    """The reference's first barrier is not read, so its second one is paired with the candidate's first."""
    reference = [("a0", 890), ("d0", 900), ("a1", 2400), ("d0", 3300), ("b1", 3400)]
    candidate = [("a0", 1740), ("d0", 1750), ("a1", 2260), ("d0", 3160), ("b1", 3260)]
    source = topics(reference, candidate)
    answer = check(source, at(2000), "latest", order=DAILY, more=DAYS)
    assert (answer["verdict"], answer["examples"]) == ("INCONCLUSIVE", [])
    assert answer["ranges"]["undecided"]["total"] > 0
    assert check(source, order=DAILY, more=DAYS)["verdict"] == "EQUIVALENT"


def test_what_has_no_equal_one_near_enough_counts_wherever_equal_barriers_belong() -> None:
    """And so does what does not depend on them."""
    rows = [("d0", moment) for moment in range(1000, 40_000, 600)]
    rows += [(f"a{moment}", moment) for moment in range(1300, 40_000, 600)]
    reference = sorted(rows, key=lambda row: row[1])
    lossy = [(value, moment + 50) for value, moment in reference if value != "a19300"]
    for begin in (at(5000), at(1500)):
        answer = check(topics(reference, lossy), begin, at(30_000), order=DAILY, more=DAYS)
        assert (answer["verdict"], answer["divergences"]["by_kind"]["missing"]) == ("DIVERGED", 1)

    apart = sorted([*reference, ("b1", 19_010), ("c1", 19_020)], key=lambda row: row[1])
    swapped = [(value, moment + 50) for value, moment in reference]
    swapped = sorted([*swapped, ("c1", 19_010), ("b1", 19_020)], key=lambda row: row[1])
    branches = "{parallel: {one: {kinds: [day, event], order: %s}, other: {kinds: [x], order: total}}}"
    kinds = "kinds: {day: {where: {k: d}}, event: {where: {k: a}}, x: {}}"
    answer = check(topics(apart, swapped), at(5000), at(30_000), order=branches % DAILY, more=kinds)
    assert (answer["verdict"], answer["divergences"]["by_kind"]["reordered"]) == ("DIVERGED", 1)


def test_barriers_of_topics_that_are_read_from_their_first_record_belong_to_their_like() -> None:
    rows = [("d0", moment) for moment in range(1000, 40_000, 700)]
    twice = [(f"a{number // 2}", moment + 350) for number, (_, moment) in enumerate(rows)]
    reference = sorted([*rows, *twice], key=lambda row: row[1])
    source = topics(reference, [*reference[:41], *reference[42:]])
    assert check(source, at(1900), at(30_000), order=DAILY, more=DAYS)["verdict"] == "DIVERGED"
    assert check(source, at(3900), at(30_000), order=DAILY, more=DAYS)["verdict"] == "INCONCLUSIVE"


@pytest.mark.parametrize("day", [0, 3])
def test_a_change_counts_between_equal_barriers_that_are_further_apart_than_partners(day: int) -> None:
    """The candidate lacks a day, or only has another value in the next one."""
    days = [("d0", moment) for moment in range(1000, 40_000, 5000)]
    reference = sorted([*days, *(("a1", moment + 2500) for _, moment in days)], key=lambda row: row[1])
    candidate = [(value, moment + 700) for value, moment in reference]
    if day:
        del candidate[2 * day]
    candidate[2 * day + 5] = ("a2", candidate[2 * day + 5][1])
    answer = check(topics(reference, candidate), at(1500), at(35_500), order=DAILY, more=DAYS)
    assert answer["verdict"] == "DIVERGED"


@pytest.mark.parametrize("order", ["unordered", "total", PER_KEY])
def test_a_loss_is_undecided_where_an_equal_event_lies_beside_the_range(order: str) -> None:
    """The candidate may have lost the second x1, or its first one may be the partner of one from before."""
    source = topics([("x1", 500), ("x1", 3000), ("y1", 9000)], [("x1", 2000), ("y1", 9000)])
    answer = check(source, at(1200), at(4000), order=order)
    assert answer["verdict"] in {"INCONCLUSIVE", "EQUIVALENT"}
    source = topics([("x1", 500), ("x1", 3000), ("y1", 9000)], [("y1", 9000)])
    answer = check(source, at(1200), at(4000), order=order)
    assert answer["verdict"] == "INCONCLUSIVE"
    assert "1 difference is so near to an edge of the range" in answer["reason"]
    assert answer["ranges"]["undecided"]["total"] == 1
    assert answer["ranges"]["undecided"]["examples"][0]["kind"] == "missing"
    assert answer["unmatched"] == {"reference": 1, "candidate": 0}


CEILING_1 = """
known_differences:
  - {id: LOST, when: {divergences: [missing]}, owner: ann, expires: 2999-01-01, ceiling: {count: 1}}
"""
EARLY, FAR = ("y0", 100), ("y1", 9000)
CEILED: list[tuple[Written, str, int, int, list[str]]] = [
    # x1 and x2 lie beside the range and miss nothing; x3 in it is the one that may be missing.
    ([("x1", 400), ("x2", 500), ("x3", 3000)], "EQUIVALENT", 2, 0, []),
    ([("x1", 2000), ("x2", 3000)], "DIVERGED", 0, 0, ["2"]),
    # The first x1 lies beside it, so nobody knows whether the second lacks its partner: it gets what is left.
    ([("x1", 500), ("x1", 2000)], "EQUIVALENT", 1, 0, []),
    ([("x1", 500), ("x1", 2000), ("x3", 3000)], "INCONCLUSIVE", 1, 1, []),
]


@pytest.mark.parametrize("order", ["unordered", "total", PER_KEY])
@pytest.mark.parametrize(("lost", "verdict", "left_out", "undecided", "told"), CEILED)
def test_a_ceiling_is_for_what_is_missing_in_the_range(
    order: str, lost: Written, verdict: str, left_out: int, undecided: int, told: list[str]
) -> None:
    answer = check(topics([EARLY, *lost, FAR], [EARLY, FAR]), at(1200), at(4000), order=order, more=CEILING_1)
    assert (answer["verdict"], answer["explained_by_rule"]) == (verdict, {"LOST": 1})
    assert answer["accounts"]["reference"]["explained"] == 1
    ranges = answer["ranges"]
    assert (ranges["reference"]["left_out"], ranges["undecided"]["total"]) == (left_out, undecided)
    assert [example["reference"]["n"] for example in answer["examples"]] == told


def test_only_pairs_of_the_range_are_evidence_and_raise_the_ceiling_of_a_share() -> None:
    """Twenty pairs beside the range allow two missing events at a tenth; the three within allow one."""
    beside: Written = [(f"z{n}", 300 + n) for n in range(20)]
    within: Written = [("a1", 2000), ("a2", 2100), ("b1", 4050)]
    reference = [*beside, *within[:2], ("x1", 3000), ("x2", 3100), ("b1", 3950), FAR]
    source, share = topics(reference, [*beside, *within, FAR]), CEILING_1.replace("count: 1", "share: 0.1")
    rules: dict[str, Any] = {"order": "unordered", "more": f"{share}evidence: {{matched: 4}}\n"}
    assert check(source, at(1200), at(4000), **rules)["verdict"] == "DIVERGED"
    rules["more"] = rules["more"].replace("share: 0.1", "count: 2")
    answer = bounded(source.reader(), at(1200), at(4000), **rules).run(
        iter, open_ended=False, allow_empty=False, evidence=True
    )
    assert (answer["verdict"], answer["matched"], answer["ranges"]["matched"]) == ("PENDING", 23, 3)
    assert "3 of 4 required pairs" in answer["reason"]


def in_batches(reference: str, candidate: str) -> MemorySource:
    """Topics of rows ``MILLISECONDS:VALUE:MARKS``; the marks are those of `attempt`."""
    source = MemorySource()
    for side, text in ((LEFT, reference), (RIGHT, candidate)):
        for moment, value, marks in (row.split(":") for row in text.split()):
            written = record({"k": value[0], "n": value[1:]})
            source.append(side, 0, written, int(moment), attempt_headers(attempt(marks)))
    return source


REPLAYS_2 = "duplicates: {policy: replays, horizon: 2}\n"
BATCHES = "1000:a1:7/e/0.0 6000:a2:8/e/0.0 7000:a3:9/e/0.0 8000:a4:10/e/0.0 9900:a5:11/e/0.0"


@pytest.mark.parametrize("order", ["unordered", "total", PER_KEY])
def test_what_may_be_a_replay_of_a_row_before_the_slack_is_undecided(order: str) -> None:
    """The candidate has run its batch 7 again at 5 s, and what is read begins at 3.5 s."""
    again = BATCHES.replace(" 6000", " 5000:a1:7/f/0.0 6000")
    source, rules = in_batches(BATCHES, again), {"order": order, "more": REPLAYS_2}
    assert check(source, **rules)["verdict"] == "EQUIVALENT"
    answer = check(source.reader(), at(4500), **rules)
    assert (answer["verdict"], answer["ranges"]["undecided"]["total"]) == ("INCONCLUSIVE", 1)
    assert (
        "a row of the first 2 batches read may be a replay of one before: read more slack" in answer["reason"]
    )


@pytest.mark.parametrize(
    ("lost", "begin", "verdict"),
    [
        ("a2", 4500, "INCONCLUSIVE"),
        ("a3", 4500, "INCONCLUSIVE"),
        ("a4", 4500, "DIVERGED"),
        ("a2", 500, "DIVERGED"),
    ],
)
def test_a_loss_counts_behind_the_batches_that_may_have_been_written_before(
    lost: str, begin: int, verdict: str
) -> None:
    """Retries go no further back than the horizon. From 0.5 s on the reference is read from its first row."""
    lossy = " ".join(row for row in BATCHES.split() if lost not in row)
    assert check(in_batches(BATCHES, lossy), at(begin), more=REPLAYS_2)["verdict"] == verdict


def test_topics_that_grow_have_not_stopped() -> None:
    source = topics(SIX, LATER[:-1])
    run = bounded(source)
    source.append(RIGHT, 0, record({"k": "b", "n": "3"}), 6700)
    answer = finished(run)
    assert (answer["verdict"], answer["ranges"]["undecided"]["total"]) == ("INCONCLUSIVE", 1)


def test_open_ends_leave_leftovers_open() -> None:
    assert finished(bounded(topics(SIX, LATER[:-1])), open_ended=True)["verdict"] == "PENDING"


def test_nothing_in_the_range_is_inconclusive() -> None:
    answer = check(topics(SIX, LATER), at(7800), at(7900))
    assert (answer["verdict"], "neither side has an event" in answer["reason"]) == ("INCONCLUSIVE", True)


def test_a_stretch_from_the_beginning_of_the_calendar_in_any_zone_is_everything() -> None:
    source = topics([("a1", 1000)], [("a1", 1000)])
    begin = edge_of("--from", ["0001-01-01T00:00:00+05:00"], "earliest")
    assert check(source, begin)["verdict"] == "EQUIVALENT"


@pytest.mark.parametrize("begin", ["earliest", at(1200), edge_of("--from", ["reference:0=0"], "earliest")])
def test_a_beginning_that_retention_took_is_a_hole(begin: Edge) -> None:
    source = topics(SIX, LATER[1:])
    source.retain(LEFT, 0, 1)
    answer = check(source, begin)
    assert answer["verdict"] == "INCONCLUSIVE"
    [hole] = answer["holes"]
    assert hole["side"] == "reference"
    assert (hole["position"]["topic"], hole["position"]["partition"]) == ("r", 0)
    assert hole["reason"] in answer["reason"]
    assert "Kafka no longer has anything below offset 1 of r partition 0 (reference)" in answer["reason"]


def test_behind_what_is_retained_a_time_is_as_good_as_ever() -> None:
    source = topics(SIX, LATER)
    source.retain(LEFT, 0, 1)
    source.retain(RIGHT, 0, 1)
    assert check(source, at(4000), "latest")["verdict"] == "EQUIVALENT"
    # From 2.5 s on the slack is to be read, and there the candidate has nothing before b1 any more.
    assert check(source, at(3500), "latest")["verdict"] == "INCONCLUSIVE"


def test_what_is_lost_while_it_is_read_is_a_hole() -> None:
    source = topics(SIX, LATER)
    run = bounded(source)
    source.retain(LEFT, 0, 3)
    answer = finished(run)
    assert answer["verdict"] == "INCONCLUSIVE"
    lost = "Kafka no longer has offsets 0–2 of r partition 0 (reference); they were not compared"
    assert lost in answer["reason"]


class Retained(MemorySource):
    """Topics of which retention takes the first records, just before a look at them."""

    def __init__(self, looks_before: int) -> None:
        super().__init__()
        self._left = looks_before

    @property
    def taken(self) -> bool:
        """Whether it has come to that look."""
        return self._left < 0

    def topics(self) -> Mapping[Side, Topic]:
        self._look()
        return super().topics()

    def at(self, timestamp_ms: int) -> Positions:
        self._look()
        return super().at(timestamp_ms)

    def _look(self) -> None:
        if not self._left:
            self.retain(LEFT, 0, 4)
            self.retain(RIGHT, 0, 3)
        self._left -= 1


@pytest.mark.parametrize("looks_before", range(8))
@pytest.mark.parametrize("begin", ["earliest", {LEFT: {0: 1}, RIGHT: {0: 1}}, at(3000)])
def test_what_is_lost_while_the_range_is_found_is_a_hole(begin: Edge, looks_before: int) -> None:
    source = Retained(looks_before)
    for side, rows in ((LEFT, SIX), (RIGHT, [*SIX[:2], *SIX[3:]])):
        for value, moment in rows:
            source.append(side, 0, record({"k": value[0], "n": value[1:]}), moment)
    run = bounded(source, begin)
    lost = source.taken
    answer = finished(run)
    assert answer["verdict"] == ("INCONCLUSIVE" if lost else "DIVERGED")
    assert bool(answer["holes"]) == lost


def test_a_topic_that_is_created_anew_meanwhile_proves_nothing() -> None:
    source = topics(SIX, LATER[1:])
    run = bounded(source, order="total")

    def then_anew(lines: Iterable[Line]) -> Iterator[Line]:
        yield from lines
        source.create_anew(RIGHT)

    answer = finished(run, then_anew)
    assert answer["verdict"] == "INCONCLUSIVE"
    assert "created anew" in answer["reason"]


def test_values_beside_a_range_that_are_no_events_are_bad_input_as_ever() -> None:
    source = topics(SIX, LATER)
    source.append(LEFT, 0, b"no json", 7000)
    with pytest.raises(Exception, match=r"^r/0:6: not an event of this comparison"):
        check(source)


HALT = "on_divergence: halt"
COPIES = "kinds: {day: {where: {k: d}}, event: {}}"
OVER = "{barrier: day, copies: per_partition, inner: {per_key: [k]}}"
NOW = ManualClock().now()
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"begin": NOW + SLACK}, r"--from 2023-11-14T22:13:21\+00:00 lies in the future"),
    ({"begin": at(5), "end": at(4)}, "is later than --to"),
    ({"begin": at(5), "more": HALT}, "`on_divergence: halt` ends at the first difference"),
    ({"end": at(5), "order": OVER, "more": COPIES}, "a time would part the copies of one barrier"),
    ({"begin": {LEFT: {0: 7}}}, "--from: partition 0 of the reference ends at 6, so 7 lies beyond it"),
    ({"end": {RIGHT: {1: 7}}}, "--to: partition 0 of the candidate is not named"),
    ({"end": {RIGHT: {0: 2, 1: 7}}}, "--to: partition 1 of the candidate does not exist"),
    ({"begin": {LEFT: {0: 4}}, "end": {LEFT: {0: 2}}}, "--from lies behind --to in partition 0 of the ref"),
]


@pytest.mark.parametrize(("asked", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_what_cannot_be_compared_is_refused(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        check(topics(SIX, LATER), **asked)


def test_topics_that_the_order_forbids_are_refused() -> None:
    with pytest.raises(SettingsError, match="`order`: r has 2 partitions"):
        check(topics(SIX, LATER, partitions=2), order="total")
    source = topics(SIX, LATER)
    source.set_cleanup_policy(Side.RIGHT, "compact,delete")
    with pytest.raises(SettingsError, match=r"`candidate\.topic`: c has cleanup.policy compact,delete"):
        check(source)


@pytest.mark.parametrize(
    "texts",
    [["latest"], ["2026-01-01T00:00:00"], ["reference:0"], ["left:0=1"], ["earliest", "reference:0=1"]],
)
def test_an_edge_that_says_nothing_is_refused_with_what_can_be_said(texts: list[str]) -> None:
    with pytest.raises(SettingsError, match=r"--from .*: give earliest, a time with its zone like"):
        edge_of("--from", texts, "earliest")


def test_a_partition_that_is_named_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="--from names partition 0 of the reference twice"):
        edge_of("--from", ["reference:0=1", "reference:0=2"], "earliest")


def test_a_time_is_that_moment_in_any_zone() -> None:
    assert edge_of("--to", ["2026-01-01T01:00:00+01:00"], "latest") == datetime(2026, 1, 1, tzinfo=UTC)


KEYED = "checks: [{id: keyed, key_partition: [], gate: ignore}, {id: once, once: [k, n], horizon: 1h}]"


def test_checks_are_of_the_range_alone_and_know_the_number_of_partitions() -> None:
    source = MemorySource(4)
    for moment in (1000, 2000, 4000, 4500):
        for side in Side:
            source.append(side, 0, record({"k": "a", "n": 1}), moment, key=b"21")
    answer = check(source, at(3800), at(4200), order="unordered", more=KEYED)
    keyed, once = (result["candidate"] for result in answer["checks"])
    assert answer["ranges"]["candidate"]["records_beside"] == 1
    assert (keyed["state"], keyed["checked"]) == ("holds", 1)
    assert (once["state"], once["checked"]) == ("holds", 1)
    later = check(source.reader(), order="unordered", more=KEYED)["checks"][1]["candidate"]
    assert (later["state"], later["violations"]) == ("violated", 3)


EACH_BY_ITSELF = "checks: [{id: typed, types: {n: integer}}]\n"


def test_a_check_looks_at_rows_of_the_range_of_which_the_other_side_may_have_no_partner_yet() -> None:
    """The reference begins at 3.7 s, so a candidate's row before 4.7 s may have none."""
    before: Written = [(f"z{n}", 100 * n) for n in range(1, 20)]
    source = topics([("aX", 3700), ("a2", 5000)], [*before, ("aX", 3000), ("a2", 4300)])
    (typed,) = check(source, at(2800), order="unordered", more=EACH_BY_ITSELF)["checks"]
    for side in ("reference", "candidate"):
        assert (typed[side]["state"], typed[side]["checked"], typed[side]["violations"]) == ("violated", 2, 2)


def test_of_what_may_be_a_replay_a_check_says_only_what_is_sure() -> None:
    """From 4.5 s on with 1 s of slack, rows of the batches 7 to 9 are read: two batches may be replays."""
    batches = "1000:z1:1/e/0.0 5000:a1:7/e/0.0 6000:a2:8/e/0.0 7000:a3:9/e/0.0"
    each = {
        "more": "checks: [{id: given, not_null: [n]}, {id: once, once: [k, n], horizon: 1h}]\n" + REPLAYS_2
    }
    given, once = check(in_batches(batches, batches), at(4500), **each)["checks"]
    assert (given["candidate"]["state"], given["candidate"]["checked"]) == ("holds", 3)
    assert (once["candidate"]["state"], once["candidate"]["checked"]) == ("undecided", 3)
    assert "may be a replay of one that was not read" in once["candidate"]["reason"]
    for last, found in (("7000:a3:9/e/0.0", ("violated", 1)), ("", ("undecided", 0))):
        written = batches.replace("7000:a3:9/e/0.0", last)
        (typed,) = check(in_batches(written, written), at(4500), more=EACH_BY_ITSELF + REPLAYS_2)["checks"]
        assert (typed["candidate"]["state"], typed["candidate"]["violations"]) == found


@pytest.mark.parametrize("order", ["unordered", PER_KEY])
def test_a_kind_that_has_matched_beside_the_range_alone_is_no_evidence(order: str) -> None:
    more = "kinds: {a: {where: {k: a}}, b: {where: {k: b}}}\nevidence: {matched: 1}\n"
    both = [("b1", 700), ("a1", 2000), ("a2", 2100), ("a3", 9000)]
    asked = {"open_ended": False, "allow_empty": False, "evidence": True}
    found = bounded(topics(both, both), at(1200), at(4000), order=order, more=more).run(iter, **asked)
    assert found["verdict"] == "PENDING"
    assert "no `b` has matched" in found["reason"]
