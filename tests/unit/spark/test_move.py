"""A move between the service and a job: at each moment at most one owner, and made again it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from loadtest.memory import MemoryStorage, MemoryStore
from tests.support.workers import SPEC, Bench, answers, ask
from twinstream.checkpoints import format as checkpoint
from twinstream.core.events import Side
from twinstream.errors import CheckpointError, Divided, Fenced, SettingsError, StoreError
from twinstream.matcher.reset_commit import TAKE_SECONDS
from twinstream.matcher.worker import NOTE_SECONDS, Worker
from twinstream.ports import Checkpoint, Marks, Stored
from twinstream.processes import moving as move
from twinstream.processes.moving import Mark
from twinstream.spark.matcher.location import Beginning, all_saved, begun_at, owned
from twinstream.spark.matcher.state import HEAD, LEFT_OUT, REFUSED
from twinstream.spec.load import digest, loads
from twinstream.starting.offset_backup import moved_to
from twinstream.status.comparison import ResetRefused, ResetRequest

OTHER = SPEC.replace("show: [k, n]", "show: [k]")
SHARDS = 3


class Crash(BaseException):
    """The process ends."""


class MemoryLocation:
    """A checkpoint location as values; `saved` is what a job has committed."""

    def __init__(self, place: str = "memory:/here") -> None:
        self.place = place
        self.owner: Mark | None = None
        self.moved: dict[str, list[Stored]] = {}
        self.saved: list[Stored] | None = None
        self.began: Beginning | None = None

    def __str__(self) -> str:
        return self.place

    def mark(self) -> Mark | None:
        return self.owner

    def give(self, mark: Mark) -> None:
        self.owner = mark

    def begun(self) -> bool:
        return self.saved is not None

    def handed(self) -> bool:
        return bool(self.moved)

    def beginning(self) -> Beginning | None:
        return self.began

    def mask_secret(self) -> bytes:
        return b"" if self.began is None else self.began.mask_secret

    def hand_over(self, mark: Mark, shards: Sequence[Stored], mask_secret: bytes) -> None:
        assert mark.moved is not None
        self.began = Beginning(mark.digest, mark.shards, mask_secret)
        self.moved[mark.moved] = list(shards)

    def committed(self, mark: Mark | None) -> list[Stored]:
        if self.saved is not None:
            return self.saved
        if mark is None or mark.moved is None:
            raise CheckpointError("nothing yet")
        return self.moved[mark.moved]


class Claim:
    """A claim of which others may be later."""

    def __init__(self, *, later: bool = False) -> None:
        self.later = later

    def make(self, say: Callable[[str], object]) -> None:
        """Nobody else writes."""

    def check(self) -> None:
        if self.later:
            raise Fenced("another job has claimed it")


class Crashing:
    """Ends the process before or after the call of one of these methods, counted over all of them."""

    def __init__(self, at: int) -> None:
        self.left = at

    def over(self, port: Any, *names: str) -> Any:
        for name in names:
            setattr(port, name, self._guarded(getattr(port, name)))
        return port

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            self._count()
            result = call(*arguments)
            self._count()
            return result

        return guarded

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


class SecretStore(MemoryStore):
    """The store of a comparison that moves, with its secret."""

    secret = b"of the service"

    def set_mask_secret(self, secret: bytes) -> None:
        self.secret = secret


class World:
    """A comparison that a service has begun: events of two keys wait, and one of the third has changed."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.spec = loads(SPEC)
        self.location = MemoryLocation()
        self.bench.write_both(*((f"k{n % 3}", n) for n in range(30)))
        self.bench.write(Side.RIGHT, ("k1", 99))
        self.bench.write(Side.LEFT, ("k1", 98), ("k0", 100), ("k2", 101))
        self.bench.run()
        assert self.bench.at_work is not None
        self.bench.at_work.stop()

    @property
    def storage(self) -> MemoryStorage:
        return self.bench.storage

    def store(self) -> SecretStore:
        return SecretStore(self.storage, "mover")

    def to_spark(self, crash: int = 0, shards: int = SHARDS) -> str:
        crashing, location = Crashing(crash), self.location
        store = crashing.over(self.store(), "save")
        here = crashing.over(_view(location), "hand_over", "give")
        return move.to_spark(self.spec, store, here, shards, store.secret)

    def to_service(self, crash: int = 0, claim: Claim | None = None) -> str:
        crashing, location = Crashing(crash), self.location
        store = crashing.over(self.store(), "save")
        here = crashing.over(_view(location), "give", "committed")
        return move.to_service(self.spec, store, here, claim or Claim(), print)

    def crash(self) -> None:
        """The process is gone, and its lease with it."""
        self.storage.lease = None

    def service_starts(self) -> bool:
        """Whether a service goes on with the state that it has."""
        worker = self.bench.worker()
        started = worker.start()
        if started:
            worker.stop()
        return started and self.storage.stored.sequence is not None

    def job_starts(self) -> bool:
        """Whether a job goes on with the state at the location."""
        try:
            begun_at(self.spec, SHARDS, self.location)
            mark = owned(self.location)
        except CheckpointError:
            return False
        return self.location.begun() or mark is not None


