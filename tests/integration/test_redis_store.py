"""What the store of checkpoints does with a real Redis: cut off, paused, emptied, full, or not to be used."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import AskError, MovedError, TryAgainError

from deploy.embedded.processes import free_port
from deploy.embedded.redis_server import RedisServer
from tests.support.stack import Closing
from tests.support.waiting import eventually
from twinstream.adapters.redis import connection as redis_connection
from twinstream.adapters.redis import store as adapter
from twinstream.adapters.redis.connection import REDIRECTS, RedisConnection
from twinstream.adapters.redis.errors import sentence
from twinstream.adapters.redis.relay import ANSWER_MS, BULLETIN_MS, PAUSE_SECONDS, REQUEST_MS, RedisRelay
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.adapters.redis.store import RedisStore
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.errors import CheckpointError, Fenced, Outdated, StoreError
from twinstream.ports import EMPTY, Checkpoint, Stored

pytestmark = pytest.mark.requires_redis

NAME = "comparison"
MANIFEST = f"twinstream:{{{NAME}}}:checkpoint"
UNREADABLE = "holds a checkpoint that this version cannot read: remove the comparison's keys to start over"
BODY = bytes(range(250))
FIRST = Checkpoint(1, None, b"first", BODY, {"d0": b"0", "d1": b"1"})
BASE = Checkpoint(2, None, b"base", BODY[::-1], {"d1": b"one", "d2": b"2", "d3": b"3"})
DELTA = BASE._replace(after=1, head=b"delta")
LOADED = {
    1: Stored(1, b"first", (BODY,), {"d0": b"0", "d1": b"1"}),
    2: Stored(2, b"base", (BODY[::-1],), {"d0": b"0", "d1": b"one", "d2": b"2", "d3": b"3"}),
}


def after_second(second: Checkpoint) -> Stored:
    """What is held after the second save, be it a base or a delta."""
    bodies = (second.body,) if second.after is None else (FIRST.body, second.body)
    return LOADED[2]._replace(head=second.head, bodies=bodies)


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Portions so small that every save has several of each kind, in little time."""
    monkeypatch.setattr(adapter, "CHUNK_BYTES", 100)
    monkeypatch.setattr(adapter, "REPORTS_COUNT", 1)
    monkeypatch.setattr(adapter, "SWEPT", 2)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as connection:
        yield connection


Open = Callable[[str], "Interrupted"]


@pytest.fixture
def owner(redis_url: str) -> Iterator[Open]:
    """Opens the store for the owner with this token, who takes ownership though another has the lease."""
    opened = []

    def take(token: str) -> Interrupted:
        with redis.Redis.from_url(redis_url) as connection:
            connection.delete(f"twinstream:{{{NAME}}}:lease")
        opened.append(Interrupted(redis_url, NAME, token))
        assert opened[-1].acquire()
        return opened[-1]

    yield take
    for store in opened:
        store.close()


@pytest.fixture
def saved(owner: Open) -> Interrupted:
    """The store of an owner that has saved once."""
    store = owner("a")
    store.save(FIRST)
    return store


