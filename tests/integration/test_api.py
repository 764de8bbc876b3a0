"""The HTTP interface over real sockets: what a release tool, a browser and a platform meet."""

from __future__ import annotations

import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import structlog

from tests.support.server import Served, served
from tests.support.statuses import NAME, diverged, divergence, expectation, status
from tests.support.waiting import eventually
from twinstream.api.state.board import Board
from twinstream.logs import configure_logging
from twinstream.status.comparison import ComparisonStatus, Health


@pytest.fixture
def service() -> Iterator[Served]:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        yield service


@pytest.fixture
def http(service: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=10, verify=False) as client:
        yield client


def now() -> datetime:
    return datetime.now(UTC)


def assert_problem(response: httpx.Response, status_code: int) -> dict[str, object]:
    """The response is an RFC 9457 problem of this status; returns its members."""
    assert response.status_code == status_code
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, object] = response.json()
    assert body["status"] == status_code
    assert {"type", "title", "detail"} <= body.keys()
    assert str(body["detail"]).endswith(".")
    return body


def test_comparisons_are_a_list_with_a_cursor(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()))
    body = http.get("/v1/comparisons").json()
    assert [item["name"] for item in body["items"]] == [NAME]
    assert body["next"] is None


def test_a_comparison_is_served_as_its_matcher_published_it(service: Served, http: httpx.Client) -> None:
    published = status(at=now())
    service.publish(published)
    assert ComparisonStatus.model_validate_json(http.get(f"/v1/comparisons/{NAME}").content) == published


def test_a_comparison_that_has_not_changed_is_not_sent_again(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()))
    etag = http.get(f"/v1/comparisons/{NAME}").headers["etag"]
    again = http.get(f"/v1/comparisons/{NAME}", headers={"If-None-Match": f'"other", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    service.publish(status(at=now() + timedelta(seconds=1)))
    assert http.get(f"/v1/comparisons/{NAME}", headers={"If-None-Match": etag}).status_code == 200


def test_an_unknown_comparison_is_a_problem_everywhere(http: httpx.Client) -> None:
    for rest in ("", "/divergences", "/divergences/d", "/progress", "/history", "/gate", "/gate/strict"):
        body = assert_problem(http.get(f"/v1/comparisons/nobody{rest}"), 404)
        assert body["detail"] == "There is no comparison 'nobody'; /v1/comparisons lists those there are."
    assert_problem(http.get("/v1/events", params={"comparison": "nobody"}), 404)


def test_a_path_or_method_that_does_not_exist_is_a_problem(http: httpx.Client) -> None:
    for path in ("/v1/nothing", "/v1/comparisons/", f"/v1/comparisons/{NAME}/", "/docs/", "/healthz/"):
        assert_problem(http.get(path), 404)
    nothing = assert_problem(http.get("/static/nothing.js"), 404)
    assert nothing["detail"] == "There is nothing at '/static/nothing.js'; /docs lists what there is."
    response = http.post("/v1/comparisons")
    assert_problem(response, 405)
    assert response.headers["allow"] == "GET, HEAD"
    for path, allowed in (
        (f"/v1/comparisons/{NAME}/gate/strict", "GET, HEAD, POST"),
        (f"/v1/comparisons/{NAME}/reset", "POST"),
        ("/static/js/main.js", "GET, HEAD"),
        ("/", "GET, HEAD"),
    ):
        response = http.put(path)
        assert_problem(response, 405)
        assert response.headers["allow"] == allowed


@pytest.mark.parametrize("query", ["kind=other", "limit=0", "limit=501", "cursor=x", "knd=missing"])
def test_a_query_that_cannot_be_understood_is_a_problem_that_names_it(http: httpx.Client, query: str) -> None:
    body = assert_problem(http.get(f"/v1/comparisons/{NAME}/divergences?{query}"), 422)
    assert query.split("=", maxsplit=1)[0] in str(body["errors"])


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("limit=0", "limit: must be 1 or more"),
        ("limit=many", "limit: must be a whole number"),
        ("knd=missing", "knd: is not known here"),
        ("late=perhaps", "late: must be true or false"),
        ("kind=other", "kind: must be 'missing', 'extra', 'changed', 'reordered' or 'duplicate'"),
        ("from=yesterday", "from: must be a time with its zone, as 2026-03-01T14:02:00Z"),
        ("from=2026-03-01T14:02:00", "from: must be a time with its zone, as 2026-03-01T14:02:00Z"),
        ("scope=taxi", "scope: must be FIELD=VALUE"),
        ("scope=taxi%3D7&scope=day", "scope: must be FIELD=VALUE"),
        ("from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "to: must be after `from`"),
        ("kind=missing&kind=extra", "kind: stands 2 times; say it once"),
    ],
)
def test_what_cannot_be_understood_is_told_in_our_words(http: httpx.Client, query: str, told: str) -> None:
    body = assert_problem(http.get(f"/v1/comparisons/{NAME}/divergences?{query}"), 422)
    assert body["detail"] == f"The request cannot be understood: {told}."


@pytest.mark.parametrize("form", ["gate", "gate/strict", "gate/rollback"])
@pytest.mark.parametrize("query", ["min_matched=100000&min_matched=0", "candidate=1.9.0&candidate="])
def test_a_scope_that_says_two_things_is_refused(http: httpx.Client, form: str, query: str) -> None:
    body = assert_problem(http.get(f"/v1/comparisons/{NAME}/{form}?{query}"), 422)
    assert "stands 2 times" in body["detail"]


def test_fields_and_scopes_may_be_named_several_times(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()))
    query = "scope=taxi%3D7&scope=day%3D1&field=fare&field=tip"
    assert http.get(f"/v1/comparisons/{NAME}/divergences?{query}").status_code == 200