def _view(location: MemoryLocation) -> Any:
    """The same location, with methods that may be replaced."""

    class View:
        def __getattr__(self, name: str) -> Any:
            return getattr(location, name)

    return View()


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(move, "AGAIN_SECONDS", 0.0)


@pytest.mark.parametrize("step", range(1, 7))
def test_a_crash_on_the_way_to_spark_leaves_one_owner_or_none_until_it_is_made_again(step: int) -> None:
    world = World()
    with pytest.raises(Crash):
        world.to_spark(step)
    world.crash()
    starts = world.service_starts(), world.job_starts()
    assert starts == ((True, False) if step <= 3 else (False, False) if step <= 5 else (False, True))
    world.to_spark()
    assert (world.service_starts(), world.job_starts()) == (False, True)
    assert len(world.location.committed(world.location.owner)) == SHARDS


@pytest.mark.parametrize("step", range(1, 7))
def test_a_crash_on_the_way_back_leaves_one_owner_or_none_until_it_is_made_again(step: int) -> None:
    world = World()
    before = world.storage.stored
    world.to_spark()
    with pytest.raises(Crash):
        world.to_service(step)
    world.crash()
    starts = world.service_starts(), world.job_starts()
    assert starts == ((False, True) if step == 1 else (False, False) if step <= 5 else (True, False))
    world.to_service()
    assert (world.service_starts(), world.job_starts()) == (True, False)
    assert world.storage.stored.divergences == before.divergences


def test_a_job_that_began_by_itself_is_known_to_redis_before_it_loses_its_state() -> None:
    world = World()
    saved = world.storage.stored
    world.location.saved = [saved._replace(bodies=saved.bodies)]
    world.storage.stored = Bench().storage.stored
    for step in (1, 2, 3, 4, 5):
        with pytest.raises(Crash):
            world.to_service(step)
        world.crash()
        if step > 1:
            assert not world.service_starts()
    world.to_service()
    assert (world.service_starts(), world.job_starts()) == (True, False)
    worker = world.bench.started()
    assert world.bench.run(worker).divergences.total == 1


def test_a_move_that_was_made_may_be_made_again() -> None:
    world = World()
    assert world.to_spark() == world.to_spark()
    world.to_service()
    assert "back from memory:/here already" in world.to_service()
    with pytest.raises(SettingsError, match="has the state of a query already"):
        world.to_spark()
    world.location = MemoryLocation("memory:/there")
    world.to_spark()
    assert (world.service_starts(), world.job_starts()) == (False, True)


def test_a_move_is_refused_while_its_service_runs() -> None:
    world = World()
    world.bench.started()
    with pytest.raises(SettingsError, match="a service runs that owns comparison 'test': stop it first"):
        world.to_spark()


def test_a_job_that_claims_the_comparison_meanwhile_keeps_its_state() -> None:
    world = World()
    world.to_spark()
    with pytest.raises(Fenced):
        world.to_service(claim=Claim(later=True))
    assert (world.service_starts(), world.job_starts()) == (False, True)


def test_each_fault_has_a_sentence() -> None:
    world = World()
    with pytest.raises(SettingsError, match="no job has begun at memory:/here: correct --checkpoint"):
        world.to_service()
    world.location.saved = [world.storage.stored]
    with pytest.raises(SettingsError, match="Redis has a state of comparison 'test' that no job has taken"):
        world.to_service()
    with pytest.raises(SettingsError, match="has the state of a query already: give --checkpoint a new"):
        world.to_spark()
    world.location = MemoryLocation("memory:/there")
    world.to_spark()
    with pytest.raises(SettingsError, match="is at memory:/there already, in 3 shards"):
        world.to_spark(shards=4)
    away, world.location = world.location, MemoryLocation()
    world.location.saved = [world.storage.stored]
    with pytest.raises(SettingsError, match="was moved to memory:/there, not memory:/here"):
        world.to_service()
    world.location, world.spec = away, loads(OTHER)
    with pytest.raises(SettingsError, match="has the state of another comparison file"):
        world.to_service()
    with pytest.raises(SettingsError, match="the comparison file is not the one of the state in Redis"):
        world.to_spark()
    empty = World()
    empty.storage.stored = Bench().storage.stored
    with pytest.raises(SettingsError, match="Redis has no state of comparison 'test': correct --redis"):
        empty.to_spark()
    undivided = loads(SPEC.replace("{per_key: [k]}", "total"))
    with pytest.raises(SettingsError, match="cannot be divided by key"):
        move.to_spark(undivided, empty.store(), empty.location, SHARDS, b"secret")


