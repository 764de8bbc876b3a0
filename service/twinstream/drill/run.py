"""Runs a drill: copies, plants, serves, watches, and cleans up at every exit.

The live comparison is only read: its topics through a consumer that commits nothing, and nothing of its state
in Redis. Everything written has a name of the drill's own.

`sweep` removes the leftovers of drills that did not clean up. A drill that may still be running is left
alone: it runs as long as its note in Redis exists, which expires at the latest when its time is over.
"""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.kafka.drill import DrillTopics
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.adapters.redis.drill import DrillKeys
from twinstream.core.events import Side
from twinstream.drill import shadow, signals
from twinstream.drill.alarm import Alarm
from twinstream.drill.copies import CopiedPair, CopiedStretch, stretch_of
from twinstream.drill.planting import PlantedDifference, PlantedKind, plan
from twinstream.drill.shadow import ExpectedSign
from twinstream.drill.shadow_service import ShadowService
from twinstream.drill.signals import AlarmPath, SeenSignal, SignalState, WantedSignal
from twinstream.errors import SettingsError, StoreError, TwinstreamError
from twinstream.offline.offset_range import ALL_OFFSETS, Recorded
from twinstream.settings import Settings
from twinstream.spec.drills import DrillRecord, Names
from twinstream.spec.file.model import Spec

POLL_SECONDS = 0.1
BEFORE_SECONDS = 60.0
PASS_SECONDS = 15.0
TIMEOUT = timedelta(minutes=1)
SCRAPES = timedelta(minutes=3)
"""Allowance for scrapes and evaluations, each of which may run once a minute."""
HELD: dict[ExpectedSign, timedelta] = {
    "fail": timedelta(0), "suspicion": timedelta(minutes=10), "stall": timedelta(minutes=5),
}  # fmt: skip
"""How long the shipped rules delay each alert."""
SPARE_SECONDS = 300

EXPECTED: dict[ExpectedSign, str] = {
    "fail": "DIVERGED, and a gate that fails",
    "suspicion": "a suspicion, and an undecided gate: order and clock of this file prove no loss",
    "stall": "degraded health, and an undecided gate: silence is not a difference",
}

TellStep = Callable[[str, str], None]
"""Reports progress to the person who waits: a word, and its subject."""


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    kind: PlantedKind
    field: str | None
    records: int
    timeout: timedelta | None
    scrape_file: Path | None
    prometheus: str | None
    alertmanager: str | None
    page: bool

    def bounded(self, expectation: ExpectedSign, awaited: timedelta) -> timedelta:
        """How long the alarm may take, if the rules of the comparison themselves wait for `awaited`."""
        if self.timeout is not None:
            return self.timeout
        return awaited + (TIMEOUT if self.prometheus is None else SCRAPES + HELD[expectation])


# -- the drill ---------------------------------------------------------------------------------------------


