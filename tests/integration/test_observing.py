"""A reset that is passed on through real Redis: whatever its owner does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
import redis

from tests.support.statuses import NAME, Clocks, reset, status
from tests.support.waiting import eventually
from twinstream import observing
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.api.state.board import Board
from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.matcher.worker import STANDBY
from twinstream.observing import LOOK_SECONDS, NOT_RUNNING, UNDER_WAY, Resets
from twinstream.ports import Asked, StatusRelay
from twinstream.processes.remote_status import UNHEARD
from twinstream.processes.standby import Bulletin
from twinstream.settings import Settings
from twinstream.status.comparison import Reset, ResetRefused, ResetRequest

pytestmark = pytest.mark.requires_redis

REQUEST = ResetRequest(id="one", by="ann", reason="mended", address="here")


@pytest.fixture
def shelf(redis_url: str) -> Iterator[RedisShelf]:
    shelf = RedisShelf(redis_url, NAME, "owner")
    yield shelf
    shelf.close()


@pytest.fixture
def other(redis_url: str) -> Iterator[StatusRelay]:
    """The relay of another process that asks."""
    relay = RedisShelf(redis_url, NAME, "other").relay(WHOLE)
    yield relay
    relay.close()


def owning(shelf: RedisShelf, shard: Shard) -> Iterator[StatusRelay]:
    """The relay of the owner."""
    store, relay = shelf.store(shard), shelf.relay(shard)
    assert store.acquire()
    yield relay
    store.release()
    for opened in (store, relay):
        opened.close()


@pytest.fixture
def owner(shelf: RedisShelf) -> Iterator[StatusRelay]:
    yield from owning(shelf, WHOLE)


@pytest.fixture
def first_of_two(shelf: RedisShelf) -> Iterator[StatusRelay]:
    yield from owning(shelf, Shard(0, 2))


def heard() -> Board:
    """A board that hears the owner."""
    board = Clocks().board()
    board.accept(status())
    return board


Ask = Callable[..., Reset | ResetRefused]


@pytest.fixture
def ask(redis_url: str) -> Ask:
    """Asks for a reset, and waits for it; something may happen meanwhile."""

    def asked(
        meanwhile: Callable[[], object] = lambda: None, *, shards: int = 1, board: Board | None = None
    ) -> Reset | ResetRefused:
        async def run() -> Reset | ResetRefused:
            resets = Resets(Settings(redis=redis_url, shards=shards), board or heard())
            answer, _ = await asyncio.gather(resets.reset(NAME, REQUEST), asyncio.to_thread(meanwhile))
            return answer

        return asyncio.run(run())

    return asked


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks waits for a second only."""
    monkeypatch.setattr(observing, "ANSWER_SECONDS", 1.0)


def take(owner: StatusRelay) -> Asked:
    """The request that is left, as its owner takes it."""
    return eventually(owner.take, what="a request")


def test_what_its_owner_answers_is_what_the_asker_hears(ask: Ask, owner: StatusRelay) -> None:
    refused = ResetRefused(id="one", reason="no safe start")

    def meanwhile() -> None:
        asked = take(owner)
        assert ResetRequest.model_validate_json(asked.request) == REQUEST
        owner.answer(asked.ticket, refused.model_dump_json().encode())

    assert ask(meanwhile) == refused


def test_a_reset_that_took_effect_is_told_with_its_record_and_the_old_status_counts_no_more(
    ask: Ask, owner: StatusRelay
) -> None:
    made, board = reset(), heard()
    assert board.view(NAME).gate.answer == "pass"
    assert ask(lambda: owner.answer(take(owner).ticket, made.model_dump_json().encode()), board=board) == made
    assert board.view(NAME).gate.answer == "undecided"


@pytest.mark.parametrize(("others", "waits"), [(True, [5.0]), (False, [])])
def test_a_reset_is_told_once_no_other_process_can_show_an_earlier_pass(
    ask: Ask,
    owner: StatusRelay,
    other: StatusRelay,
    monkeypatch: pytest.MonkeyPatch,
    others: bool,
    waits: list[float],
) -> None:
    waited, sleep = [], asyncio.sleep

    async def noted(seconds: float) -> None:
        waited.append(seconds)
        await sleep(min(seconds, LOOK_SECONDS))

    monkeypatch.setattr("twinstream.observing.asyncio.sleep", noted)
    if others:
        other.heard()
    assert ask(lambda: owner.answer(take(owner).ticket, reset().model_dump_json().encode())) == reset()
    assert [seconds for seconds in waited if seconds != LOOK_SECONDS] == waits


