"""Bugs planted around the product, which the simulation must find."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.simulation.run import Failure, simulate
from twinstream.adapters.memory import MemoryStorage, MemoryStore
from twinstream.core.events import Side
from twinstream.errors import Fenced
from twinstream.ports import Checkpoint
from twinstream.runtime.worker import Worker


class CommitsApart(Worker):
    """Positions are committed at each beat to a place of their own, and not with the state."""

    def __init__(self, committed: dict[Side, dict[int, int]], *ports: Any) -> None:
        super().__init__(*ports)
        self._committed, self._reads = committed, ports[1]

    def start(self) -> bool:
        if not super().start():
            return False
        for side, positions in self._committed.items():
            self.intake.positions[side].update(positions)
        self._reads.assign(self.intake.positions)
        return True

    def beat(self) -> None:
        self._committed.update({side: dict(self.intake.positions[side]) for side in Side})
        super().beat()


class ReadsTwice(Worker):
    """What the last save has taken in is read once more after a start: its answer counts, not its effect."""

    def __init__(self, *ports: Any) -> None:
        super().__init__(*ports)
        self._reads = ports[1]

    def start(self) -> bool:
        if not super().start():
            return False
        again = {
            side: {partition: max(0, offset - 1) for partition, offset in self.intake.positions[side].items()}
            for side in Side
        }
        self._reads.assign(again)
        return True


class FencesItself(MemoryStore):
    """Whether this is the owner is remembered from the last answer, and not asked with each write."""

    def __init__(self, storage: MemoryStorage, token: str) -> None:
        super().__init__(storage, token)
        self._server, self._me, self._mine = storage, token, False

    def acquire(self) -> bool:
        self._mine = super().acquire()
        return self._mine

    def renew(self, sequence: int) -> bool:
        self._mine = False
        kept = super().renew(sequence)
        self._mine = True
        return kept

    def save(self, *what: Any) -> None:
        if not self._mine:
            raise Fenced("another process has taken this comparison over")
        self._server.owner = self._me
        super().save(*what)


class TakesWhateverComes(MemoryStore):
    """A base replaces whatever there is, a delta is put on top of it, also when it comes again or late."""

    def save(self, checkpoint: Checkpoint) -> None:
        stored = self._storage.stored
        if checkpoint.after is None or stored.bodies:
            self._storage.stored = stored._replace(sequence=checkpoint.after)
        super().save(checkpoint)


class SaysItBeforeItIsSaved(Worker):
    """A difference is announced at once."""

    def _publish_status(self) -> None:
        self._saved_diverged = self.comparison.diverged
        super()._publish_status()


class ReportsBeforeItSaves(Worker):
    """What a closed scope found is reported for good when it is found."""

    def _checkpoint(self) -> None:
        unsaved = self._reports.unsaved
        self._reports.saved(set())
        self._reports.unsaved = unsaved
        super()._checkpoint()


def commits_apart(seed: int) -> Failure | None:
    return simulate(seed, make=partial(CommitsApart, {}))


def reads_twice(seed: int) -> Failure | None:
    return simulate(seed, make=ReadsTwice)


def fences_itself(seed: int) -> Failure | None:
    return simulate(seed, open_store=FencesItself)


def takes_whatever_comes(seed: int) -> Failure | None:
    return simulate(seed, open_store=TakesWhateverComes)


def says_it_before_it_is_saved(seed: int) -> Failure | None:
    return simulate(seed, make=SaysItBeforeItIsSaved)


def reports_before_it_saves(seed: int) -> Failure | None:
    return simulate(seed, make=ReportsBeforeItSaves)


ALL = (
    commits_apart,
    reads_twice,
    fences_itself,
    takes_whatever_comes,
    says_it_before_it_is_saved,
    reports_before_it_saves,
)
