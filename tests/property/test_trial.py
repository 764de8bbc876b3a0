"""Rules on trial come to what they would come to alone, and the comparison to what it comes to anyway."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.workers import Bench
from twinstream.adapters.memory import MemorySource
from twinstream.core.events import Side
from twinstream.runtime.saves import RETRY_STORE_SECONDS
from twinstream.runtime.worker import BEAT_SECONDS
from twinstream.status import ComparisonStatus, DivergenceReport, ResetRequest
from twinstream.trials import TrialStatus

LENGTH = 60
Fault = tuple[str, int]

faults = st.lists(
    st.tuples(st.sampled_from(["drop", "duplicate", "field", "swap", "garbage"]), st.integers(0, LENGTH - 2)),
    max_size=3,
    unique_by=lambda fault: fault[1] // 2,
)
crashes = st.lists(st.integers(0, 25), max_size=4)
outages = st.lists(st.integers(0, 22), max_size=2)
"""Steps at which the store is away for the next three."""

KINDS = "kinds: {day: {where: {k: day}}, ride: {}}\n"
MORE = "identity: [k]\nundecodable: {budget: 5}\nevidence: {matched: 1, seconds: 0}\n"
BASE = "version: 1\nname: test\nreference: {topic: a}\ncandidate: {topic: b}\n" + MORE
RULES = (
    KINDS + "order: {per_key: [k]}\n",
    KINDS + "order: unordered\n",
    KINDS + "order: {per_key: [k]}\nequality: {ignore: [n]}\n",
    KINDS + "order: {barrier: day, inner: {per_key: [k]}}\n",
    KINDS + "order: {by_key: [k], inner: {dependent: [[day, ride]]}}\n",
    "kinds: {day: {where: {k: day}, ignore: true}, ride: {}}\norder: {per_key: [k]}\n",
    KINDS + "order: {per_key: [k]}\nknown_differences: [{id: N, when: {divergences: [missing, changed]}, "
    "owner: me, expires: 2099-01-01, ceiling: {count: 2}}]\n",
)


class Told(NamedTuple):
    """What there is to be told of a comparison in the end."""

    verdict: str | None
    accounts: object
    divergences: object
    reports: dict[str, str]


def _told(status: ComparisonStatus | TrialStatus, reports: dict[str, DivergenceReport]) -> Told:
    kinds = {report.id: report.kind for report in reports.values()}
    return Told(status.verdict, status.accounts, status.divergences, kinds)


def _fill(bench: Bench, planted: list[Fault]) -> None:
    at = {number: kind for kind, number in planted}
    events = [("day" if number % 20 == 19 else number % 3, number) for number in range(LENGTH)]
    candidate = list(events)
    for number, kind in at.items():
        if kind == "swap":
            candidate[number : number + 2] = reversed(candidate[number : number + 2])
    for number, event in enumerate(events):
        bench.write(Side.LEFT, event, at_ms=number)
        kind, other = at.get(number), candidate[number]
        if kind == "garbage":
            bench.source.append(Side.RIGHT, 0, b"garbage", number)
        elif kind == "field":
            bench.write(Side.RIGHT, (other[0], -number), at_ms=number)
        elif kind != "drop":
            bench.write(Side.RIGHT, *[other] * (2 if kind == "duplicate" else 1), at_ms=number)


class Trouble(NamedTuple):
    """When the process is killed, when the store is away, and at which steps a second has gone by."""

    crashes: list[int]
    outages: list[int]
    beat_every: int


def _run(bench: Bench, planted: list[Fault], trouble: Trouble) -> Bench:
    _fill(bench, planted)
    worker = bench.started()
    for step in range(30):
        away = any(first <= step < first + 3 for first in trouble.outages)
        bench.storage.down = "the store is away" if away else None
        if step in trouble.crashes and not away:
            worker = bench.restarted()
        if step % trouble.beat_every == 0:
            bench.clock.advance(BEAT_SECONDS)
        worker.step()
    bench.clock.advance(RETRY_STORE_SECONDS)
    worker.stop()
    return bench


def _bench(rules: str, trial: str | None = None) -> Bench:
    beside = None if trial is None else BASE + trial
    return Bench(spec=BASE + rules, trial=beside, source=MemorySource(batch=7))


def _interleaved(events: list[tuple[int, int]], turns: list[int]) -> list[tuple[int, int]]:
    """The same events, those of one key in their order."""
    queues: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        queues.setdefault(event[0], []).append(event)
    found: list[tuple[int, int]] = []
    while queues:
        key = sorted(queues)[(turns.pop() if turns else 0) % len(queues)]
        found.append(queues[key].pop(0))
        if not queues[key]:
            del queues[key]
    return found


@examples(30)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=12),
    st.lists(st.integers(0, 5), max_size=12),
    st.sampled_from(["", "equality: {ignore: [n]}\n"]),
    st.data(),
)
def test_what_agrees_under_other_rules_agrees_behind_any_moment_at_which_the_comparison_has_paired_all(
    events: list[tuple[int, int]], turns: list[int], equality: str, data: st.DataObject
) -> None:
    other = _interleaved(events, turns)
    rests = [n for n in range(1, len(events)) if Counter(events[:n]) == Counter(other[:n])]
    cut = data.draw(st.sampled_from(rests or [0]))
    bench = Bench(spec=BASE + "order: unordered\n", trial=BASE + "order: {per_key: [k]}\n" + equality)
    worker = bench.started()
    bench.write(Side.LEFT, *events[:cut])
    bench.write(Side.RIGHT, *other[:cut])
    bench.run(worker)
    assert worker.begin_anew(ResetRequest(id="r", by="me", reason="now", address="here", start="now"))
    worker = bench.restarted()
    bench.write(Side.LEFT, *events[cut:])
    bench.write(Side.RIGHT, *other[cut:])
    bench.run(worker)
    trial = bench.on_trial()
    assert (trial.state, trial.divergences.total) == ("running", 0)
    assert (trial.matched, trial.unmatched.reference) == (len(events) - cut, 0)


@examples(60)
@given(st.permutations(RULES), faults, st.builds(Trouble, crashes, outages, st.integers(1, 7)))
def test_a_trial_comes_to_what_its_rules_come_to_alone_and_changes_nothing_for_the_comparison(
    rules: list[str], planted: list[Fault], trouble: Trouble
) -> None:
    live, tried = rules[:2]
    both = _run(_bench(live, tried), planted, trouble)
    alone = _run(_bench(tried), planted, trouble._replace(crashes=[], outages=[]))
    untried = _run(_bench(live), planted, trouble)
    assert both.on_trial().state == "running"
    assert _told(both.on_trial(), both.trial_reports()) == _told(alone.status(), alone.reports())
    assert _told(both.status(), both.reports()) == _told(untried.status(), untried.reports())
    assert both.status().verified_up_to == untried.status().verified_up_to
