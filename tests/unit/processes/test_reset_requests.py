"""What is asked for elsewhere reaches a matcher once, and what came of it those who asked."""

from __future__ import annotations

from collections import deque

from twinstream.adapters.memory import ManualClock, MemoryPublisher
from twinstream.processes.reset_requests import ANSWER, TAKE_SECONDS, UNDER_WAY, RemoteRequests
from twinstream.status.comparison import Publication, ResetRefused, ResetRequest


class Pipe(MemoryPublisher):
    """The matcher's side of a pipe."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: deque[ResetRequest] = deque()

    def asked(self) -> ResetRequest | None:
        return self.waiting.popleft() if self.waiting else None


class Left:
    """Requests that were left, and what was answered."""

    def __init__(self) -> None:
        self.request: bytes | None = None
        self.answers: dict[str, bytes] = {}
        self.looks = 0

    def take(self, token: str) -> bytes | None:
        assert token == "owner"
        self.looks += 1
        request, self.request = self.request, None
        return request

    def answer(self, identifier: str, text: bytes) -> None:
        self.answers[identifier] = text


def request(identifier: str) -> ResetRequest:
    return ResetRequest(id=identifier, by="me", reason="a test", address="here")


class Matcher:
    """A matcher's view of it."""

    def __init__(self) -> None:
        self.pipe, self.left, self.clock = Pipe(), Left(), ManualClock()
        self.requests = RemoteRequests(self.pipe, self.left, "owner", self.clock)

    def leave(self, identifier: str) -> None:
        self.left.request = request(identifier).model_dump_json().encode()

    def asked(self) -> str | None:
        self.clock.advance(TAKE_SECONDS)
        asked = self.requests.asked()
        return None if asked is None else asked.id

    def refuse(self, identifier: str) -> Publication:
        refused = ResetRefused(id=identifier, reason="not now")
        self.requests.publish(refused)
        return refused


def test_what_is_left_is_taken_once_and_answered_to_both() -> None:
    matcher = Matcher()
    matcher.leave("far")
    assert (matcher.asked(), matcher.asked()) == ("far", None)
    refused = matcher.refuse("far")
    assert matcher.pipe.published == [refused]
    assert ANSWER.validate_json(matcher.left.answers["far"]) == refused


def test_what_the_own_service_asks_is_answered_to_it_alone() -> None:
    matcher = Matcher()
    matcher.pipe.waiting.append(request("near"))
    assert matcher.asked() == "near"
    refused = matcher.refuse("near")
    assert matcher.pipe.published == [refused]
    assert matcher.left.answers == {}


def test_while_one_is_under_way_another_waits_where_it_was_left() -> None:
    matcher = Matcher()
    matcher.pipe.waiting.append(request("near"))
    assert matcher.asked() == "near"
    matcher.leave("far")
    assert matcher.asked() is None
    assert matcher.left.request is not None
    matcher.refuse("near")
    assert matcher.asked() == "far"


def test_while_one_from_elsewhere_is_under_way_the_own_service_is_told_so() -> None:
    matcher = Matcher()
    matcher.leave("far")
    assert matcher.asked() == "far"
    matcher.pipe.waiting.append(request("near"))
    assert matcher.asked() is None
    assert matcher.pipe.published == [ResetRefused(id="near", reason=UNDER_WAY)]
    matcher.refuse("far")
    assert set(matcher.left.answers) == {"far"}


def test_the_store_is_looked_at_once_a_second() -> None:
    matcher = Matcher()
    for _ in range(10):
        matcher.requests.asked()
    assert matcher.left.looks == 1
    assert matcher.asked() is None
    assert matcher.left.looks == 2


def test_what_is_no_request_of_this_version_is_left_aside() -> None:
    matcher = Matcher()
    matcher.left.request = b'{"id": 1}'
    assert matcher.asked() is None
    matcher.leave("far")
    assert matcher.asked() == "far"