class Drill:
    """One drill of a comparison. `settings` are those of the live one, `own` those of the copies."""

    def __init__(
        self, spec: Spec, settings: Settings, own: Settings, options: Options, tell: TellStep
    ) -> None:
        self._spec, self._settings, self._own, self._options = spec, settings, own, options
        self._tell = tell
        self._names = names = Names(spec.name, secrets.token_hex(4))
        self._alarm = Alarm(names, options.prometheus, options.alertmanager, page=options.page)
        self._report: dict[str, Any] = {
            "result": "undecided", "reason": "", "comparison": names.live, "drill": names.comparison,
        }  # fmt: skip
        self._seen: list[SeenSignal] = []
        self._missing: list[str] = []
        self._limit = 0.0

    def run(self) -> dict[str, Any]:
        """Run it; returns the report as ``drill --json`` prints it.

        Its `result` is `alarm`, `no alarm`, or `undecided` if the copies were not well before.

        Raises SettingsError if it is impossible, SourceError and StoreError.
        """
        names, options = self._names, self._options
        stretch, partitions = _read_stretch(self._spec, self._settings, options.records)
        planted = plan(self._spec, stretch.pair, options.kind, names.identifier, options.field)
        expectation = shadow.expected(self._spec, planted)
        not_exercised = [*self._alarm.check(expectation), *shadow.left_out(self._spec)]
        self._limit = options.bounded(expectation, shadow.awaited(self._spec, planted)).total_seconds()
        copies = shadow.dated(self._spec, planted, int(time.time() * 1000))
        served = shadow.shadow_of(self._spec, names, min(planted.before))
        self._describe(stretch, planted, expectation)
        with _Stopping() as self._stopping, ExitStack() as stack:
            topics = self._prepare(stack, partitions, copies)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twinstream-drill-")))
            token = os.environ.get("TWINSTREAM_TOKEN")
            service = stack.enter_context(ShadowService(self._own, served, folder / "service.log", token))
            stack.enter_context(self._alarm.scraped(service.address, options.scrape_file))
            self._hold_back()
            topics.write(shadow.before(names, copies, planted))
            if self._before(service, planted):
                tail = shadow.behind(self._spec, names, copies, planted)
                events = len(planted.pair.reference), len(planted.pair.candidate)
                about = planted.about(self._spec)
                wanted = WantedSignal(expectation, events, about, planted.closed, *self._alarm.asked)
                self._watch(service, topics, wanted, tail)
        steps = [one._asdict() for one in self._seen]
        return {**self._report, "steps": steps, "missing": self._missing, "not_exercised": not_exercised}

    # -- beforehand ----------------------------------------------------------------------------------------

    def _describe(
        self, stretch: CopiedStretch, planted: PlantedDifference, expectation: ExpectedSign
    ) -> None:
        origin, alone, names = planted.origin, stretch.alone, self._names
        topic = (self._spec.candidate if alone is None else self._spec.reference).topic
        place = {"partition": origin.partition, "offset": origin.offset}
        copied = {"reference": len(stretch.pair.reference), "candidate": len(stretch.pair.candidate)}
        self._report.update(
            kind=planted.kind,
            expected=expectation,
            copied={**copied, "both": alone is None, "reason": alone},
            planted={
                "text": f"{planted.kind}: copy of {topic} partition {origin.partition} "
                f"offset {origin.offset}: {planted.text}",
                "record": {"topic": topic, **place},
                "topic": names.topics[Side.RIGHT],
                "marked": [{"partition": part, "offset": offset} for part, offset in planted.places],
            },
        )
        self._tell("drill", f"{names.comparison}: nothing is written to the topics of {self._spec.name}")
        self._tell("expected", EXPECTED[expectation])
        whose = "of each topic" if alone is None else f"of {topic} as both sides, since {alone}"
        self._tell("copied", f"the last {copied['reference']:,} events {whose}")

    # -- around it -----------------------------------------------------------------------------------------

    def _prepare(self, stack: ExitStack, partitions: tuple[int, int], copies: CopiedPair) -> DrillTopics:
        """Create the topics; everything that the drill makes is removed when the stack is left."""
        names, own = self._names, self._own
        topics = DrillTopics(own.brokers, own.kafka)
        keys = stack.enter_context(closing(DrillKeys(own.redis)))
        keys.begin(names.comparison, int(self._limit + BEFORE_SECONDS + SPARE_SECONDS))
        stack.callback(self._clean, topics, keys)
        times = [record.timestamp_ms for side in Side for record in copies[side]]
        topics.create(dict(zip(names.topics, partitions, strict=True)), max(times) - min(times))
        return topics

    def _clean(self, topics: DrillTopics, keys: DrillKeys) -> None:
        """Remove everything that was made; whatever remains is named."""
        names = self._names
        left = topics.remove(names.topics, names.groups(self._own.shards))
        try:
            keys.remove(names.comparison)
        except StoreError as error:
            left.append(f"keys of {names.comparison} ({error})")
        for one in left:
            self._tell("left over", f"{one}; `twinstream drill --sweep` removes it")
        self._report["left_over"] = left

    def _hold_back(self) -> None:
        silence = self._alarm.silence()
        if silence is not None:
            self._report["silence"] = silence
            self._tell("silence", f"{silence} holds alerts of the drill back; it ends by itself")

    # -- watching ------------------------------------------------------------------------------------------

    def _before(self, service: ShadowService, planted: PlantedDifference) -> bool:
        """Whether the copies are fine before the difference; their state is reported.

        The gate should pass, so that its change is seen; if it does not within some seconds, it is enough
        that nothing is wrong. A doubt is given the same time: the times of the copies may be minutes apart,
        so events whose partners are still being written look overdue until the next survey.
        """
        began = time.monotonic()
        while True:
            look = self._look(service, None)
            waited, gate, verdict = time.monotonic() - began, look.gate, look.status["verdict"]
            all_read = signals.read(look, planted.before)
            settled = all_read and (gate["pass"] or waited > PASS_SECONDS)
            wrong = verdict == "DIVERGED" or (settled and verdict == "INCONCLUSIVE")
            if wrong or (not all_read and waited > BEFORE_SECONDS):
                why = look.status["reason"]
                self._report["reason"] = (
                    f"nothing was planted: the copies already differed or were unsure: {why}"
                )
                return False
            if settled:
                said = {"verdict": verdict, "gate": gate["answer"], "reason": gate["reason"]}
                self._report["before"] = said
                why = "" if gate["pass"] else f": {gate['reason']}"
                self._tell("before", f"{all_read}; {verdict}, the gate says {gate['answer']}{why}")
                return True
            time.sleep(POLL_SECONDS)

    def _watch(
        self, service: ShadowService, topics: DrillTopics, wanted: WantedSignal, tail: shadow.Behind
    ) -> None:
        """Write the difference and what follows it, and see what comes of it."""
        at = topics.write(tail.first, tail.mark)
        self._tell("planted", str(self._report["planted"]["text"]))
        course = AlarmPath(signals.signals(wanted))
        deadline, waits = at + self._limit, bool(tail.rest)
        wrong, look = None, None
        while course.awaited and wrong is None and time.monotonic() < deadline:
            look = self._look(service, wanted.expectation)
            wrong = signals.unexpected(look, wanted)
            if waits and signals.read(look, tail.events):
                topics.write(tail.rest)
                waits = False
            for seen in course.look(round(time.monotonic() - at, 3), look):
                self._tell(f"+{seen.seconds:.2f} s", f"{seen.name}: {seen.text}")
            time.sleep(POLL_SECONDS if course.awaited else 0)
        self._seen, self._missing = course.seen, course.awaited
        self._report["result"] = "no alarm" if wrong is not None or course.awaited else "alarm"
        self._report["reason"] = wrong or self._outcome(course, look)

    def _outcome(self, course: AlarmPath, last: SignalState | None) -> str:
        """What came of the drill, if nothing came that must not."""
        if not course.awaited:
            return f"the alarm came: {signals.moments(course.seen)} after the difference was written"
        says = "" if last is None else f"; {last.status['verdict']}: {last.status['reason']}"
        return f"within {self._limit:g} s there was no {', '.join(course.awaited)}{says}"

    def _look(self, service: ShadowService, expectation: ExpectedSign | None) -> SignalState:
        """The present signals; outside servers are asked at most once a second."""
        outside = {} if expectation is None else self._alarm.look(expectation)
        self._stopping.check()
        samples, gate = service.samples(), service.get("/gate")
        found = service.get("/divergences?limit=50")["items"]
        # The first to appear is asked last.
        return SignalState(service.get(), gate, found, samples, **outside)


