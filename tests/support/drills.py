"""A drill: a service is disturbed while its topics differ in one event, and ends as one that was not.

Meanwhile its gate is asked all the time, and every answer that was seen is judged afterwards.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from deploy.embedded.redis_server import RedisServer
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.waiting import eventually

KEYS = 10
PAIRS = 500
WAIT_SECONDS = 90.0

_SAME = ("verdict", "events", "matched", "accounts", "divergences", "verified_up_to", "hole_count")

_PAUSE_SECONDS = 0.05


class Seen(NamedTuple):
    """One answer of a gate; `unreachable` where the service gave none."""

    service: int
    answer: str
    matched: int
    reason: str


class Watch:
    """Asks the gates of some services all the time, on a thread of its own."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._services: list[ServiceProcess] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def add(self, service: ServiceProcess) -> None:
        """Ask this one, too. Its address may change when it is started again."""
        self._services.append(service)

    def answers(self, service: int = 0) -> list[str]:
        """What one service said, without repetitions."""
        return [answer for answer, _ in groupby(each.answer for each in self.seen if each.service == service)]

    def newest(self, service: ServiceProcess) -> str:
        """The last answer of a service; empty before the first."""
        number = self._services.index(service)
        return next((each.answer for each in reversed(self.seen) if each.service == number), "")

    def _run(self) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            for number, service in enumerate(self._services):
                self.seen.append(_ask(number, service))

    @contextlib.contextmanager
    def asking(self) -> Iterator[Watch]:
        """Ask from here on, until the end of the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()


def _ask(number: int, service: ServiceProcess) -> Seen:
    answer = service.asked("/gate")
    if not answer:
        return Seen(number, "unreachable", 0, "")
    return Seen(number, answer["answer"], answer["matched"], answer["reason"])


class Drill:
    """One comparison, a writer to its topics that counts, and the gates of all its services, watched.

    `brokers` and `redis` are for the service; the writer and the undisturbed service use `calm_brokers`.
    """

    def __init__(
        self,
        folder: Path,
        topics: tuple[str, str],
        brokers: str,
        redis: str,
        *,
        calm_brokers: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._brokers, self._redis = brokers, redis
        self._calm_brokers = calm_brokers or brokers
        self.name = f"drill-{uuid.uuid4().hex[:12]}"
        self.spec, self._calm_spec = (
            spec_file(folder, name, *topics) for name in (self.name, f"{self.name}-calm")
        )
        self.watch = Watch()
        self.write = Writer(self._calm_brokers, *topics)
        self.pairs = 0
        self.planted: list[int] = []
        self._asked_before: list[int] = []
        self.services: list[ServiceProcess] = []
        self.service = self.another(environment)

    def another(self, environment: Mapping[str, str] | None = None) -> ServiceProcess:
        """One more service for the same comparison, that is watched once it has been started."""
        self.services.append(ServiceProcess(self.spec, self._brokers, self._redis, environment=environment))
        return self.services[-1]

    @contextlib.contextmanager
    def running(self) -> Iterator[Drill]:
        """Run the service on equal topics until it passes; stop whatever runs at the end of the block."""
        self.service.start()
        try:
            with self.watch.asking():
                self.watch.add(self.service)
                self.write_on()
                self.passes()
                yield self
        finally:
            for service in self.services:
                service.end()

    def write_on(self, pairs: int = PAIRS) -> None:
        """Write so many more events to both sides."""
        self.write.both(range(self.pairs, self.pairs + pairs), keys=KEYS)
        self.pairs += pairs

    def plant(self) -> None:
        """Write one event to the reference only, and equal ones behind it."""
        self.planted.append(self.pairs)
        self._asked_before.append(len(self.watch.seen))
        self.write.reference(3, -len(self.planted))
        self.write.flush()
        self.write_on()

    def passes(self) -> None:
        """The gate passes with all that was written."""
        self.says(lambda status: status["matched"] == self.pairs, "all pairs match")
        self.answers("pass")

    def answers(self, answer: str, service: ServiceProcess | None = None) -> None:
        """The gate gives this answer in the end, and the watch has seen it."""
        of = service or self.service
        eventually(
            lambda: self.watch.newest(of) == answer,
            seconds=WAIT_SECONDS,
            what=f"the gate says {answer}; log: {of.log()[-1000:]}",
        )

    def says(
        self, true: Callable[[dict[str, Any]], bool], what: str, service: ServiceProcess | None = None
    ) -> dict[str, Any]:
        """The status once something is true of it."""
        return (service or self.service).says(true, what, WAIT_SECONDS)

    def degraded(self, sentence: str, service: ServiceProcess | None = None) -> None:
        """Health is degraded with a reason that holds this, and the gate is undecided."""
        self.says(
            lambda status: any(sentence in reason for reason in status["health"]["reasons"]),
            f"health is degraded with: {sentence}",
            service,
        )
        self.answers("undecided", service)

    def _outcome(self, service: ServiceProcess) -> dict[str, Any]:
        """What must not depend on disturbances, once everything is read, settled and saved."""
        events = 2 * self.pairs + len(self.planted)

        def settled(status: dict[str, Any]) -> bool:
            read = sum(status["events"].values()) >= events and not sum(status["unmatched"].values())
            return bool(read and status["verdict"] == "DIVERGED")

        what = f"{events} events are settled, and it has diverged"
        since = self.says(settled, what, service)["updated_at"]
        # Offsets are those of the latest survey: it has to be one that saw all of this.
        surveyed = f"{what}, and have been surveyed"
        status = self.says(
            lambda it: settled(it) and (it["verified_through"] or "") > since, surveyed, service
        )
        found = sorted((each["kind"], str(each["positions"])) for each in service.divergences())
        return {**{member: status[member] for member in _SAME}, "found": found}

    def ends_as_undisturbed(
        self,
        calm: RedisServer,
        *,
        service: ServiceProcess | None = None,
    ) -> None:
        """The service ends as one that was not disturbed, and no answer on the way there was wrong."""
        # In a comparison of its own; it reads while the other one settles.
        with ServiceProcess(self._calm_spec, self._calm_brokers, calm.url) as undisturbed:
            shaken = self._outcome(service or self.service)
            self.answers("fail", service)
            calm_outcome = self._outcome(undisturbed)
        differ = {key: (shaken[key], calm_outcome[key]) for key in shaken if shaken[key] != calm_outcome[key]}
        assert not differ, f"disturbed and undisturbed: {differ}"
        self.said_nothing_wrong()

    def said_nothing_wrong(self) -> None:
        """Judge every answer: no fail without a difference, no pass with one, and no pass behind a fail.

        Of ten keys one has the difference. So when more pairs are matched than were there before it and nine
        tenths of those behind it, then a pair is among them that proves it.
        """
        seen = self.watch.seen
        assert any(each.answer == "pass" for each in seen), "the gate was watched"
        before = self._asked_before[0] if self.planted else len(seen)
        early = [each for each in seen[:before] if each.answer == "fail"]
        assert not early, early[0]
        if not self.planted:
            return
        fails = [each for each in seen if each.answer == "fail"]
        unproven = self.planted[0] + (self.pairs - self.planted[0]) * (KEYS - 1) // KEYS
        false = [each for each in seen if each.answer == "pass" and each.matched > unproven]
        assert not false, false[0]
        if fails:
            later = seen[seen.index(fails[0]) :]
            assert "pass" not in {each.answer for each in later}, [each.answer for each in later]
