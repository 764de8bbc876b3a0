"""The workers of a team as processes run them, who begin their comparison anew together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.support.team import Team, write_all
from tests.support.workers import answers
from twinstream.api.state.entry import View
from twinstream.core.events import Side
from twinstream.errors import Replaced
from twinstream.explain.divergence import NAMES
from twinstream.matcher.schedule import RETRY_STORE_SECONDS
from twinstream.matcher.worker import Worker
from twinstream.status.common import Sides
from twinstream.status.comparison import Ended, Reset, ResetRefused, ResetRequest

BEFORE = Ended(
    verdict="DIVERGED",
    since=None,
    started_at="2026-03-01T12:00:00Z",  # type: ignore[arg-type]
    matched=47,
    divergences=1,
    positions=Sides[dict[str, int]](reference={"0": 1}, candidate={"0": 1}),
)


def request(start: Any = None, identifier: str = "r-1") -> ResetRequest:
    return ResetRequest(id=identifier, by="ann", reason="mended", address="", start=start, before=BEFORE)


class Players:
    """The workers of a team as processes run them, each with a token; and a board that hears all of them."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.board = team.board()
        self.tokens = {number: f"process-{number}" for number in range(team.shards)}
        self.working: dict[int, Worker] = {}
        self.waiting: dict[int, Worker] = {}
        self.replaced = 0

    def turn(self, numbers: Iterable[int] | None = None, seconds: float = RETRY_STORE_SECONDS) -> View:
        """What some of them do in a while, all if it is not said."""
        self.team.clock.advance(seconds)
        for number in self.tokens if numbers is None else numbers:
            if number in self.working:
                self._work(number)
            else:
                self._start(number)
        return self.view()

    def turns(self, count: int = 16) -> View:
        """Some turns, and what is shown then."""
        for _ in range(count):
            self.turn()
        return self.view()

    def _start(self, number: int) -> None:
        worker = self.waiting.pop(number, None) or self.team.worker(number, self.tokens[number])
        try:
            (self.working if worker.start() else self.waiting)[number] = worker
        except Replaced:
            self.replaced += 1

    def _work(self, number: int) -> None:
        try:
            self.working[number].step()
        except Replaced:
            self._leaves(number)
            self.replaced += 1

    def _leaves(self, number: int) -> None:
        self.hear()
        del self.working[number]

    def kill(self, number: int) -> None:
        """End a process; its lease is handed back, and another one is started with the next turn."""
        self.hear()
        self.working.pop(number, None)
        for storage in self.team.shelf.storages.values():
            if storage.lease == self.tokens[number]:
                storage.lease = None
        self.tokens[number] += "'"

    def hear(self) -> None:
        """The board hears what was published since."""
        for number, publisher in self.team.publishers.items():
            for publication in publisher.published:
                self.board.accept(publication, number)
            publisher.published.clear()

    def view(self) -> View:
        """What is shown now."""
        self.hear()
        return self.board.view("test")

    def reset(self, start: Any = None, identifier: str = "r-1") -> Reset | ResetRefused | None:
        """Ask for one; what came of it, None while it is waited for."""
        self.team.ask(request(start, identifier))
        return self.wait()

    def wait(self) -> Reset | ResetRefused | None:
        """Go on with one that is waited for."""
        self.team.first.answers.clear()
        if self.working[0].begin_anew():
            self._leaves(0)
        return next(iter(answers(self.team.first)), None)


def playing(shards: int = 2) -> Players:
    """A team at work on equal events."""
    players = Players(Team(shards=shards))
    write_all(players.team, 48)
    assert players.turns().gate.answer == "pass"
    return players


def at_the_ends(players: Players) -> dict[str, Any]:
    """A start where both topics end now."""
    ends = players.team.source.ends()
    return {"at": "offsets", **{NAMES[side]: dict(ends[side]) for side in Side}}
