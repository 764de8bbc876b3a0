"""The API alone and matchers alone, as real processes on real Kafka and Redis."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.support.cases import MakePlace, Place
from tests.support.commands import twinstream
from tests.support.dashboard import filled, queries
from tests.support.marks import whole_product
from tests.support.prometheus import SHIPPED, Prometheus
from tests.support.service import WEB, ServiceProcess, Writer
from tests.support.waiting import eventually

pytestmark = whole_product()


class Release(NamedTuple):
    """What a release of the chart runs: a process for the API, and two for matchers."""

    place: Place
    api: ServiceProcess
    matchers: list[ServiceProcess]

    @property
    def write(self) -> Writer:
        return self.place.write

    def owner(self) -> ServiceProcess:
        """The matcher process that owns the comparison."""
        (owner,) = (one for one in self.matchers if value(one, "twinstream_standby") == 0)
        return owner


@pytest.fixture
def release(place_of: MakePlace) -> Iterator[Release]:
    """All three, with 300 pairs that match."""
    place = place_of(2, "")
    matchers = [place.service(f"matcher-{number}", "--role", "matcher") for number in range(2)]
    release = Release(place, place.service("api", "--role", "api"), matchers)
    with ExitStack() as stack:
        for process in (release.api, *release.matchers):
            stack.enter_context(process)
        for matcher in release.matchers:
            eventually(matcher.ready, seconds=60, what=f"it owns or stands by: {matcher.log()}")
        release.write.both(range(300))
        release.api.passes_with(300)
        yield release


@pytest.fixture
def scraped(release: Release, tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes all of them, and a second process for the API, as the chart has it."""
    with release.place.service("api-2", "--role", "api") as second:
        second.passes_with(300)
        beside = [process.address for process in (second, *release.matchers)]
        with Prometheus(tmp_path / "prometheus", release.api.address, beside=beside) as server:
            yield server


def of_a_comparison(server: Prometheus, expression: str) -> list[tuple[dict[str, str], float]]:
    """The samples of a query: labels that tell no process from another, and the value."""
    found = []
    for sample in server.query(filled(expression, "shared")):
        labels = {name: text for name, text in sample["metric"].items() if name not in {"instance", "job"}}
        found.append((labels, float(sample["value"][1])))
    return found


def once(server: Prometheus, expression: str) -> None:
    """No two samples of a query differ but by the process that they are of."""
    labels = [tuple(sorted(labels.items())) for labels, _ in of_a_comparison(server, expression)]
    assert len(set(labels)) == len(labels), f"{expression} has several answers: {labels}"


def differs(release: Release) -> None:
    """The gate fails: one event is missing; and another one waits for its partner."""
    release.write.reference(3, -1)
    release.write.both(range(300, 600))
    release.write.candidate(77, 1)
    release.write.flush()
    release.api.answers("fail")


