"""Relays the owner's status to standbys, and never a stale one.

About once a second a standby leaves a *question* in the store: a random word that nobody had before. The
owner reads the questions, *then* writes its status, and stores both as one *bulletin*: "when these questions
had been asked, this was the status". Without questions there is no bulletin.

Why no stale pass can result. Let a standby's service answer `pass` at a time t.

1. The status behind it came in a bulletin that answers a question of this very process. The question is
   random, so nobody could answer it before it was asked, at a time p on this process's own monotonic clock;
   and the owner wrote the status after reading the question. So the status is younger than t - p, whatever
   the wall clocks of both hosts say, however long the owner was paused between writing and sending, however
   late, how often or in which order its commands arrive, and whatever the store has lost or brought back.
2. The board counts this age, t - p, and no status older than `STALE_AFTER_SECONDS` passes. A status that
   existed before this process asked, or one that does not change, answers no new question: it ages.
3. The store accepts a bulletin only from the owner while its lease is running, and hands it out only while
   that same owner's lease is still running; tokens are used once. So a bulletin of an owner that was
   replaced, released its lease, or was silent for the length of a lease, is not handed out. Anything shown
   from it is withdrawn when a question goes unanswered, and before this process loads the state to take over
   itself.
4. The owner sends the age of the verified prefix with its status (see `clock_skew`); since then the prefix
   has aged as much as the status. The clock of the standby's host has no part in it.
5. The owner publishes the same status to its own board at the same moment, which may show it equally long. So
   a standby is trusted no longer than the owner itself.

A bulletin that is not understood (another version, another comparison file) is not relayed, and after any
failure the process only says that it stands by: `PENDING`, with an undecided gate.
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
"""The most provisional reports in a bulletin; saved ones are in the store anyway."""
WAITING_BYTES = 50_000
"""The most unmatched events of each side in a bulletin: those that have waited longest."""
QUESTIONS_KEPT = 30


class Asking(Glancing, Protocol):
    """The part of a store that reaches an owner (see `ports.Store`)."""

    def ask(self, question: str) -> bytes | None:
        """Leave a question, and return the current owner's last bulletin."""
        ...


class Bulletins(Asking, Protocol):
    """The part of a store through which an owner and its standbys communicate."""

    def asked(self) -> bytes:
        """The latest questions."""
        ...

    def tell(self, bulletin: bytes) -> None:
        """Write a bulletin."""
        ...


class Bulletin(Frozen):
    """An owner's bulletin. `answers` are the questions that had been asked before it wrote `said`.

    `owner` names the owner's process in words.
    """

    answers: str
    owner: str = ""
    said: ShardStatus
    reports: list[DivergenceReport]
    waiting: tuple[UnmatchedEvent, ...] = ()


def standing_by(status: ComparisonStatus) -> ComparisonStatus:
    """The status as a standby shows it."""
    told = {"standby": True, "reasons": [RELAYED, *status.health.reasons]}
    return status.model_copy(update={"health": status.health.model_copy(update=told)})


class Questions:
    """Asks an owner, and recognizes the answers."""

    def __init__(self, digest: str, told: Asking, clock: Clock) -> None:
        self._digest, self._told, self._clock = digest, told, clock
        self._put_at: dict[str, float] = {}
        self.foreign = False

    def answer(self) -> tuple[Bulletin, float] | None:
        """Ask, and return the owner's last answer with the time of its question; None if there is none.

        `foreign` then says whether an owner with another file or version was heard. Raises StoreError.
        """
        bulletin = self._ask()
        at = None if bulletin is None else self._put_when(bulletin.answers)
        return None if bulletin is None or at is None else (bulletin, at)

    def _ask(self) -> Bulletin | None:
        question = secrets.token_hex(8)
        self._put_at[question] = self._clock.monotonic()  # Noted before it can be read.
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
        """When the latest answered question was asked; None if no answer is to one of these."""
        return max((self._put_at[word] for word in answers.split() if word in self._put_at), default=None)


class OwnerWord:
    """Relays the owner's status to a process that asks; `as_shown` changes the status for that process.

    `owner` names the process of the owner heard last, in words; empty if unknown.
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
        """Whether the owner heard last has another file or version."""
        return self._questions.foreign

    def pass_on(self) -> bool:
        """Ask, and publish the owner's answer; returns False if it has not answered.

        Returns True also while the last answer stands and nothing new came: the published status ages. Raises
        StoreError.
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
        """Withdraw everything that the owner said; returns whether anything was shown."""
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
    """Both ends of the exchange: besides the standby's part, `asked` and `tell` for the owner.

    `where` names this process in words, for people who look for the owner.
    """

    def __init__(
        self, digest: str, bulletins: Bulletins, publisher: Publisher, clock: Clock, where: str = ""
    ) -> None:
        super().__init__(digest, bulletins, publisher, clock)
        self._bulletins, self._where = bulletins, where

    def asked(self) -> bytes:
        """The questions to answer: read them before the status is written."""
        return self._bulletins.asked()

    def tell(
        self,
        asked: bytes,
        said: ComparisonStatus | ShardStatus,
        reports: Mapping[str, DivergenceReport],
        waiting: Sequence[UnmatchedEvent] = (),
    ) -> None:
        """Answer with a status that was written after `asked` was read.

        The bulletin also holds the provisional reports, and the longest unmatched events of each side.
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
        """Withdraw the last bulletin: the comparison is reset."""
        self._bulletins.tell(b"")


def _written(items: Iterable[Frozen], most: int) -> Iterator[str]:
    """The first items as JSON, up to this total size."""
    size = 0
    for item in items:
        text = item.model_dump_json()
        size += len(text)
        if size > most:
            return
        yield text
