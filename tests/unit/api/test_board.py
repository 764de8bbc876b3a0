"""The board shows the newest of what matchers say, and never an old verdict as a live one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.statuses import (
    NAME,
    START,
    Clocks,
    diverged,
    divergence,
    expectation,
    partition,
    reset,
    status,
    unmatched,
)
from twinstream.api.gate.samples import Samples
from twinstream.api.state.board import Board, UnknownComparisonError
from twinstream.api.state.divergences import DivergenceLog
from twinstream.api.stream.mailbox import BoardEvent, Mailbox
from twinstream.status.common import DivergenceCounts, Sides
from twinstream.status.comparison import ComparisonStatus, Resumed, UnmatchedSample


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def board(clocks: Clocks) -> Board:
    return clocks.board(stale_after_seconds=5.0)


def at(seconds: float, name: str = NAME) -> ComparisonStatus:
    return status(name, START + timedelta(seconds=seconds))


def test_an_expected_comparison_is_pending_and_degraded_before_its_first_status(board: Board) -> None:
    view = board.view(NAME)
    shown = view.status.verdict, view.freshness.state, view.gate.answer
    assert shown == ("PENDING", "awaited", "undecided")
    assert view.status.health.status == "degraded"
    assert view.status.health.reasons[0].startswith("No status yet")


def test_expecting_a_known_comparison_changes_nothing(board: Board) -> None:
    board.accept(status())
    board.expect(expectation())
    assert board.view(NAME).status.verdict == "EQUIVALENT"


def test_an_unknown_comparison_is_an_error_that_names_those_there_are(board: Board) -> None:
    with pytest.raises(UnknownComparisonError, match=f"there is no comparison 'nobody'; available: {NAME}$"):
        board.view("nobody")


def test_of_many_comparisons_the_nearest_are_named_to_whoever_misspells_one() -> None:
    names = [f"ads-{number}" for number in range(200)]
    told = str(UnknownComparisonError("adds-77", names))
    assert told.startswith("there is no comparison 'adds-77'; available: ads-77, ")
    assert told.endswith(" and 180 more")
    assert str(UnknownComparisonError("ads", [])) == "there is no comparison 'ads'; available: none yet"


def test_a_silent_matcher_makes_its_status_stale_with_the_time(board: Board, clocks: Clocks) -> None:
    board.accept(status())
    clocks.advance(5.1)
    view = board.view(NAME)
    assert (view.freshness.state, view.gate.answer) == ("stale", "undecided")
    assert view.status.health.reasons == [
        "The status is stale: the matcher has been silent since 2026-03-01 12:00:00 UTC."
    ]


def test_reading_the_same_status_again_does_not_make_it_fresh(board: Board, clocks: Clocks) -> None:
    for _ in range(4):
        board.accept(status())
        clocks.advance(2.0)
    assert board.view(NAME).freshness.state == "stale"


def test_a_status_that_was_old_when_it_came_is_stale_at_once(board: Board, clocks: Clocks) -> None:
    made_at = clocks.monotonic()
    clocks.advance(60)
    board.accept(status(), made_at=made_at)
    assert board.view(NAME).freshness.state == "stale"


def test_a_lost_matcher_counts_no_more_until_a_new_status_comes(board: Board, clocks: Clocks) -> None:
    board.accept(status())
    board.lost(NAME, "its matcher exited with code 1")
    assert board.view(NAME).gate.answer == "undecided"
    assert "Its matcher exited with code 1" in board.view(NAME).gate.reason
    board.accept(status())
    assert board.view(NAME).freshness.state == "lost"
    clocks.advance(1)
    board.accept(at(1))
    assert board.view(NAME).gate.answer == "pass"


def test_a_matcher_that_falls_again_and_again_is_in_a_crash_loop_also_while_it_is_up(
    board: Board, clocks: Clocks
) -> None:
    for fall in range(3):
        board.accept(at(fall))
        assert not board.view(NAME).in_crash_loop
        board.lost(NAME, "its matcher failed with an error")
        clocks.advance(1)
    board.accept(at(3))
    view = board.view(NAME)
    assert (view.falls, view.in_crash_loop, view.freshness.fresh) == (3, True, True)
    assert view.gate.answer == "undecided"
    (reason,) = view.status.health.reasons
    assert reason.startswith(
        "Its matcher fell 3 times, 3 of them within the last 10 minutes, lately because: "
    )
    assert reason.endswith("its matcher failed with an error; it runs now.")
    clocks.advance(600)
    board.accept(at(603))
    assert board.view(NAME).gate.answer == "pass"
    assert board.view(NAME).falls == 3


def test_a_matcher_that_is_lost_before_it_published_has_no_last_verdict(board: Board) -> None:
    board.lost(NAME, "its matcher failed with an error; it is started again")
    gate = board.view(NAME).gate
    assert (gate.answer, gate.updated_at) == ("undecided", "")
    assert gate.reason == (
        "Its matcher failed with an error; it is started again. It has published no status."
    )


def test_divergences_are_listed_newest_first_and_replaced_in_place(board: Board) -> None:
    board.accept(status())
    for name in ("a", "b", "c"):
        board.accept(divergence(name, provisional=True))
    board.accept(divergence("a", text="now closed"))
    page = board.divergences(NAME).page(10)
    assert [report.id for report in page.items] == ["c", "b", "a"]
    assert page.items[2].text == "now closed"


def test_of_what_was_reported_before_only_what_a_new_matcher_begins_with_stands(board: Board) -> None:
    board.accept(status())
    for name in ("kept", "ghost"):
        board.accept(divergence(name))
    board.lost(NAME, "its matcher exited")
    assert board.divergences(NAME).get("ghost") is not None, "it was saved, as far as anybody knows"
    mailbox = board.subscribe()
    board.accept(Resumed(comparison=NAME, divergences=("kept", "older")))
    board.accept(divergence("older"))
    assert {report.id for report in board.divergences(NAME).page(10).items} == {"kept", "older"}
    board.accept(Resumed(comparison=NAME, divergences=()))
    assert board.divergences(NAME).page(10).items == []
    withdrawn = [event for event in drain(mailbox) if event.name == "withdrawn"]
    assert sorted(event.subject for event in withdrawn) == ["ghost", "kept", "older"]


def test_what_was_counted_is_never_less_also_while_a_matcher_has_not_taken_it_up_again(board: Board) -> None:
    def counted(*missing: int) -> list[int]:
        for seconds, number in enumerate(missing, start=len(told)):
            counts = DivergenceCounts(total=number, by_kind={"missing": number})
            board.accept(at(seconds).model_copy(update={"closed_divergences": counts}))
            told.append(board.view(NAME).status.closed_divergences.by_kind["missing"])
        return told

    told: list[int] = []
    assert counted(3, 0, 2, 4) == [3, 3, 3, 4]
    board.lost(NAME, "its matcher exited")
    assert counted(0)[-1] == 4
    assert board.view(NAME).status.closed_divergences.total == 4


def test_what_was_counted_before_a_reset_is_counted_no_more(board: Board) -> None:
    three = DivergenceCounts(total=3, by_kind={"missing": 3})
    board.accept(at(0).model_copy(update={"closed_divergences": three}))
    board.accept(at(1).model_copy(update={"resets": [reset()], "reset_count": 1}))
    assert board.view(NAME).status.closed_divergences.total == 0
    board.accept(at(2).model_copy(update={"closed_divergences": three}))
    assert board.view(NAME).status.closed_divergences.total == 3, "the store has lost the reset"
    board.accept(at(3).model_copy(update={"resets": [reset("r-2")], "reset_count": 1}))
    assert board.view(NAME).status.closed_divergences.total == 0, "this is another reset"
    board.accept(at(4).model_copy(update={"closed_divergences": three}))
    board.accept(at(5).model_copy(update={"reset_count": 9}))
    assert board.view(NAME).status.closed_divergences.total == 0, "a reset whose record is lost"


@pytest.mark.parametrize("waits", [False, True])
def test_what_an_ended_beginning_had_counted_is_counted_no_more(board: Board, waits: bool) -> None:
    """A Spark job has a new checkpoint location, or the keys in the store were removed: no reset tells so."""
    three = DivergenceCounts(total=3, by_kind={"missing": 3})
    began = at(0).started_at
    board.accept(at(0).model_copy(update={"closed_divergences": three}))
    if waits:
        loads = {"waiting_for": "it loads", "started_at": began + timedelta(seconds=60)}
        board.accept(at(1).model_copy(update=loads))
        assert board.view(NAME).status.closed_divergences.total == 3
    board.accept(at(2).model_copy(update={"started_at": began + timedelta(seconds=50)}))
    status = board.view(NAME).status
    assert (status.closed_divergences.total, status.counted.total) == (0, 0)


def test_a_reset_ends_what_waited_too(board: Board) -> None:
    board.accept(at(0))
    board.accept(UnmatchedSample(comparison=NAME, events=(unmatched(7),)))
    assert len(board.unmatched(NAME)) == 1
    board.accept(reset())
    assert not board.unmatched(NAME)


def test_resets_are_known_also_while_a_matcher_has_not_taken_up_what_is_saved(board: Board) -> None:
    board.accept(at(0).model_copy(update={"resets": [reset()], "reset_count": 1}))
    board.accept(at(1))
    assert board.view(NAME).status.resets == [reset()]


def test_a_reset_is_told_at_once_and_what_was_found_before_is_withdrawn(board: Board) -> None:
    board.accept(status())
    board.accept(divergence("d-1"))
    mailbox = board.subscribe(NAME)
    board.accept(reset())
    board.accept(Resumed(comparison=NAME, divergences=()))
    names = [event.name for event in drain(mailbox)]
    assert names == ["status", "gate", "phase", "reset", "withdrawn"]
    assert board.divergences(NAME).page(10).items == []


def test_what_was_said_of_a_comparison_that_a_reset_has_ended_counts_no_more_also_where_it_comes_yet(
    board: Board,
) -> None:
    old = status()
    board.accept(old)
    assert board.view(NAME).gate.answer == "pass"
    board.accept(reset())
    assert board.view(NAME).gate.answer == "undecided"
    board.accept(status(at=START + timedelta(seconds=1)))
    assert board.view(NAME).gate.answer == "undecided"
    anew = {"started_at": START + timedelta(seconds=2), "resets": [reset()], "reset_count": 1}
    board.accept(status(at=START + timedelta(seconds=3), **anew))
    assert board.view(NAME).gate.answer == "pass"


def test_a_reset_that_its_matcher_and_whoever_asked_for_it_report_is_told_once(board: Board) -> None:
    board.accept(status())
    mailbox = board.subscribe(NAME)
    for _ in range(2):
        board.accept(reset())
    assert [event.name for event in drain(mailbox)].count("reset") == 1


@pytest.mark.parametrize(
    ("mark", "state"), [(Board.lost, "lost"), (Board.unheard, "unheard"), (lambda *_: None, "fresh")]
)
def test_what_is_known_of_a_matcher_is_whether_it_is_there_and_stands_by(
    board: Board, mark: Callable[..., None], state: str
) -> None:
    health = status().health.model_copy(update={"standby": True})
    board.accept(status(health=health))
    mark(board, NAME, "it is not there")
    assert board.matcher_state(NAME) == (state, True)


def test_a_reset_that_the_status_has_already_changes_nothing(board: Board) -> None:
    board.accept(status(resets=[reset()], reset_count=1))
    board.accept(reset())
    assert board.view(NAME).gate.answer == "pass"


def test_a_matcher_that_has_fallen_may_go_on_with_the_comparison_before_a_reset_that_was_lost(
    board: Board,
) -> None:
    board.accept(status())
    board.accept(reset())
    board.lost(NAME, "it fell")
    board.accept(status(at=START + timedelta(seconds=1)))
    assert board.view(NAME).gate.answer == "pass"


def test_a_status_is_made_into_bytes_once_a_publication_whoever_asks(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    dump = ComparisonStatus.model_dump_json

    def counting(self: ComparisonStatus, **more: Any) -> str:
        made.append(self.name)
        return dump(self, **more)

    monkeypatch.setattr(ComparisonStatus, "model_dump_json", counting)
    mailboxes = [board.subscribe() for _ in range(50)]
    made.clear()
    for second in range(3):
        board.accept(at(second))
        bodies = {id(board.body(NAME)) for _ in range(100)}
        listed = board.bodies()
        assert bodies == {id(one) for one in listed}
    assert len(made) == 3
    assert {mailbox.characters > 0 for mailbox in mailboxes} == {True}


def test_comparisons_are_listed_by_their_names(board: Board) -> None:
    for name in ("z", "b"):
        board.expect(expectation(name))
    assert [json.loads(one.content)["name"] for one in board.bodies()] == sorted(["z", "b", NAME])


def test_a_status_that_has_become_stale_is_made_into_bytes_once_more(board: Board, clocks: Clocks) -> None:
    board.accept(at(0))
    fresh = board.body(NAME)
    clocks.advance(60)
    stale = board.body(NAME)
    assert fresh != stale
    assert board.body(NAME) is stale
    assert b"has been silent" in stale.content


def test_a_slow_client_gets_the_newest_status_and_costs_a_bounded_number_of_events_and_bytes() -> None:
    mailbox = Mailbox(limit=100, limit_characters=10_000)
    for number in range(10_000):
        mailbox.put(BoardEvent("status", NAME, str(number) * 600))
        mailbox.put(BoardEvent("divergence", NAME, "d" * (number % 700), f"d{number}"))
        assert mailbox.characters <= 10_000
        assert len(mailbox) <= 100 + 1
    assert [event.data for event in drain(mailbox) if event.name == "status"] == ["9999" * 600]
    assert mailbox.characters == 0
    for number in range(200):
        mailbox.put(BoardEvent("divergence", NAME, "", f"d{number}"))
    assert len(mailbox) == 100


def test_what_is_sent_of_an_event_is_made_once_for_all_clients(board: Board) -> None:
    board.accept(status())
    mailboxes = [board.subscribe() for _ in range(3)]
    board.accept(at(1))
    waiting = [drain(mailbox) for mailbox in mailboxes]
    for together in zip(*waiting, strict=True):
        assert len({id(event.encoded) for event in together}) == 1
    assert b"event: status" in waiting[0][0].encoded


def test_one_event_larger_than_the_bound_is_sent_alone() -> None:
    mailbox = Mailbox(limit_characters=10)
    mailbox.put(BoardEvent("divergence", NAME, "d" * 5, "small"))
    mailbox.put(BoardEvent("divergence", NAME, "d" * 30, "large"))
    assert [event.subject for event in drain(mailbox)] == ["large"]


def test_of_a_flood_what_names_each_divergence_stays() -> None:
    log = DivergenceLog(kept=3)
    for number in range(10):
        log.upsert(divergence(str(number)))
    log.upsert(divergence("0", kind="missing"))
    assert [(one.id, one.kind) for one in log.identities()][-2:] == [("1", "changed"), ("0", "missing")]
    assert len([*log.identities()]) == 10
    assert [one.id for one in log.page(10).items] == ["9", "8", "7"]
    assert log.withdraw("1")
    assert "1" not in {one.id for one in log.identities()}


def test_examples_of_known_differences_push_nothing_out_that_counts() -> None:
    log = DivergenceLog(kept=2)
    log.upsert(divergence("counts", first_seen=START - timedelta(seconds=1)))
    for number in range(5):
        log.upsert(divergence(str(number), explained="PRICE-17"))
    assert [one.id for one in log.page(10).items] == ["4", "3", "counts"]
    assert log.get("4") is not None
    assert log.withdraw("4")
    assert [one.id for one in log.identities()] == ["3", "2", "1", "0", "counts"]


def test_what_turns_out_to_be_explained_stands_among_the_examples_alone() -> None:
    log = DivergenceLog()
    log.upsert(divergence("a", provisional=True))
    log.upsert(divergence("a", explained="PRICE-17"))
    [one] = log.page(10).items
    assert (one.explained, len([*log.identities()])) == ("PRICE-17", 1)
    assert log.withdraw("a")
    assert log.get("a") is None


def test_pages_of_divergences_hold_each_once_although_new_ones_come() -> None:
    log = DivergenceLog()
    for number in range(5):
        log.upsert(divergence(str(number)))
    first = log.page(2)
    log.upsert(divergence("new"))
    second = log.page(2, first.next)
    third = log.page(2, second.next)
    assert "".join(report.id for page in (first, second, third) for report in page.items) == "43210"
    assert third.next is None


def test_processes_that_hear_of_divergences_in_another_order_list_them_alike_and_share_cursors() -> None:
    reports = [
        divergence(str(number), first_seen=START + timedelta(seconds=number // 2)) for number in range(8)
    ]
    one, other = DivergenceLog(kept=6), DivergenceLog(kept=6)
    for report in reports:
        one.upsert(report)
    for report in sorted(reports, key=lambda report: report.id, reverse=True):
        other.upsert(report)
    assert one.page(6).items == other.page(6).items == reports[:1:-1]
    assert other.page(3, one.page(3).next).items == reports[4:1:-1]
    assert [*one.identities()] == [*other.identities()]


def test_a_page_of_one_kind_leaves_the_others_out() -> None:
    log = DivergenceLog()
    log.upsert(divergence("a", kind="missing"))
    log.upsert(divergence("b", kind="changed"))
    assert [report.id for report in log.page(10, wanted=lambda one: one.kind == "missing").items] == ["a"]


def test_large_divergences_are_bounded_in_bytes_and_the_newest_stay() -> None:
    size = len(divergence("0").model_dump_json())
    log = DivergenceLog(kept_bytes=3 * size)
    for number in range(10):
        log.upsert(divergence(str(number)))
        log.upsert(divergence(str(number)))
    assert [report.id for report in log.page(10).items] == ["9", "8", "7"]
    assert log.withdraw("9")
    log.upsert(divergence("a"))
    assert [report.id for report in log.page(10).items] == ["a", "8", "7"]
    log.upsert(divergence("8").model_copy(update={"text": "x" * 3 * size}))
    assert [report.id for report in log.page(10).items] == ["a"]


def test_one_divergence_stays_however_large_it_is() -> None:
    log = DivergenceLog(kept_bytes=1)
    log.upsert(divergence("0"))
    log.upsert(divergence("1"))
    assert [report.id for report in log.page(10).items] == ["1"]


def rates(jump: float = 0, stalled_at: int = 1000) -> list[tuple[float | None, float | None]]:
    """Those of 12 samples a second apart, the last six with a clock that was set."""
    samples = Samples()
    for second in range(12):
        at = START + timedelta(seconds=second + (jump if second > 5 else 0))
        events = Sides[int](reference=100 * second, candidate=min(stalled_at, 50 * second))
        samples.add(status(at=at, events=events), second)
    found = [sample.events_per_second for sample in samples.items()]
    return [(rate.reference, rate.candidate) for rate in found]


@pytest.mark.parametrize("jump", [0, -3600, 3600])
def test_samples_hold_the_rate_of_each_side_whatever_the_time_of_day(jump: int) -> None:
    assert rates(jump) == [(None, None), *[(100.0, 50.0)] * 11]


def test_a_stalled_side_shows_a_rate_of_zero_within_seconds() -> None:
    assert rates(stalled_at=250)[-1] == (100.0, 0.0)


def test_samples_are_bounded_and_about_a_second_apart() -> None:
    samples = Samples(kept=5)
    for tenth in range(100):
        samples.add(status(at=START + timedelta(seconds=tenth / 10)), tenth / 10)
    assert len(samples.items()) == 5
    first, second = samples.items()[:2]
    assert (second.at - first.at).total_seconds() >= 0.8


def test_a_restarted_matcher_shows_no_rate_across_the_restart() -> None:
    samples = Samples()
    samples.add(status(at=START, events=Sides[int](reference=1000, candidate=1000)), 0.0)
    restarted = START + timedelta(seconds=2)
    fewer = Sides[int](reference=900, candidate=900)
    samples.add(status(at=restarted, started_at=restarted, events=fewer), 2.0)
    assert samples.items()[-1].events_per_second.reference is None


def test_a_lag_that_is_not_known_of_every_partition_is_not_known() -> None:
    samples = Samples()
    progress = Sides(reference=[partition(0, 5, 2), partition(1, 5, None)], candidate=[partition(0, 5, 2)])
    samples.add(status(progress=progress), 0.0)
    assert samples.items()[0].lag == Sides[int | None](reference=None, candidate=2)


def test_a_change_of_verdict_is_told_with_the_one_before(board: Board, clocks: Clocks) -> None:
    board.accept(status())
    mailbox = board.subscribe()
    clocks.advance(1)
    board.accept(diverged(at=START + timedelta(seconds=1)))
    events = [event for event in drain(mailbox) if event.name == "verdict"]
    assert [json.loads(event.data)["previous"] for event in events] == ["EQUIVALENT"]


def test_going_stale_is_told_once_although_nothing_is_published(board: Board, clocks: Clocks) -> None:
    board.accept(status())
    mailbox = board.subscribe()
    drain(mailbox)
    board.tick()
    assert drain(mailbox) == []
    clocks.advance(6)
    board.tick()
    status_event, gate_event, phase_event = drain(mailbox)
    assert json.loads(phase_event.data)["health"] == "not_live"
    assert json.loads(status_event.data)["health"]["status"] == "degraded"
    assert json.loads(gate_event.data)["answer"] == "undecided"
    board.tick()
    assert drain(mailbox) == []


def test_a_subscriber_of_one_comparison_hears_of_no_other(board: Board) -> None:
    board.expect(expectation("one"))
    board.expect(expectation("two"))
    mailbox = board.subscribe("one")
    board.accept(status("two"))
    assert {event.comparison for event in drain(mailbox)} == {"one"}


def test_a_subscriber_of_hundreds_of_comparisons_hears_how_each_of_them_stands(board: Board) -> None:
    names = {f"pipeline-{number}" for number in range(400)}
    for name in names:
        board.expect(expectation(name))
        board.accept(status(name))
    mailbox = board.subscribe()
    for number in range(1000):
        mailbox.put(BoardEvent("divergence", "pipeline-0", "{}", subject=f"d{number}"))
    waiting = drain(mailbox)
    for kind in ("status", "gate"):
        assert {event.comparison for event in waiting if event.name == kind} == {*names, NAME}


def test_a_closed_board_ends_its_streams(board: Board) -> None:
    board.accept(status())
    mailbox = board.subscribe()
    board.close()
    drain(mailbox)
    assert asyncio.run(asyncio.wait_for(mailbox.take(), 5)) is None


def drain(mailbox: Mailbox) -> list[BoardEvent]:
    """All waiting events, without waiting for more."""

    async def take_all() -> list[BoardEvent]:
        taken = [await mailbox.take() for _ in range(len(mailbox))]
        return [event for event in taken if event is not None]

    return asyncio.run(take_all())
