"""Moves a comparison between the service and a Spark job, there and back.

Who goes on with a comparison is its *owner*: the service, whose state is in Redis, or the job, whose state is
at its checkpoint location. Each side says in one place whether it is the owner: Redis in the head of its
checkpoint, the location in its mark. Both are changed in one step each. So a move takes them in an order in
which there are never two owners:

| step | to Spark | to the service |
| --- | --- | --- |
| 1 | the state is written to the location | Redis says that the job is the owner, if it is empty |
| 2 | Redis says that the job is the owner | the location says that the service is the owner |
| 3 | the location says so, too | Redis has the state |

After a crash before step 2 the old owner goes on. After one between steps 2 and 3 neither starts, and says
so; the same move, made again, ends it. Whatever is made again is made with the same result.

The old owner has ended: of the service the lease is taken, and a job is fenced by a later claim. Nobody
starts between: a service that finds its state moved returns the lease at once, and a job looks at the
location after its claim. So a job that has seen the old mark had claimed before the mark was changed; and the
move looks for claims later than its own once it has read the state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol
from uuid import uuid4

from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.moving import divided_checkpoint, joined_checkpoint
from twinstream.core.events import Side
from twinstream.errors import Divided, SettingsError
from twinstream.ports import Checkpoint, CheckpointStore, Stored
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.addresses import Addresses
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.sharding import refusal_by_key
from twinstream.spec.load import digest
from twinstream.status.common import Frozen

PATIENCE_SECONDS = 15.0
"""How long a lease is waited for: that of a service that was killed ends within ten seconds."""
AGAIN_SECONDS = 0.5
KEPT = ("spec_digest", "started_at", "resets", "reset_count", "begins", "rested")
"""What the head of a moved state keeps."""


class Mark(Frozen):
    """Who owns the state at a location. `moved` names what was moved there, of so many `shards`.

    `positions` are by side and partition the next offsets to read of what was moved there.
    """

    owner: Literal["job", "service"]
    name: str
    digest: str
    shards: int
    moved: str | None = None
    positions: tuple[dict[int, int], dict[int, int]] = ({}, {})


class Store(CheckpointStore, Protocol):
    """A store that has the secret of the comparison as well: see `shards.ShardStore`."""

    def set_mask_secret(self, secret: bytes) -> None: ...  # noqa: D102


class Place(Protocol):
    """A checkpoint location: see `location.Location`."""

    place: str

    def mark(self) -> Mark | None: ...  # noqa: D102

    def give(self, mark: Mark) -> None: ...  # noqa: D102

    def begun(self) -> bool: ...  # noqa: D102

    def mask_secret(self) -> bytes: ...  # noqa: D102

    def hand_over(self, mark: Mark, shards: Sequence[Stored], mask_secret: bytes) -> None: ...  # noqa: D102

    def committed(self, mark: Mark | None) -> list[Stored]: ...  # noqa: D102


class Claims(Protocol):
    """The claim on the results topic: see `claim.Claim`."""

    def make(self, say: Callable[[str], object]) -> None: ...  # noqa: D102

    def check(self) -> None: ...  # noqa: D102


# -- to Spark ----------------------------------------------------------------------------------------------


def to_spark(spec: Spec, store: CheckpointStore, place: Place, shards: int, mask_secret: bytes) -> str:
    """Move a comparison from the service to a job. Raises SettingsError, StoreError.

    `mask_secret` is empty if a file of the operator has it: then the job needs that file.
    """
    if reason := refusal_by_key(spec, shards) or _unmoved(spec, shards):
        raise SettingsError(reason)
    _own(spec, store)
    try:
        return _to_spark(spec, store, place, shards, mask_secret)
    finally:
        store.release()


def _to_spark(spec: Spec, store: CheckpointStore, place: Place, shards: int, mask_secret: bytes) -> str:
    stored = store.load()
    head = _head_of(spec, stored)
    if "moved" in head:
        return _end_to_spark(spec, head["moved"], place, shards)
    if head.get("anew"):
        raise SettingsError(
            f"comparison {spec.name!r} has compared nothing yet: start the job without a move"
        )
    if place.begun() or place.mark() is not None:
        raise SettingsError(
            f"{place.place} has the state of a query already: give --checkpoint a new location"
        )
    parts = divided_checkpoint(stored, Addresses(Codec(spec), shards).of_stored, shards)
    mark = Mark(
        owner="job",
        name=spec.name,
        digest=digest(spec),
        shards=shards,
        moved=uuid4().hex,
        positions=(dict(head["positions"][Side.LEFT]), dict(head["positions"][Side.RIGHT])),
    )
    place.hand_over(mark, parts, mask_secret)
    _leave(store, stored, head, place, mark)
    place.give(mark)
    return _said_to_spark(spec, place, shards)


def _end_to_spark(spec: Spec, moved: dict[str, Any], place: Place, shards: int) -> str:
    """End a move that has come as far as step 2, or say that there is none."""
    mark = Mark.model_validate(moved["mark"])
    if (moved["place"], mark.shards) != (place.place, shards):
        raise SettingsError(
            f"comparison {spec.name!r} is at {moved['place']} already, in {mark.shards} shards"
        )
    if (now := place.mark()) is not None and now.owner == "service":
        raise SettingsError(
            f"comparison {spec.name!r} is on its way back from {place.place}: move it --to service once more"
        )
    if mark.moved is not None:
        place.give(mark)
    return _said_to_spark(spec, place, shards)


def _said_to_spark(spec: Spec, place: Place, shards: int) -> str:
    return (
        f"comparison {spec.name} has moved to {place.place}: start its job with this --checkpoint and "
        f"--shards {shards}"
    )


def _leave(store: CheckpointStore, stored: Stored, head: dict[str, Any], place: Place, mark: Mark) -> None:
    """Let Redis say that the job is the owner, and nothing else."""
    kept = {name: head[name] for name in KEPT if name in head}
    moved = {"place": place.place, "mark": mark.model_dump(mode="json")}
    left = checkpoint.encode({"spec_digest": mark.digest, **kept, "moved": moved, "doubted": {}})
    store.save(Checkpoint((stored.sequence or 0) + 1, None, left, checkpoint.encode({}), {}, anew=True))


# -- to the service ----------------------------------------------------------------------------------------


def to_service(spec: Spec, store: Store, place: Place, claim: Claims, say: Callable[[str], object]) -> str:
    """Move a comparison from a job to the service. Raises SettingsError, StoreError, SourceError."""
    mark = place.mark()
    if mark is None and not place.begun():
        raise SettingsError(f"no job has begun at {place.place}: correct --checkpoint")
    if mark is not None and (mark.name, mark.digest) != (spec.name, digest(spec)):
        raise SettingsError(f"{place.place} has the state of another comparison file, {mark.name!r}")
    _own(spec, store)
    try:
        return _to_service(spec, store, place, mark, claim, say)
    finally:
        store.release()


def _to_service(
    spec: Spec,
    store: Store,
    place: Place,
    mark: Mark | None,
    claim: Claims,
    say: Callable[[str], object],
) -> str:
    stored = store.load()
    head = _head_of(spec, stored) if stored.sequence is not None else {}
    if stored.sequence is not None and "moved" not in head:
        if mark is not None and mark.owner == "service":
            return f"comparison {spec.name} is back from {place.place} already"
        raise SettingsError(
            f"Redis has a state of comparison {spec.name!r} that no job has taken over: one of both is given "
            "up, so remove its keys (twinstream:{NAME}…) first, or leave the job where it is"
        )
    if "moved" in head and head["moved"]["place"] != place.place:
        raise SettingsError(
            f"comparison {spec.name!r} was moved to {head['moved']['place']}, not {place.place}"
        )
    job = mark or Mark(owner="job", name=spec.name, digest=digest(spec), shards=1)
    if stored.sequence is None:
        # Above all that Redis has lost: it counts about one a second.
        _leave(store, stored._replace(sequence=int(time.time())), {"started_at": ""}, place, job)
        stored = store.load()
    claim.make(say)
    place.give(job.model_copy(update={"owner": "service"}))
    try:
        whole, secret = _whole(spec, place, mark), place.mask_secret()
        claim.check()
    except Exception:
        place.give(job)
        raise
    _give(spec, store, stored, whole, secret)
    return f"comparison {spec.name} is back from {place.place}: `twinstream serve` goes on with it"


def _give(spec: Spec, store: Store, left: Stored, whole: Stored, mask_secret: bytes) -> None:
    """Give the state to the service, which may have looked meanwhile whether it is back.

    Raises SettingsError if Redis has something else by now than what was `left` there.
    """
    _own(spec, store)
    if store.load().sequence != left.sequence:
        raise SettingsError(f"comparison {spec.name!r} has begun anew in Redis meanwhile: nothing was moved")
    if mask_secret:
        store.set_mask_secret(mask_secret)
    (body,) = whole.bodies
    sequence = (left.sequence or 0) + 1
    store.save(Checkpoint(sequence, None, whole.head, body, whole.divergences, anew=True))


def _whole(spec: Spec, place: Place, mark: Mark | None) -> Stored:
    """What the job has committed, as the state of one comparison."""
    shards = place.committed(mark)
    found = checkpoint.decode(shards[0].head)["spec_digest"]
    if found != digest(spec):
        raise SettingsError(f"the comparison file is not the one of {place.place}: give the file of the job")
    if reason := _unmoved(spec, len(shards)):
        raise SettingsError(reason)
    return joined_checkpoint(shards)


# -- both --------------------------------------------------------------------------------------------------


def _unmoved(spec: Spec, shards: int) -> str | None:
    """Why the state of a comparison cannot be moved to so many shards, or from them; None if it can.

    Some state is counted over all keys, and so belongs to none; of hashed events the key is not known.
    """
    if shards == 1:
        return None
    of_no_key = {
        "`keep: hashes`": spec.keep == "hashes",
        "`start: {at: input}`": spec.start.at == "input",
        "`known_differences`": spec.known_differences,
        "`checks`": spec.all_checks,
        "`emits`": spec.folding is not None,
        "`duplicates: {policy: replays}`": spec.duplicates.policy == "replays",
        "`on_divergence: halt`": spec.on_divergence == "halt",
        "`overdue: {clock: input}`": spec.overdue.clock == "input",
    }
    found = ", ".join(name for name, holds in of_no_key.items() if holds)
    if not found:
        return None
    return f"comparison {spec.name!r} can be moved with one shard only, because of {found}"


def _own(spec: Spec, store: CheckpointStore) -> None:
    """Take the lease of the service, which has to be stopped. Raises SettingsError while it runs."""
    until = time.monotonic() + PATIENCE_SECONDS
    try:
        while not store.acquire():
            if time.monotonic() > until:
                raise SettingsError(f"a service runs that owns comparison {spec.name!r}: stop it first")
            time.sleep(AGAIN_SECONDS)
    except Divided as state:
        store.release()
        raise SettingsError(
            f"the service has divided comparison {spec.name!r} over {state.found} matchers, and only the "
            "state of one can be moved: reset it with --shards 1, or start the job anew"
        ) from None


def _head_of(spec: Spec, stored: Stored) -> dict[str, Any]:
    """The head of the state of the service."""
    if stored.sequence is None:
        raise SettingsError(
            f"Redis has no state of comparison {spec.name!r}: correct --redis, or start the job as it is"
        )
    head = checkpoint.decode(stored.head)
    if head["spec_digest"] != digest(spec):
        raise SettingsError("the comparison file is not the one of the state in Redis: give that file")
    return head
