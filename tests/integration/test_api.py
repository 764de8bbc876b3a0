"""The HTTP interface over real sockets: what a release tool, a browser and a platform meet."""

from __future__ import annotations

import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import structlog

from tests.support.server import Served, served
from tests.support.statuses import NAME, diverged, divergence, expectation, later, now, status
from tests.support.waiting import eventually
from twinstream.api.routes.declared import KafkaLinks
from twinstream.api.state.board import Board
from twinstream.logs import configure_logging
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.comparison import ComparisonStatus, Health
from twinstream.status.groups import Group

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
BASE = f"/v1/comparisons/{NAME}"


@pytest.fixture
def silent() -> Iterator[Served]:
    """A service whose comparison has said nothing yet."""
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        yield service


def assert_problem(response: httpx.Response, status_code: int) -> dict[str, object]:
    """The response is an RFC 9457 problem of this status; returns its members."""
    assert response.status_code == status_code
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, object] = response.json()
    assert body["status"] == status_code
    assert {"type", "title", "detail"} <= body.keys()
    assert str(body["detail"]).endswith(".")
    return body


def test_comparisons_are_a_list_with_a_cursor(http: httpx.Client) -> None:
    body = http.get("/v1/comparisons").json()
    assert ([item["name"] for item in body["items"]], body["next"]) == ([NAME], None)