def _read_stretch(spec: Spec, settings: Settings, records: int) -> tuple[CopiedStretch, tuple[int, int]]:
    """The last records of both topics as a stretch, and the number of partitions of each topic.

    Raises SettingsError if there is nothing to copy or no client can have these settings, and SourceError.
    """
    if spec.folding is not None:
        raise SettingsError(
            f"comparison {spec.name!r} cannot be drilled: a drill plants a difference in single events, and "
            "with `emits` rows replace each other"
        )
    names = {side: spec.version_of(side).topic for side in Side}
    source = KafkaSource(
        settings.brokers, f"{spec.name}.drill", names, settings.kafka, headers=True, keys=True
    )
    with closing(source):
        topics = source.topics()
        each = {side: max(1, records // len(topic.ends)) for side, topic in topics.items()}
        ranges = {
            side: {p: ALL_OFFSETS[max(0, end - each[side]) :] for p, end in topic.ends.items()}
            for side, topic in topics.items()
        }
        recorded = Recorded(source, names, ranges, records, SystemClock())
        found = [
            [
                DrillRecord(
                    line.partition, line.offset, line.timestamp_ms, line.key, line.headers, line.record
                )
                for line in recorded.lines(side)
            ]
            for side in Side
        ]
    return stretch_of(spec, *found), (len(topics[Side.LEFT].first), len(topics[Side.RIGHT].first))


class _Stopping:
    """Catches Ctrl-C and SIGTERM while the block runs; raises KeyboardInterrupt only where it does no harm.

    Inside a call to Kafka's client it might be lost, and during cleaning up it would leave things behind.
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


@dataclass(frozen=True)
class Leftover:
    """The leftovers of one drill that did not clean up; `runs` if it may still be running."""

    comparison: str
    topics: Sequence[str]
    runs: bool


def leftovers(own: Settings) -> list[Leftover]:
    """All drills that have left something. Raises SourceError and StoreError."""
    topics: dict[str, list[str]] = {}
    for name in DrillTopics(own.brokers, own.kafka).found():
        if (names := Names.of_topic(name)) is not None:
            topics.setdefault(names.comparison, []).append(name)
    with closing(DrillKeys(own.redis)) as keys:
        for comparison in keys.found():
            topics.setdefault(comparison, [])
        return [Leftover(name, found, keys.runs(name)) for name, found in sorted(topics.items())]


def sweep(own: Settings, left: Sequence[Leftover]) -> list[str]:
    """Remove the leftovers of drills that no longer run; returns those that remain, with reasons."""
    topics = DrillTopics(own.brokers, own.kafka)
    problems = []
    with closing(DrillKeys(own.redis)) as keys:
        for one in left:
            group = f"twinstream.{one.comparison}"
            groups = [
                name for name in topics.groups(group) if name in {group} or name.startswith(f"{group}.")
            ]
            problems += topics.remove(one.topics, groups)
            keys.remove(one.comparison)
    return problems