def test_a_body_larger_than_anything_needs_is_a_problem_and_is_not_held(http: httpx.Client) -> None:
    for path in (f"/v1/comparisons/{NAME}/reset", "/login"):
        for content in (b" " * 70_000, iter([b" " * 40_000, b" " * 40_000])):
            headers = {"content-type": "application/json"}
            assert_problem(http.post(path, content=content, headers=headers), 413)


def test_a_failure_of_the_service_is_a_problem_that_does_not_tell_values() -> None:
    def broken() -> tuple[bytes, str]:
        raise RuntimeError("secret")

    with served(Board(), broken) as service:
        response = httpx.get(f"{service.url}/metrics")
        assert_problem(response, 500)
        assert "secret" not in response.text
        assert "content-security-policy" in response.headers


def test_divergences_are_paged_and_filtered(service: Served, http: httpx.Client) -> None:
    service.publish(*[divergence(str(number)) for number in range(3)], divergence("m", kind="missing"))
    first = http.get(f"/v1/comparisons/{NAME}/divergences?limit=2").json()
    second = http.get(f"/v1/comparisons/{NAME}/divergences?limit=2&cursor={first['next']}").json()
    assert [item["id"] for item in first["items"] + second["items"]] == ["m", "2", "1", "0"]
    assert second["next"] is None
    missing = http.get(f"/v1/comparisons/{NAME}/divergences?kind=missing").json()
    assert [item["id"] for item in missing["items"]] == ["m"]


def test_one_divergence_is_found_by_its_id(service: Served, http: httpx.Client) -> None:
    service.publish(divergence("d-1"))
    body = http.get(f"/v1/comparisons/{NAME}/divergences/d-1").json()
    assert body["fields"] == {"campaign_id": {"reference": "c-7", "candidate": "c-8"}}
    assert body["positions"]["reference"] == {"topic": "ads.reference", "partition": 1, "offset": 2504}
    assert_problem(http.get(f"/v1/comparisons/{NAME}/divergences/d-2"), 404)


def test_progress_adds_the_lags_up(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()))
    body = http.get(f"/v1/comparisons/{NAME}/progress").json()
    assert (body["sides"]["reference"]["lag"], body["sides"]["candidate"]["lag"]) == (7, 1)
    assert body["verified_up_to"]["candidate"] == {"0": 5000}


def test_history_holds_what_was_published(service: Served, http: httpx.Client) -> None:
    start = now()
    for second in range(3):
        service.publish(status(at=start + timedelta(seconds=second)), made_at=time.monotonic() - 3 + second)
    items = http.get(f"/v1/comparisons/{NAME}/history").json()["items"]
    assert [item["unmatched"] for item in items] == [{"reference": 12, "candidate": 4}] * 3