def test_a_comparison_is_served_as_its_matcher_published_it_and_only_when_it_has_changed(
    service: Served, http: httpx.Client
) -> None:
    published = status(at=now())
    service.publish(published)
    first = http.get(BASE)
    assert ComparisonStatus.model_validate_json(first.content) == published
    etag = first.headers["etag"]
    again = http.get(BASE, headers={"If-None-Match": f'"other", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    service.publish(status(at=later(1)))
    assert http.get(BASE, headers={"If-None-Match": etag}).status_code == 200


FILE = f"""# Ünder review
version: 1
name: {NAME}
reference: {{topic: a}}
candidate: {{topic: b}}
decode: {{format: avro, registry: "https://me:p@ss@registry:8081/x"}}
order: unordered
"""


def test_the_file_is_served_as_it_is_written_but_for_logins(silent: Served) -> None:
    name = "declared"
    declared = expectation(name, file=ComparisonFile(loads(FILE), FILE))
    silent.call(lambda: silent.board.expect(declared))
    with httpx.Client(base_url=f"{silent.url}/v1/comparisons", trust_env=False) as http:
        answer = http.get(f"/{name}/file")
        assert answer.content.decode() == FILE.replace("me:p@ss", "…")
        assert answer.headers["content-type"] == "text/yaml; charset=utf-8"
        etag = {"If-None-Match": answer.headers["etag"]}
        assert http.get(f"/{name}/file", headers=etag).status_code == 304
        none = assert_problem(http.get(f"/{NAME}/file"), 404)
        assert none["detail"] == f"Comparison {NAME!r} was not read from a file."


def test_drafts_hide_a_group_and_a_command_tries_them() -> None:
    text = FILE.replace("decode", "identity: [id]\ndecode")
    groups = [Group(id="g1", kind="changed", fields=["fare"], kinds={"event": 3}, count=3)]
    board, links = Board(stale_after_seconds=60), KafkaLinks(brokers="kafka-1:9092", record_url=None)
    with served(board, kafka=links) as service:
        declared = expectation(file=ComparisonFile(loads(text), text))
        service.call(lambda: board.expect(declared))
        service.publish(status(at=now(), groups=groups))
        with httpx.Client(base_url=f"{service.url}{BASE}/groups", trust_env=False) as http:
            answer = http.get("/g1/drafts").json()
            unknown = assert_problem(http.get("/g2/drafts"), 404)
    assert answer["next"] is None
    assert [draft["change"] for draft in answer["items"]] == ["ignore", "known_difference"]
    assert {draft["command"] for draft in answer["items"]} == {
        f"twinstream replay --spec changed.yaml --name {NAME} --brokers kafka-1:9092"
    }
    assert answer["items"][0]["yaml"] == "equality:\n  ignore: [fare]\n"
    assert unknown["detail"] == f"Comparison {NAME!r} has no group 'g2'; available: g1."


def test_the_service_tells_where_kafka_is() -> None:
    url = "https://ui/{topic}/{partition}/{offset}"
    with served(Board(), kafka=KafkaLinks(brokers="kafka-1:9092", record_url=url)) as service:
        told = httpx.get(f"{service.url}/v1/service", trust_env=False).json()
        version = httpx.get(f"{service.url}/healthz", trust_env=False).json()["version"]
    assert told == {"version": version, "brokers": "kafka-1:9092", "record_url": url}


def test_an_unknown_comparison_is_a_problem_everywhere(http: httpx.Client) -> None:
    for rest in ("", "/divergences", "/divergences/d", "/progress", "/file", "/gate", "/gate/strict"):
        body = assert_problem(http.get(f"/v1/comparisons/nobody{rest}"), 404)
        assert body["detail"] == f"There is no comparison 'nobody'; available: {NAME}."
    assert_problem(http.get("/v1/events", params={"comparison": "nobody"}), 404)


def test_a_path_or_method_that_does_not_exist_is_a_problem(http: httpx.Client) -> None:
    for path in (
        "/v1/nothing",
        "/v1/comparisons/",
        f"{BASE}/",
        "/docs/",
        "/healthz/",
        f"{BASE}/divergences/d",
    ):
        assert_problem(http.get(path), 404)
    nothing = assert_problem(http.get("/static/nothing.js"), 404)
    assert nothing["detail"] == "No route '/static/nothing.js'; /docs lists all routes."
    for method, path, allowed in (
        ("POST", "/v1/comparisons", "GET, HEAD"),
        ("PUT", f"{BASE}/gate/strict", "GET, HEAD, POST"),
        ("PUT", f"{BASE}/reset", "POST"),
        ("PUT", "/static/js/main.js", "GET, HEAD"),
        ("PUT", "/", "GET, HEAD"),
    ):
        response = http.request(method, path)
        assert_problem(response, 405)
        assert response.headers["allow"] == allowed


ZONED = "must be a time with a zone, like 2026-03-01T14:02:00Z"
TWICE = "stands 2 times; give it once"
MISUNDERSTOOD = [
    ("divergences?limit=0", "limit: must be 1 or more"),
    ("divergences?limit=501", "limit: "),
    ("divergences?limit=many", "limit: must be a whole number"),
    ("divergences?cursor=x", "cursor: must be the `next` of the page before"),
    ("divergences?cursor=10000", "cursor: "),
    ("divergences?knd=missing", "knd: is unknown"),
    ("divergences?late=perhaps", "late: must be true or false"),
    ("divergences?kind=other", "kind: must be 'missing', 'extra', 'changed', 'reordered' or 'duplicate'"),
    ("divergences?from=yesterday", f"from: {ZONED}"),
    ("divergences?from=2026-03-01T14:02:00", f"from: {ZONED}"),
    ("divergences?from=1772373720", f"from: {ZONED}"),
    ("divergences.ndjson?to=5.5", f"to: {ZONED}"),
    ("divergences?scope=taxi", "scope: must be FIELD=VALUE"),
    ("divergences?scope=taxi%3D7&scope=day", "scope: must be FIELD=VALUE"),
    ("divergences?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "to: must be after `from`"),
    ("divergences?kind=missing&kind=extra", f"kind: {TWICE}"),
    ("divergences.ndjson?limit=3", "limit: "),
    ("unmatched?side=left", "side: "),
    ("unmatched?cursor=7", "cursor: "),
    (f"unmatched?cursor=2026-03-01T14:02:00.000Z/reference/{'1' * 5000}/1", "cursor: "),
    ("unmatched?cursor=-1/reference/1/1", "cursor: "),
    ("unmatched?cursor=2026-03-01T14:02:00.000Z/reference/%D9%A1/1", "cursor: "),
    ("unmatched?limit=0", "limit: "),
    ("gate?since=14:02", "since: '14:02' is not a time with a zone; write it like 2026-03-01T14:02:00Z"),
    ("gate?since=2026-03-01T14:02:00", "since: '2026-03-01T14:02:00' is not a time with a zone; "),
    *((f"{gate}?{query}", told) for gate in ("gate", "gate/strict", "gate/rollback") for query, told in (
        ("min_match=5", "min_match: "),
        ("min_matched=-1", "min_matched: "),
        (f"min_matched=1{'0' * 400}", "min_matched: "),
        ("min_matched=many", "min_matched: "),
        ("since=14:02", "since: "),
        ("min_matched=100000&min_matched=0", f"min_matched: {TWICE}"),
        ("candidate=1.9.0&candidate=", f"candidate: {TWICE}"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("path", "told"), MISUNDERSTOOD)
def test_a_query_that_cannot_be_understood_is_a_problem_that_names_it_in_our_words(
    http: httpx.Client, path: str, told: str
) -> None:
    body = assert_problem(http.get(f"{BASE}/{path}"), 422)
    detail = str(body["detail"])
    assert detail.startswith(f"The request is not valid: {told}")
    assert told.endswith(" ") or detail == f"The request is not valid: {told}."
    assert told.partition(":")[0] in str(body["errors"])


def test_the_example_of_a_problem_in_the_reference_is_what_is_answered(http: httpx.Client) -> None:
    example = REFERENCE.read_text().split("divergences?limit=x")[1].split("```json\n")[1].split("```")[0]
    assert http.get(f"{BASE}/divergences?limit=x").json() == json.loads(example)


def test_a_body_larger_than_anything_needs_is_a_problem_and_is_not_held(http: httpx.Client) -> None:
    for path in (f"{BASE}/reset", "/login"):
        for content in (b" " * 70_000, iter([b" " * 40_000, b" " * 40_000])):
            headers = {"content-type": "application/json"}
            assert_problem(http.post(path, content=content, headers=headers), 413)


def test_one_divergence_is_found_by_its_id(service: Served, http: httpx.Client) -> None:
    service.publish(divergence("d-1"))
    body = http.get(f"{BASE}/divergences/d-1").json()
    assert body["fields"] == {"campaign_id": {"reference": "c-7", "candidate": "c-8"}}
    assert body["positions"]["reference"] == {"topic": "ads.reference", "partition": 1, "offset": 2504}


def test_progress_adds_the_lags_up(http: httpx.Client) -> None:
    body = http.get(f"{BASE}/progress").json()
    assert (body["sides"]["reference"]["lag"], body["sides"]["candidate"]["lag"]) == (7, 1)
    assert body["verified_up_to"]["candidate"] == {"0": 5000}


def test_history_holds_what_was_published(silent: Served) -> None:
    start = now()
    for second in range(3):
        silent.publish(status(at=start + timedelta(seconds=second)), made_at=time.monotonic() - 3 + second)
    items = httpx.get(f"{silent.url}{BASE}/history").json()["items"]
    assert [item["unmatched"] for item in items] == [{"reference": 12, "candidate": 4}] * 3


@pytest.mark.parametrize(
    ("published", "answer", "strict", "rollback"),
    [(status, "pass", 200, 409), (diverged, "fail", 409, 200), (None, "undecided", 425, 409)],
)
def test_the_gate_answers_in_words_and_by_status_code_to_get_and_post_and_a_rollback_is_for_fail_alone(
    silent: Served, published: type[ComparisonStatus] | None, answer: str, strict: int, rollback: int
) -> None:
    if published:
        silent.publish(published(at=now()))
    sent = {"name": "ads", "namespace": "prod", "phase": "Progressing", "metadata": {"a": "b"}}
    with httpx.Client(base_url=silent.url) as http:
        gate = http.get(f"{BASE}/gate")
        assert (gate.status_code, gate.json()["answer"], gate.json()[answer]) == (200, answer, True)
        assert None not in gate.json().values()
        for form, code in (("strict", strict), ("rollback", rollback)):
            path = f"{BASE}/gate/{form}"
            got = http.get(path)
            assert (got.status_code, http.post(path, json=sent).status_code) == (code, code)
            if form == "strict":
                assert got.json()["answer"] == answer
                assert code == 200 or assert_problem(got, code)["detail"] == gate.json()["reason"]


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


def test_events_begin_with_the_state_and_follow_every_change_and_a_lost_matcher(
    service: Served, http: httpx.Client
) -> None:
    with http.stream("GET", "/v1/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = events_of(response.iter_lines())
        assert until(events, "status")["verdict"] == "EQUIVALENT"
        assert until(events, "gate")["answer"] == "pass"
        service.publish(divergence("d-9"), diverged(at=later(1)))
        assert until(events, "divergence")["id"] == "d-9"
        assert until(events, "verdict")["previous"] == "EQUIVALENT"
        assert until(events, "gate")["answer"] == "fail"
        service.call(lambda: service.board.lost(NAME, "its matcher exited with code 1"))
        assert "exited with code 1" in str(until(events, "gate")["reason"])


def test_events_of_one_comparison_are_only_its_own(service: Served, http: httpx.Client) -> None:
    service.publish(status("other", at=now()))
    with http.stream("GET", "/v1/events", params={"comparison": "other"}) as response:
        events = events_of(response.iter_lines())
        assert until(events, "status")["name"] == "other"
        service.publish(diverged(at=later(1)), diverged("other", at=later(1)))
        assert until(events, "verdict")["comparison"] == "other"


def test_a_client_that_has_gone_leaves_no_mailbox_behind(service: Served, http: httpx.Client) -> None:
    with http.stream("GET", "/v1/events") as response:
        events = events_of(response.iter_lines())
        next(events)  # and the client reads on: a generator that nobody holds ends, and closes the connection
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


def test_the_service_is_ready_with_live_statuses_while_kafka_is_there_also_where_a_side_is_silent(
    silent: Served,
) -> None:
    with httpx.Client(base_url=silent.url) as http:
        assert http.get("/healthz").json()["status"] == "ok"
        assert "No status yet" in str(assert_problem(http.get("/readyz"), 503)["reasons"])
        silent.publish(status(at=now()))
        assert http.get("/readyz").json() == {"ready": True, "reasons": []}
        gone = Health(status="degraded", reasons=["No broker answers since 12:00"], unreachable=["kafka"])
        silent.publish(status(at=now(), health=gone))
        problem = assert_problem(http.get("/readyz"), 503)
        assert problem["reasons"] == [f"{NAME}: Kafka cannot be used: No broker answers since 12:00"]
        assert problem["detail"] == f"{NAME}: Kafka cannot be used: No broker answers since 12:00."
        degraded = Health(status="degraded", reasons=["The candidate is silent."])
        silent.publish(status(at=now(), health=degraded))
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


def test_a_scope_that_is_not_met_is_undecided_in_every_form(service: Served, http: httpx.Client) -> None:
    at = now().replace(microsecond=0)  # Intervals of evidence begin with a second.
    service.publish(status(at=at))
    since = {seconds: (at - timedelta(seconds=seconds)).isoformat() for seconds in (310, 120)}
    for scope, code in (
        ({"min_matched": 10**6}, 425),
        ({"since": since[310]}, 200),
        ({"since": since[120]}, 425),
    ):
        gate = http.get(f"{BASE}/gate", params=scope).json()
        assert (gate["pass"], gate["undecided"]) == (code == 200, code == 425)
        assert {f"scope_{name}": value for name, value in scope.items()}.items() <= gate.items()
        assert http.get(f"{BASE}/gate/strict", params=scope).status_code == code


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
        response = http.get("/v1/comparisons")
        body = assert_problem(response, 500)
        (line,) = eventually(failures, what="it is logged, which may be after the answer")
    finally:
        logging.getLogger().handlers = handlers
        structlog.reset_defaults()
    assert body["detail"] == "The service failed to answer this request; its log says why."
    assert "ann@" not in response.text
    assert "content-security-policy" in response.headers
    assert (line["level"], line["event"]) == ("error", "Exception in ASGI application")
    assert "in fails" in line["exception"]
    assert line["exception"].endswith("ValueError")
    assert "ann@" not in lines.getvalue()
