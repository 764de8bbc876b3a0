"""Redis (or Valkey) as a store: one comparison's checkpoint under a lease, put into effect by one script.

Keys, with the comparison's name as hash tag, so that they live on one node of a cluster:

    twinstream:{NAME}:owner           token of the latest owner; it never expires: the fence
    twinstream:{NAME}:lease           token of the owner while its lease runs
    twinstream:{NAME}:epoch           grows with each change of owner
    twinstream:{NAME}:checkpoint      the manifest, a hash: sequence, epoch, head; bodies (names of chunks, a
                                      line for each body), reports (names)
    twinstream:{NAME}:staged          set: names of all chunks and reports that may exist
    twinstream:{NAME}:chunk:E.S.N     up to 4 MB of a body, from the save with epoch E and sequence S
    twinstream:{NAME}:reports:E.S.N   hash: id -> report of a divergence

and a channel, twinstream:{NAME}:alive:TOKEN, to which the owner subscribes: see `presence`.

A save stages chunks and reports, a bounded portion at a time, so that Redis never serves one client for long;
then a script replaces the manifest; then staged names that are not in the manifest are swept. A process that
ends between two steps leaves the manifest as it was, and the next save sweeps what was staged.

A write is refused unless `owner` is still the writer's token, whatever its lease says: a process that was
paused beyond its lease may go on if nobody has taken over, and may not if somebody has. Where the store has
lost everything, the living owner takes it back; others leave an empty store to it for the length of a lease,
and one with an older checkpoint than they have glanced at. Each step may be repeated, so the client may do so
after a timeout.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import Any, NamedTuple
from uuid import uuid4

from twinstream.adapters.redis import scripts as redis_scripts
from twinstream.adapters.redis.connection import RedisConnection
from twinstream.adapters.redis.presence import Presence, Vigil
from twinstream.errors import CheckpointError, Fenced, Outdated, StoreError, Unready
from twinstream.ports import EMPTY, Checkpoint, Stored

LEASE_MS = 10_000
CHUNK_BYTES = 4_000_000
REPORTS_BYTES, REPORTS_COUNT = 1_000_000, 500
"""The most reports staged at a time."""
REPORTS_KEYS = 64
"""A base that finds more keys of reports than this merges them."""
SWEPT = 100
SEIZINGS = 5
"""How often ownership is tried for, as it may change hands between two attempts."""
MEASURE_SECONDS = 60.0
HELD, LOST = 0, -1
"""No epochs: another process holds the lease; or its state is gone, and is left to the one that held it."""


class RedisStore:
    """The checkpoints of one comparison. `token` names this owner; it connects with the first call.

    `connection` is one that others use, too, in the place of its own.
    """

    def __init__(
        self, url: str, name: str, token: str | None = None, connection: RedisConnection | None = None
    ) -> None:
        self._token = token or uuid4().hex
        self._prefix = f"twinstream:{{{name}}}"
        parts = ("owner", "lease", "epoch", "checkpoint", "staged")
        self._keys = [f"{self._prefix}:{part}" for part in parts]
        self._lease, self._manifest, self._staged = self._keys[1], *self._keys[3:]
        self._connection = connection or RedisConnection(url)
        self._redis = self._connection.client
        self._presence = Presence(self._redis, self._prefix, self._token)
        self._vigil = Vigil(self._redis, self._prefix)
        self._glanced: Sequence[str] = ()
        self._newest = 0
        self._checked = False
        self._epoch = 0
        self._left_until = 0.0
        self._monotonic = time.monotonic
        self._live: Sequence[str] = ()
        self._swept = False
        self._measured: tuple[float, int] | None = None

    def acquire(self) -> bool:
        """Take ownership if no other lease is running, or if its owner is gone."""
        if not self._checked:
            self._check_policy()
        leave_lost = self._monotonic() < self._left_until
        epoch = self._take("", leave_lost=leave_lost)
        if epoch == HELD and (gone := self._gone()):
            epoch = self._take(gone, leave_lost=leave_lost)
        if epoch == HELD:
            self._left_until = math.inf
        elif epoch == LOST:
            self._left_until = min(self._left_until, self._monotonic() + LEASE_MS / 1000)
        else:
            self._left_until, self._newest, self._epoch = 0.0, 0, epoch
            self._presence.keep()
        return epoch > HELD

    def seize(self) -> None:
        """Take ownership, whoever has it."""
        for _ in range(SEIZINGS):
            epoch = self._take((self._run(self._redis.get, self._lease) or b"").decode())
            if epoch > HELD:
                self._epoch = epoch
                return
        raise Unready("other processes keep taking its state")

    def _take(self, gone: str, *, leave_lost: bool = False) -> int:
        """The epoch of this owner; `HELD` while the lease of an owner that is not gone is running.

        With `leave_lost` a store that has lost everything, or the checkpoints of late, is not taken, which is
        `LOST`.
        """
        arguments = [self._token, LEASE_MS, gone, self._newest if leave_lost else ""]
        return int(self._script(redis_scripts.ACQUIRE, self._keys, arguments))

    def _gone(self) -> str:
        """The owner whose lease is running, if it is known to be gone."""
        holder = self._run(self._redis.get, self._lease)
        if holder is None:
            return ""
        try:
            gone = self._run(self._vigil.gone, holder.decode(), self._monotonic())
        except StoreError:
            return ""  # It may not be asked for: the lease has to end.
        return holder.decode() if gone else ""

    def load(self) -> Stored:
        """The state saved last. Raises CheckpointError if a part of it is gone."""
        while True:
            manifest = self._read_manifest()
            try:
                stored = self._read(manifest)
            except _Gone as gone:
                if self._read_manifest().sequence == manifest.sequence:
                    raise CheckpointError(
                        f"redis at {self._connection.place} has lost {gone}, a part of checkpoint "
                        f"{manifest.sequence}: restore Redis from a backup, or remove the comparison's "
                        "keys to start over"
                    ) from None
            else:
                self._live = manifest.live
                return stored

    def save(self, checkpoint: Checkpoint) -> None:
        """Stage the parts, replace the manifest, sweep the other names. Raises Fenced and Outdated."""
        if not self._swept:
            self._sweep()
        self._swept = False
        if self._step(redis_scripts.BEGIN, checkpoint.sequence, (), [_after(checkpoint)]) != b"done":
            self._flip(checkpoint, *self._stage(checkpoint))
        self._presence.keep()
        try:
            self._sweep()
        except Fenced:
            raise
        except StoreError:
            return  # The checkpoint has taken effect; the rest is swept before the next one.
        self._swept = True

    def clear(self) -> None:
        """Forget everything that was saved. Raises Fenced."""
        self._step(redis_scripts.CLEAR, self._read_manifest().number)
        self._live = ()
        self._sweep()

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; whether the checkpoint with this sequence number exists. Raises Fenced."""
        held = self._step(redis_scripts.RENEW, sequence, self._live) == b"held"
        self._presence.keep()
        return held

    def release(self) -> None:
        """Give the lease back, if it is this owner's."""
        self._script(redis_scripts.RELEASE, self._keys, [self._token])

    def answers(self) -> bool:
        """Whether Redis answers at once."""
        return self._connection.answers()

    def memory_bytes(self) -> int:
        """About how much memory the comparison's keys take in Redis; measured at most once a minute."""
        now = self._monotonic()
        if self._measured is None or now - self._measured[0] >= MEASURE_SECONDS:
            self._measured = now, self._measure()
        return self._measured[1]

    def head(self) -> bytes:
        """The head of the checkpoint in effect; empty if there is none."""
        return self._read_manifest().head

    def glance(self) -> Stored:
        """The checkpoint in effect without bodies, with the divergences added since the last glance."""
        manifest = self._read_manifest()
        new = [name for name in manifest.reports if name not in self._glanced]
        try:
            reports = self._read_reports(new)
        except _Gone:
            return EMPTY  # A save has replaced it meanwhile: the next glance sees the new one.
        self._glanced, self._newest = manifest.reports, max(self._newest, manifest.sequence or 0)
        return Stored(manifest.sequence, manifest.head, (), reports)

    def close(self) -> None:
        """Close the connections."""
        self._presence.end()
        self._redis.close()

    # -- the steps of a save -------------------------------------------------------------------------------

    def _stage(self, checkpoint: Checkpoint) -> tuple[list[list[str]], list[str]]:
        """Write the parts under new names; returns all names for the manifest."""
        manifest = self._read_manifest()
        numbers = (f"{self._epoch}.{checkpoint.sequence}.{number}" for number in count())
        chunks = []
        for chunk in _chunks(checkpoint.body):
            chunks.append(f"{self._prefix}:chunk:{next(numbers)}")
            self._step(redis_scripts.STAGE_CHUNK, checkpoint.sequence, chunks[-1:], [chunk])
        bodies, reports = manifest.bodies[checkpoint.dropped :], manifest.reports
        divergences = checkpoint.divergences
        if checkpoint.after is None:
            bodies, reports = [], [] if checkpoint.anew else self._present(reports)
            if len(reports) > REPORTS_KEYS:
                divergences, reports = {**self._read_reports(reports), **divergences}, []
        for portion in _portions(divergences):
            reports = [*reports, f"{self._prefix}:reports:{next(numbers)}"]
            self._step(redis_scripts.STAGE_REPORTS, checkpoint.sequence, reports[-1:], portion)
        return [*bodies, chunks], reports

    def _flip(self, checkpoint: Checkpoint, bodies: list[list[str]], reports: list[str]) -> None:
        live = [*chain.from_iterable(bodies), *reports]
        texts = ["\n".join(map(" ".join, bodies)), " ".join(reports)]
        arguments = [_after(checkpoint), checkpoint.head, *texts]
        self._step(redis_scripts.FLIP, checkpoint.sequence, live, arguments)
        self._live = live

    def _sweep(self) -> None:
        """Remove staged parts that are not in the manifest: left by an interrupted save, or replaced."""
        manifest = self._read_manifest()
        staged = self._run(self._redis.smembers, self._staged)
        orphans = iter(sorted({name.decode() for name in staged}.difference(manifest.live)))
        while portion := list(islice(orphans, SWEPT)):
            if self._step(redis_scripts.SWEEP, manifest.number, portion) == b"moved":
                return

    # -- reading -------------------------------------------------------------------------------------------

    def _read_manifest(self) -> _Manifest:
        found = self._run(self._redis.hgetall, self._manifest)
        if not found:
            return _Manifest(None, b"", [], [])
        try:
            bodies = [line.split() for line in found[b"bodies"].decode().split("\n")]
            reports = found[b"reports"].decode().split()
            return _Manifest(int(found[b"sequence"]), found[b"head"], bodies, reports)
        except (KeyError, ValueError) as error:
            raise CheckpointError(self._connection.unreadable("a checkpoint")) from error

    def _read(self, manifest: _Manifest) -> Stored:
        """The state that a manifest describes. Raises _Gone."""
        bodies = tuple(b"".join(map(self._read_chunk, names)) for names in manifest.bodies)
        return Stored(manifest.sequence, manifest.head, bodies, self._read_reports(manifest.reports))

    def _read_chunk(self, name: str) -> bytes:
        chunk: bytes | None = self._run(self._redis.get, name)
        if chunk is None:
            raise _Gone(name)
        return chunk

    def _read_reports(self, names: Iterable[str]) -> dict[str, bytes]:
        """The reports under some names; a later one replaces an earlier one."""
        reports = {}
        for name in names:
            found = self._run(self._redis.hgetall, name)
            if not found:
                raise _Gone(name)
            reports.update({key.decode(): report for key, report in found.items()})
        return reports

    def _present(self, names: Iterable[str]) -> list[str]:
        """The names that exist."""
        return [name for name in names if self._run(self._redis.exists, name)]

    def _measure(self) -> int:
        staged = self._run(self._redis.smembers, self._staged)

        def sizes() -> list[int | None]:
            with self._redis.pipeline(transaction=False) as pipeline:
                for key in (*self._keys, *staged):
                    pipeline.memory_usage(key)
                return pipeline.execute()

        return sum(filter(None, self._run(sizes)))

    def _check_policy(self) -> None:
        self._run(self._redis.get, self._lease)  # In a cluster, of the node that holds the keys.
        policy = self._run(self._redis.info, "memory").get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreError(
                f"redis at {self._connection.place} has maxmemory-policy {policy}, which may drop "
                "checkpoints: set it to noeviction"
            )
        self._connection.learn()
        self._checked = True

    # -- calling -------------------------------------------------------------------------------------------

    def _step(
        self, script: str, sequence: int | str, keys: Sequence[str] = (), arguments: Sequence[Any] = ()
    ) -> bytes:
        """Run one script under the fence. Raises Fenced and Outdated."""
        own = [self._token, LEASE_MS, self._epoch, sequence]
        answer: bytes = self._script(script, [*self._keys, *keys], [*own, *arguments])
        if answer == b"fenced":
            raise Fenced("another process has taken this comparison over")
        if answer in (b"outdated", b"incomplete"):
            raise Outdated(
                f"redis at {self._connection.place} holds a checkpoint on which this one does not follow"
            )
        return answer

    def _script(self, script: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        return self._run(self._redis.register_script(script), keys, arguments)

    def _run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return self._connection.run(call, *arguments)


class _Manifest(NamedTuple):
    """The manifest in effect: the names of chunks by body, and the names of reports."""

    sequence: int | None
    head: bytes
    bodies: list[list[str]]
    reports: list[str]

    @property
    def number(self) -> int | str:
        """The sequence as scripts compare it."""
        return "" if self.sequence is None else self.sequence

    @property
    def live(self) -> list[str]:
        """All names that must not be swept."""
        return [*chain.from_iterable(self.bodies), *self.reports]


class _Gone(StoreError):  # noqa: N818 - what it says of a part
    """A part that the manifest names is missing."""


def _after(checkpoint: Checkpoint) -> int | str:
    return "" if checkpoint.after is None else checkpoint.after


def _chunks(body: bytes) -> Iterator[bytes]:
    yield body[:CHUNK_BYTES]
    for start in range(CHUNK_BYTES, len(body), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]


def _portions(divergences: Mapping[str, bytes]) -> Iterator[list[str | bytes]]:
    """Ids and reports in turn, in portions of bounded size."""
    portion: list[str | bytes] = []
    size = 0
    for key, report in divergences.items():
        if portion and (size + len(report) > REPORTS_BYTES or len(portion) >= 2 * REPORTS_COUNT):
            yield portion
            portion, size = [], 0
        portion += (key, report)
        size += len(report)
    if portion:
        yield portion
