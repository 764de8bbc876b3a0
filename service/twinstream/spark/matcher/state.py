"""The checkpoints of a shard in the state of a Spark query, and the bulletins of its worker.

Spark keeps the state variables of a shard under its key, and commits them with the offsets of the batch: all
that a batch did, or nothing. So the state needs no lease and no fence of its own. A checkpoint has the same
parts as in the service (`checkpoints.format`): a head, a base with its deltas, and the kept divergences.
They are kept in *pieces*, since Spark does not always take a long value whole (`PIECE_BYTES`).

A task may run twice, and the second time in another Python worker. So each save has a *token*, drawn at
random: a live worker goes on only from the very save that the query has committed.

A worker that finds that there is no safe start leaves out what comes from then on. The query goes on behind
that, too. So the reason is kept, and each worker that takes the shard over refuses with it, also once it has
been corrected.

Until the start of a comparison is found, its worker holds events that no checkpoint has. The query goes on
behind them all the same. So a shard notes that it has taken some, and if its worker is lost then, they are
missed loudly, and not compared without.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from twinstream.checkpoints import format as checkpoint
from twinstream.errors import CheckpointError, Outdated
from twinstream.ports import EMPTY, Checkpoint, Stored

ANEW = "give --checkpoint a new location, where the comparison begins anew, or use the old file and number"
UNBEGUN = (
    "the job was started again, lost a task, or gave its shard to another Python worker before it had found "
    "the start of the comparison; what it had read until then is gone: give --checkpoint a new location"
)
LEFT_OUT = (
    "the job found this and has left records out since, so give --checkpoint a new location once it is "
    "corrected: {}"
)
"""A reason may not hold any more, and what was left out is gone all the same."""

PIECE_BYTES = 16_384
"""The most bytes of a value of the state. Spark 4.0.0 and 4.0.1 take what has come of a message for all of it
(SPARK-53870): a long one fails now and then. A message of this size comes at once."""
HEAD, BODY, REPORT, REFUSED = "head", "body/", "report/", "refused"
"""The names of the parts of a save; the number of a body and the id of a report follow."""


class Variables(NamedTuple):
    """The state variables of the shard whose rows are handled."""

    save: Any
    pieces: Any

    @classmethod
    def of(cls, handle: StatefulProcessorHandle) -> Variables:
        """Declare them."""
        return cls(
            handle.getValueState("save", "sequence LONG, token STRING"),
            handle.getMapState("pieces", "part STRING, place INT", "piece BINARY"),
        )

    def token(self) -> str | None:
        """The token of the last save; None if there is none."""
        found = self.save.get()
        return None if found is None else found[1]

    def put(self, part: str, content: bytes, before: int = 0) -> int:
        """Write a part, which had so many pieces before; returns how many it has."""
        pieces = [content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES)]
        for place, piece in enumerate(pieces):
            self.pieces.updateValue((part, place), (piece,))
        for place in range(len(pieces), before):
            self.pieces.removeKey((part, place))
        return len(pieces)

    def begin(self, stored: Stored) -> None:
        """Begin with what was moved here."""
        self.put(HEAD, stored.head)
        for number, body in enumerate(stored.bodies, 1 + (stored.sequence or 0) - len(stored.bodies)):
            self.put(f"{BODY}{number}", body)
        for name, report in stored.divergences.items():
            self.put(f"{REPORT}{name}", report)
        self.save.update((stored.sequence, uuid4().hex))


def whole_parts(pieces: Iterable[tuple[str, int, bytes]]) -> dict[str, bytes]:
    """The parts of a save, by name, from all their pieces in any order."""
    found: defaultdict[str, list[bytes]] = defaultdict(list)
    for part, _, piece in sorted(pieces):
        found[part].append(piece)
    return {part: b"".join(those) for part, those in found.items()}


def body_numbers(parts: Iterable[str]) -> list[int]:
    """The numbers of the bodies among some parts, in order."""
    return sorted(int(part.removeprefix(BODY)) for part in parts if part.startswith(BODY))


def refusal_of(parts: Mapping[str, bytes]) -> str | None:
    """Why a shard has left records out; None if it has not."""
    return LEFT_OUT.format(parts[REFUSED].decode()) if REFUSED in parts else None


def stored_of(sequence: int, parts: Mapping[str, bytes]) -> Stored:
    """A save from its parts."""
    reports = {part.removeprefix(REPORT): report for part, report in parts.items() if part.startswith(REPORT)}
    bodies = [parts[f"{BODY}{number}"] for number in body_numbers(parts)]
    return Stored(sequence, parts[HEAD], bodies, reports)


class StateStore:
    """A `CheckpointStore` on the state of a query, for one shard.

    `bind` it to the variables before each batch. `token` and `head` are those of the last save, and `refusal`
    is why records are left out, if that was loaded.
    """

    def __init__(self) -> None:
        self._variables: Variables | None = None
        self._sequences: list[int] = []
        self._sequence: int | None = None
        self._pieces: dict[str, int] = {}
        self.token: str | None = None
        self.head = b""
        self.refusal: str | None = None
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
        """The state saved last.

        Raises CheckpointError if it is of another version, or lacks what its worker had taken.
        """
        found = self._state.save.get()
        if found is None:
            return EMPTY
        sequence, self.token = found
        pieces = [(*key, bytes(piece)) for key, (piece,) in self._state.pieces.iterator()]
        parts = whole_parts(pieces)
        self._pieces = Counter(part for part, *_ in pieces)
        self.refusal = refusal_of(parts)
        if HEAD not in parts:
            if self.refusal is None:
                raise CheckpointError(UNBEGUN)
            return EMPTY
        checkpoint.decode(parts[HEAD], ANEW)
        stored = stored_of(sequence, parts)
        self._sequence, self._sequences = sequence, body_numbers(parts)
        self._saved = dict(stored.divergences)  # They may not have been told, if the job ended meanwhile.
        self.head = stored.head
        return stored

    def save(self, new: Checkpoint) -> None:
        """Make a checkpoint take effect with the batch. Raises Outdated for a delta on another one."""
        if new.after is not None and new.after != self._sequence:
            raise Outdated(f"the state has checkpoint {self._sequence}, not {new.after}")
        self._drop(len(self._sequences) if new.after is None else new.dropped)
        if new.anew:
            for part in [one for one in self._pieces if one.startswith(REPORT)]:
                self._put(part, b"")
        self._put(HEAD, new.head)
        self._put(f"{BODY}{new.sequence}", new.body)
        for key, report in new.divergences.items():
            self._put(f"{REPORT}{key}", report)
        self._saved.update(new.divergences)
        self.token, self._sequence = uuid4().hex, new.sequence
        self._sequences.append(new.sequence)
        self.head = new.head
        self._state.save.update((new.sequence, self.token))

    def _put(self, part: str, content: bytes) -> None:
        """Write a part; without content it leaves."""
        count = self._state.put(part, content, self._pieces.pop(part, 0))
        if count:
            self._pieces[part] = count

    def note_taken(self) -> None:
        """Note that the worker has taken records, if none of it could be saved yet: see `UNBEGUN`."""
        if self._sequence is None:
            self.token = uuid4().hex
            self._state.save.update((0, self.token))

    def refuse(self, reason: str) -> None:
        """Note the reason why records are left out, for good: the next worker that loads refuses with it."""
        self.token = uuid4().hex
        self._put(REFUSED, reason.encode())
        self._state.save.update((self._sequence or 0, self.token))

    def _drop(self, count: int) -> None:
        for sequence in self._sequences[:count]:
            self._put(f"{BODY}{sequence}", b"")
        del self._sequences[:count]

    def clear(self) -> None:
        """Delete everything."""
        for variable in self._state:
            variable.clear()
        self._sequences, self._sequence, self._pieces, self.token = [], None, {}, None

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


class LastBulletin:
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

    def take(self) -> None:
        """Nothing: nobody asks a job."""

    def answer(self, ticket: str, outcome: bytes) -> None:
        """Do nothing."""

    def heard(self) -> None:
        """Nothing: it has no other owner."""

    def close(self) -> None:
        """Do nothing."""