RULE = "known_differences: [{id: X-1, when: {divergences: [missing]}, owner: me, expires: 2099-01-01"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (f"{RULE}, ceiling: {{count: 1}}}}]", "`known_differences`"),
        ("checks: [{id: one, once: [k], horizon: 1h}]", "`checks`"),
        ("keep: hashes", "`keep: hashes`"),
    ],
)
def test_what_belongs_to_no_shard_is_refused_by_name(more: str, named: str) -> None:
    world = World()
    with pytest.raises(SettingsError, match=f"can be moved with one shard only, because of {named}"):
        move.to_spark(loads(f"{SPEC}{more}\n"), world.store(), world.location, SHARDS, b"secret")


@pytest.mark.parametrize("of_the_job", [b"of the job", b""])
def test_the_secret_of_masked_values_comes_along_unless_a_file_has_it(of_the_job: bytes) -> None:
    world = World()
    world.to_spark()
    assert world.location.began == Beginning(digest(world.spec), SHARDS, SecretStore.secret)
    world.location.began = world.location.began._replace(mask_secret=of_the_job)
    store = world.store()
    move.to_service(world.spec, store, world.location, Claim(), print)
    assert store.secret == (of_the_job or SecretStore.secret)


def test_the_state_of_several_matchers_is_not_moved() -> None:
    class OfFour(MemoryStore):
        def acquire(self) -> bool:
            raise Divided(4, 1, ())

    world = World()
    with pytest.raises(SettingsError, match="over 4 matchers, and only the state of one can be moved"):
        move.to_spark(world.spec, OfFour(world.storage, "mover"), world.location, SHARDS, b"secret")


def test_a_service_says_where_its_comparison_is_and_goes_on_when_it_is_back() -> None:
    world = World()
    world.to_spark()
    worker = world.bench.worker()
    assert not worker.start()
    assert world.bench.status().waiting_for == (
        "a Spark job goes on with it, since it was moved to memory:/here: `twinstream move --to service` "
        "brings it back, once the job has ended"
    )
    world.to_service()
    assert worker.start()
    assert world.bench.run(worker).divergences.total == 1


def emptied(world: World) -> Worker:
    """A service that starts on a store that came back empty."""
    world.storage.stored = Bench().storage.stored
    world.crash()
    return world.bench.worker()


def test_a_move_is_known_to_a_service_whose_store_comes_back_empty() -> None:
    world = World()
    world.to_spark()
    worker = world.bench.worker()
    assert not worker.start(), "from now on Kafka knows of it, too"
    for service in (worker, world.bench.worker()):
        emptied(world)
        assert not service.start()
        assert "it was moved to memory:/here" in (world.bench.status().waiting_for or "")
    assert (world.storage.stored.sequence, world.job_starts()) == (None, True)
    world.to_service()
    assert worker.start()
    assert world.bench.run(worker).divergences.total == 1
    worker.stop()
    assert emptied(world).start(), "the checkpoint of the service has removed the note"


def test_a_store_that_goes_back_to_before_a_move_makes_no_second_owner() -> None:
    world = World()
    before = world.storage.stored
    world.to_spark()
    worker = world.bench.worker()
    assert not worker.start(), "from now on Kafka knows of it, too"
    moved, world.storage.stored = world.storage.stored, before
    for service in (worker, world.bench.worker()):
        world.crash()
        assert not service.start()
        assert "it was moved to memory:/here" in (world.bench.status().waiting_for or "")
    world.bench.spec = OTHER
    world.crash()
    assert not world.bench.worker().start(), "whatever the file"
    world.bench.spec, world.storage.stored = SPEC, moved
    world.crash()
    world.to_service()
    assert worker.start()
    assert world.bench.run(worker).divergences.total == 1


