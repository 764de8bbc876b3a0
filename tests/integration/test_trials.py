"""A trial as programs and people meet it: a comparison without a gate, and what it would change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from tests.support.commands import twinstream
from tests.support.server import Served, served
from tests.support.statuses import NAME, counts, diverged, divergence, expectation, now, status
from twinstream.api.metrics import MatcherCollector, StatusCollector, exposition
from twinstream.api.state.board import Board
from twinstream.status.common import Sides
from twinstream.status.comparison import DivergenceReport, Position

TRIAL = f"{NAME}~trial"
BASE = "/v1/comparisons"
NO_GATE = f"{TRIAL} is a trial and has no gate: ask the gate of {NAME}."


def at(identifier: str, offset: int, name: str = NAME) -> DivergenceReport:
    """A divergence between the events at one offset of partition 0 of both sides."""
    place = Position(topic="t", partition=0, offset=offset)
    positions = Sides[Position | None](reference=place, candidate=place)
    return divergence(identifier, provisional=False, positions=positions, comparison=name)


@pytest.fixture
def service() -> Iterator[Served]:
    """A comparison with two divergences, and a trial that finds one of them and another one."""
    board, registry = Board(stale_after_seconds=60), CollectorRegistry()
    for collector in (MatcherCollector(board.views), StatusCollector(board.views)):
        registry.register(collector)
    with served(board, exposition(registry)) as service:
        tried = expectation(TRIAL, trial_of=NAME, changes=("order", "equality"))
        service.call(lambda: [board.expect(one) for one in (expectation(), tried)])
        service.publish(at("a", 3), at("b", 4), diverged(at=now(), divergences=counts(changed=2)))
        service.publish(at("c", 4, TRIAL), at("d", 9, TRIAL))
        service.publish(diverged(TRIAL, at=now(), divergences=counts(changed=2), matched=5001))
        yield service


def run(service: Served, *arguments: str) -> tuple[int, str, str]:
    return twinstream(*arguments, TWINSTREAM_SERVICE=service.url)


def test_a_trial_is_a_comparison_that_says_so_with_all_routes_but_the_gate(http: httpx.Client) -> None:
    items = http.get(BASE).json()["items"]
    assert [(item["name"], item["trial_of"]) for item in items] == [(NAME, None), (TRIAL, NAME)]
    assert http.get(f"{BASE}/{TRIAL}").json()["trial_of"] == NAME
    listed = http.get(f"{BASE}/{TRIAL}/divergences").json()["items"]
    assert sorted(item["id"] for item in listed) == ["c", "d"]
    for rest in ("unmatched", "progress", "history", "timeline", "divergences.ndjson", "divergences/c"):
        assert http.get(f"{BASE}/{TRIAL}/{rest}").status_code == 200
    receipt = http.get(f"{BASE}/{TRIAL}/receipt").json()
    assert (receipt["gate"], http.get(f"{BASE}/{NAME}/receipt").json()["gate"]["answer"]) == (None, "fail")


@pytest.mark.parametrize("verdict", ["DIVERGED", "EQUIVALENT"])
def test_a_trial_has_no_gate_whatever_its_verdict(service: Served, http: httpx.Client, verdict: str) -> None:
    if verdict == "EQUIVALENT":
        service.publish(status(TRIAL, at=now()))
    assert http.get(f"{BASE}/{TRIAL}").json()["verdict"] == verdict
    for asked in ("GET ", "GET /strict", "POST /strict", "GET /rollback", "POST /rollback"):
        method, rest = asked.split(" ")
        answer = http.request(method, f"{BASE}/{TRIAL}/gate{rest}")
        assert (answer.status_code, answer.json()["detail"]) == (404, NO_GATE)
    assert service.call(lambda: service.board.view(TRIAL).gate.answer) == "undecided"
    assert http.get(f"{BASE}/{NAME}/gate").json()["answer"] == "fail"
    code, out, err = run(service, "gate", TRIAL)
    assert (code, out, NO_GATE in err) == (2, "", True)


def test_the_contrast_says_what_the_trial_hides_and_what_it_alone_reports(http: httpx.Client) -> None:
    found = http.get(f"{BASE}/{NAME}/trial").json()
    assert (found["name"], found["trial_of"], found["fresh"]) == (TRIAL, NAME, True)
    assert (found["changes"], found["matched"], found["verdict"]) == (["order", "equality"], 5001, "DIVERGED")
    for part, identifier in (("hidden", "a"), ("alone", "d")):
        assert found[part]["by_kind"] == {"changed": 1}
        assert {"count": 1, "shared": 1, "open": 0, "unknown": 0}.items() <= found[part].items()
        (example,) = found[part]["examples"]
        assert (example["id"], bool(example["text"])) == (identifier, True)


def test_where_nothing_is_tried_there_is_no_contrast(http: httpx.Client) -> None:
    answer = http.get(f"{BASE}/{TRIAL}/trial")
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith(f"No rules are on trial beside comparison '{TRIAL}'")
    assert http.get(f"{BASE}/nobody/trial").status_code == 404


def test_alerts_and_readiness_know_of_no_trial(service: Served, http: httpx.Client) -> None:
    service.call(lambda: service.board.lost(TRIAL, "Its matcher fell."))
    assert http.get("/readyz").status_code == 200
    assert "~trial" not in http.get("/metrics").text
    assert f'comparison="{NAME}"' in http.get("/metrics").text
    assert http.get(f"{BASE}/{NAME}/trial").json()["fresh"] is False
    assert http.get(f"{BASE}/{NAME}/trial").json()["hidden"]["count"] == 0


def test_no_event_tells_of_a_gate_or_a_new_verdict_of_a_trial(service: Served) -> None:
    mailbox = service.call(service.board.subscribe)
    service.publish(status(TRIAL, at=now()), status(NAME, at=now()))

    def taken() -> list[Any]:
        return list(mailbox._waiting.values())

    names = {(event.comparison, event.name) for event in service.call(taken)}
    judged = {"gate", "verdict", "phase"}
    assert {name for comparison, name in names if comparison == NAME} >= judged | {"status"}
    assert {name for comparison, name in names if comparison == TRIAL} & (judged | {"status"}) == {"status"}


def test_the_status_marks_a_trial_and_tells_what_it_would_change(service: Served) -> None:
    service.publish(status(at=now()))
    code, out, err = run(service, "status")
    assert (code, err) == (0, "")
    assert f"{TRIAL}: trial of {NAME}, without a gate\n" in out
    told = on_trial(out)
    assert told[0].startswith(f"on trial as {TRIAL} (order, equality): DIVERGED. ")
    assert told[1:] == ["on trial: of 2 divergences it hides 1 (1 changed); it alone reports 1 (1 changed)"]
    assert told == on_trial(run(service, "status", NAME)[1])


def on_trial(out: str) -> list[str]:
    """What is said of the rules on trial."""
    lines = (line.removeprefix(f"{NAME}: ") for line in out.splitlines() if line.startswith(f"{NAME}: "))
    return [line for line in lines if line.startswith("on trial")]


def test_its_status_divergences_and_receipt_are_told_as_those_of_any_comparison(service: Served) -> None:
    code, out, err = run(service, "status", TRIAL)
    assert (code, err, "on trial" in out, ": gate " in out) == (1, "", False, False)
    code, out, _ = run(service, "divergences", TRIAL)
    assert (code, "id c" in out, "id d" in out, "id a" in out) == (0, True, True, False)
    assert run(service, "explain", "d")[0] == 0

    code, out, err = run(service, "report", TRIAL)
    assert (code, err, "| gate |" in out) == (0, "", False)
    assert "| gate |" in run(service, "report", NAME)[1]
