"""The status of a comparison, in the shape that matcher, API and page share.

The matcher builds a `ComparisonStatus` about once a second and sends it over a pipe; the API process serves
it unchanged. So the HTTP body of ``GET /v1/comparisons/{name}`` is defined here, once. It is small on
purpose: each divergence is sent separately, once, as a `DivergenceReport`.

All times are UTC. Every number is a count of events unless its name carries a unit.
"""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from twinstream.status.common import (
    Accounts,
    DivergenceCounts,
    DivergenceKind,
    Frozen,
    SideName,
    Sides,
    Verdict,
)
from twinstream.status.groups import Group

Dependency = Literal["kafka", "redis"]
DEPENDENCIES: tuple[Dependency, ...] = ("kafka", "redis")


class Version(Frozen):
    """The topic that a side writes, and the version its owner gave it."""

    topic: str
    version: str | None = None


class Position(Frozen):
    """Where a record stands in Kafka."""

    topic: str
    partition: int
    offset: int


class Health(Frozen):
    """Whether the service itself can judge; each reason is a sentence.

    `unreachable` names the services that it cannot use now: a degraded service may still be ready, one that
    cannot reach them is not. `stalled` are the sides that are silent while newer events of the other wait.
    """

    status: Literal["ok", "degraded"]
    reasons: list[str] = []
    unreachable: list[Dependency] = []
    stalled: list[SideName] = []
    standby: bool = False


class Hole(Frozen):
    """A stretch of input that was not checked."""

    reason: str
    side: Literal["reference", "candidate"] | None = None
    position: Position | None = None
    seen_at: datetime


class Undecodable(Frozen):
    """A record that was kept out of matching."""

    side: Literal["reference", "candidate"]
    position: Position
    reason: str


Awaited = Literal["checkpoint", "classification", "batches"]
"""The conditions that a found difference still needs before it decides: a checkpoint has it, no known
difference covers it, the batches open at that time are finished, the other shards have answered."""


class KindCoverage(Frozen):
    """The compared fields of `sampled` events of a kind: with several values, one, or only null."""

    sampled: int = 0
    varied: list[str] = []
    constant: list[str] = []
    always_null: list[str] = []


class Stretches(Frozen):
    """How much matched since when: pairs by the Kafka time of the older of their events, in stretches.

    `begins` are times in Unix seconds, in order, and `matched` has for each kind the pairs of each stretch.
    Both events of a pair are of the beginning of its stretch or later. The older stretches are, the longer:
    `at` is the time by which they are old.
    """

    at: int = 0
    begins: list[int] = []
    matched: dict[str, list[int]] = {}


class Coverage(Frozen):
    """The evidence so far against the evidence asked for; `missing` says in sentences what lacks.

    `until` is the Kafka time at which `seconds` end, and `kinds_required` are those of which one must match.

    Then what was seen at all: of `events`, both sides', those that were sampled tell how many keys came
    (`more_keys`: more than that; None where the order has no keys) and which fields varied (`more_fields`:
    others were left out). `notes` says in sentences what therefore was not put to the test.
    """

    matched: int
    matched_required: int
    seconds: float
    seconds_required: float
    matched_by_kind: dict[str, int]
    missing: list[str]
    until: datetime | None = None
    kinds_required: list[str] = []
    matched_since: Stretches = Stretches()
    events: int = 0
    kinds: dict[str, KindCoverage] = {}
    more_fields: bool = False
    keys: int | None = None
    more_keys: bool = False
    notes: list[str] = []


class Frontier(Frozen):
    """How far a side has come on the clock that makes events of the other side overdue.

    `at` is a time, or offsets of the input; None before the first. `held_back_by` names what it waits for.
    """

    at: str | None = None
    held_back_by: str | None = None


class PartitionProgress(Frozen):
    """How far one partition is read. `position` is the next offset to read; `lag` is in records.

    `first` is the offset at which the log begins, as of some seconds ago; None if unknown. From `begin` on
    everything is compared, and below `settled` every event is paired, left out, or reported as divergent;
    None if unknown.
    """

    partition: int
    first: int | None = None
    begin: int | None = None
    settled: int | None = None
    position: int
    end: int | None
    lag: int | None
    newest_event_at: datetime | None


