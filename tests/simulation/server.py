"""The store's server, which all processes of a run share: a simulated Redis that may be away or lose data.

It watches from outside who took ownership, and what of each checkpoint is in effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import redis

from tests.simulation.redis_server import Data, SimulatedRedis
from tests.simulation.scheduler import Scheduler, SimulatedClock
from twinstream.adapters.redis import relay as redis_relay
from twinstream.adapters.redis import scripts as redis_scripts
from twinstream.checkpoints import format as checkpoint

if TYPE_CHECKING:
    from tests.simulation.oracle import Oracle

NAMES = {
    text.encode(): name.lower().replace("_", " ")
    for scripts in (redis_relay, redis_scripts)
    for name, text in vars(scripts).items()
    if name.isupper() and not name.startswith("_") and isinstance(text, str)
}
"""What the scripts are called."""
RELAYED = {"tell", "take", "answered"}
"""Writes that come so often that a fail-over which forgot some of them alone would be of no interest."""
KEPT = 60
AWAY_SECONDS = 2.0
"""How long a call hangs that nobody answers."""
Alter = Callable[[bytes], bytes]


@dataclass(frozen=True)
class _Moment:
    data: Data
    owners: dict[bytes, str]


class Server:
    """The store's server, which lives by a clock that may jump. `alter` may plant a bug into its scripts."""

    def __init__(
        self, scheduler: Scheduler, oracle: Oracle, clock: SimulatedClock, alter: Alter = bytes
    ) -> None:
        self._scheduler, self._oracle = scheduler, oracle
        self.redis = SimulatedRedis(clock.seconds, clock.seconds, alter=alter)
        self.away = False
        self._owners: dict[bytes, str] = {}
        self._writers: dict[bytes, str] = {}
        self._past: list[_Moment] = []

    def name(self, command: tuple[bytes, ...]) -> str:
        """What a command is called: a script by its name."""
        if command[0] != b"EVALSHA":
            return command[0].decode().lower()
        script = self.redis.script(command[1])
        return "unknown script" if script is None else NAMES.get(script, "replace")

    def execute(self, token: str, *command: bytes) -> Any:
        """Carry out what a process sent. Raises redis.TimeoutError while the server is away."""
        if self.away:
            self._scheduler.now += AWAY_SECONDS
            raise redis.TimeoutError("the store does not answer")
        if command[0] != b"EVALSHA":
            return self.redis.execute(*command)
        name, before = self.name(command), dict(self.redis.data)
        answer = self.redis.execute(*command)
        self._note(token, name, command, answer, before)
        return answer

    def fall_back(self, writes: int) -> None:
        """Forget the last writes, as after a fail-over to a copy that had not received them."""
        if not self._past:
            return
        moment = self._past[-writes:][0]
        del self._past[-writes:]
        self.redis.data, self._owners = dict(moment.data), dict(moment.owners)
        self._changed(f"it falls back by {writes} writes; owners are {sorted(self._owners.values())}")

    def empty(self) -> None:
        """Forget everything."""
        self.redis.data, self._owners = {}, {}
        self._past.clear()
        self._changed("it is emptied")

    def copy(self) -> SimulatedRedis:
        """A server that holds the same and no leases, for a look at it that changes nothing."""
        kept = {key: held for key, held in self.redis.data.items() if not key.endswith(b":lease")}
        return SimulatedRedis(lambda: 0.0, lambda: 0.0, kept)

    def is_asked(self) -> bool:
        """Whether a reset is asked for that nobody has taken."""
        return any(
            key.endswith(b":request") and self.redis.execute(b"EXISTS", key) for key in self.redis.data
        )

    def has_begun(self) -> bool:
        """Whether there is a comparison in effect, and it has begun."""
        heads = self._heads()
        return bool(heads) and not any(head.get("anew") for head in heads)

    def resets(self) -> int:
        """Of how many resets that knows which is in effect."""
        return max((int(head.get("reset_count", 0)) for head in self._heads()), default=0)

    def _heads(self) -> list[dict[str, Any]]:
        """Those of the checkpoints in effect."""
        manifests = _manifests(self.redis.data).values()
        return [checkpoint.decode(held[b"head"]) for held in manifests]

    def _changed(self, what: str) -> None:
        self._writers.clear()
        self.redis.forget_scripts()
        self._scheduler.note(f"store: {what}")
        self._oracle.lost()

    def _note(self, token: str, name: str, command: tuple[bytes, ...], answer: Any, before: Data) -> None:
        if answer in (b"fenced", b"outdated", b"incomplete"):
            self._scheduler.note(f"  store: {token} {name}: {answer.decode()}")
        after = self.redis.data
        if after == before:
            return
        if name not in RELAYED:
            self._past.append(_Moment(before, dict(self._owners)))
            del self._past[:-KEPT]
        if name == "acquire":
            self._owners[command[3]] = token
        manifests, earlier = _manifests(after), _manifests(before)
        for key in manifests.keys() | earlier.keys():
            if manifests.get(key) != earlier.get(key):
                self._wrote(token, key, manifests.get(key), earlier.get(key))
        if manifests != earlier:
            self._oracle.counted(token, self.resets())

    def _wrote(self, token: str, key: bytes, now: Any, before: Any) -> None:
        owner_key = key.replace(b":checkpoint", b":owner")
        own = self._writers.get(key) == token
        older = own and bool(now and before) and int(now[b"sequence"]) < int(before[b"sequence"])
        self._oracle.wrote(token, self._owners.get(owner_key), older=older)
        self._writers[key] = token
        self._owners.setdefault(owner_key, token)


def _manifests(data: Data) -> dict[bytes, Any]:
    return {key: held[0] for key, held in data.items() if key.endswith(b":checkpoint")}
