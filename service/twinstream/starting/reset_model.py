"""Resets: the records of past resets, and the start of the next one.

A reset is a checkpoint that names the start and in which nothing is compared yet. It takes effect as every
checkpoint does, in one fenced step; then the matcher starts from its store, as after a crash. So a process
that ends in between leaves either the old comparison or the new one.

If several matchers share the comparison, shard 0 resets it, and the others follow (see `shard_resets`).

`now` is the position of both readers at a moment without unmatched events: then every earlier event is
settled on both sides, and every later event has its partner later. The matcher waits for such a moment. It
proves nothing if the matcher does not follow all that is written (`unfit_for_now`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from twinstream.core.arrivals.sharding import Shard
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.verdict import verdict_of
from twinstream.errors import SourceError, SpecError
from twinstream.explain.divergence import NAMES
from twinstream.intake.clock_skew import SeenAt
from twinstream.ports import Clock, Positions, Source
from twinstream.spec.file.model import Spec
from twinstream.spec.file.start import Start
from twinstream.spec.lint.sharding import refusal, unfit
from twinstream.spec.load import begun_at
from twinstream.starting.start import Unsafe, positions_of
from twinstream.status.common import Sides
from twinstream.status.comparison import Ended, Reset, ResetRequest

KEPT = 10
"""The number of resets with all details; all are counted."""
PATIENCE_SECONDS = 10.0
"""The longest wait for a moment for `now`; whoever asked waits as long."""

TO_TELL = ("DIVERGED", "INCONCLUSIVE", "EQUIVALENT", "PENDING")
"""The verdicts that a reset ends, by how much is lost with them."""

_OTHER_STARTS = "name a barrier, an event time or offsets as `start`"


class PendingReset(NamedTuple):
    """A reset that is asked for, by a ticket of the relay.

    A moment for it is waited for `until` then, on the monotonic clock.
    """

    ticket: str
    request: ResetRequest
    until: float


class Resets(NamedTuple):
    """The latest resets of a comparison, the newest last; the number of all, `made`; the start of the last.

    `start` is None if the comparison starts where its file says. `rested`: the start is a moment without
    unmatched events (`now`), or may be.
    """

    records: tuple[Reset, ...] = ()
    made: int = 0
    start: Start | None = None
    rested: bool = False

    def plus(self, reset: Reset, start: Start | None, *, rested: bool = False) -> Resets:
        """The resets with one more."""
        return Resets((*self.records, reset)[-KEPT:], self.made + 1, start, rested)

    def moved_to(self, start: Start) -> Resets:
        """The same resets, the last one with another start: that of a shard with its own moment."""
        *before, last = self.records
        record = last.model_copy(update={"start": start.as_written()})
        return self._replace(records=(*before, record), start=start)

    def applied_to(self, file: Spec) -> Spec:
        """The comparison with the start of the last reset, else with that of its file."""
        return file if self.start is None else begun_at(file, self.start)

    def state(self) -> dict[str, Any]:
        """The resets as members of a checkpoint's head."""
        return {
            "resets": [reset.model_dump(mode="json") for reset in self.records],
            "reset_count": self.made,
            "begins": None if self.start is None else self.start.as_written(),
            "rested": self.rested,
        }

    def beginning(self, digest: str, started_at: str, topics: Sequence[Any]) -> dict[str, Any]:
        """The head of the checkpoint that the last reset makes, before anything is read.

        `topics` are the topics as they are remembered (`TopicBook.state`).
        """
        head = {"spec_digest": digest, "started_at": started_at, "anew": True, "topics": topics}
        return {**head, **self.state()}

    @property
    def noted(self) -> dict[str, Any] | None:
        """The start without its offsets, which stand beside it where it is noted."""
        if self.start is None:
            return None
        return {key: value for key, value in self.start.as_written().items() if key not in NAMES.values()}

    @classmethod
    def of(cls, head: Mapping[str, Any] | None) -> Resets:
        """The resets in a head; none if there is no head, or none in it."""
        head = head or {}
        begins = head.get("begins")
        return cls(
            tuple(map(Reset.model_validate, head.get("resets", ()))),
            head.get("reset_count", 0),
            None if begins is None else Start.model_validate(begins),
            head.get("rested", begins is not None),
        )


def reset_of(request: ResetRequest, name: str, start: Start, before: Ended, now: datetime) -> Reset:
    """The record of a reset that takes effect now."""
    told = request.model_dump(exclude={"start", "before"})
    return Reset(comparison=name, at=now, start=start.as_written(), before=before, **told)


def stood(heads: Sequence[Mapping[str, Any]]) -> Ended | None:
    """How a comparison stood, by the heads of all its shards, empty where none is saved; None if none is."""
    known = [head for head in heads if "positions" in head]
    if not known:
        return None
    found = {head["verdict"] for head in known}
    verdict = verdict_of(
        diverged="DIVERGED" in found,
        doubts="INCONCLUSIVE" in found,
        lacking="PENDING" in found or len(known) < len(heads),
    )
    first = next((head for head in known if head["verdict"] == verdict.value), known[0])
    return Ended(
        verdict=verdict.value,
        since=first["verdict_since"],
        started_at=first["started_at"],
        matched=sum(head.get("matched", 0) for head in known),
        divergences=sum(head.get("divergences", 0) for head in known),
        positions=Sides(
            **{
                NAMES[side]: {str(p): offset for head in known for p, offset in head["positions"][side]}
                for side in Side
            }
        ),
    )


def told_of(*known: Ended | None) -> Ended:
    """The one of those that tells most of how a comparison stood: a difference that is dropped is told."""
    return min(filter(None, known), key=lambda ended: TO_TELL.index(ended.verdict))


