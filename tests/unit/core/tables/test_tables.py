"""What goes to matching of rows that replace each other, and when."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import MARK, Side
from twinstream.core.tables.settled import Settled, merged
from twinstream.spec.decode.deletions import deletion
from twinstream.spec.load import loads

HEAD = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\n"
RECORDED = HEAD + "order: unordered\nemits: {upsert: {key: [k], settled_by: input}}\n"
NIGHTS = HEAD + (
    "kinds: {night: {where: {k: night}}, row: {}}\n"
    "order: {barrier: night, inner: unordered, copies: COPIES}\n"
    "emits: {upsert: {key: [k], settled_by: barrier}}\n"
)
NIGHT = record({"k": "night"})
ORDERS = SPEAKING.replace("order: unordered", "order: {per_key: [id]}") + (
    "emits: {retract: {id: id, valid_from: starts, valid_to: ends, settled_by: {watermark: ends}}}\n"
    "overdue: {clock: input, window_end: ends}\n"
)


def row(key: str, value: int) -> bytes:
    return record({"k": key, "v": value})


def accounts(driver: Driver) -> list[dict[str, int]]:
    """The accounts of both sides without what is 0; `matched` and `unmatched` are among them."""
    comparison = driver.comparison
    found = []
    for side in Side:
        counts = {**vars(comparison.accounts[side]), "matched": comparison.matched}
        counts["unmatched"] = comparison.unmatched(side)
        found.append({name: count for name, count in counts.items() if count})
    return found


def test_a_difference_names_the_last_rows_that_were_replaced() -> None:
    driver = Driver(loads(RECORDED))
    driver.feed(LEFT, [row("a", value) for value in range(6)])
    driver.feed(RIGHT, [row("a", 7)])
    driver.end()
    (report,) = driver.reports()
    assert (
        "The reference had written 5 rows of this key before (the last at offsets 2, 3 and 4)."
        in (report["text"])
    )
    assert report["positions"]["reference"]["offset"] == 5


def test_a_side_that_ends_settles_its_rows_and_the_other_side_still_replaces_its_own() -> None:
    driver = Driver(loads(RECORDED))
    driver.feed(LEFT, [row("a", 1)])
    driver.comparison.end(LEFT)
    driver.feed(RIGHT, [row("a", 2), row("b", 1), row("a", 1)])
    assert not driver.comparison.diverged
    driver.feed(RIGHT, [record({"k": "c"}), deletion(b"b") or b"", deletion(b"c") or b""])
    driver.comparison.end(RIGHT)
    assert (driver.comparison.diverged, driver.comparison.matched) == (False, 1)
    assert accounts(driver)[RIGHT] == {"consumed": 6, "matched": 1, "superseded": 5}


def test_barriers_with_copies_settle_the_rows_of_all_partitions() -> None:
    driver = Driver(loads(NIGHTS.replace("COPIES", "per_partition")))
    for side in Side:
        driver.comparison.expect_partitions(side, range(2))
        driver.feed(side, [row("a", 1), row("a", 2 + side), NIGHT, row("a", 9)])
        driver.offsets[side] = 0
        driver.feed(side, [row("b", 1)], partition=1)
        assert not driver.comparison.diverged
        driver.feed(side, [NIGHT], partition=1)
    assert driver.comparison.diverged
    driver.end()
    assert driver.kinds() == ["changed"]
    both = {"consumed": 6, "ignored": 1, "matched": 3, "divergent": 1, "superseded": 1}
    assert accounts(driver) == [both, both]


@pytest.mark.parametrize("seed", range(3))
def test_after_a_halt_every_row_is_in_one_account(seed: int) -> None:
    driver = Driver(loads(NIGHTS.replace("COPIES", "one") + "on_divergence: halt\n"))
    for step in range(20):
        side = Side((step + seed) % 2)
        driver.feed(side, [NIGHT if step % 5 > 2 else row("ab"[step % 3 % 2], step * side % (2 + seed))])
        driver.comparison.review()
    driver.end()
    assert driver.comparison.halted
    for account in accounts(driver):
        assert account.pop("consumed") == sum(account.values())


def test_a_row_that_replaced_none_is_handed_on_as_it_is() -> None:
    driver = Driver(loads(NIGHTS.replace("COPIES", "one")))
    driver.feed(LEFT, [row("a", 1), NIGHT], [5, 5])
    driver.feed(LEFT, [row("a", 2), row("a", 3), NIGHT], [6, 7, 20])
    events = [event for event, _ in driver.comparison.index.unmatched(LEFT)]
    assert [event[MARK] for event in events] == [None, None, [1, [0, 2]], None]
    assert [event[3] for event in events] == [5, 5, 20, 20], "a barrier settles a row at its own time"


def test_changes_of_the_settled_table_add_up_to_the_whole_of_it() -> None:
    table = Settled(limit=2)
    table.put(b"a", (b"1", b"1"))
    states = [table.state(whole=True)]
    table.put(b"b", (b"1", None))
    table.put(b"a", (None, None))
    states.append(table.state(whole=False))
    table.put(b"b", (b"2", b"2"))
    states.append(table.state(whole=False))
    assert list(states[-1]["values"]) == [b"b"]
    again = Settled(limit=2)
    again.restore(merged(states))
    assert [again.get(key) for key in (b"a", b"b")] == [(None, None), (b"2", b"2")]
    for key in (b"c", b"d"):
        again.put(key, (b"1", b"1"))
    assert (again.get(b"b"), again.get(b"never seen")) == (None, None), "nobody knows any more"


def test_a_deletion_of_a_key_settled_too_long_ago_is_a_hole_and_decides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Settled.__init__, "__defaults__", (2,))
    driver = Driver(loads(NIGHTS.replace("COPIES", "one")))
    for side in Side:
        driver.feed(side, [*(row(key, 1) for key in "abc"), NIGHT])
    assert not driver.comparison.holes
    driver.feed(LEFT, [row("a", 2), NIGHT])
    for side in Side:
        driver.feed(side, [deletion(b"a") or b"", NIGHT])
    (hole,) = driver.comparison.holes
    assert (hole.side, "a key is deleted" in hole.reason) == (RIGHT, True)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_later_row_that_names_an_earlier_end_is_settled_when_the_watermark_has_passed_that(
    restarts: bool,
) -> None:
    driver = Driver(loads(ORDERS))

    def batch(side: Side, number: int, watermark: int, *ends: int) -> None:
        if ends:
            driver.feed(side, [record({"id": 1, "starts": 10, "ends": end}) for end in ends])
        written = {0: driver.offsets[side]}
        fact = Finished("q", "r", number, {("in", 0): number + 1}, watermark, written)
        driver.comparison.note_finished(side, fact)
        driver.look()
        if restarts:
            driver.restart()

    batch(LEFT, 0, 0, 100)
    batch(LEFT, 1, 0, 50)
    batch(RIGHT, 1, 0, 50)
    for number in (2, 3):
        for side in Side:
            batch(side, number, 60)
    assert (driver.comparison.diverged, driver.comparison.matched) == (False, 1)
