"""Soundness of a check between two times: whatever the cut, partners that are near enough are no difference.

Both topics hold one stream. The candidate has written each event up to `SLACK` earlier or later, and in
another order where that is declared harmless. Few values, so that equal events are many. Where the order
allows it, keys stand in two partitions.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import given, note
from hypothesis import strategies as st

from loadtest.memory import ManualClock, MemorySource
from tests.support.streams import LEFT, RIGHT, record, spec
from twinstream.core.events import Side
from twinstream.offline.bounded import BoundedCheck

SLACK_MS = 200
ORDERS = {
    "unordered": "",
    "total": "",
    "{per_key: [k]}": "",
    "{barrier: day, inner: {per_key: [k]}}": "kinds: {day: {where: {k: 0}}, event: {}}",
    "{dependent: [[a, a], [a, b]]}": "kinds: {a: {where: {k: 0}}, b: {}}",
}


class Row(NamedTuple):
    """An event, and when it was written."""

    value: dict[str, int]
    moment: int


class Drawn(NamedTuple):
    """A stream in the order of either topic, and what of it is compared."""

    order: str
    reference: list[Row]
    candidate: list[Row]
    begin: datetime | str
    end: datetime | str


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    order = draw(st.sampled_from(sorted(ORDERS)))
    keys = st.integers(0, 2)
    values = draw(st.lists(st.fixed_dictionaries({"k": keys, "n": keys}), min_size=4, max_size=30))
    steps = draw(st.lists(st.integers(1, 150), min_size=len(values), max_size=len(values)))
    moments = [1000 + sum(steps[: n + 1]) for n in range(len(values))]
    reference = [Row(*row) for row in zip(values, moments, strict=True)]
    if order == "unordered":
        skews = draw(st.lists(st.integers(-SLACK_MS, SLACK_MS), min_size=len(values), max_size=len(values)))
        moved = [Row(value, at + skew) for (value, at), skew in zip(reference, skews, strict=True)]
        candidate = sorted(moved, key=lambda row: row.moment)
    else:
        skew = draw(st.integers(-SLACK_MS, SLACK_MS))
        candidate = [Row(value, at + skew) for value, at in reference]
    times = st.integers(900, moments[-1] + 300).map(_moment)
    begin = draw(st.just("earliest") | times)
    end = draw(st.just("latest") | times)
    if isinstance(begin, datetime) and isinstance(end, datetime):
        begin, end = min(begin, end), max(begin, end)
    return Drawn(order, reference, candidate, begin, end)


def _answer(one: Drawn) -> dict[str, Any]:
    partitions = 2 if one.order in {"unordered", "{per_key: [k]}"} else 1
    source = MemorySource(partitions, batch=3)
    for side, rows in ((LEFT, one.reference), (RIGHT, one.candidate)):
        for value, moment in rows:
            source.append(side, value["k"] % partitions, record(value), moment)
    slack = timedelta(milliseconds=SLACK_MS)
    run = BoundedCheck(
        spec(one.order, ORDERS[one.order]), source, one.begin, one.end, slack, ManualClock()  # type: ignore[arg-type]
    )  # fmt: skip
    answer = run.run(iter, open_ended=False, allow_empty=True, evidence=False)
    note(f"{one}\n{answer}")
    for account in answer["accounts"].values():
        assert account["consumed"] == sum(account.values()) - account["consumed"]
    return answer


@given(drawn())
def test_one_stream_cut_anywhere_never_diverges(one: Drawn) -> None:
    assert _answer(one)["verdict"] in {"EQUIVALENT", "INCONCLUSIVE"}


@given(drawn(), st.sampled_from(Side), st.data())
def test_a_loss_within_is_never_passed_over(one: Drawn, side: Side, data: st.DataObject) -> None:
    """An event that has no equal is lost on one side; on the other it lies between the times."""
    rows = [list(one.reference), list(one.candidate)]
    place = data.draw(st.integers(0, len(one.reference) - 1))
    unique = {"k": 7, "n": 7}
    kept = rows[side.other]
    moment = kept[place].moment
    kept.insert(place, Row(unique, moment))
    within = all(
        edge in {"earliest", "latest"} or sign * _ms(edge) <= sign * moment - (sign < 0)
        for edge, sign in ((one.begin, 1), (one.end, -1))
    )
    answer = _answer(one._replace(reference=rows[LEFT], candidate=rows[RIGHT]))
    if within:
        assert answer["verdict"] in {"DIVERGED", "INCONCLUSIVE"}
    else:
        assert answer["verdict"] in {"EQUIVALENT", "INCONCLUSIVE"}


def _ms(edge: datetime | str) -> int:
    assert isinstance(edge, datetime)
    return round(edge.timestamp() * 1000)