def test_a_reset_right_after_the_way_back_is_no_older_state() -> None:
    world = World()
    world.to_spark()
    assert not world.bench.worker().start()
    world.to_service()
    kept = world.bench.source.remembered()
    world.bench.clock.advance(10)
    worker = world.bench.started()
    assert world.bench.reset(worker, ResetRequest(id="r", by="ann", reason="mended", address=""))
    world.bench.source.remember(kept)
    stored = world.storage.stored
    world.storage.stored = stored._replace(sequence=1)  # As in the first store of another number of shards.
    assert world.bench.restarted().start()


def test_a_service_that_waits_has_kafka_keep_the_note_of_the_move() -> None:
    world, asked = World(), list[Marks]()
    world.to_spark()
    world.bench.source.remember = asked.append  # type: ignore[method-assign]
    worker = world.bench.worker()
    for passed, notes in ((0.0, 1), (NOTE_SECONDS - 1, 1), (2.0, 2)):
        world.bench.clock.advance(passed)
        assert not worker.start()
        assert len(asked) == notes
    assert moved_to(asked[-1]) == "memory:/here"


def test_a_reset_of_a_comparison_that_was_moved_is_refused_at_once_with_where_it_is() -> None:
    world = World()
    world.to_spark()
    moved, worker = world.storage.stored, world.bench.worker()
    for number in range(1, 3):
        ask(world.storage, ResetRequest(id=f"r{number}", by="ann", reason="mended", address=""))
        world.bench.clock.advance(TAKE_SECONDS)
        assert not worker.start()
        reason = world.bench.status().waiting_for
        assert reason is not None
        assert "it was moved to memory:/here" in reason
        assert answers(world.storage)[-1] == ResetRefused(id=f"r{number}", reason=reason)
    assert world.storage.stored == moved
    world.to_service()
    assert worker.start()
    assert not worker.begin_anew()


def test_a_service_that_waits_takes_turns_with_the_move_that_brings_its_comparison_back() -> None:
    world = World()
    world.to_spark()
    worker = world.bench.worker()

    class Long(Claim):
        def make(self, say: Callable[[str], object]) -> None:
            super().make(say)
            world.crash()  # The lease of the move has ended.
            assert not worker.start()

    world.to_service(claim=Long())
    assert worker.start()
    worker.stop()


def test_a_comparison_that_was_reset_meanwhile_is_left_alone() -> None:
    world = World()
    world.to_spark()

    class Reset(Claim):
        def check(self) -> None:
            world.storage.stored = world.storage.stored._replace(sequence=100)

    with pytest.raises(SettingsError, match="has begun anew in Redis meanwhile: nothing was moved"):
        world.to_service(claim=Reset())


def test_a_lease_that_is_lost_meanwhile_ends_the_move() -> None:
    world = World()

    class Late(MemoryStore):
        def save(self, new: Checkpoint) -> None:
            self._storage.owner = self._storage.lease = "a service"
            super().save(new)

    with pytest.raises(StoreError):
        move.to_spark(world.spec, Late(world.storage, "mover"), world.location, SHARDS, b"secret")
    world.crash()
    assert (world.service_starts(), world.job_starts()) == (True, False)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({}, "1 of 2 shards have saved something at memory:/here: start the job until its next batch has"),
        (
            {REFUSED: b"the topic is compacted"},
            f"shard 1 at memory:/here has compared nothing: {LEFT_OUT.format('the topic is compacted')}",
        ),
    ],
)
def test_a_shard_that_has_saved_nothing_is_not_moved_and_says_why(
    parts: dict[str, bytes], reason: str
) -> None:
    with pytest.raises(CheckpointError, match=reason):
        all_saved({0: {HEAD: b""}, 1: parts}, {0: 1, 1: 0}, 2, "memory:/here")
    assert all_saved({0: {HEAD: b"saved", REFUSED: b"later"}}, {0: 1}, 1, "")[0].head == b"saved"


def test_a_job_is_refused_with_another_file_or_number_once_its_query_has_begun() -> None:
    world = World()
    world.location.began = Beginning("of another file", 4, b"secret")
    assert begun_at(world.spec, SHARDS, world.location) is None
    world.to_spark()
    with pytest.raises(CheckpointError, match="the checkpoint is one of 3 shards, not 4"):
        begun_at(world.spec, 4, world.location)
    with pytest.raises(CheckpointError, match="the comparison file is not the one of the checkpoint"):
        begun_at(loads(OTHER), SHARDS, world.location)
    world.location.began, world.location.saved = None, [world.storage.stored]
    with pytest.raises(CheckpointError, match="its folder `twinstream` was removed"):
        begun_at(world.spec, SHARDS, world.location)
    assert checkpoint.decode(world.storage.stored.head)["moved"]["place"] == "memory:/here"