def _told(error: Exception) -> str:
    """The reason why a start is impossible, as a sentence."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return str(first.get("ctx", {}).get("problem") or first["msg"].removeprefix("Value error, "))
    return str(error)


def at_offsets(positions: Positions) -> Start:
    """The start at these offsets."""
    offsets = {NAMES[side]: dict(sorted(positions[side].items())) for side in Side}
    return Start.model_validate({"at": "offsets", **offsets})


def unfit_for_now(spec: Spec, comparison: Comparison) -> str | None:
    """The reason why a moment without unmatched events never comes, or proves nothing; None if it may."""
    if spec.duplicates.policy == "replays":
        return "a retry may write again what was written before (`duplicates: replays`)"
    if spec.start.at in ("event_time", "input"):
        return f"of what lies before its own start (`start: {spec.start.at}`) one side may still write more"
    if comparison.copies:
        return (
            "some partitions may have had their copy of a barrier, and others not (`copies: per_partition`)"
        )
    if comparison.overflowing:
        return "it has stopped comparing, so what is unmatched now stays unmatched"
    if comparison.halted:
        return "it has halted, and what came since was not compared (`on_divergence: halt`)"
    return None


def unrest(ground: ResetState, now: float) -> str | None:
    """The events that are unmatched now, or may be; None at a moment that is a cut of both sides."""
    spec, comparison = ground.spec, ground.comparison
    waiting = {NAMES[side]: comparison.ledger.waits(side) for side in Side}
    undecided = comparison.proven.waits_for_batches or comparison.in_dispute
    if any(waiting.values()) or comparison.scopes or undecided:
        return ", ".join(f"{count:,} of the {name}" for name, count in waiting.items())
    after = spec.overdue.after.total_seconds()
    recent = [seen for seen in ground.holes_seen if now - seen.at < after]
    if recent:
        when = recent[-1].when
        return f"and partners of what was not checked at {when:%H:%M:%S} UTC may come for {after:g} s"
    return None


class ResetState(NamedTuple):
    """The state of a running comparison, at which the new one begins with `now`."""

    spec: Spec
    comparison: Comparison
    positions: Positions
    holes_seen: Sequence[SeenAt]


Saved = Callable[[], Ended | None]
"""How the comparison stands by the heads of all its shards (`stood`), which are read when it is called."""


class ResetStarts:
    """Finds the start of a reset that is asked for."""

    def __init__(self, file: Spec, source: Source, clock: Clock, shard: Shard) -> None:
        self._file, self._source, self._clock, self._shard = file, source, clock, shard

    def beginning(self, wish: PendingReset, ground: ResetState | None, saved: Saved) -> Spec | None:
        """The comparison from the start that is asked for; None while a moment for it is waited for.

        Raises Unsafe with the reason if it cannot begin there.
        """
        try:
            if wish.request.start == "now":
                return self._now(wish, ground, saved)
            begun = self._named(wish.request.start)
            self._check_shards(begun)
        except (SourceError, SpecError, ValidationError) as error:
            raise Unsafe(_told(error)) from error
        return begun

    def _named(self, start: dict[str, Any] | None) -> Spec:
        begun = self._file if start is None else begun_at(self._file, Start.model_validate(start))
        if begun.start.at in ("earliest", "offsets"):
            self._check(begun)
        return begun

    def _check(self, begun: Spec) -> None:
        """Raise Unsafe if Kafka does not have that start."""
        source = self._source
        positions_of(begun, source.topics(), source.begins_ms, source.bound())

    def _check_shards(self, begun: Spec) -> None:
        """Raise Unsafe if the comparison from that start on cannot be divided over the shards."""
        if self._shard.whole:
            return
        topics = self._source.topics()
        counts = (len(topics[Side.LEFT].first), len(topics[Side.RIGHT].first))
        if (reason := refusal(begun, self._shard.of) or unfit(begun, self._shard, counts)) is not None:
            raise Unsafe(reason)

    def _now(self, wish: PendingReset, ground: ResetState | None, saved: Saved) -> Spec | None:
        if ground is None:
            raise Unsafe("it has not begun, so there is no moment at which nothing waits: name another start")
        if (unfit := unfit_for_now(ground.spec, ground.comparison)) is not None:
            raise Unsafe(f"`now` cannot be its start, since {unfit}: {_OTHER_STARTS}")
        waiting = unrest(ground, self._clock.monotonic())
        if waiting is None:
            whole = self._complete(ground.positions, wish.request.before, saved)
            begun = begun_at(self._file, at_offsets(whole))
            self._check(begun)
            return begun
        if self._clock.monotonic() >= wish.until:
            # What lost its partner in a hole waits until later events close its scope.
            pace = "write on (partners lie in a hole)" if ground.holes_seen else "rest"
            raise Unsafe(
                f"`now` needs a moment at which no event waits for a partner, and in {PATIENCE_SECONDS:g} s "
                f"there was none ({waiting}): try again, let both versions {pace}, or {_OTHER_STARTS}"
            )
        return None

    def _complete(self, own: Positions, before: Ended | None, saved: Saved) -> Positions:
        """The positions of a shard, with those of the others: as shown at the request, else as saved.

        Each of the others begins at a moment of its own; their offsets here are shown, and not used.
        """
        if self._shard.whole:
            return own
        topics, known = self._source.topics(), list(filter(None, (before, saved())))
        shown = [ended.positions.model_dump() for ended in known]
        return {
            side: {
                partition: own[side].get(
                    partition, max([first, *(of[NAMES[side]].get(str(partition), first) for of in shown)])
                )
                for partition, first in topics[side].first.items()
            }
            for side in Side
        }