@pytest.mark.usefixtures("impatient")
def test_what_nobody_takes_is_taken_back_and_nothing_has_changed(ask: Ask, other: StatusRelay) -> None:
    assert ask() == ResetRefused(id="one", reason="its matcher has not taken it up for 1 s")
    assert other.ask(b"another").request == b"another", "none is left"


@pytest.mark.usefixtures("impatient")
def test_what_is_taken_and_not_answered_is_open(ask: Ask, owner: StatusRelay) -> None:
    answer = ask(lambda: take(owner))
    assert answer == ResetRefused(id="one", reason="its matcher has not answered for 1 s", open=True)


def test_while_one_is_under_way_another_is_refused(ask: Ask, other: StatusRelay) -> None:
    other.ask(b"another")
    assert ask() == ResetRefused(id="one", reason=UNDER_WAY)


def leave(other: StatusRelay) -> Asked:
    """The same request, left before by who has then seen another state of the comparison."""
    earlier = REQUEST.model_copy(update={"address": "there"})
    return other.ask(earlier.model_dump_json().encode())


def test_who_asks_again_while_the_request_waits_hears_its_answer(
    ask: Ask, owner: StatusRelay, other: StatusRelay, redis_url: str
) -> None:
    made, asked, key = reset(), leave(other), f"twinstream:{{{NAME}}}:request"
    client = redis.Redis.from_url(redis_url)
    client.persist(key)

    def meanwhile() -> None:
        eventually(lambda: client.ttl(key) > 0, what="who looks for its outcome prolongs it")
        assert take(owner) == asked
        owner.answer(asked.ticket, made.model_dump_json().encode())

    assert ask(meanwhile) == made
    assert owner.take() is None, "it was asked once"
    client.close()


@pytest.mark.usefixtures("impatient")
def test_what_is_taken_back_is_taken_back_for_all_who_asked(ask: Ask, other: StatusRelay) -> None:
    asked, refused = leave(other), ask()
    assert refused == ResetRefused(id="one", reason="its matcher has not taken it up for 1 s")
    assert other.answered(asked.ticket) == refused.model_dump_json().encode()


def test_several_shards_are_asked_where_the_first_of_them_is_owned(
    ask: Ask, first_of_two: StatusRelay
) -> None:
    made = reset()

    def meanwhile() -> None:
        first_of_two.answer(take(first_of_two).ticket, made.model_dump_json().encode())

    assert ask(meanwhile, shards=2) == made


@pytest.mark.usefixtures("impatient")
def test_where_matchers_share_it_by_another_number_it_is_refused(ask: Ask, owner: StatusRelay) -> None:
    refused = ask(shards=2)
    assert isinstance(refused, ResetRefused)
    assert not refused.open, "nobody has taken it"
    assert owner.take() is None, "nothing was left"


def test_where_redis_is_away_nobody_knows_and_one_sentence_says_so() -> None:
    resets = Resets(Settings(redis="redis://127.0.0.1:1"), heard())
    answer = asyncio.run(resets.reset(NAME, REQUEST))
    assert isinstance(answer, ResetRefused)
    assert (answer.open, answer.reason.startswith("redis at 127.0.0.1:1 cannot be used")) == (True, True)


@pytest.mark.parametrize(("mark", "why"), [(Board.lost, NOT_RUNNING), (Board.unheard, UNHEARD)])
def test_where_no_owner_is_there_it_is_refused_and_nothing_is_left(
    ask: Ask, other: StatusRelay, mark: Callable[..., None], why: str
) -> None:
    board = heard()
    mark(board, NAME, "it is not there")
    assert ask(board=board) == ResetRefused(id="one", reason=why)
    assert other.ask(b"another").request == b"another", "none is left"


def test_a_standby_refuses_and_names_the_owner(ask: Ask, owner: StatusRelay) -> None:
    said, board = status(), heard()
    health = said.health.model_copy(update={"standby": True})
    later = said.updated_at.replace(year=2027)
    board.accept(said.model_copy(update={"health": health, "updated_at": later}))
    assert ask(board=board) == ResetRefused(id="one", reason=STANDBY)
    told = Bulletin.of(said, (), (), stamp=1.0, number=1.0, owner="host-0 (:8080)")
    owner.tell(told.model_dump_json().encode())
    assert ask(board=board) == ResetRefused(id="one", reason=f"{STANDBY}: ask the owner, on host-0 (:8080)")
    assert owner.take() is None
