"""Conducts a drill: copies, plants, serves, watches, and cleans up in every exit.

The live comparison is only read from: its topics through a consumer that commits nothing, and nothing of its
state in Redis. All that is written has a name of the drill's own.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from twinstream.adapters.alarm import Alertmanager, Prometheus
from twinstream.adapters.kafka_drill import DrillTopics
from twinstream.adapters.redis_drill import DrillKeys
from twinstream.cli.drill_reading import read_stretch
from twinstream.cli.shadow_service import ShadowService
from twinstream.core.events import Side
from twinstream.errors import SettingsError, StoreError, TwinstreamError
from twinstream.runtime.drill.copies import Pair, Stretch
from twinstream.runtime.drill.course import Course, Seen
from twinstream.runtime.drill.planting import Kind, Plan, plan
from twinstream.runtime.drill.shadow import Expectation, awaited, dated, expected, left_out, shadow_of
from twinstream.runtime.drill.signals import ALERTS, Look, Wanted, read, series, signals, unexpected
from twinstream.runtime.drill.writing import Behind, before, behind
from twinstream.settings import Settings
from twinstream.spec.drills import Names
from twinstream.spec.model import Spec

POLL_SECONDS = 0.1
ASK_SECONDS = 1.0
"""Between two questions to Prometheus and Alertmanager, which do nothing more often."""
BEFORE_SECONDS = 60.0
PASS_SECONDS = 15.0
TIMEOUT = timedelta(minutes=1)
SCRAPES = timedelta(minutes=3)
"""What is allowed for scrapes and evaluations, which may be a minute apart each."""
HELD: dict[Expectation, timedelta] = {
    "fail": timedelta(0), "suspicion": timedelta(minutes=10), "stall": timedelta(minutes=5),
}  # fmt: skip
"""For how long the shipped rules hold each alert back."""
SILENCE = timedelta(hours=2, minutes=30)
"""Beyond the hour after which a comparison that is gone is told of."""
SPARE_SECONDS = 300

EXPECTED: dict[Expectation, str] = {
    "fail": "DIVERGED, and a gate that fails",
    "suspicion": "a suspicion, and an undecided gate: neither order nor clock of this file proves a loss",
    "stall": "degraded health, and an undecided gate: silence is no difference",
}

Tell = Callable[[str, str], None]
"""Tells the person who waits: a word, and what it is about."""


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    kind: Kind
    field: str | None
    records: int
    timeout: timedelta | None
    scrape_file: Path | None
    prometheus: str | None
    alertmanager: str | None
    page: bool

    def bounded(self, expectation: Expectation, awaited: timedelta) -> timedelta:
        """How long the alarm may take, where the rules of the comparison let that much pass themselves."""
        if self.timeout is not None:
            return self.timeout
        return awaited + (TIMEOUT if self.prometheus is None else SCRAPES + HELD[expectation])


@dataclass
class Report:
    """What came of a drill: `alarm`, `no alarm`, or `undecided` where it could not be held."""

    names: Names
    told: dict[str, Any] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    awaited: Sequence[str] = ()
    not_exercised: list[str] = field(default_factory=list)
    result: str = "undecided"
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As ``drill --json`` prints it."""
        return {
            "result": self.result,
            "reason": self.reason,
            "comparison": self.names.live,
            "drill": self.names.comparison,
            **self.told,
            "steps": [one._asdict() for one in self.seen],
            "missing": list(self.awaited),
            "not_exercised": self.not_exercised,
        }


# -- the drill ---------------------------------------------------------------------------------------------


