"""Makes the metrics for Prometheus from the newest statuses at each scrape; it counts nothing itself.

Every series of an expected comparison exists from the first scrape on, at 0, so that ``rate()`` sees the
first increase and an alert on absence works. Series per partition, known difference and check exist from the
first status on, which names them; a series of a group as long as it is one of the largest. An unknown lag or
log start is NaN, not 0, so that no alert takes it for a good value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from twinstream.api.state.entry import View
from twinstream.status.common import Accounts, Verdict
from twinstream.status.comparison import (
    DEPENDENCIES,
    CheckedSide,
    ComparisonStatus,
    Histogram,
    PartitionProgress,
    Version,
)
from twinstream.status.groups import Group

VERDICTS: tuple[Verdict, ...] = ("PENDING", "EQUIVALENT", "DIVERGED", "INCONCLUSIVE")
ANSWERS = ("pass", "fail", "undecided")
SIDES = ("reference", "candidate")
UNKNOWN = float("nan")
GROUPS_TOLD, FIELDS_NAMED = 5, 3
"""The groups of a comparison that are exposed, and the fields that are named of each."""


def exposition(registry: CollectorRegistry = REGISTRY) -> Callable[[], tuple[bytes, str]]:
    """The answer of ``/metrics``: the text of all metrics of `registry`, and its content type."""
    return lambda: (generate_latest(registry), CONTENT_TYPE_LATEST)


def measure_process(registry: CollectorRegistry) -> None:
    """Report the resources of this process in `registry`: processor time, memory, open files."""
    ProcessCollector(namespace="twinstream", registry=registry)


class MatcherCollector(Collector):
    """Reports how the matchers of this process fare, which no other process knows.

    Args and use as those of `StatusCollector`.
    """

    def __init__(self, readings: Callable[[], Sequence[View]]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        """All families."""
        falls = _counter("matcher_falls", "How often the matcher fell and was started again.")
        looping = _gauge("matcher_crash_loop", "1 if the matcher falls again and again.")
        standby = _gauge("standby", "1 if another process owns the comparison, and this one stands by.")
        for reading in _judged(self._readings()):
            name = [reading.status.name]
            falls.add_metric(name, reading.falls)
            looping.add_metric(name, reading.in_crash_loop)
            standby.add_metric(name, reading.status.health.standby)
        yield from (falls, looping, standby)


class StatusCollector(Collector):
    """Reads the statuses at each scrape, as any process that shows a comparison knows them.

    Args:
        readings: all comparisons now.
        now: the wall clock, for ages.

    It is called by the thread that answers the scrape; `readings` must be callable from that thread. Register
    it with ``registry.register(collector)``, in a registry that does not check names by collecting them.
    """

    def __init__(
        self,
        readings: Callable[[], Sequence[View]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._readings = readings
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """All metric families."""
        readings = _judged(self._readings())
        statuses = [reading.status for reading in readings]
        yield from _judgement(readings)
        yield from _health(statuses)
        yield from _evidence(statuses)
        yield from _events(statuses)
        yield from _groups(statuses)
        yield from _progress(statuses)
        yield from _timing(statuses)
        yield from _checkpoints(statuses, self._now())


def _judged(readings: Sequence[View]) -> list[View]:
    """The comparisons for alerts: a trial has no metrics, so that nothing can take it for a comparison."""
    return [reading for reading in readings if reading.status.trial_of is None]


def _judgement(readings: Sequence[View]) -> Iterator[Metric]:
    verdict = _gauge("verdict", "The verdict: 1 for the one that holds, 0 for the others.", "verdict")
    gate = _gauge("gate", "What the gate answers: 1 for the answer given, 0 for the others.", "state")
    healthy = _gauge("healthy", "1 if the service can judge: status fresh, health ok.")
    fresh = _gauge("status_fresh", "1 if the newest status is from a living matcher.")
    age = _gauge("status_age_seconds", "Age of the newest status.")
    since = _gauge("verdict_timestamp_seconds", "Since when the verdict holds.")
    for reading in readings:
        status, name = reading.status, reading.status.name
        for state in VERDICTS:
            verdict.add_metric([name, state], status.verdict == state)
        for answer in ANSWERS:
            gate.add_metric([name, answer], reading.gate.answer == answer)
        healthy.add_metric([name], reading.freshness.fresh and status.health.status == "ok")
        fresh.add_metric([name], reading.freshness.fresh)
        age.add_metric([name], reading.freshness.age_seconds)
        since.add_metric([name], status.since.timestamp())
    yield from (verdict, gate, healthy, fresh, age, since)


def _health(statuses: Sequence[ComparisonStatus]) -> Iterator[Metric]:
    unreachable = _gauge("unreachable", "1 if the matcher cannot use it now: kafka, redis.", "kind")
    waited_for = "1 if the side is silent while newer events of the other wait for it."
    stalled = _gauge("side_stalled", waited_for, "side")
    started = _gauge("start_timestamp_seconds", "When the comparison began.")
    resets = _counter("resets", "How often the comparison was reset.")
    for status in statuses:
        name, health = status.name, status.health
        started.add_metric([name], status.started_at.timestamp())
        resets.add_metric([name], status.reset_count)
        for dependency in DEPENDENCIES:
            unreachable.add_metric([name, dependency], dependency in health.unreachable)
        for side in SIDES:
            stalled.add_metric([name, side], side in health.stalled)
    yield from (unreachable, stalled, started, resets)


def _evidence(statuses: Sequence[ComparisonStatus]) -> Iterator[Metric]:
    matched = _gauge("evidence_matches", "Pairs that count as evidence.")
    matched_required = _gauge("evidence_required_matches", "Pairs without which the verdict is PENDING.")
    seconds = _gauge("evidence_seconds", "Kafka time that counts as evidence.")
    seconds_required = _gauge("evidence_required_seconds", "Kafka time without which it is PENDING.")
    for status in statuses:
        name, coverage = [status.name], status.coverage
        matched.add_metric(name, coverage.matched)
        matched_required.add_metric(name, coverage.matched_required)
        seconds.add_metric(name, coverage.seconds)
        seconds_required.add_metric(name, coverage.seconds_required)
    yield from (matched, matched_required, seconds, seconds_required)


def _events(statuses: Sequence[ComparisonStatus]) -> Iterator[Metric]:
    events = _counter("events", "Events consumed.", "side")
    matched = _counter("matched", "Pairs of events matched.")
    undecodable = _counter("undecodable", "Records that are no event of the comparison.", "side")
    divergences = _counter(
        "divergences",
        "Divergences found, finally classified and saved; those of open scopes are not among them.",
        "kind",
    )
    provisional = _gauge(
        "provisional_divergences", "Divergences of open scopes, or not saved: they may change.", "kind"
    )
    unmatched = _gauge("unmatched", "Events without a partner so far.", "side")
    peak = _gauge("unmatched_peak", "The most events that were unmatched at once, both sides together.")
    accounts = _gauge("account_events", "Consumed events by what became of them.", "side", "state")
    suspicions = _gauge("suspicions", "Events overdue on a clock that does not prove it.")
    holes = _gauge("holes", "Stretches of input that were not checked.")
    # A gauge: a known difference gives back events that turn out to be another one, and no counter may fall.
    explained = _gauge("explained_differences", "Differences that a known difference explains.", "rule")
    violations = _counter(
        "check_violations", "Records that violate a check of a single side.", "check", "side"
    )
    violated = _gauge(
        "check_violated",
        "1 if a side violates a check for certain; 0 if its gate ignores it.",
        "check",
        "side",
    )
    for status in statuses:
        name = status.name
        for check in status.checks:
            for side in SIDES:
                found: CheckedSide | None = getattr(check, side)
                if found is not None:
                    violations.add_metric([name, check.id, side], found.violations)
                    counts = found.state == "violated" and check.gate != "ignore"
                    violated.add_metric([name, check.id, side], counts)
        matched.add_metric([name], status.matched)
        suspicions.add_metric([name], status.suspicions)
        holes.add_metric([name], status.hole_count)
        for rule, count in status.explained_by_rule.items():
            explained.add_metric([name, rule], count)
        peak.add_metric([name], status.max_unmatched)
        for kind, count in status.counted.by_kind.items():
            divergences.add_metric([name, kind], count)
        for kind, count in status.divergences.beyond(status.closed_divergences).by_kind.items():
            provisional.add_metric([name, kind], count)
        for side in SIDES:
            account: Accounts = getattr(status.accounts, side)
            events.add_metric([name, side], getattr(status.events, side))
            unmatched.add_metric([name, side], getattr(status.unmatched, side))
            undecodable.add_metric([name, side], account.undecodable)
            for state in Accounts.model_fields:
                accounts.add_metric([name, side, state], getattr(account, state))
    yield from (events, matched, undecodable, divergences, provisional)
    yield from (unmatched, peak, accounts, suspicions, holes, explained, violations, violated)


def _groups(statuses: Sequence[ComparisonStatus]) -> Iterator[Metric]:
    """The largest groups of each comparison: a scrape stays small, and an alert names no more.

    Groups whose fields have one text are one series. Names that are data are masked, as in the status.
    """
    largest = _gauge(
        "divergence_group", "Final divergences of one kind in the same fields; the largest.", "kind", "fields"
    )
    for status in statuses:
        counts: Counter[tuple[str, str]] = Counter()
        for group in status.groups:
            counts[group.kind, _fields_text(group)] += group.count
        for (kind, fields), count in counts.most_common(GROUPS_TOLD):
            largest.add_metric([status.name, kind, fields], count)
    yield largest


def _fields_text(group: Group) -> str:
    """The fields that differ, as far as there is room; empty where none differs, or they are unknown."""
    fields = group.fields or []
    names = [name or "the whole value" for name in fields[:FIELDS_NAMED]]
    more = len(fields) - len(names) + group.more_fields
    return f"{', '.join(names)}{f' and {more:,} more' if more else ''}"


def _progress(statuses: Sequence[ComparisonStatus]) -> Iterator[Metric]:
    labels = ("side", "topic", "partition")
    lag = _gauge("consumer_lag", "Records in Kafka that are not yet read; NaN while unknown.", *labels)
    position = _gauge("consumer_position", "Offset of the next record to read.", *labels)
    first = _gauge("log_start_offset", "Offset at which Kafka's log begins; NaN while unknown.", *labels)
    headroom = _gauge(
        "retention_headroom_records",
        "Offsets between the log's beginning and the next record to read; NaN while unknown.",
        *labels,
    )
    verified = _gauge("verified_up_to_offset", "Every event at a lower offset is settled.", *labels)
    newest = _gauge("newest_event_timestamp_seconds", "Kafka time of the newest event read.", *labels)
    through = _gauge(
        "verified_through_timestamp_seconds", "Kafka time through which every event is settled; 0 before."
    )
    for status in statuses:
        through.add_metric([status.name], _timestamp(status.verified_through))
        for side in SIDES:
            version: Version = getattr(status, side)
            partitions: list[PartitionProgress] = getattr(status.progress, side)
            up_to: dict[str, int] = getattr(status.verified_up_to, side)
            for partition in partitions:
                values = [status.name, side, version.topic, str(partition.partition)]
                begins, at = partition.first, partition.position
                lag.add_metric(values, _known(partition.lag))
                position.add_metric(values, at)
                first.add_metric(values, _known(begins))
                headroom.add_metric(values, _known(None if begins is None else at - begins))
                verified.add_metric(values, _known(up_to.get(str(partition.partition))))
                newest.add_metric(values, _timestamp(partition.newest_event_at))
    yield from (lag, position, first, headroom, verified, newest, through)


def _timing(statuses: Sequence[ComparisonStatus]) -> Iterator[Metric]:
    latency = HistogramMetricFamily(
        "twinstream_match_latency_seconds",
        "How long an event waited for its partner.",
        labels=["comparison"],
    )
    processing = HistogramMetricFamily(
        "twinstream_event_processing_seconds",
        "What one event cost the matcher, from the record to the outcome.",
        labels=["comparison"],
    )
    for status in statuses:
        for family, histogram in ((latency, status.match_latency), (processing, status.processing)):
            family.add_metric([status.name], _buckets(histogram), histogram.sum_seconds)
    yield from (latency, processing)


def _checkpoints(statuses: Sequence[ComparisonStatus], now: datetime) -> Iterator[Metric]:
    age = _gauge("checkpoint_age_seconds", "Since the last checkpoint; before the first, since the start.")
    written = _gauge("checkpoint_timestamp_seconds", "When the last checkpoint took effect; 0 before.")
    duration = _gauge("checkpoint_duration_seconds", "What the last checkpoint took; 0 before.")
    size = _gauge("checkpoint_size_bytes", "How large the last checkpoint was; 0 before.")
    stored = _gauge("store_memory_bytes", "What the comparison's keys take in Redis; 0 before a checkpoint.")
    for status in statuses:
        name, checkpoint = [status.name], status.checkpoint
        reached = checkpoint.written_at or status.started_at
        age.add_metric(name, max(0.0, (now - reached).total_seconds()))
        written.add_metric(name, _timestamp(checkpoint.written_at))
        duration.add_metric(name, checkpoint.duration_seconds or 0.0)
        size.add_metric(name, checkpoint.size_bytes or 0)
        stored.add_metric(name, checkpoint.store_bytes or 0)
    yield from (age, written, duration, size, stored)


def _gauge(name: str, documentation: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"twinstream_{name}", documentation, labels=["comparison", *labels])


def _counter(name: str, documentation: str, *labels: str) -> CounterMetricFamily:
    """A counter; the exposition adds ``_total`` to its name."""
    return CounterMetricFamily(f"twinstream_{name}", documentation, labels=["comparison", *labels])


def _known(count: int | None) -> float:
    return UNKNOWN if count is None else float(count)


def _timestamp(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    edges = [*(str(edge) for edge in histogram.edges_seconds), "+Inf"]
    return [(edge, float(count)) for edge, count in zip(edges, accumulate(histogram.counts), strict=True)]
