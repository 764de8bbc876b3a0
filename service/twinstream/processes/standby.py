"""What the owner of a comparison says, passed on by those who stand by: never anything from the past.

About once a second a matcher that stands by leaves a *question* in the store, a random word that nobody had
before. The owner reads the questions, *then* writes its status, and tells both as one *bulletin*: "when these
questions had been put, things stood like this". Nothing is told where nobody asks.

Why no stale pass can come of it. Let a service that stands by say `pass` at a time t.

1. The status that says so came in a bulletin that answers a question of this very process. The question is
   random, so nobody could answer it before it was put, at a time p on this process's own monotonic clock; and
   the owner wrote the status after it had read the question. So the status is younger than t - p, whatever
   the wall clocks of both hosts say, however long the owner was paused between writing and telling, however
   late, how often or in which order its commands arrive, and whatever the store has lost or brought back.
2. The board counts this age, t - p, and no status older than `STALE_AFTER_SECONDS` passes. A status that was
   there before this process asked, or one that does not change, answers nothing new: it grows old by itself.
3. The store takes a bulletin only from the owner while its lease is running, and hands it out only while that
   very owner's lease is still running; tokens are used once. So a bulletin of one that was replaced, gave its
   lease back, or fell silent for a lease, is not handed out. What was shown of it is taken back with the
   question that it does not answer, and before this process loads the state, should it take over itself.
4. How old the verified prefix is, the owner says with its status (see `clock_skew`); since then it is older
   by the age of the status. The clock of the host that stands by has no part in it.
5. The owner says the same to its own board at the same moment, which may show it for as long. So a standby is
   believed for no longer than the owner itself.

What is not understood (another version, another comparison file) is not passed on, and whatever fails ends
in the plain word that this one stands by: `PENDING`, and a gate that is undecided.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pydantic import ValidationError

from twinstream.ports import Clock, Publisher
from twinstream.processes.relayed import Glancing, OwnersReports
from twinstream.status.common import Frozen
from twinstream.status.comparison import (
    ComparisonStatus,
    DivergenceReport,
    Relayed,
    ShardStatus,
    UnmatchedEvent,
    UnmatchedSample,
)

RELAYED = "another process owns this comparison; this one stands by, and shows what that one says"
REPORTS_TOLD, REPORTS_BYTES = 20, 200_000
"""The most provisional reports in a bulletin; those that are saved are in the store anyway."""
WAITING_BYTES = 50_000
"""Of each side, the most that a bulletin has of the events that have waited longest for a partner."""
QUESTIONS_KEPT = 30


class Asking(Glancing, Protocol):
    """The part of a store in which an owner is heard (see `ports.Store`)."""

    def ask(self, question: str) -> bytes | None:
        """Put a question, and get the last bulletin of the owner of now."""
        ...


class Bulletins(Asking, Protocol):
    """The part of a store in which an owner and those who stand by meet."""

    def asked(self) -> bytes:
        """What was asked last."""
        ...

    def tell(self, bulletin: bytes) -> None:
        """Leave a bulletin."""
        ...


class Bulletin(Frozen):
    """What an owner tells. `answers` are the questions that had been put before it wrote what it `said`.

    `owner` is where the owner is, in words.
    """

    answers: str
    owner: str = ""
    said: ShardStatus
    reports: list[DivergenceReport]
    waiting: tuple[UnmatchedEvent, ...] = ()


def standing_by(status: ComparisonStatus) -> ComparisonStatus:
    """The status as one shows it who would take over."""
    told = {"standby": True, "reasons": [RELAYED, *status.health.reasons]}
    return status.model_copy(update={"health": status.health.model_copy(update=told)})


class Questions:
    """Asks an owner, and knows what it answers."""

    def __init__(self, digest: str, told: Asking, clock: Clock) -> None:
        self._digest, self._told, self._clock = digest, told, clock
        self._put_at: dict[str, float] = {}
        self.foreign = False

    def answer(self) -> tuple[Bulletin, float] | None:
        """Ask, and get what the owner has answered last, with when it was asked that; None for nothing.

        `foreign` then says whether an owner was heard whose file or version is another. Raises StoreError.
        """
        bulletin = self._ask()
        at = None if bulletin is None else self._put_when(bulletin.answers)
        return None if bulletin is None or at is None else (bulletin, at)

    def _ask(self) -> Bulletin | None:
        question = secrets.token_hex(8)
        self._put_at[question] = self._clock.monotonic()  # Before it can be read.
        while len(self._put_at) > QUESTIONS_KEPT:
            del self._put_at[next(iter(self._put_at))]
        told = self._told.ask(question)
        self.foreign = False
        if not told:
            return None
        try:
            bulletin = Bulletin.model_validate_json(told)
        except ValidationError:
            self.foreign = True
            return None
        self.foreign = bulletin.said.status.spec_digest != self._digest
        return None if self.foreign else bulletin

    def _put_when(self, answers: str) -> float | None:
        """When the last of the questions was put that were answered; None where none was one of these."""
        return max((self._put_at[word] for word in answers.split() if word in self._put_at), default=None)


class OwnerWord:
    """What the owner says, for one who asks it: `as_shown` is the status as that one shows it.

    `owner` is where the owner is that was heard last, in words; an empty text where that is not known.
    """

    def __init__(
        self,
        digest: str,
        told: Asking,
        publisher: Publisher,
        clock: Clock,
        as_shown: Callable[[ComparisonStatus], ComparisonStatus] = standing_by,
    ) -> None:
        self._questions, self._publisher, self._as_shown = Questions(digest, told, clock), publisher, as_shown
        self._answered: float | None = None
        self._reports = OwnersReports(digest, told, publisher)
        self._waiting: UnmatchedSample | None = None
        self._showing = False
        self.owner = ""

    @property
    def foreign(self) -> bool:
        """Whether the last that was heard is an owner whose file or version is another."""
        return self._questions.foreign

    def pass_on(self) -> bool:
        """Ask, and publish what the owner has answered; False where it has answered nothing.

        True also while the last answer stands and nothing new is said: what was published grows old.
        Raises StoreError.
        """
        answer = self._questions.answer()
        if answer is None:
            self.end()
            return False
        bulletin, at = answer
        if self._answered is None or at > self._answered:
            self._answered, self.owner = at, bulletin.owner
            self._reports.pass_on(bulletin.said.status, bulletin.reports)
            self._show_waiting(UnmatchedSample(comparison=bulletin.said.status.name, events=bulletin.waiting))
            status = self._as_shown(bulletin.said.status)
            said = bulletin.said.model_copy(update={"status": status})
            self._publisher.publish(Relayed(said=said), at)
            self._showing = True
        return self._showing

    def end(self) -> bool:
        """Nothing that the owner said holds any more; whether anything was shown."""
        shown, self._showing = self._showing, False
        self._reports.withdraw()
        if self._waiting is not None:
            self._show_waiting(self._waiting.model_copy(update={"events": ()}))
        return shown

    def _show_waiting(self, sample: UnmatchedSample) -> None:
        if sample != self._waiting:
            self._publisher.publish(sample)
        self._waiting = sample


class Standby(OwnerWord):
    """Both ends of it: beside those of who stands by, `asked` and `tell` for the owner.

    `where` is where this process is, in words: whom to ask, where it is the owner.
    """

    def __init__(
        self, digest: str, bulletins: Bulletins, publisher: Publisher, clock: Clock, where: str = ""
    ) -> None:
        super().__init__(digest, bulletins, publisher, clock)
        self._bulletins, self._where = bulletins, where

    def asked(self) -> bytes:
        """The questions that are to be answered: read them before the status is written."""
        return self._bulletins.asked()

    def tell(
        self,
        asked: bytes,
        said: ComparisonStatus | ShardStatus,
        reports: Mapping[str, DivergenceReport],
        waiting: Sequence[UnmatchedEvent] = (),
    ) -> None:
        """Answer with a status that was written after `asked` was read.

        With it go the provisional reports, and of the events that wait for a partner the first of each side.
        """
        whole = ShardStatus(status=said) if isinstance(said, ComparisonStatus) else said
        provisional = _written(list(reports.values())[:REPORTS_TOLD], REPORTS_BYTES)
        oldest = [
            text
            for side in ("reference", "candidate")
            for text in _written((event for event in waiting if event.side == side), WAITING_BYTES)
        ]
        bulletin = (
            f'{{"answers":"{asked.decode()}","owner":{json.dumps(self._where)},"said":{whole.model_dump_json()},'
            f'"reports":[{",".join(provisional)}],"waiting":[{",".join(oldest)}]}}'
        )
        self._bulletins.tell(bulletin.encode())

    def retract(self) -> None:
        """What was told holds no more: the comparison begins anew."""
        self._bulletins.tell(b"")


def _written(items: Iterable[Frozen], most: int) -> Iterator[str]:
    """The first of them as JSON, of which all together are no larger than that."""
    size = 0
    for item in items:
        text = item.model_dump_json()
        size += len(text)
        if size > most:
            return
        yield text
