"""Beginning a comparison anew over HTTP and on the command line, as far as no matcher is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.commands import twinstream
from tests.support.server import Served, served
from tests.support.statuses import NAME, expectation, reset, status
from twinstream.adapters.credentials import TokenFile
from twinstream.api.state.board import Board
from twinstream.status.comparison import Reset, ResetRefused, ResetRequest

BODY = {"reason": "1.9.1 deployed", "by": "ann"}


class Matcher:
    """Takes what is asked for, and answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[ResetRequest] = []
        self.refuses: ResetRefused | None = None

    async def __call__(self, name: str, request: ResetRequest) -> Reset | ResetRefused:
        assert name == NAME
        self.asked.append(request)
        return self.refuses or reset(request.id, by=request.by, reason=request.reason)


@pytest.fixture
def matcher() -> Matcher:
    return Matcher()


@pytest.fixture
def service(matcher: Matcher) -> Iterator[Served]:
    with served(Board(stale_after_seconds=60), reset=matcher) as service:
        service.call(lambda: service.board.expect(expectation()))
        service.publish(status(at=datetime.now(UTC)))
        yield service


def post(service: Served, body: Any = BODY, name: str = NAME, **more: Any) -> httpx.Response:
    return httpx.post(f"{service.url}/v1/comparisons/{name}/reset", json=body, trust_env=False, **more)


def run(service: Served, *arguments: str) -> tuple[int, str, str]:
    return twinstream("reset", *arguments, "--service", service.url)


def test_a_reset_is_asked_of_the_matcher_and_its_record_is_the_answer(
    service: Served, matcher: Matcher
) -> None:
    response = post(
        service, {**BODY, "start": {"at": "offsets", "reference": {"0": 1}, "candidate": {"0": 2}}}
    )
    assert response.status_code == 200
    (asked,) = matcher.asked
    assert Reset.model_validate_json(response.content).id == asked.id
    assert (asked.by, asked.reason, asked.address) == ("ann", "1.9.1 deployed", "127.0.0.1")
    assert asked.start == {"at": "offsets", "reference": {"0": 1}, "candidate": {"0": 2}}


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (None, None),
        ("now", "now"),
        ("barrier", {"at": "barrier"}),
        (
            {"at": "event_time", "field": "ts", "from": 12.5},
            {"at": "event_time", "field": "ts", "from": 12.5},
        ),
    ],
)
def test_a_start_is_as_in_the_comparison_file_or_now(
    service: Served, matcher: Matcher, given: Any, asked: Any
) -> None:
    assert post(service, {**BODY, "start": given}).status_code == 200
    assert matcher.asked[0].start == asked


def test_the_header_that_a_proxy_sets_wins_over_what_the_body_says(service: Served, matcher: Matcher) -> None:
    assert post(service, headers={"X-Twinstream-By": "bob"}).status_code == 200
    assert matcher.asked[0].by == "bob"


def test_the_key_of_a_request_that_may_be_repeated_is_the_id_of_its_record(
    service: Served, matcher: Matcher
) -> None:
    response = post(service, headers={"Idempotency-Key": "deploy-1_9_1"})
    assert (response.status_code, response.json()["id"]) == (200, "deploy-1_9_1")
    assert post(service, headers={"Idempotency-Key": "a key: no"}).status_code == 422
    assert [asked.id for asked in matcher.asked] == ["deploy-1_9_1"]


def test_how_the_comparison_stood_as_it_was_shown_goes_with_the_request(
    service: Served, matcher: Matcher
) -> None:
    assert post(service).status_code == 200
    before = matcher.asked[0].before
    assert before is not None
    assert (before.verdict, before.matched, before.divergences) == ("EQUIVALENT", 5000, 0)
    assert before.positions.reference == {"0": 2506, "1": 2506}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([], "body: must be an object"),
        ({**BODY, "reason": ""}, "reason: must not be empty"),
        ({**BODY, "reason": " "}, "reason: must not be blank"),
        ({**BODY, "by": " "}, "by: must not be blank"),
        ({**BODY, "start": "soon"}, "start: must be 'now', 'earliest', 'barrier' or 'input'"),
        (
            {**BODY, "start": {"at": "moon"}},
            "start.at: must be 'earliest', 'offsets', 'event_time', 'barrier' or 'input'",
        ),
        (
            {**BODY, "start": {"at": "offsets"}},
            "start: `at: offsets` needs `reference`: partition → offset of the first record that is compared",
        ),
    ],
)
def test_what_is_wrong_with_a_body_is_told_once_and_in_our_words(
    service: Served, matcher: Matcher, body: Any, told: str
) -> None:
    assert post(service, body).json()["detail"] == f"The request cannot be understood: {told}."
    assert matcher.asked == []