@pytest.mark.parametrize(
    ("published", "answer", "code"),
    [(status, "pass", 200), (diverged, "fail", 409), (None, "undecided", 425)],
)
def test_the_gate_answers_in_words_and_the_strict_gate_by_status_code(
    service: Served, http: httpx.Client, published: type[ComparisonStatus] | None, answer: str, code: int
) -> None:
    if published:
        service.publish(published(at=now()))
    gate = http.get(f"/v1/comparisons/{NAME}/gate")
    strict = http.get(f"/v1/comparisons/{NAME}/gate/strict")
    assert (gate.status_code, gate.json()["answer"], strict.status_code) == (200, answer, code)
    assert gate.json()[answer] is True
    assert None not in gate.json().values()
    assert strict.json()["answer"] == answer
    if code != 200:
        assert assert_problem(strict, code)["detail"] == gate.json()["reason"]


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, object]]]:
    """Name and data of each server-sent event."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def until(events: Iterator[tuple[str, dict[str, object]]], wanted: str) -> dict[str, object]:
    """The data of the next event called `wanted`."""
    return next(data for name, data in events if name == wanted)


def test_events_begin_with_the_state_and_follow_every_change(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()))
    with http.stream("GET", "/v1/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = events_of(response.iter_lines())
        assert until(events, "status")["verdict"] == "EQUIVALENT"
        assert until(events, "gate")["answer"] == "pass"
        service.publish(divergence("d-9"), diverged(at=now() + timedelta(seconds=1)))
        assert until(events, "divergence")["id"] == "d-9"
        assert until(events, "verdict")["previous"] == "EQUIVALENT"
        assert until(events, "gate")["answer"] == "fail"


def test_events_of_one_comparison_are_only_its_own(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()), status("other", at=now()))
    with http.stream("GET", "/v1/events", params={"comparison": "other"}) as response:
        events = events_of(response.iter_lines())
        assert until(events, "status")["name"] == "other"
        service.publish(diverged(at=now() + timedelta(seconds=1)))
        service.publish(diverged("other", at=now() + timedelta(seconds=1)))
        assert until(events, "verdict")["comparison"] == "other"


def test_a_lost_matcher_is_told_to_those_who_listen(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()))
    with http.stream("GET", "/v1/events") as response:
        events = events_of(response.iter_lines())
        assert until(events, "gate")["answer"] == "pass"
        service.call(lambda: service.board.lost(NAME, "its matcher exited with code 1"))
        assert "exited with code 1" in str(until(events, "gate")["reason"])


def test_a_client_that_has_gone_leaves_no_mailbox_behind(service: Served, http: httpx.Client) -> None:
    with http.stream("GET", "/v1/events") as response:
        events = events_of(response.iter_lines())
        next(events)
        assert service.call(lambda: service.board.listeners) == 1
    eventually(lambda: service.call(lambda: service.board.listeners) == 0, what="the stream has ended")


def test_a_closed_board_ends_the_streams_so_that_the_server_can_stop(
    service: Served, http: httpx.Client
) -> None:
    with http.stream("GET", "/v1/events") as response:
        events = events_of(response.iter_lines())
        next(events)
        service.call(service.board.close)
        told = [name for name, _ in events if name != "phase"]  # which a tick may bring at any time
        assert told == ["status", "gate"]


def test_the_service_is_ready_only_with_live_statuses(service: Served, http: httpx.Client) -> None:
    assert http.get("/healthz").json()["status"] == "ok"
    assert "No status yet" in str(assert_problem(http.get("/readyz"), 503)["reasons"])
    service.publish(status(at=now()))
    assert http.get("/readyz").json() == {"ready": True, "reasons": []}


def test_the_service_is_not_ready_without_kafka_and_names_it(service: Served, http: httpx.Client) -> None:
    health = Health(status="degraded", reasons=["No broker answers since 12:00."], unreachable=["kafka"])
    service.publish(status(at=now(), health=health))
    body = assert_problem(http.get("/readyz"), 503)
    assert body["reasons"] == [f"{NAME}: Kafka cannot be reached: No broker answers since 12:00."]


def test_a_silent_side_degrades_and_leaves_the_service_ready(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now(), health=Health(status="degraded", reasons=["The candidate is silent."])))
    assert http.get("/readyz").status_code == 200


def test_metrics_are_served_with_the_type_that_prometheus_asks_for() -> None:
    with served(Board(), lambda: (b"up 1\n", "text/plain; version=1.0.0; charset=utf-8")) as service:
        response = httpx.get(f"{service.url}/metrics")
        assert response.text == "up 1\n"
        assert response.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    ["/", "/docs", "/static/js/main.js", "/static/uplot/uPlot.iife.js", "/static/swagger/swagger-ui.css",
     "/favicon.ico", "/openapi.json"],
)  # fmt: skip
def test_files_of_the_page_come_from_here_and_may_load_from_here_only(http: httpx.Client, path: str) -> None:
    response = http.get(path)
    assert response.status_code == 200
    assert "default-src 'none'; script-src 'self'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("query", ["min_match=5", "min_matched=-1", "min_matched=many", "since=14:02"])
@pytest.mark.parametrize("form", ["", "/strict", "/rollback"])
def test_a_scope_that_cannot_be_understood_is_refused(http: httpx.Client, form: str, query: str) -> None:
    body = assert_problem(http.get(f"/v1/comparisons/{NAME}/gate{form}?{query}"), 422)
    assert query.split("=", maxsplit=1)[0] in str(body["errors"])


def test_a_scope_that_is_not_met_is_undecided_in_every_form(service: Served, http: httpx.Client) -> None:
    service.publish(status(at=now()))
    gate = http.get(f"/v1/comparisons/{NAME}/gate", params={"min_matched": 10**6}).json()
    assert (gate["answer"], gate["pass"], gate["scope_min_matched"]) == ("undecided", False, 10**6)
    assert http.get(f"/v1/comparisons/{NAME}/gate/strict?min_matched=1000000").status_code == 425


def test_a_pass_is_about_what_came_since_in_every_form(service: Served, http: httpx.Client) -> None:
    at = now()
    service.publish(status(at=at))
    for seconds, code in ((310, 200), (120, 425)):
        since = (at - timedelta(seconds=seconds)).isoformat()
        gate = http.get(f"/v1/comparisons/{NAME}/gate", params={"since": since}).json()
        assert (gate["pass"], gate["scope_since"]) == (code == 200, since)
        assert http.get(f"/v1/comparisons/{NAME}/gate/strict", params={"since": since}).status_code == code


def test_a_moment_without_its_zone_is_refused_with_a_sentence(http: httpx.Client) -> None:
    body = assert_problem(http.get(f"/v1/comparisons/{NAME}/gate?since=2026-03-01T14:02:00"), 422)
    assert body["detail"] == (
        "The request cannot be understood: since: '2026-03-01T14:02:00' is no time with its zone; write it "
        "like 2026-03-01T14:02:00Z."
    )


@pytest.mark.parametrize(
    ("published", "strict", "rollback"), [(status, 200, 409), (diverged, 409, 200), (None, 425, 409)]
)
def test_tools_that_can_only_send_ask_by_post_and_a_rollback_is_for_fail_alone(
    service: Served, http: httpx.Client, published: type[ComparisonStatus] | None, strict: int, rollback: int
) -> None:
    if published:
        service.publish(published(at=now()))
    body = {"name": "ads", "namespace": "prod", "phase": "Progressing", "metadata": {"a": "b"}}
    for form, code in (("strict", strict), ("rollback", rollback)):
        path = f"/v1/comparisons/{NAME}/gate/{form}"
        assert [http.get(path).status_code, http.post(path, json=body).status_code] == [code, code]


def test_a_failure_is_a_problem_for_whoever_asked_and_a_line_of_json_in_the_log(
    service: Served, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise ValueError("ann" + "@example.com")

    def failures() -> list[dict[str, str]]:
        every: list[dict[str, str]] = list(map(json.loads, lines.getvalue().splitlines()))
        return [line for line in every if line["level"] == "error"]

    lines, handlers = io.StringIO(), logging.getLogger().handlers
    monkeypatch.setattr(sys, "stderr", lines)
    monkeypatch.setattr(service.board, "bodies", fails)
    configure_logging()
    try:
        body = assert_problem(http.get("/v1/comparisons"), 500)
        (line,) = eventually(failures, what="it is logged, which may be after the answer")
    finally:
        logging.getLogger().handlers = handlers
        structlog.reset_defaults()
    assert body["detail"] == "The service failed to answer this request; its log says why."
    assert (line["level"], line["event"]) == ("error", "Exception in ASGI application")
    assert "in fails" in line["exception"]
    assert line["exception"].endswith("ValueError")
    assert "ann@" not in lines.getvalue()
