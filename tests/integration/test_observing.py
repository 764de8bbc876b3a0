"""A reset that is asked for at a process without matchers, on real Redis: whatever its owner does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.support.stack import Closing
from tests.support.statuses import NAME, Clocks, reset, status
from tests.support.waiting import eventually
from tests.support.workers import SPEC
from twinstream import observing
from twinstream.adapters.redis.requests import RedisRequests
from twinstream.adapters.redis.store import RedisStore
from twinstream.api.state.board import Board
from twinstream.observing import Observers
from twinstream.processes.reset_requests import UNDER_WAY
from twinstream.settings import Settings
from twinstream.spec.load import loads
from twinstream.status.comparison import Reset, ResetRefused, ResetRequest

pytestmark = pytest.mark.requires_redis

REQUEST = ResetRequest(id="one", by="ann", reason="mended", address="here")


@pytest.fixture
def requests(redis_url: str, closing: Closing) -> RedisRequests:
    return closing(RedisRequests(redis_url, NAME))


@pytest.fixture
def owner(redis_url: str, closing: Closing) -> None:
    assert closing(RedisStore(redis_url, NAME, "owner")).acquire()


Ask = Callable[..., Reset | ResetRefused]


@pytest.fixture
def ask(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Asks for a reset where an owner is heard, and waits a second for it; something may happen meanwhile."""
    monkeypatch.setattr(observing, "ANSWER_SECONDS", 1.0)

    def asked(meanwhile: Callable[[], object] = lambda: None, *, shards: int = 1) -> Reset | ResetRefused:
        clocks = Clocks()
        board = Board(monotonic=clocks.monotonic, now=clocks.now)
        board.accept(status())
        spec = loads(SPEC.replace("name: test", f"name: {NAME}"))
        assert spec.name == NAME

        async def run() -> Reset | ResetRefused:
            observers = Observers(Settings(redis=redis_url, shards=shards), [spec], board)
            try:
                answer, _ = await asyncio.gather(observers.reset(NAME, REQUEST), asyncio.to_thread(meanwhile))
            finally:
                await observers.stop()
            return answer

        return asyncio.run(run())

    return asked


def take(requests: RedisRequests) -> ResetRequest:
    """The request that is left, as its owner takes it."""
    text = eventually(lambda: requests.take("owner"), what="a request")
    return ResetRequest.model_validate_json(text)


def answers(requests: RedisRequests, answer: Reset | ResetRefused) -> Callable[[], None]:
    """The owner takes the request, and answers so."""

    def meanwhile() -> None:
        assert take(requests) == REQUEST
        requests.answer("one", answer.model_dump_json().encode())

    return meanwhile


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("answer", [ResetRefused(id="one", reason="no safe start"), reset()])
def test_what_its_owner_answers_is_what_the_asker_hears(
    ask: Ask, requests: RedisRequests, answer: Reset | ResetRefused
) -> None:
    assert ask(answers(requests, answer)) == answer


def test_what_nobody_takes_is_taken_back_and_nothing_has_changed(ask: Ask, requests: RedisRequests) -> None:
    assert ask() == ResetRefused(id="one", reason="its matcher has not taken it up for 1 s")
    assert requests.put(b"another"), "none is left"


@pytest.mark.usefixtures("owner")
def test_what_is_taken_and_not_answered_is_open(ask: Ask, requests: RedisRequests) -> None:
    answer = ask(lambda: take(requests))
    assert answer == ResetRefused(id="one", reason="its matcher has not answered for 1 s", open=True)


def test_while_one_is_under_way_another_is_refused(ask: Ask, requests: RedisRequests) -> None:
    assert requests.put(b"another")
    assert ask() == ResetRefused(id="one", reason=UNDER_WAY)


def test_several_shards_are_asked_where_the_first_of_them_is_owned(
    ask: Ask, redis_url: str, closing: Closing
) -> None:
    assert closing(RedisStore(redis_url, f"{NAME}.of-2.0", "owner")).acquire()
    requests = closing(RedisRequests(redis_url, f"{NAME}.of-2.0"))
    assert ask(answers(requests, reset()), shards=2) == reset()


def test_where_matchers_share_it_by_another_number_it_is_refused(ask: Ask, requests: RedisRequests) -> None:
    refused = ask(shards=2)
    assert isinstance(refused, ResetRefused)
    assert not refused.open, "nobody has taken it"
    assert requests.put(b"another"), "nothing was left"