def test_a_prometheus_that_scrapes_both_roles_has_one_answer_and_not_two(
    release: Release, scraped: Prometheus
) -> None:
    differs(release)
    waits = 'min(twinstream_unmatched{comparison="shared", side="candidate"}) == 1'
    eventually(lambda: scraped.query(waits), seconds=60, what="both processes of the API tell of all of it")
    fires = 'ALERTS{comparison="shared", alertname="TwinstreamDiverged", alertstate="firing"}'
    eventually(lambda: scraped.query(fires), seconds=60, what="the alert fires")
    eventually(lambda: len(scraped.query("up == 1")) == 4, seconds=60, what="all four are scraped")
    fails = 'twinstream_gate{comparison="shared", state="fail"} == 1'
    eventually(lambda: len(scraped.query(fails)) == 2, seconds=60, what="both APIs say so")

    for query in queries():
        if 'comparison="$comparison"' in query.expression:
            once(scraped, query.expression)
    for file in sorted((SHIPPED / "rules").glob("*.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                once(scraped, rule.get("record", rule["expr"]))
    assert len(scraped.query(fires)) == 1

    status = release.api.get("")
    shown = {query.title: query.expression for query in queries()}
    assert by_side(scraped, shown["Unmatched"]) == status["unmatched"]
    assert by_side(scraped, shown["Lag"]) == {"reference": 0, "candidate": 0}
    became = of_a_comparison(scraped, shown["What became of the events"])
    told = {(labels["side"], labels["state"]): count for labels, count in became}
    for side, accounts in status["accounts"].items():
        accounts.pop("consumed")
        assert {state: told[side, state] for state in accounts} == accounts
    events, pairs = (
        expression.replace("rate(", "(").replace("[$__rate_interval]", "")
        for expression in (shown["Events consumed"], shown["Pairs matched"])
    )
    assert by_side(scraped, events) == status["events"]
    assert [count for _, count in of_a_comparison(scraped, pairs)] == [status["matched"]]


def by_side(server: Prometheus, expression: str) -> dict[str, float]:
    return {labels["side"]: count for labels, count in of_a_comparison(server, expression)}


def metrics(process: ServiceProcess) -> str:
    return WEB.get(f"{process.address}/metrics").text


def value(process: ServiceProcess, name: str) -> float:
    """The only sample of a metric."""
    (found,) = re.findall(rf"^{name}\{{[^}}]*\}} (\S+)$", metrics(process), re.MULTILINE)
    return float(found)


def names(process: ServiceProcess) -> set[str]:
    """The metrics of comparisons that a process exposes."""
    return set(re.findall(r"^(twinstream_\w+)\{comparison=", metrics(process), re.MULTILINE))


def freeze(process: ServiceProcess, number: signal.Signals) -> None:
    for pid in (*process.matchers(), process.process.pid):
        os.kill(pid, number)


def test_the_api_says_what_the_owner_says_also_when_that_is_replaced(release: Release) -> None:
    owner = release.owner()
    (standby,) = (one for one in release.matchers if one is not owner)
    freeze(standby, signal.SIGSTOP)
    owner.kill()
    release.api.answers("undecided")
    assert release.api.ready(), "one that can answer is ready"
    freeze(standby, signal.SIGCONT)
    release.api.answers("pass")
    release.write.both(range(300, 400))
    release.api.passes_with(400)
    owner.start()
    eventually(owner.ready, what="the one that was replaced stands by, and is ready")
    assert value(owner, "twinstream_standby") == 1
    assert release.owner() is standby


def exposes_no_series_twice(release: Release) -> None:
    """No series of a comparison is told by processes of both roles."""
    api, matcher = names(release.api), names(release.matchers[0])
    assert {"twinstream_verdict", "twinstream_gate", "twinstream_matched_total"} <= api
    assert matcher == {f"twinstream_{it}" for it in ("matcher_falls_total", "matcher_crash_loop", "standby")}
    assert not api & matcher
    for process in (release.api, release.matchers[0]):
        assert "twinstream_process_resident_memory_bytes " in metrics(process)
    nothing = WEB.get(f"{release.matchers[0].address}/v1/comparisons")
    assert (nothing.status_code, "this process runs only matchers" in nothing.json()["detail"]) == (404, True)


def test_without_any_matcher_the_api_is_ready_undecided_and_says_why(release: Release) -> None:
    exposes_no_series_twice(release)
    for matcher in release.matchers:
        matcher.stop()
    release.api.answers("undecided")
    assert release.api.ready()
    unheard = "No matcher is heard that owns this comparison"
    eventually(lambda: unheard in release.api.get("/gate")["reason"], what="the reason names it")
    refused = release.api.reset()
    assert (refused.status_code, "no matcher is heard" in refused.json()["detail"]) == (409, True)


def waiting(release: Release) -> list[tuple[str, object]]:
    """What the API process shows of events without a partner."""
    return [(event["side"], event["value"]) for event in release.api.get("/unmatched")["items"]]


def test_differences_and_what_waits_are_shown_and_a_reset_reaches_the_owner(release: Release) -> None:
    differs(release)
    (found,) = eventually(release.api.divergences, what="the difference")
    code, told, _ = twinstream("explain", found["id"], "--service", release.api.address)
    assert (code, "missing" in told) == (0, True)
    one = [("candidate", {"k": 77, "n": 1})]
    eventually(lambda: waiting(release) == one, seconds=60, what="what waits is shown")
    release.write.reference(77, 1)
    release.write.flush()
    eventually(lambda: waiting(release) == [], what="nothing waits any more")
    answer = release.api.reset()
    assert (answer.status_code, answer.json()["by"]) == (200, "ann"), answer.text
    release.write.both(range(600, 650))
    release.api.passes_with(50)
    status = release.api.get("")
    assert [(one["by"], one["before"]["verdict"]) for one in status["resets"]] == [("ann", "DIVERGED")]
    assert release.api.divergences() == []