HISTOGRAM_EDGES_SECONDS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Decades from the time of one event to a time after which a partner is long overdue."""


class Histogram(Frozen):
    """Counts per bucket (not cumulative); `edges_seconds` are upper bounds, the last bucket is open."""

    edges_seconds: list[float]
    counts: list[int]
    sum_seconds: float


class CheckpointInfo(Frozen):
    """The last checkpoint that took effect; all None before the first.

    `store_bytes` is the size of the comparison's keys in Redis, at most a minute old.
    """

    sequence: int | None = None
    written_at: datetime | None = None
    duration_seconds: float | None = None
    size_bytes: int | None = None
    store_bytes: int | None = None


CheckState = Literal["holds", "violated", "undecided", "not_checked"]
CheckGate = Literal["fail", "undecided", "ignore"]


class Violation(Frozen):
    """A record that violates a check; `problem` continues "the record at …"."""

    position: Position
    problem: str


class CheckedSide(Frozen):
    """What a check has found in one side: of `checked` records `violations`, and the `first` of them.

    `state` is `holds` as long as no violation was found, and `violated` once one counts. It is `undecided` if
    something could not be judged, and `not_checked` where nothing can, as in recorded output; `reason` says
    why.
    """

    state: CheckState
    checked: int = 0
    violations: int = 0
    first: list[Violation] = []
    reason: str = ""


class CheckStatus(Frozen):
    """One check of the comparison file, with the `property` that it is about, in words as `text`.

    `gate` is what a violation by the candidate makes of the gate. A side that it does not look at is None.
    """

    id: str
    property: str
    text: str
    gate: CheckGate
    reference: CheckedSide | None = None
    candidate: CheckedSide | None = None


class Ended(Frozen):
    """What a reset has ended: how a comparison stood, and the offsets up to which it was read."""

    verdict: Verdict
    since: datetime | None
    started_at: datetime
    matched: int
    divergences: int
    positions: Sides[dict[str, int]]


class Reset(Frozen):
    """A comparison was reset: when, by whom, why, and from which address that was asked for.

    `start`, where it begins, is as in the comparison file; `before` is what the reset has ended.
    """

    id: str
    comparison: str
    at: datetime
    by: str
    reason: str
    address: str
    start: dict[str, Any]
    before: Ended


class FoundOverTime(Frozen):
    """How many differences were found when: in bins of one width, each from one of `begins` on.

    Those are Unix seconds. There are at most 60 bins; the width is a power of two, and divides each begin.
    """

    width_seconds: int = 1
    begins: list[int] = []
    counts: list[int] = []


class ComparisonStatus(Frozen):
    """One comparison at a glance: the body of ``GET /v1/comparisons/{name}``.

    `waiting_for` is why it does not compare yet, `difference_awaits` the condition that a found difference
    still needs to decide. `divergences` are all, by their kinds now; `closed_divergences` are the final ones
    among them, and the others are provisional. `counted_divergences` are the final ones by the kinds first
    found, of which no number falls; None from an older version. `groups` sum up the `closed_divergences`, and
    so their counts add up to as many; `provisional_groups` sum up those of open scopes. `found` counts the
    final ones by the time of their `first_seen`; those from before it was kept are in no bin.
    `explained_by_rule` counts, by id, the differences that each known
    difference has explained. `checks` are about each side by itself, and never change the verdict.
    `verified_age_seconds` is the age of `verified_through` at `updated_at`, by the latest of all known
    clocks; a jump of a clock does not change it. `trial_of`: this is a trial beside that comparison, and has
    no gate.
    """

    name: str
    spec_digest: str
    order: str
    reference: Version
    candidate: Version
    verdict: Verdict
    reason: str
    since: datetime
    health: Health
    events: Sides[int]
    matched: int
    unmatched: Sides[int]
    max_unmatched: int
    accounts: Sides[Accounts]
    divergences: DivergenceCounts
    closed_divergences: DivergenceCounts = DivergenceCounts()
    counted_divergences: DivergenceCounts | None = None
    groups: list[Group] = []
    provisional_groups: list[Group] = []
    found: FoundOverTime = FoundOverTime()
    explained_by_rule: dict[str, int] = {}
    checks: list[CheckStatus] = []
    suspicions: int
    waiting_for: str | None = None
    difference_awaits: list[Awaited] = []
    hole_count: int = 0
    holes: list[Hole]
    undecodable: list[Undecodable]
    coverage: Coverage
    verified_up_to: Sides[dict[str, int]]
    verified_through: datetime | None
    verified_age_seconds: float | None = None
    progress: Sides[list[PartitionProgress]]
    frontier: Sides[Frontier] = Sides[Frontier](reference=Frontier(), candidate=Frontier())
    match_latency: Histogram
    processing: Histogram
    checkpoint: CheckpointInfo
    max_staleness_seconds: float
    resets: list[Reset] = []
    reset_count: int = 0
    trial_of: str | None = None
    started_at: datetime
    updated_at: datetime

    @property
    def counted(self) -> DivergenceCounts:
        """The final divergences by the kinds first found; of an older version by their kinds now."""
        return self.counted_divergences or self.closed_divergences


class ExplainedCount(Frozen):
    """How many differences of a shard could count against each of these `rules`; `final` ones stay known."""

    rules: list[str]
    count: int
    final: int


class ShardStatus(Frozen):
    """The status of one of several matchers of a comparison, with the additions for merging.

    `waiting_for` is why it has not started, `doubts` why its verdict may be INCONCLUSIVE. `first_at` is the
    Kafka time of its first record, `open_since` that of its oldest unsettled event as of the evidence in the
    status. `constants` has, by kind, the hashes of fields with one value. `unpaired` are keyed digests of
    events without a partner, left over last or still unmatched: equal events have equal digests. `explained`
    are its known differences.
    """

    status: ComparisonStatus
    waiting_for: str | None = None
    doubts: list[str] = []
    first_at: datetime | None = None
    open_since: datetime | None = None
    constants: dict[str, dict[str, str]] = {}
    unpaired: Sides[list[str]] = Sides[list[str]](reference=[], candidate=[])
    explained: list[ExplainedCount] = []


class Witness(Frozen):
    """One of the events that prove a divergence."""

    side: Literal["reference", "candidate"]
    position: Position
    value: Any


class DivergenceReport(Frozen):
    """One divergence as the API and the page show it.

    `reference` and `candidate` are the values of the events (masked but for the fields that the spec shows),
    None where that side has none. `provisional` is true while it may still be replaced or withdrawn: until
    its scope has closed, and it is saved. `fields` maps each differing path to both values; `identity` has
    the fields that name the event. `title` is the answer in one line, without the kind and the positions; it
    is empty where records are not at hand.
    """

    id: str
    comparison: str
    kind: DivergenceKind
    provisional: bool
    scope: dict[str, Any]
    reference: Any | None
    candidate: Any | None
    positions: Sides[Position | None]
    fields: dict[str, Sides[Any]]
    witness: list[Witness]
    text: str
    first_seen: datetime
    late: float | None = None
    tainted: bool = False
    explained: str | None = None
    identity: list[str] = []
    title: str = ""


class UnmatchedEvent(Frozen):
    """An event without a partner so far. `at` is Kafka's time, `value` is masked as in a divergence."""

    side: Literal["reference", "candidate"]
    position: Position
    at: datetime
    kind: str
    scope: dict[str, Any]
    overdue: bool
    value: Any


class UnmatchedSample(Frozen):
    """The events of each side that have waited longest for a partner; replaces the previous sample."""

    comparison: str
    events: tuple[UnmatchedEvent, ...]


class Withdrawn(Frozen):
    """A provisional divergence that was replaced when its scope closed."""

    id: str
    comparison: str


class Resumed(Frozen):
    """A matcher resumes saved state: of all divergences reported before, only these remain, by id."""

    comparison: str
    divergences: tuple[str, ...]


class ResetRequest(Frozen):
    """A request to reset a comparison: to `start`, to "now", or to the start in its file.

    `before` is the state of all shards together, as shown where the reset was requested.
    """

    id: str
    by: str
    reason: str
    address: str
    start: dict[str, Any] | Literal["now"] | None = None
    before: Ended | None = None


class ResetRefused(Frozen):
    """The comparison is not reset, for this reason; if `open`, it is unknown whether it will be."""

    id: str
    reason: str
    open: bool = False


Publication = (
    ComparisonStatus | ShardStatus | DivergenceReport | UnmatchedSample | Withdrawn | Resumed | Reset
)
