"""The checkpoints of a shard in the state of a Spark query, and the bulletins of its worker.

Spark keeps the state variables of a shard under its key, and commits them with the offsets of the batch: all
that a batch did, or nothing. So the state needs no lease and no fence of its own. A checkpoint has the same
parts as in the service (`checkpoints.format`): a head, a base with its deltas, and the kept divergences.

A task may run twice, and the second time in another Python worker. So each save has a *token*, drawn at
random: a live worker goes on only from the very save that the query has committed.

Until the start of a comparison is found, its worker holds events that no checkpoint has. The query goes on
behind them all the same. So a shard notes that it has taken some, and if its worker is lost then, they are
missed loudly, and not compared without.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from twinstream.adapters.kafka.results import OneWayRelay
from twinstream.checkpoints import format as checkpoint
from twinstream.errors import CheckpointError, Outdated
from twinstream.ports import EMPTY, Checkpoint, Stored

ANEW = "give --checkpoint a new location, where the comparison begins anew, or use the old file and number"
UNBEGUN = (
    "the job was started again, or lost a task, before it had found the start of the comparison; what it had "
    "read until then is gone: give --checkpoint a new location"
)


class Variables(NamedTuple):
    """The state variables of the shard whose rows are handled."""

    head: Any
    bodies: Any
    reports: Any

    @classmethod
    def of(cls, handle: StatefulProcessorHandle) -> Variables:
        """Declare them."""
        return cls(
            handle.getValueState("head", "sequence LONG, token STRING, head BINARY"),
            handle.getMapState("bodies", "sequence LONG", "body BINARY"),
            handle.getMapState("reports", "id STRING", "report BINARY"),
        )

    def token(self) -> str | None:
        """The token of the last save; None if there is none."""
        found = self.head.get()
        return None if found is None else found[1]

    def begin(self, stored: Stored) -> None:
        """Begin with what was moved here."""
        for place, body in enumerate(stored.bodies, 1 + (stored.sequence or 0) - len(stored.bodies)):
            self.bodies.updateValue((place,), (body,))
        for name, report in stored.divergences.items():
            self.reports.updateValue((name,), (report,))
        self.head.update((stored.sequence, uuid4().hex, stored.head))

    def check(self) -> None:
        """Raise CheckpointError if the state is of another version, or lacks what its worker had taken."""
        found = self.head.get()
        if found is None:
            return
        if not found[2]:
            raise CheckpointError(UNBEGUN)
        checkpoint.decode(bytes(found[2]), ANEW)


class StateStore:
    """A `CheckpointStore` on the state of a query, for one shard.

    `bind` it to the variables before each batch. `token` and `head` are those of the last save.
    """

    def __init__(self) -> None:
        self._variables: Variables | None = None
        self._sequences: list[int] = []
        self._sequence: int | None = None
        self._bytes = 0
        self.token: str | None = None
        self.head = b""
        self._saved: dict[str, bytes] = {}

    def bind(self, variables: Variables) -> None:
        """Use these variables from now on."""
        self._variables = variables

    @property
    def _state(self) -> Variables:
        assert self._variables is not None, "it is bound"
        return self._variables

    def take_saved(self) -> dict[str, bytes]:
        """The divergences saved since the last call, by id."""
        saved, self._saved = self._saved, {}
        return saved

    def acquire(self) -> bool:
        """Spark gives the key of a shard to one task at a time."""
        return True

    def load(self) -> Stored:
        """The state saved last."""
        found = self._state.head.get()
        if found is None:
            return EMPTY
        sequence, self.token, head = found
        bodies = {key[0]: bytes(body[0]) for key, body in self._state.bodies.iterator()}
        reports = {key[0]: bytes(report[0]) for key, report in self._state.reports.iterator()}
        self._sequence, self._sequences = sequence, sorted(bodies)
        self._saved = dict(reports)  # They may not have been told, if the job ended meanwhile.
        self.head = bytes(head)
        return Stored(sequence, bytes(head), [bodies[one] for one in self._sequences], reports)

    def save(self, new: Checkpoint) -> None:
        """Make a checkpoint take effect with the batch. Raises Outdated for a delta on another one."""
        if new.after is not None and new.after != self._sequence:
            raise Outdated(f"the state has checkpoint {self._sequence}, not {new.after}")
        self._drop(len(self._sequences) if new.after is None else new.dropped)
        if new.anew:
            self._state.reports.clear()
        self._state.bodies.updateValue((new.sequence,), (new.body,))
        for key, report in new.divergences.items():
            self._state.reports.updateValue((key,), (report,))
        self._saved.update(new.divergences)
        self.token, self._sequence = uuid4().hex, new.sequence
        self._sequences.append(new.sequence)
        self.head = new.head
        self._state.head.update((new.sequence, self.token, new.head))

    def note_taken(self) -> None:
        """Note that the worker has taken records, if none of it could be saved yet: see `UNBEGUN`."""
        if self._sequence is None:
            self.token = uuid4().hex
            self._state.head.update((0, self.token, b""))

    def _drop(self, count: int) -> None:
        for sequence in self._sequences[:count]:
            self._state.bodies.removeKey((sequence,))
        del self._sequences[:count]

    def clear(self) -> None:
        """Delete everything."""
        for variable in self._state:
            variable.clear()
        self._sequences, self._sequence, self.token = [], None, None

    def renew(self, sequence: int) -> bool:
        """Whether the state has the checkpoint with this sequence number."""
        return self._sequence == sequence

    def release(self) -> None:
        """Do nothing."""

    def answers(self) -> bool:
        """Whether the store answers: Spark does, or fails the task."""
        return True

    def memory_bytes(self) -> int:
        """Not known: the state is Spark's (see the metrics of its query)."""
        return 0

    def glance(self) -> Stored:
        """Nothing: nobody looks on."""
        return EMPTY

    def close(self) -> None:
        """Do nothing."""


class LastBulletin(OneWayRelay):
    """Keeps the last bulletin of a worker until its batch writes it."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.bulletin: bytes | None = None

    def time(self) -> float | None:
        """Seconds since 1970 by the clock of this host."""
        return self._now().timestamp()

    def tell(self, bulletin: bytes) -> None:
        """Keep a bulletin."""
        self.bulletin = bulletin