class Drill:
    """One drill of a comparison. `settings` are those of the live one, `own` those of the copies."""

    def __init__(self, spec: Spec, settings: Settings, own: Settings, options: Options, tell: Tell) -> None:
        self._spec, self._settings, self._own, self._options = spec, settings, own, options
        self._tell = tell
        self.report = Report(Names(spec.name, secrets.token_hex(4)))
        self._prometheus = None if options.prometheus is None else Prometheus(options.prometheus)
        self._alertmanager = None if options.alertmanager is None else Alertmanager(options.alertmanager)
        self._asked_at = float("-inf")
        self._last: dict[str, Any] = {}
        self._limit = 0.0

    def run(self) -> Report:
        """Hold it. Raises SettingsError where it cannot be, SourceError and StoreError."""
        names, options = self.report.names, self._options
        stretch, partitions = read_stretch(self._spec, self._settings, options.records)
        planted = plan(self._spec, stretch.pair, options.kind, names.identifier, options.field)
        expectation = expected(self._spec, planted)
        self._check_alarm(expectation)
        self._limit = options.bounded(expectation, awaited(self._spec, planted)).total_seconds()
        copies = dated(self._spec, planted, int(time.time() * 1000))
        shadow = shadow_of(self._spec, names, min(planted.before))
        self._describe(stretch, planted, expectation)
        with _Stopping() as self._stopping, ExitStack() as stack:
            topics = self._prepare(stack, partitions, copies)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twinstream-drill-")))
            token = os.environ.get("TWINSTREAM_TOKEN")
            service = stack.enter_context(ShadowService(self._own, shadow, folder / "service.log", token))
            stack.enter_context(self._scraped(service.address))
            self._silence()
            topics.write(before(names, copies, planted))
            if self._before(service, planted):
                tail = behind(self._spec, names, copies, planted)
                at = topics.write(tail.first, tail.mark)
                self._tell("planted", str(self.report.told["planted"]["text"]))
                self._watch(service, planted, expectation, at, lambda: topics.write(tail.rest), tail)
        return self.report

    # -- beforehand ----------------------------------------------------------------------------------------

    def _check_alarm(self, expectation: Expectation) -> None:
        """Nobody is woken who does not want to be, and nothing is waited for that cannot come."""
        prometheus, name = self._prometheus, ALERTS[expectation]
        if prometheus is None:
            self.report.not_exercised.append(
                "the alert: give --prometheus, and --scrape-file or --bind so that it scrapes the drill"
            )
        elif not prometheus.has_rule(name):
            raise SettingsError(
                f"Prometheus at {prometheus.address} has no rule {name} that it can evaluate: load the rules "
                "of deploy/prometheus/rules"
            )
        elif self._alertmanager is None and not self._options.page and (sent := prometheus.alertmanagers()):
            place = urlsplit(sent[0]).netloc
            raise SettingsError(
                f"Prometheus sends alerts to {place}, so this drill may wake somebody: give --alertmanager, "
                "where it is then held back by a silence, or --page to let it through"
            )
        if self._alertmanager is None:
            self.report.not_exercised.append("the route of the alert: give --alertmanager")
        self.report.not_exercised.append("whether a person is reached: Alertmanager's receivers end there")
        self.report.not_exercised += left_out(self._spec)

    def _describe(self, stretch: Stretch, planted: Plan, expectation: Expectation) -> None:
        origin, topic = planted.origin, self._spec.candidate.topic
        if stretch.alone is not None:
            topic = self._spec.reference.topic
        place = f"{topic} partition {origin.partition} offset {origin.offset}"
        text = f"{planted.kind}: the copy of {place} {planted.text}"
        marked = [{"partition": partition, "offset": offset} for partition, offset in planted.places]
        copied = {"reference": len(stretch.pair.reference), "candidate": len(stretch.pair.candidate)}
        self.report.told.update(
            kind=planted.kind,
            expected=expectation,
            copied={**copied, "both": stretch.alone is None, "reason": stretch.alone},
            planted={
                "text": text,
                "record": {"topic": topic, "partition": origin.partition, "offset": origin.offset},
                "topic": self.report.names.topics[Side.RIGHT],
                "marked": marked,
            },
        )
        self._tell(
            "drill", f"{self.report.names.comparison}: nothing is written to the topics of {self._spec.name}"
        )
        whose = (
            "of each topic" if stretch.alone is None else f"of {topic} as both sides, since {stretch.alone}"
        )
        self._tell("expected", EXPECTED[expectation])
        self._tell("copied", f"the last {copied['reference']} events {whose}")

    # -- around it -----------------------------------------------------------------------------------------

    def _prepare(self, stack: ExitStack, partitions: tuple[int, int], copies: Pair) -> DrillTopics:
        """Create the topics; all that the drill makes is removed when the stack is left."""
        names, own = self.report.names, self._own
        topics = DrillTopics(own.brokers, own.kafka)
        keys = stack.enter_context(closing(DrillKeys(own.redis)))
        keys.begin(names.comparison, int(self._limit + BEFORE_SECONDS + SPARE_SECONDS))
        stack.callback(self._clean, topics, keys)
        times = [record.timestamp_ms for side in Side for record in copies.of(side)]
        topics.create(dict(zip(names.topics, partitions, strict=True)), max(times) - min(times))
        return topics

    def _clean(self, topics: DrillTopics, keys: DrillKeys) -> None:
        """Remove what was made; what is left is named."""
        names = self.report.names
        left = topics.remove(names.topics, names.groups(self._own.shards))
        try:
            keys.remove(names.comparison)
        except StoreError as error:
            left.append(f"keys of {names.comparison} ({error})")
        for one in left:
            self._tell("left over", f"{one}; `twinstream drill --sweep` removes it")
        self.report.told["left_over"] = left

    @contextmanager
    def _scraped(self, address: str) -> Iterator[None]:
        """Have Prometheus scrape the drill's service while the block runs."""
        file = self._options.scrape_file
        if file is None:
            yield
            return
        place = urlsplit(address)
        host = socket.gethostname() if place.hostname in {"0.0.0.0", "::"} else place.hostname
        written = file.with_name(f".{file.name}.{self.report.names.identifier}")
        try:
            written.write_bytes(orjson.dumps([{"targets": [f"{host}:{place.port}"]}]))
            written.replace(file)
        except OSError as error:
            raise SettingsError(f"--scrape-file {file} cannot be written: {error.strerror}") from None
        try:
            yield
        finally:
            with suppress(OSError):
                file.unlink()

    def _silence(self) -> None:
        if self._alertmanager is not None and not self._options.page:
            silence = self._alertmanager.silence(self.report.names.comparison, SILENCE)
            self.report.told["silence"] = silence
            self._tell("silence", f"{silence} holds alerts of the drill back; it ends by itself")

    # -- watching ------------------------------------------------------------------------------------------

    def _before(self, service: ShadowService, planted: Plan) -> bool:
        """Whether all is well with the copies before the difference; what they say is reported.

        The gate should pass, so that its change is seen; where it does not within some seconds, it is enough
        that nothing is wrong.
        """
        began = time.monotonic()
        while True:
            look = self._look(service, None)
            waited, verdict, gate = time.monotonic() - began, look.gate["verdict"], look.gate
            all_read = read(look, planted.before)
            if verdict in {"DIVERGED", "INCONCLUSIVE"} or (not all_read and waited > BEFORE_SECONDS):
                why = look.status["reason"]
                self.report.reason = f"nothing was planted, since the copies were not well before: {why}"
                return False
            if all_read and (gate["pass"] or waited > PASS_SECONDS):
                self.report.told["before"] = {
                    "verdict": verdict,
                    "gate": gate["answer"],
                    "reason": gate["reason"],
                }
                why = "" if gate["pass"] else f": {gate['reason']}"
                self._tell("before", f"{all_read}; {verdict}, the gate says {gate['answer']}{why}")
                return True
            time.sleep(POLL_SECONDS)

    def _watch(
        self,
        service: ShadowService,
        planted: Plan,
        expectation: Expectation,
        at: float,
        write_rest: Callable[[], float],
        tail: Behind,
    ) -> None:
        events = (len(planted.pair.reference), len(planted.pair.candidate))
        about = planted.about(self._spec)
        asked = self._prometheus is not None, self._alertmanager is not None
        wanted = Wanted(expectation, events, about, planted.closed, *asked)
        course = Course(signals(wanted))
        deadline, waits = at + self._limit, bool(tail.rest)
        wrong, look = None, None
        while course.awaited and wrong is None and time.monotonic() < deadline:
            look = self._look(service, expectation)
            wrong = unexpected(look, wanted)
            if waits and read(look, tail.events):
                write_rest()
                waits = False
            for seen in course.look(round(time.monotonic() - at, 3), look):
                self._tell(f"+{seen.seconds:.2f} s", f"{seen.name}: {seen.text}")
            time.sleep(POLL_SECONDS if course.awaited else 0)
        self.report.seen, self.report.awaited = course.seen, course.awaited
        self._conclude(course, wrong, look)

    def _conclude(self, course: Course, wrong: str | None, last: Look | None) -> None:
        report = self.report
        if wrong is not None:
            report.result, report.reason = "no alarm", wrong
        elif course.awaited:
            lacks = ", ".join(course.awaited)
            says = "" if last is None else f"; {last.status['verdict']}: {last.status['reason']}"
            report.result = "no alarm"
            report.reason = f"within {self._limit:g} s there was no {lacks}{says}"
        else:
            end = course.seen[-1]
            report.result = "alarm"
            report.reason = f"the alarm came: {end.name} {end.seconds:.1f} s after the difference was written"

    def _look(self, service: ShadowService, expectation: Expectation | None) -> Look:
        """What is said now; those who are not ours are asked once a second."""
        if expectation is not None and time.monotonic() - self._asked_at >= ASK_SECONDS:
            self._asked_at = time.monotonic()
            self._last = self._alarm(expectation)
        self._stopping.check()
        samples, gate = service.samples(), service.get("/gate")
        found = service.get("/divergences?limit=50")["items"]
        return Look(service.get(), gate, found, samples, **self._last)  # What comes first is asked for last.

    def _alarm(self, expectation: Expectation) -> dict[str, Any]:
        comparison, said = self.report.names.comparison, dict[str, Any]()
        if self._prometheus is not None:
            said["live"] = self._prometheus.has(
                f'twinstream_status_fresh{{comparison="{self._spec.name}"}} == 1'
            )
            said["scraped"] = self._prometheus.has(f"{series(expectation, comparison)} >= 1")
            said["alerts"] = self._prometheus.alerts(comparison)
        if self._alertmanager is not None:
            routes = self._alertmanager.routes(comparison)
            said["routed"] = {name: route.text for name, route in routes.items()}
        return said


class _Stopping:
    """Takes Ctrl-C and SIGTERM while the block runs, and raises KeyboardInterrupt where that does no harm.

    In the middle of a call into Kafka's client it might be lost, and in the middle of cleaning up it would
    leave things behind.
    """

    def __enter__(self) -> _Stopping:
        self._asked = False
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._former = {number: signal.signal(number, self._ask) for number in numbers}
        return self

    def _ask(self, _number: int, _frame: object) -> None:
        self._asked = True

    def check(self) -> None:
        """Raise KeyboardInterrupt if the drill is to stop."""
        if self._asked:
            raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        if kind is None or issubclass(kind, TwinstreamError):
            self.check()
