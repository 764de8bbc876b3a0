"""The way of an alarm, as it is seen in what service, Prometheus and Alertmanager say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from twinstream.core.events import Side
from twinstream.drill.alarm import Alarm
from twinstream.drill.shadow import ExpectedSign
from twinstream.drill.signals import (
    ALERTS,
    AlarmPath,
    SignalState,
    WantedSignal,
    moments,
    series,
    signals,
    unexpected,
)
from twinstream.spec.drills import Names

ABOUT = frozenset({(Side.RIGHT, 0, 7)})
REPORT = {
    "kind": "duplicate",
    "provisional": False,
    "positions": {"reference": None, "candidate": {"partition": 0, "offset": 7}},
}


def status(**given: Any) -> dict[str, Any]:
    return {
        "events": {"reference": 10, "candidate": 10},
        "verdict": "EQUIVALENT",
        "reason": "All is well.",
        "suspicions": 0,
        "holes": [],
        "health": {"status": "ok", "reasons": [], "stalled": []},
        **given,
    }


def look_of(expectation: ExpectedSign) -> SignalState:
    """What is said when this kind of alarm has come all the way."""
    stalled = {"status": "degraded", "reasons": ["the candidate is silent"], "stalled": ["candidate"]}
    told: dict[str, tuple[dict[str, Any], dict[tuple[str, str], float]]] = {
        "fail": (
            {"verdict": "DIVERGED"},
            {("verdict", "DIVERGED"): 1, ("divergences_total", "duplicate"): 1},
        ),
        "suspicion": ({"verdict": "INCONCLUSIVE", "suspicions": 1}, {("suspicions", ""): 1}),
        "stall": ({"health": stalled}, {("side_stalled", "candidate"): 1}),
    }
    said, samples = told[expectation]
    alert, fails = ALERTS[expectation], expectation == "fail"
    return SignalState(
        status(**said),
        {"answer": "fail" if fails else "undecided"},
        [REPORT] if fails else [],
        samples,
        live=True,
        scraped=True,
        alerts={alert: "firing"},
        routed={alert: "Alertmanager has it for on-call"},
    )


def course(expectation: ExpectedSign) -> AlarmPath:
    closed = expectation == "fail"
    wanted = WantedSignal(expectation, (10, 10), ABOUT, closed, prometheus=True, alertmanager=True)
    return AlarmPath(signals(wanted))


@pytest.mark.parametrize("expectation", ALERTS)
def test_an_alarm_that_has_come_all_the_way_is_seen_in_full(expectation: ExpectedSign) -> None:
    found = course(expectation)
    seen = found.look(1.5, look_of(expectation))
    assert found.awaited == []
    assert {one.seconds for one in seen} == {1.5}
    ways = {
        "fail": ["read", "found", "verdict", "gate", "metric", "counted"],
        "suspicion": ["read", "verdict", "gate", "metric"],
        "stall": ["read", "health", "gate", "metric"],
    }
    assert [one.name for one in seen] == [*ways[expectation], "live", "scraped", "alert", "routed"]


@pytest.mark.parametrize("expectation", ALERTS)
def test_of_a_comparison_that_is_well_only_the_reading_is_seen(expectation: ExpectedSign) -> None:
    metrics = {("verdict", "DIVERGED"): 0.0}
    well = SignalState(status(), {"answer": "pass"}, [], metrics, False, False, {}, {})
    assert [one.name for one in course(expectation).look(1.0, well)] == ["read"]


ELSEWHERE = {**REPORT, "positions": {"reference": None, "candidate": {"partition": 0, "offset": 8}}}


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ("found", {"found": []}),
        ("found", {"found": [ELSEWHERE]}),
        ("verdict", {"status": status()}),
        ("gate", {"gate": {"answer": "undecided"}}),
        ("metric", {"samples": {("divergences_total", "duplicate"): 1}}),
        ("live", {"live": False}),
        ("scraped", {"scraped": False}),
        ("alert", {"alerts": {"TwinstreamDiverged": "pending"}}),
        ("routed", {"routed": {}}),
    ],
)
def test_each_signal_of_a_failed_gate_is_missed_where_it_is_not_said(
    lacks: str, said: dict[str, Any]
) -> None:
    found = course("fail")
    found.look(1.0, look_of("fail")._replace(**said))
    assert found.awaited == [lacks]


def test_an_undecided_gate_alone_is_no_sign_of_a_silent_candidate() -> None:
    found = course("stall")
    found.look(1.0, SignalState(status(verdict="PENDING"), {"answer": "undecided"}, [], {}))
    assert "gate" in found.awaited


def test_a_signal_keeps_the_time_at_which_it_was_seen_first() -> None:
    found = course("fail")
    found.look(1.0, SignalState(status(), {"answer": "pass"}, [], {}))
    found.look(2.0, look_of("fail"))
    assert [(one.name, one.seconds) for one in found.seen][:2] == [("read", 1.0), ("found", 2.0)]


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ("fail", "verdict 1.50 s, gate 1.50 s, alert 4.00 s, routed 4.00 s"),
        ("stall", "health 1.50 s, gate 1.50 s, alert 4.00 s, routed 4.00 s"),
    ],
)
def test_the_moments_of_verdict_gate_and_alarm_are_told(expectation: ExpectedSign, told: str) -> None:
    found, whole = course(expectation), look_of(expectation)
    found.look(1.5, whole._replace(alerts={}, routed={}))
    found.look(4, whole)
    assert moments(found.seen) == told


def test_silence_that_is_called_a_difference_fails_the_drill() -> None:
    look = look_of("stall")._replace(status=status(verdict="DIVERGED", reason="An event is missing."))
    wanted = WantedSignal("stall", (10, 10), ABOUT)
    assert unexpected(look_of("stall"), wanted) is None
    assert unexpected(look, wanted) == (
        "the verdict is DIVERGED, though a silence of the candidate proves nothing: An event is missing."
    )


def test_a_hole_fails_the_drill() -> None:
    look = look_of("fail")._replace(status=status(holes=[{"reason": "offsets were lost"}]))
    assert unexpected(look, WantedSignal("fail", (10, 10), ABOUT)) == (
        "a part of the copies was not checked: offsets were lost"
    )


def test_prometheus_is_asked_for_the_metric_of_the_alert() -> None:
    assert [series(one, comparison="x") for one in ("fail", "suspicion", "stall")] == [
        'twinstream_verdict{comparison="x", verdict="DIVERGED"}',
        'twinstream_suspicions{comparison="x"}',
        'twinstream_side_stalled{comparison="x", side="candidate"}',
    ]


def test_prometheus_is_given_an_address_of_ipv6_in_brackets(tmp_path: Path) -> None:
    file = tmp_path / "drill.json"
    alarm = Alarm(Names("rides", "5f0c2e1a"), None, None, page=False)
    with alarm.scraped("http://[::1]:8080", file):
        assert orjson.loads(file.read_bytes())[0]["targets"] == ["[::1]:8080"]
