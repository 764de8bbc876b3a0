"""Beginning a comparison anew over HTTP and on the command line, as far as no matcher is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.commands import twinstream
from tests.support.server import OPERATOR, Matcher, Served, served
from tests.support.statuses import NAME, expectation, now, status
from twinstream.adapters.credentials import TokenFile
from twinstream.api.state.board import Board
from twinstream.status.comparison import Reset, ResetRefused

BODY = {"reason": "1.9.1 deployed", "by": "ann"}


@pytest.fixture
def service(matcher: Matcher) -> Iterator[Served]:
    with served(Board(stale_after_seconds=60), reset=matcher) as service:
        service.publish(status(at=now()))
        yield service


def post(service: Served, body: Any = BODY, name: str = NAME, **more: Any) -> httpx.Response:
    return httpx.post(f"{service.url}/v1/comparisons/{name}/reset", json=body, trust_env=False, **more)


def run(service: Served, *arguments: str) -> tuple[int, str, str]:
    return twinstream("reset", *arguments, "--service", service.url)


def test_a_reset_is_asked_of_the_matcher_with_how_it_stood_and_its_record_is_the_answer(
    service: Served, matcher: Matcher
) -> None:
    start = {"at": "offsets", "reference": {"0": 1}, "candidate": {"0": 2}}
    response = post(service, {**BODY, "start": start})
    assert response.status_code == 200
    (asked,) = matcher.asked
    assert Reset.model_validate_json(response.content).id == asked.id
    assert (asked.by, asked.reason, asked.address) == ("ann", "1.9.1 deployed", "127.0.0.1")
    assert asked.start == start
    before = asked.before  # how it stood as it was shown
    assert before is not None
    assert (before.verdict, before.matched, before.divergences) == ("EQUIVALENT", 5000, 0)
    assert before.positions.reference == {"0": 2506, "1": 2506}


WHEN = {"at": "event_time", "field": "ts", "from": 12.5}


@pytest.mark.parametrize(
    ("given", "asked"), [(None, None), ("now", "now"), ("barrier", {"at": "barrier"}), (WHEN, WHEN)]
)
def test_a_start_is_as_in_the_comparison_file_or_now(
    service: Served, matcher: Matcher, given: Any, asked: Any
) -> None:
    assert post(service, {**BODY, "start": given}).status_code == 200
    assert matcher.asked[0].start == asked


def test_the_header_that_a_proxy_sets_wins_over_what_the_body_says(service: Served, matcher: Matcher) -> None:
    for name, sent in (("bob", b"bob"), ("Zoé", "Zoé".encode()), ("Zoé", "Zoé".encode("latin-1"))):
        assert post(service, headers={b"X-Twinstream-By": sent}).status_code == 200
        assert matcher.asked.pop().by == name


def test_the_key_of_a_request_that_may_be_repeated_is_the_id_of_its_record(
    service: Served, matcher: Matcher
) -> None:
    response = post(service, headers={"Idempotency-Key": "deploy-1_9_1"})
    assert (response.status_code, response.json()["id"]) == (200, "deploy-1_9_1")
    refused = post(service, headers={"Idempotency-Key": "a key: no"})
    told = "idempotency-key: must be 8 to 64 letters, digits, `-` or `_`."
    assert (refused.status_code, refused.json()["detail"].endswith(told)) == (422, True)
    assert [asked.id for asked in matcher.asked] == ["deploy-1_9_1"]


def _changed(changes: dict[str, Any]) -> dict[str, Any]:
    """A body with these members instead; None leaves one out."""
    return {name: value for name, value in {**BODY, **changes}.items() if value is not None}


STARTS = "'earliest', 'offsets', 'event_time', 'barrier' or 'input'"
OFFSETS = "`at: offsets` needs `reference`: partition → offset of the first record that is compared"
MEMBERS: list[tuple[dict[str, Any], str]] = [
    ({"reason": ""}, "reason: must not be empty."),
    ({"reason": " "}, "reason: must not be blank."),
    ({"reason": None}, "reason: "),
    ({"by": " "}, "by: must not be blank."),
    ({"why": "?"}, "why: "),
    ({"start": "soon"}, "start: must be 'now', 'earliest', 'barrier' or 'input'."),
    ({"start": {"at": "moon"}}, f"start.at: must be {STARTS}."),
    ({"start": {"at": "event_time"}}, "start: "),
    ({"start": {"at": "barrier", "field": "ts"}}, "start: "),
    ({"start": {"at": "offsets"}}, f"start: {OFFSETS}."),
    ({"start": {"at": "offsets", "reference": {}}}, "start.reference: must name 1 or more."),
    ({"start": {"at": "offsets", "reference": {"x": 1}}}, "start.reference.x: must be a whole number."),
    ({"by": "\ud800"}, r"by: must not have half a character, as \ud800 is."),
]
UNREADABLE = "body: must be UTF-8, and not nested so deep."
TEXTS: list[tuple[str | bytes, str]] = [
    ("{", "body at character 1: "),
    ("[]", "body: must be an object."),
    (b"\xff", UNREADABLE),
    ("[" * 30_000, UNREADABLE),
]
CANNOT = "The request is not valid: "
WRONG: list[tuple[str | bytes, str]] = [(text, CANNOT + told) for text, told in TEXTS]
WRONG += [(json.dumps(_changed(changes)), CANNOT + told) for changes, told in MEMBERS]
WRONG += [(json.dumps(_changed({"by": None})), "`by` is missing: the author of a reset is recorded.")]


@pytest.mark.parametrize(("content", "told"), WRONG)
def test_what_is_wrong_with_a_body_is_told_once_and_in_our_words(
    service: Served, matcher: Matcher, content: str | bytes, told: str
) -> None:
    sent = send(service, content, {"content-type": "application/json"})
    assert (sent.status_code, sent.headers["content-type"]) == (422, "application/problem+json")
    detail = sent.json()["detail"]
    assert detail.startswith(told)
    assert not told.endswith(".") or detail == told
    assert "function" not in detail
    assert matcher.asked == []


def send(service: Served, content: str | bytes, headers: dict[str, str]) -> httpx.Response:
    url = f"{service.url}/v1/comparisons/{NAME}/reset"
    return httpx.post(url, content=content, headers=headers, trust_env=False)


def test_only_json_is_taken(service: Served, matcher: Matcher) -> None:
    for headers in ({"content-type": "text/plain"}, {}):
        response = send(service, json.dumps(BODY), headers)
        assert response.status_code == 415
        assert "Send Content-Type: application/json" in response.json()["detail"]
    assert matcher.asked == []


def test_a_matcher_that_refuses_is_a_conflict_with_its_reason_and_nothing_else(
    service: Served, matcher: Matcher
) -> None:
    matcher.refuses = ResetRefused(id="", reason="another process owns this comparison")
    response = post(service)
    assert response.status_code == 409
    why = f"{NAME!r} was not reset, and nothing has changed: another process owns this comparison."
    assert response.json()["detail"] == why
    assert run(service, NAME, "--reason", "r") == (2, "", f"twinstream: {why}\n")


def test_what_nobody_knows_is_said_to_be_unknown(service: Served, matcher: Matcher) -> None:
    matcher.refuses = ResetRefused(id="", reason="redis is away", open=True)
    response = post(service)
    assert response.status_code == 503
    assert "`resets` in its status will tell" in response.json()["detail"]
    assert run(service, NAME, "--reason", "r")[0] == 4


def test_an_unknown_comparison_is_not_reset(service: Served, matcher: Matcher) -> None:
    assert post(service, name="nobody").status_code == 404
    assert post(service, {"why": "?"}, name="nobody").status_code == 404
    assert matcher.asked == []


def test_a_process_without_matchers_says_where_to_ask() -> None:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        assert "this process has no matchers: ask the one that has" in post(service).json()["detail"]


def test_the_command_resets_and_tells_what_it_ended(service: Served, matcher: Matcher) -> None:
    given = ("--reason", "1.9.1 deployed", "--by", "ann", "--start", "{at: barrier}")
    code, out, err = run(service, NAME, *given)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{NAME} was reset; it starts at barrier",
        "before: DIVERGED with 5,000 pairs and 3 divergences",
    ]
    assert matcher.asked[0].start == {"at": "barrier"}
    code, out, _ = run(service, NAME, "--reason", "again", "--json")
    assert (code, json.loads(out)["reason"]) == (0, "again")
    assert matcher.asked[1].by


def test_the_command_says_in_a_sentence_what_is_wrong(service: Served) -> None:
    assert run(service, NAME)[0] == 2
    for arguments, said in (
        ((NAME, "--reason", "r", "--start", "yesterday"), "start"),
        ((NAME, "--reason", "r", "--start", "{at: "), "is not YAML"),
        (("nobody", "--reason", "r"), "There is no comparison 'nobody'"),
    ):
        code, out, err = run(service, *arguments)
        assert (code, out) == (2, "")
        assert said in err


def test_where_there_are_tokens_their_holder_is_recorded_whatever_else_is_said(
    matcher: Matcher, tokens: Path, tmp_path: Path
) -> None:
    with served(Board(), reset=matcher, keys=TokenFile(str(tokens))) as service:
        service.call(lambda: service.board.expect(expectation()))
        assert post(service).status_code == 401
        for body in ({"reason": "mended"}, {"reason": "mended", "by": "ann"}):
            assert post(service, body, headers={"Authorization": f"Bearer {OPERATOR}"}).status_code == 200
        own = tmp_path / "own"
        own.write_text(OPERATOR)
        code, _, err = run(service, NAME, "--reason", "mended", "--by", "ben", "--token-file", str(own))
        assert (code, err) == (0, "")
    assert [asked.by for asked in matcher.asked] == ["anna", "anna for ann", "anna for ben"]