def test_a_key_or_text_that_is_none_is_told_in_our_words(service: Served) -> None:
    key = post(service, headers={"Idempotency-Key": "k"}).json()["detail"]
    assert key.endswith("idempotency-key: must be 8 to 64 letters, digits, `-` or `_`.")
    sent = httpx.post(
        f"{service.url}/v1/comparisons/{NAME}/reset",
        content="{",
        headers={"Content-Type": "application/json"},
        trust_env=False,
    )
    assert "is no JSON: " in sent.json()["detail"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"by": "ann"}, "reason"),
        ({"by": "ann", "reason": " "}, "reason"),
        ({"reason": "mended"}, "by"),
        ({**BODY, "start": "yesterday"}, "start"),
        ({**BODY, "start": {"at": "event_time"}}, "start"),
        ({**BODY, "why": "?"}, "why"),
    ],
)
def test_a_body_that_is_not_as_it_must_be_is_refused_with_the_member(
    service: Served, matcher: Matcher, body: dict[str, Any], named: str
) -> None:
    response = post(service, body)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert named in response.json()["detail"]
    assert matcher.asked == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "body at character 1: "),
        ("[]", "body: "),
        (json.dumps({**BODY, "start": {"at": "barrier", "field": "ts"}}), "start: "),
    ],
)
def test_what_is_wrong_with_a_body_is_said_in_words_of_the_body(
    service: Served, content: str, told: str
) -> None:
    url, headers = f"{service.url}/v1/comparisons/{NAME}/reset", {"content-type": "application/json"}
    detail = httpx.post(url, content=content, headers=headers, trust_env=False).json()["detail"]
    assert detail.startswith(f"The request cannot be understood: {told}")
    assert "function" not in detail


def test_only_json_is_taken(service: Served, matcher: Matcher) -> None:
    url = f"{service.url}/v1/comparisons/{NAME}/reset"
    content = json.dumps(BODY)
    for headers in ({"content-type": "text/plain"}, {}):
        response = httpx.post(url, content=content, headers=headers, trust_env=False)
        assert response.status_code == 415
        assert "must be application/json" in response.json()["detail"]
    assert matcher.asked == []


def test_a_matcher_that_refuses_is_a_conflict_with_its_reason(service: Served, matcher: Matcher) -> None:
    matcher.refuses = ResetRefused(id="", reason="another process owns this comparison")
    response = post(service)
    assert response.status_code == 409
    assert response.json()["detail"] == (
        f"{NAME!r} does not begin anew, and nothing has changed: another process owns this comparison."
    )


def test_the_command_says_why_it_is_refused_and_nothing_else(service: Served, matcher: Matcher) -> None:
    matcher.refuses = ResetRefused(id="", reason="another process owns this comparison")
    why = "does not begin anew, and nothing has changed: another process owns this comparison."
    assert run(service, NAME, "--reason", "r") == (2, "", f"Error: {NAME!r} {why}\n")


def test_what_nobody_knows_is_said_to_be_unknown(service: Served, matcher: Matcher) -> None:
    matcher.refuses = ResetRefused(id="", reason="redis is away", open=True)
    response = post(service)
    assert response.status_code == 503
    assert "`resets` in its status will tell" in response.json()["detail"]


def test_an_unknown_comparison_is_not_reset(service: Served, matcher: Matcher) -> None:
    assert post(service, name="nobody").status_code == 404
    assert post(service, {"why": "?"}, name="nobody").status_code == 404
    assert matcher.asked == []


def test_a_process_without_matchers_says_where_to_ask() -> None:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        assert "this process has no matchers: ask the one that has" in post(service).json()["detail"]


def test_the_command_resets_and_tells_what_it_ended(service: Served, matcher: Matcher) -> None:
    code, out, err = run(
        service, NAME, "--reason", "1.9.1 deployed", "--by", "ann", "--start", "{at: barrier}"
    )
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{NAME} begins anew: at barrier",
        "it was DIVERGED with 5,000 pairs and 3 divergences",
    ]
    assert matcher.asked[0].start == {"at": "barrier"}
    code, out, _ = run(service, NAME, "--reason", "again", "--json")
    assert (code, json.loads(out)["reason"]) == (0, "again")
    assert matcher.asked[1].by


def test_the_command_says_in_a_sentence_what_is_wrong(service: Served, matcher: Matcher) -> None:
    assert run(service, NAME)[0] == 2
    for arguments, said in (
        ((NAME, "--reason", "r", "--start", "yesterday"), "start"),
        ((NAME, "--reason", "r", "--start", "{at: "), "is not YAML"),
        (("nobody", "--reason", "r"), "There is no comparison 'nobody'"),
    ):
        code, out, err = run(service, *arguments)
        assert (code, out) == (2, "")
        assert said in err
    matcher.refuses = ResetRefused(id="", reason="redis is away", open=True)
    assert run(service, NAME, "--reason", "r")[0] == 4


def test_where_there_are_tokens_their_holder_is_recorded_whatever_else_is_said(
    matcher: Matcher, tmp_path: Path
) -> None:
    token, file = "operator-0123456789-0123456789", tmp_path / "tokens"
    file.write_text(f"operate ci {token}\n")
    with served(Board(), reset=matcher, keys=TokenFile(str(file))) as service:
        service.call(lambda: service.board.expect(expectation()))
        assert post(service).status_code == 401
        for body in ({"reason": "mended"}, {"reason": "mended", "by": "ann"}):
            assert post(service, body, headers={"Authorization": f"Bearer {token}"}).status_code == 200
        own = tmp_path / "own"
        own.write_text(token)
        code, _, err = run(service, NAME, "--reason", "mended", "--by", "ben", "--token-file", str(own))
        assert (code, err) == (0, "")
    assert [asked.by for asked in matcher.asked] == ["ci", "ci for ann", "ci for ben"]