@pytest.fixture
def own_client(own_redis: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(own_redis.url) as connection:
        yield connection


@pytest.fixture
def own_store(own_redis: RedisServer, closing: Closing) -> RedisStore:
    """The store of an owner on the server of this test."""
    store = closing(RedisStore(own_redis.url, NAME, "a"))
    assert store.acquire()
    return store


class Interrupted(RedisStore):
    """A store to which something happens before or after one of its calls of Redis."""

    calls = at = 0
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None

    def _run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self.calls += 1
        number = self.calls
        if number == self.at and self.before:
            self.before()
        answer = super()._run(call, *arguments)
        if number == self.at and self.after:
            self.after()
        return answer


def cut_off() -> None:
    raise StoreError("cut off")


def calls_of(store: Interrupted, checkpoint: Checkpoint) -> int:
    """How many calls a save takes."""
    before = store.calls
    store.save(checkpoint)
    return store.calls - before


def parts(client: redis.Redis) -> set[bytes]:
    return {key for kind in ("chunk", "reports") for key in client.keys(f"twinstream:{{{NAME}}}:{kind}:*")}


def named(client: redis.Redis) -> set[bytes]:
    manifest = client.hgetall(f"twinstream:{{{NAME}}}:checkpoint")
    return {*manifest[b"bodies"].split(), *manifest[b"reports"].split()}


both_kinds = pytest.mark.parametrize("second", [BASE, DELTA], ids=["base", "delta"])


@both_kinds
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_save_that_ends_at_any_call_leaves_the_old_state_or_the_new_one_and_no_litter_for_long(
    owner: Open, client: redis.Redis, second: Checkpoint, moment: str
) -> None:
    first = owner("a")
    first.save(FIRST)
    seen = set()
    for call in range(1, calls_of(first, second) + 1):
        client.flushall()
        cut = owner("a")
        cut.save(FIRST)
        cut.at = cut.calls + call
        setattr(cut, moment, cut_off)
        with suppress(StoreError):
            cut.save(second)
        assert cut.calls == cut.at, "the cut was the last call"
        new = owner("b")
        loaded = new.load()
        assert loaded == (LOADED[1] if loaded.sequence == 1 else after_second(second))
        seen.add(loaded.sequence)
        new.save(Checkpoint(3, loaded.sequence, b"third", b"third", {}))
        assert new.load() == loaded._replace(sequence=3, head=b"third", bodies=(*loaded.bodies, b"third"))
        assert parts(client) == named(client) == client.smembers(f"twinstream:{{{NAME}}}:staged")
    assert seen == {1, 2}


@both_kinds
def test_an_owner_that_is_replaced_at_any_call_of_a_save_changes_nothing_any_more(
    owner: Open, client: redis.Redis, second: Checkpoint
) -> None:
    first = owner("a")
    first.save(FIRST)
    for call in range(1, calls_of(first, second) + 1):
        client.flushall()
        old = owner("a")
        old.save(FIRST)
        left: list[tuple[Stored, set[bytes]]] = []

        def take_over(left: list[tuple[Stored, set[bytes]]] = left) -> None:
            new = owner("b")
            sequence = new.load().sequence
            assert sequence
            new.save(Checkpoint(sequence + 10, None, b"b", b"of b", {}))
            left.append((new.load(), parts(client)))

        old.at, old.before = old.calls + call, take_over
        with suppress(Fenced):
            old.save(second)
        assert left == [(old.load(), parts(client))]


def test_a_body_is_cut_into_chunks_a_delta_adds_its_own_and_nothing_that_was_saved_expires(
    saved: Interrupted, client: redis.Redis
) -> None:
    saved.save(DELTA._replace(divergences={}))
    chunks = [f"twinstream:{{{NAME}}}:chunk:1.{save}.{n}".encode() for save in (1, 2) for n in range(3)]
    assert {key for key in parts(client) if b":chunk:" in key} == set(chunks)
    assert [client.strlen(key) for key in chunks] == [100, 100, 50] * 2
    expiring = {key for key in client.scan_iter() if client.ttl(key) != -1}
    assert expiring == {f"twinstream:{{{NAME}}}:lease".encode()}


def test_many_small_keys_of_divergences_are_joined_by_a_base(
    saved: Interrupted, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "REPORTS_KEYS", 5)
    for sequence in range(2, 9):
        saved.save(Checkpoint(sequence, sequence - 1, b"", b"", {f"d{sequence % 3}": b"%d" % sequence}))
    monkeypatch.setattr(adapter, "REPORTS_COUNT", 500)
    saved.save(Checkpoint(9, None, b"", b"", {"d9": b"9"}))
    assert len([key for key in parts(client) if b":reports:" in key]) == 1
    assert saved.load().divergences == {"d0": b"6", "d1": b"7", "d2": b"8", "d9": b"9"}


@pytest.mark.parametrize("kind", ["chunk", "reports"])
def test_a_manifest_that_names_what_is_gone_is_refused_by_name_and_mended_by_a_base(
    saved: Interrupted, client: redis.Redis, kind: str
) -> None:
    gone = next(key for key in parts(client) if f":{kind}:".encode() in key)
    client.delete(gone)
    with pytest.raises(CheckpointError, match=r"has lost .*a part of checkpoint 1: restore Redis") as refused:
        saved.load()
    assert gone.decode() in str(refused.value)
    assert not saved.renew(1)
    with pytest.raises(Outdated):
        saved.save(DELTA)
    saved.save(BASE)
    assert saved.load()[:3] == LOADED[2][:3]
    assert saved.renew(2)


def test_what_a_fail_over_lost_of_a_save_in_the_middle_of_it_does_not_take_effect(
    saved: Interrupted, client: redis.Redis
) -> None:

    def lose() -> None:
        client.delete(*(parts(client) - named(client)))

    begin_and_read, chunks, reports = 2, 3, 3
    saved.at, saved.before = saved.calls + begin_and_read + chunks + reports + 1, lose
    with pytest.raises(Outdated):
        saved.save(DELTA)
    assert saved.load() == LOADED[1]


def test_a_fail_over_in_the_middle_of_a_sweep_does_not_cost_the_older_state_its_parts(
    owner: Open, client: redis.Redis
) -> None:
    store = owner("a")
    store.save(FIRST)
    manifest = f"twinstream:{{{NAME}}}:checkpoint"
    older = client.hgetall(manifest)
    calls = calls_of(store, BASE)
    client.flushall()
    store = owner("a")
    store.save(FIRST)
    sweeps = 2
    store.at, store.before = store.calls + calls - sweeps + 1, lambda: client.hset(manifest, mapping=older)
    store.save(BASE)
    assert store.load() == LOADED[1]


def test_a_clearing_that_arrives_late_does_not_forget_what_was_saved_since(
    saved: Interrupted, owner: Open
) -> None:
    saved.at, saved.before = saved.calls + 2, lambda: owner("a").save(BASE)
    with pytest.raises(Outdated):
        saved.clear()
    assert saved.load() == LOADED[2]


def test_a_store_that_lost_everything_is_written_anew_by_its_living_owner(
    saved: Interrupted, client: redis.Redis
) -> None:
    client.flushall()
    with pytest.raises(Outdated):
        saved.save(DELTA)
    saved.save(BASE)
    assert saved.load() == Stored(2, b"base", (BODY[::-1],), dict(BASE.divergences))
    assert client.get(f"twinstream:{{{NAME}}}:epoch") == b"1"


@pytest.fixture
def standby(redis_url: str, closing: Closing) -> RedisStore:
    return closing(RedisStore(redis_url, NAME, "standby"))


def test_an_empty_store_is_left_to_the_owner_that_was_there_a_moment_ago(
    saved: Interrupted,
    client: redis.Redis,
    standby: RedisStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not standby.acquire()
    client.flushall()
    assert not standby.acquire()
    assert not saved.renew(1)
    saved.save(BASE)
    assert not standby.acquire()
    client.flushall()
    for now, taken in ((1000.0, False), (1009.0, False), (1011.0, True)):
        monkeypatch.setattr(standby, "_monotonic", lambda now=now: now)
        assert standby.acquire() == taken


def test_an_older_store_is_left_to_the_owner_that_was_there_a_moment_ago(
    saved: Interrupted,
    client: redis.Redis,
    standby: RedisStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved.save(DELTA)
    assert standby.glance().sequence == DELTA.sequence
    assert not standby.acquire()
    client.hset(MANIFEST, "sequence", 1)
    client.delete(f"twinstream:{{{NAME}}}:lease")
    assert not standby.acquire()
    assert not saved.renew(DELTA.sequence)
    saved.save(BASE._replace(sequence=3))
    assert standby.glance().sequence == 3
    assert not standby.acquire()
    client.hset(MANIFEST, "sequence", 1)
    client.delete(f"twinstream:{{{NAME}}}:lease")
    for now, taken in ((1000.0, False), (1009.0, False), (1011.0, True)):
        monkeypatch.setattr(standby, "_monotonic", lambda now=now: now)
        assert standby.acquire() == taken


@pytest.mark.parametrize(
    ("field", "junk"),
    [
        *((field, None) for field in ("bodies", "reports", "sequence", "head")),
        *[("sequence", b"many"), ("bodies", b"\xff"), ("reports", b"\xff")],
    ],
)
def test_a_manifest_that_lacks_a_part_or_is_damaged_is_refused_and_says_what_to_do(
    saved: Interrupted, client: redis.Redis, field: str, junk: bytes | None
) -> None:
    assert client.hdel(MANIFEST, field) == 1
    if junk is not None:
        client.hset(MANIFEST, field, junk)
    with pytest.raises(CheckpointError, match=UNREADABLE):
        saved.load()


@pytest.mark.parametrize("earlier", [b"3 2", b"2 x", b"\xff"])
def test_a_division_of_an_earlier_version_is_refused_and_says_what_to_do(
    redis_url: str, client: redis.Redis, earlier: bytes
) -> None:
    client.set(f"twinstream:{{{NAME}}}:shards", earlier)
    shelf = RedisShelf(redis_url, NAME, "a")
    with pytest.raises(
        CheckpointError, match=r"state of an earlier version.*remove its keys \(twinstream:\{"
    ):
        shelf.shards()
    shelf.close()


# -- what is wrong with a Redis, each in one sentence ------------------------------------------------------


def refused(store: RedisStore, step: Callable[[RedisStore], object] = RedisStore.acquire) -> str:
    with pytest.raises(StoreError) as raised:
        step(store)
    store.close()
    return str(raised.value)


def test_a_redis_that_is_full_says_so_keeps_what_it_has_and_takes_the_next_save_when_it_has_room(
    own_store: RedisStore,
    own_client: redis.Redis,
) -> None:
    own_store.save(FIRST)
    own_client.config_set("maxmemory", 1)
    assert "is full and takes no writes: raise its maxmemory" in refused(own_store, lambda s: s.save(BASE))
    assert "is full" in refused(own_store, lambda s: s.renew(1))
    own_client.config_set("maxmemory", 0)
    assert own_store.load() == LOADED[1]
    own_store.save(BASE)
    assert own_store.load() == LOADED[2]


def test_a_redis_that_fills_up_in_a_save_is_not_filled_further_by_each_attempt(
    own_store: RedisStore,
    own_client: redis.Redis,
) -> None:
    own_store.save(FIRST)
    own_client.config_set("maxmemory", own_client.info("memory")["used_memory"] + 400_000)
    sizes = []
    for sequence in range(2, 7):
        large = Checkpoint(sequence, None, b"", bytes(20_000), {f"d{n}": bytes(9_000) for n in range(999)})
        assert "is full" in refused(own_store, lambda s, large=large: s.save(large))
        sizes.append(own_client.scard(f"twinstream:{{{NAME}}}:staged"))
    assert max(sizes) < 1.5 * sizes[0]
    own_client.config_set("maxmemory", 0)
    own_store.save(Checkpoint(9, None, b"", b"", {}))
    assert own_store.load().sequence == 9


def test_a_wrong_password_and_a_missing_one_are_told_apart(tmp_path: Path) -> None:
    with RedisServer(tmp_path, config={"requirepass": "right"}) as server:
        assert "wants a password" in refused(RedisStore(server.url, NAME))
        told = refused(RedisStore(server.url.replace("//", "//:wrong@"), NAME))
        assert "refuses user or password" in told
        assert "wrong" not in told
        store = RedisStore(server.url.replace("//", "//:right@"), NAME)
        assert store.acquire()
        store.close()


def test_a_user_who_may_not_do_what_is_needed_is_told_what(
    own_redis: RedisServer, own_client: redis.Redis
) -> None:
    own_client.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+get", "+info")
    told = refused(RedisStore(own_redis.url.replace("//", "//reader:pw@"), NAME))
    assert "does not let this user do what is needed" in told
    assert "evalsha" in told


def test_a_replica_is_named_and_tells_no_time_of_its_own(
    own_redis: RedisServer, own_client: redis.Redis
) -> None:
    relay = RedisShelf(own_redis.url, NAME, "other").relay(WHOLE)
    own_client.execute_command("REPLICAOF", "127.0.0.1", "1")
    assert "is a replica that takes no writes" in refused(RedisStore(own_redis.url, NAME))
    with pytest.raises(StoreError, match="is a replica that takes no writes"):
        relay.heard()
    own_client.config_set("replica-serve-stale-data", "no")
    assert "is a replica without its primary" in refused(RedisStore(own_redis.url, NAME))


def test_a_redis_that_still_loads_its_data_is_named(tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path, config={"enable-debug-command": "yes"}) as server,
        redis.Redis.from_url(server.url) as connection,
        redis.Redis.from_url(server.url) as other,
    ):
        connection.mset({f"key{n}": random.Random(n).randbytes(10_000) for n in range(100)})
        connection.config_set("loading-process-events-interval-bytes", 1024)
        connection.config_set("key-load-delay", 20_000)
        loading = threading.Thread(target=connection.execute_command, args=("DEBUG", "RELOAD"))
        loading.start()
        eventually(lambda: other.info("persistence")["loading"] == 1, what="it loads")
        assert "is still loading its data" in refused(RedisStore(server.url, NAME))
        loading.join()


def test_a_redis_that_cannot_save_to_its_disk_is_named(
    own_redis: RedisServer, own_client: redis.Redis
) -> None:
    (own_redis.folder / "dump.rdb").mkdir()
    own_client.config_set("save", "900 1")
    own_client.bgsave()
    eventually(lambda: own_client.info("persistence")["rdb_last_bgsave_status"] == "err", what="it fails")
    assert "since it cannot save to its disk: see its log" in refused(RedisStore(own_redis.url, NAME))
    own_client.config_set("save", "")  # or it will not end


def test_a_redis_that_hangs_is_named(own_redis: RedisServer, own_store: RedisStore) -> None:
    own_redis.pause()
    assert "does not answer in time" in refused(own_store, lambda s: s.renew(0))
    own_redis.resume()


def test_an_owner_tells_nothing_to_a_redis_that_hangs_and_leaves_it_be_for_a_while(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _HandClock()
    monkeypatch.setattr(redis_connection, "time", clock)
    shelf = RedisShelf(own_redis.url, NAME, "owner")
    store, relay = shelf.store(WHOLE), shelf.relay(WHOLE)
    assert store.acquire()
    assert relay.time() is not None
    own_redis.pause()
    assert relay.time() is None
    own_redis.resume()
    eventually(store.answers, what="it answers again")
    relay.tell(b"too early")
    assert (relay.time(), relay.heard()) == (None, None)
    clock.seconds = PAUSE_SECONDS
    relay.tell(b"bulletin")
    assert (relay.time() is not None, heard(relay)) == (True, b"bulletin")


class _HandClock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def heard(relay: RedisRelay) -> bytes | None:
    found = relay.heard()
    return None if found is None else found.bulletin


def test_what_is_left_in_a_relay_does_not_last(redis_url: str, client: redis.Redis) -> None:
    shelf = RedisShelf(redis_url, "told", "owner")
    store, relay = shelf.store(WHOLE), shelf.relay(WHOLE)
    assert store.acquire()
    relay.tell(b"bulletin")
    relay.ask(b"request")
    relay.answer("ticket", b"answer")
    for key, longest in (("bulletin", BULLETIN_MS), ("request", REQUEST_MS), ("answer:ticket", ANSWER_MS)):
        assert 0 < client.pttl(f"twinstream:{{told}}:{key}") <= longest
    store.release()


def test_a_glance_at_what_is_being_replaced_tells_nothing_and_the_next_one_all(
    redis_url: str, client: redis.Redis
) -> None:
    owner, standby = RedisStore(redis_url, "glanced"), RedisStore(redis_url, "glanced")
    assert owner.acquire()
    owner.save(FIRST)
    (name, *_) = client.hget("twinstream:{glanced}:checkpoint", "reports").decode().split()
    kept = client.dump(name)
    client.delete(name)
    assert standby.glance() == EMPTY
    client.restore(name, 0, kept)
    assert standby.glance() == (1, b"first", (), FIRST.divergences)
    owner.release()


def test_whether_a_redis_answers_is_told_at_once_whatever_it_says(
    own_redis: RedisServer, own_client: redis.Redis
) -> None:
    store = RedisStore(own_redis.url, NAME)
    assert store.answers()
    own_redis.pause()
    assert not store.answers()
    own_redis.resume()
    assert eventually(store.answers, what="it answers again")
    own_client.config_set("requirepass", "another")
    assert store.answers(), "it refuses, and so it answers"
    own_redis.kill()
    assert not store.answers()
    store.close()


def test_a_redis_that_is_busy_with_a_script_is_named(own_redis: RedisServer, own_store: RedisStore) -> None:
    with redis.Redis.from_url(own_redis.url) as connection, redis.Redis.from_url(own_redis.url) as other:
        connection.config_set("lua-time-limit", 50)
        busy = threading.Thread(target=_ended, args=(other,))
        busy.start()
        told = eventually(lambda: _busy(own_store), what="the script is at work")
        connection.script_kill()
        busy.join()
    assert "is busy with a script of somebody else" in told
    own_store.renew(0)


def _ended(connection: redis.Redis) -> None:
    with suppress(redis.RedisError):
        connection.eval("while true do end", 0)


def _busy(store: RedisStore) -> str | None:
    try:
        store.renew(0)
    except StoreError as error:
        return str(error) if "busy" in str(error) else None
    return None


def test_a_cluster_in_which_nobody_serves_the_keys_is_named(tmp_path: Path) -> None:
    config = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
    with RedisServer(tmp_path, config=config) as server:
        told = refused(RedisStore(server.url, NAME))
        assert "is a node of a Redis cluster in which no node serves the keys of this comparison now" in told
        assert "look at `redis-cli --cluster check`" in told


@pytest.mark.parametrize("error", [AskError("3999 10.0.0.1:6381"), TryAgainError("Multiple keys request")])
def test_keys_that_are_being_moved_to_another_node_of_a_cluster_are_told_so(error: redis.RedisError) -> None:
    told = sentence("here:6379", error)
    assert told.endswith(
        "is handing the keys of this comparison to another node of its cluster: it is tried again"
    )


def test_nodes_of_a_cluster_that_point_to_each_other_are_not_asked_for_ever() -> None:
    connection = RedisConnection("redis://127.0.0.1:1")
    asked: list[str] = []

    def call() -> None:
        asked.append(connection.place)
        raise MovedError(f"3999 127.0.0.1:{len(asked) % 2 + 2}")

    with pytest.raises(StoreError, match=r"is a node of a Redis cluster in which no node serves the keys"):
        connection.run(call)
    assert len(asked) == REDIRECTS


def test_a_store_that_may_drop_checkpoints_is_refused(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(StoreError, match=r"maxmemory-policy allkeys-lru.*set it to noeviction"):
                RedisStore(redis_url, "policy").acquire()
        finally:
            client.config_set("maxmemory-policy", "noeviction")
