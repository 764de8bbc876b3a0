"""Merges the statuses of several matchers of one comparison into one.

- The verdict is the worst, by the precedence of `core.verdict`. A proven difference, or a doubt, in one shard
  counts for all.
- Lack of evidence is judged on the sums only: a shard that has seen little is no reason to wait.
- Counts are summed. Of times that mean "up to here", the shard furthest behind counts.
- Known differences are counted against their ceilings over all shards, since each shard knows only its own.
  Beyond a ceiling the outputs differ, although no shard reports it; it is a doubt while some of those counted
  may still turn out to be other differences.
- Two equal unmatched events, one of each version, in two shards show that the topics are not co-partitioned,
  as the file asserts: that is a hole, and the findings decide nothing.
- A shard without a status is waited for. So is one that has not been reset with the others: its status is
  about a comparison that has ended. Whether a status can be trusted is judged not here, but by `freshness`.

Everything is a pure function of the shards' last statuses, but for how long events waited and what they cost:
these are added up over all starts of all shards (see `timings`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, permutations
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from twinstream.api.state.expectation import Expectation, placeholder
from twinstream.api.state.final import merged_counts
from twinstream.core import verdict as verdicts
from twinstream.core.accounting.match_timeline import united
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.diagnosis.ceilings import Ceilings, Choices
from twinstream.explain.coverage import beyond_counts, coverage_of, seen_by_all
from twinstream.explain.reason import compared_text, found_text, of_shards, undiverged
from twinstream.grouping.extent import whole_of
from twinstream.grouping.found import TimesFound
from twinstream.grouping.merging import merged_groups
from twinstream.grouping.wording import provisional_with_sentences, with_sentences
from twinstream.spec.file.evidence import Wanted
from twinstream.status.common import Accounts, SideName, Sides, Verdict
from twinstream.status.comparison import (
    CheckedSide,
    CheckpointInfo,
    CheckState,
    CheckStatus,
    ComparisonStatus,
    Coverage,
    Frontier,
    Health,
    Hole,
    PartitionProgress,
    Reset,
    ShardStatus,
    Undecodable,
)

BEHIND = "it has not been reset with the others yet; if that does not change, reset it again"
CROSSED = "two equal events, one of each version, have no partner in"
"""The beginning of the hole's reason that refutes the file's assertion."""
SHOWN = 20
"""The most holes, and records kept out, that are listed; all are counted."""
T = TypeVar("T")
ShardStatuses = Mapping[int, ShardStatus]
"""The last statuses of shards, by their numbers; shards without one are missing."""


def merged(
    expected: Expectation, said: ShardStatuses, now: datetime, before: ComparisonStatus | None = None
) -> ComparisonStatus:
    """The comparison as a whole. `before` is the previous merged status: its verdict may still hold."""
    if not said:
        return placeholder(expected, now)
    all_said, said = said, of_the_latest_beginning(said)
    shards = [said[number] for number in sorted(said)]
    statuses = [shard.status for shard in shards]
    coverage, holes = _coverage(expected, said, now), _holes(statuses)
    if (crossed := _crossed(said, expected.shards, now, before)) is not None:
        holes = [crossed, *holes]
    waiting = _waiting(expected, all_said, said)
    explained = _explained(expected, shards)
    verdict, reason = _judged(expected, said, coverage, holes, waiting, explained)
    first, progress = statuses[0], _by_side(statuses, "progress", _partitions)
    extent = whole_of(progress, coverage, _verified_time(shards, now)[0])
    groups = merged_groups(status.groups for status in statuses)
    whole = first.model_copy(
        update={
            "verdict": verdict,
            "reason": reason,
            "since": _since(verdict, statuses, before),
            "health": _health(said, expected.shards),
            "events": _by_side(statuses, "events", sum),
            "matched": sum(status.matched for status in statuses),
            "unmatched": _by_side(statuses, "unmatched", sum),
            "max_unmatched": sum(status.max_unmatched for status in statuses),
            "accounts": _by_side(statuses, "accounts", _account),
            "divergences": merged_counts(status.divergences for status in statuses),
            "closed_divergences": merged_counts(status.closed_divergences for status in statuses),
            "counted_divergences": merged_counts(status.counted for status in statuses),
            "groups": with_sentences(groups, extent),
            "provisional_groups": provisional_with_sentences(
                merged_groups(status.provisional_groups for status in statuses), groups, extent
            ),
            "explained_by_rule": explained.by_rule,
            "found": TimesFound(status.found for status in statuses).told(),
            "checks": _checks(statuses),
            "suspicions": sum(status.suspicions for status in statuses),
            "waiting_for": "; ".join(waiting) or None,
            "difference_awaits": list(
                dict.fromkeys(one for status in statuses for one in status.difference_awaits)
            ),
            "hole_count": _hole_count(statuses, holes),
            "holes": holes[:SHOWN],
            "undecodable": _undecodable(statuses),
            "coverage": coverage,
            "verified_up_to": _by_side(statuses, "verified_up_to", _offsets),
            "verified_through": _if_known(min, [status.verified_through for status in statuses]),
            "verified_age_seconds": _if_known(max, [status.verified_age_seconds for status in statuses]),
            "progress": progress,
            "frontier": _frontiers(said, expected.shards),
            "checkpoint": _checkpoint(statuses),
            "resets": _resets(said, expected.shards),
            "started_at": min(status.started_at for status in statuses),
            "updated_at": max(status.updated_at for status in statuses),
        }
    )
    if verdict != "DIVERGED":
        return whole
    return whole.model_copy(update={"reason": _differs(whole, explained.beyond_for_good)})


# -- the verdict -------------------------------------------------------------------------------------------


def _judged(
    expected: Expectation,
    said: ShardStatuses,
    coverage: Coverage,
    holes: Sequence[Hole],
    waiting: Sequence[str],
    explained: _Explained,
) -> tuple[Verdict, str]:
    crossed = any(hole.reason.startswith(CROSSED) for hole in holes)
    differs = any(shard.status.verdict == "DIVERGED" for shard in said.values())
    diverged = not crossed and (differs or bool(explained.beyond_for_good))
    doubts = of_shards({n: shard.doubts for n, shard in said.items()}, expected.shards)
    if (beyond := _beyond_budget(expected, [shard.status for shard in said.values()])) is not None:
        doubts.append(beyond)
    doubts += explained.beyond
    lacking = bool(waiting or coverage.missing)
    worst = verdicts.verdict_of(diverged=diverged, doubts=bool(doubts or holes), lacking=lacking)
    if worst is verdicts.Verdict.DIVERGED:
        return worst.value, ""  # All that is said of it is told of the whole.
    pairs = sum(shard.status.matched for shard in said.values())
    doubts = doubts or [hole.reason for hole in holes]
    compared = compared_text(pairs, sum(explained.by_rule.values()), said[min(said)].status.order)
    return worst.value, undiverged(worst, doubts, waiting, coverage.missing, compared)


def _differs(whole: ComparisonStatus, beyond: Sequence[str]) -> str:
    found = found_text(whole.divergences.by_kind, whole.closed_divergences.total)
    how = "; ".join([found, *beyond] if whole.divergences.total else beyond)
    return f"The outputs differ: {how}. Compared {whole.order}."


def of_the_latest_beginning(said: ShardStatuses) -> ShardStatuses:
    """The statuses about the latest beginning of the comparison; all others are about one that has ended.

    The count of resets decides; if it was lost and is equal by chance, the record of the last reset does.
    """
    latest = max((shard.status for shard in said.values()), key=_beginning)
    return {
        number: shard
        for number, shard in said.items()
        if shard.status.reset_count == latest.reset_count
        and (not shard.status.resets or _beginning(shard.status) == _beginning(latest))
    }


def _beginning(status: ComparisonStatus) -> tuple[int, datetime, str]:
    if not status.resets:
        return status.reset_count, datetime.min.replace(tzinfo=UTC), ""
    return status.reset_count, status.resets[-1].at, status.resets[-1].id


def _resets(said: ShardStatuses, count: int) -> list[Reset]:
    """The resets by the lowest shard's report; each partition of the last one begins as its shard says."""
    resets = list(said[min(said)].status.resets)
    if not resets or resets[-1].start.get("at") != "offsets":
        return resets
    last = resets[-1]
    starts = {number: shard.status.resets[-1].start for number, shard in said.items() if shard.status.resets}
    composed = {
        side: {
            partition: starts.get(int(partition) % count, last.start)[side].get(partition, offset)
            for partition, offset in last.start[side].items()
        }
        for side in ("reference", "candidate")
    }
    return [*resets[:-1], last.model_copy(update={"start": {**last.start, **composed}})]


def _waiting(expected: Expectation, all_said: ShardStatuses, said: ShardStatuses) -> list[str]:
    """Why shards do not compare yet; those only in `all_said` have not been reset."""
    reasons = {number: _waiting_for(said.get(number)) for number in range(expected.shards)}
    behind = {n: all_said[n].waiting_for or BEHIND for n in all_said.keys() - said.keys()}
    reasons.update(behind)
    return of_shards({number: [reason] for number, reason in reasons.items() if reason}, expected.shards)


def _waiting_for(shard: ShardStatus | None) -> str:
    return "it has published nothing yet" if shard is None else shard.waiting_for or ""


def _since(
    verdict: Verdict, statuses: Sequence[ComparisonStatus], before: ComparisonStatus | None
) -> datetime:
    """When the verdict began to hold: a good one with the last shard, a bad one with the first."""
    same = before is not None and before.reset_count == statuses[0].reset_count
    if before is not None and same and before.verdict == verdict:
        return before.since
    own = [status.since for status in statuses if status.verdict == verdict]
    if verdict in ("DIVERGED", "INCONCLUSIVE") and own:
        return min(own)
    return max(own or [status.since for status in statuses])


def _beyond_budget(expected: Expectation, statuses: Sequence[ComparisonStatus]) -> str | None:
    """Why undecodable records are too many over all shards, though not in any single one."""
    budget = expected.undecodable_budget
    found = [
        status.accounts.reference.undecodable + status.accounts.candidate.undecodable for status in statuses
    ]
    if max(found) > budget or sum(found) <= budget:
        return None
    return f"more records than undecodable.budget ({budget}) are no events of this comparison"


# -- known differences -------------------------------------------------------------------------------------


class _Explained(NamedTuple):
    """The known differences by rule, and a sentence for each rule that is beyond its ceiling."""

    by_rule: dict[str, int]
    beyond: list[str]
    beyond_for_good: list[str]


def _explained(expected: Expectation, shards: Sequence[ShardStatus]) -> _Explained:
    """The known differences of all shards, counted anew against the ceilings (see `ceilings`)."""
    counted, final = Counter[Choices](), Counter[Choices]()
    for one in (one for shard in shards for one in shard.explained):
        counted[tuple(one.rules)] += one.count
        final[tuple(one.rules)] += one.final
    ceilings, most = Ceilings(), Counter(expected.ceilings)
    beyond = Counter[str](), Counter[str]()
    for part, over in zip((final, counted - final), beyond, strict=True):
        for rules, count in part.items():
            over[rules[0]] += ceilings.take_many(rules, count, most)
    by_rule = {rule: ceilings.count(rule) + beyond[0][rule] + beyond[1][rule] for rule in most}
    for_good, all_told = ([_beyond(rule, by_rule[rule], most[rule]) for rule in +over] for over in beyond)
    return _Explained(by_rule, [*for_good, *all_told], for_good)


def _beyond(rule: str, count: int, ceiling: int) -> str:
    return f"{count:,} differences over all shards are covered by {rule}, whose ceiling is {ceiling:,}"


# -- evidence ----------------------------------------------------------------------------------------------


def _coverage(expected: Expectation, said: ShardStatuses, now: datetime) -> Coverage:
    """The evidence of all shards together; what one lacks for a reason of its own, all lack."""
    shards = [said[number] for number in sorted(said)]
    parts = [shard.status.coverage for shard in shards]
    matched, (first, until) = sum(part.matched for part in parts), _verified_time(shards, now)
    if first is not None and until is not None and first <= now < until:
        until = now  # The time of a record that is ahead of the present has not passed.
    seconds = 0.0 if first is None or until is None else max(0.0, (until - first).total_seconds())
    by_kind = {
        kind: sum(part.matched_by_kind.get(kind, 0) for part in parts) for kind in parts[0].matched_by_kind
    }
    asked = Wanted(expected.matched_required, expected.seconds_required, expected.kinds_required)
    timeline = united(part.matched_since.model_dump() for part in parts).state()
    whole = coverage_of(asked, matched, seconds, by_kind, until, timeline, seen_by_all(shards))
    own = of_shards({n: beyond_counts(shard.status.coverage) for n, shard in said.items()}, expected.shards)
    return whole.model_copy(update={"missing": [*whole.missing, *own]})


def _verified_time(shards: Sequence[ShardStatus], now: datetime) -> tuple[datetime | None, datetime | None]:
    """The Kafka times of the first record of all shards, and of the oldest unsettled, else the newest.

    It ends as of what each shard has confirmed: none vouches for what another has read since.
    """
    began = [shard.first_at for shard in shards if shard.first_at is not None]
    still_open = [shard.open_since for shard in shards if shard.open_since is not None]
    newest = [until for shard in shards if (until := shard.status.coverage.until) is not None]
    age = _if_known(max, [shard.status.verified_age_seconds for shard in shards])
    if not newest or age is None:
        return min(began, default=None), None
    latest = max(now, *newest, *still_open)  # By the records, whose clock may be ahead of this one.
    return min(began, default=None), min(max(newest), latest - timedelta(seconds=age), *still_open)


# -- counts ------------------------------------------------------------------------------------------------


def _by_side(
    statuses: Sequence[ComparisonStatus], member: str, merge: Callable[[list[Any]], object]
) -> Sides[Any]:
    """A member of all statuses, merged for each side."""
    parts = [getattr(status, member) for status in statuses]
    sides = {side: merge([getattr(part, side) for part in parts]) for side in ("reference", "candidate")}
    both: Sides[Any] = type(parts[0])(**sides)
    return both


def _frontiers(said: ShardStatuses, count: int) -> Sides[Frontier]:
    """On each side the frontier of the shard furthest behind, with its name before what holds it back."""

    def furthest_behind(side: SideName) -> Frontier:
        own: dict[int, Frontier] = {n: getattr(shard.status.frontier, side) for n, shard in said.items()}
        least = min(own.values(), key=_how_far)
        held = least.held_back_by
        alike = {n: [held] for n, one in own.items() if held is not None and one.held_back_by == held}
        return least.model_copy(update={"held_back_by": next(iter(of_shards(alike, count)), None)})

    return Sides[Frontier](reference=furthest_behind("reference"), candidate=furthest_behind("candidate"))


def _how_far(frontier: Frontier) -> list[int]:
    """The numbers in the text of a frontier, which is a time or offsets of the input: they are in order."""
    return list(map(int, re.findall(r"\d+", frontier.at or "")))


def _account(parts: Sequence[Accounts]) -> Accounts:
    return Accounts(**{name: sum(map(attrgetter(name), parts)) for name in Accounts.model_fields})


# -- checks of single sides --------------------------------------------------------------------------------


def _checks(statuses: Sequence[ComparisonStatus]) -> list[CheckStatus]:
    """The checks, of which each shard has judged its own rows; the worst state counts.

    A matcher of an older version tells of none.
    """
    return [
        parts[0].model_copy(
            update={side: _checked([getattr(part, side) for part in parts]) for side in _SIDES}
        )
        for parts in zip(*(status.checks for status in statuses if status.checks), strict=True)
    ]


def _checked(parts: Sequence[CheckedSide | None]) -> CheckedSide | None:
    """The side of a check; the violations of a shard in which they count come first."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    found.sort(key=lambda part: _WORST.index(part.state))
    worst = found[0]
    first = [one for part in found for one in part.first][: max(len(part.first) for part in found)]
    counts = {name: sum(getattr(part, name) for part in found) for name in ("checked", "violations")}
    return worst.model_copy(update={**counts, "first": first})


_SIDES = ("reference", "candidate")
_WORST: tuple[CheckState, ...] = ("violated", "undecided", "not_checked", "holds")


# -- what was not checked ----------------------------------------------------------------------------------


def _holes(statuses: Sequence[ComparisonStatus]) -> list[Hole]:
    """The holes of all shards; a hole that several of them report counts once."""
    found: dict[object, Hole] = {}
    for hole in sorted((hole for status in statuses for hole in status.holes), key=attrgetter("seen_at")):
        place = hole.position
        found.setdefault(
            (hole.reason, hole.side, place and (place.topic, place.partition, place.offset)), hole
        )
    return list(found.values())


def _hole_count(statuses: Sequence[ComparisonStatus], holes: Sequence[Hole]) -> int:
    """The number of all holes; listed ones that are the same count once."""
    listed = sum(len(status.holes) for status in statuses)
    return sum(status.hole_count for status in statuses) - listed + len(holes)


def _undecodable(statuses: Sequence[ComparisonStatus]) -> list[Undecodable]:
    each = max(1, SHOWN // len(statuses))
    return [record for status in statuses for record in status.undecodable[-each:]]


def _crossed(said: ShardStatuses, count: int, now: datetime, before: ComparisonStatus | None) -> Hole | None:
    """The hole for an event with its partner in another shard; once seen it stays."""
    latest = max((shard.status for shard in said.values()), key=_beginning)
    if before is not None and _beginning(before) == _beginning(latest):
        known = next((hole for hole in before.holes if hole.reason.startswith(CROSSED)), None)
        if known is not None:
            return known
    for one, other in permutations(sorted(said), 2):
        if not set(said[one].unpaired.reference).isdisjoint(said[other].unpaired.candidate):
            reason = (
                f"{CROSSED} {Shard(one, count)} and in {Shard(other, count)}, and the file says "
                "`co_partitioned: true`: remove that, and reset the comparison without `--shards`"
            )
            return Hole(reason=reason, seen_at=now)
    return None


# -- how far it has come -----------------------------------------------------------------------------------


def _if_known(choose: Callable[[list[T]], T], values: Sequence[T | None]) -> T | None:
    """One of the values; None if one is unknown."""
    known = [value for value in values if value is not None]
    return choose(known) if len(known) == len(values) else None


def _offsets(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """By partition the offset that all shards have come to; by key each of them reads all partitions."""
    found: dict[str, int] = {}
    for name, offset in sorted((item for part in parts for item in part.items()), key=lambda it: int(it[0])):
        found[name] = min(offset, found.get(name, offset))
    return found


def _partitions(parts: Sequence[Sequence[PartitionProgress]]) -> list[PartitionProgress]:
    """All partitions; one that several shards read is as far as the last of them."""
    every = sorted((one for part in parts for one in part), key=attrgetter("partition"))
    return [_furthest_behind(list(same)) for _, same in groupby(every, key=attrgetter("partition"))]


def _furthest_behind(parts: Sequence[PartitionProgress]) -> PartitionProgress:
    if len(parts) == 1:
        return parts[0]
    least = {name: _known(min, parts, name) for name in ("first", "begin", "settled", "position")}
    most = {name: _known(max, parts, name) for name in ("end", "lag", "newest_event_at")}
    return parts[0].model_copy(update={**least, **most})


def _known(choose: Callable[..., Any], parts: Sequence[PartitionProgress], name: str) -> Any:
    values = [value for part in parts if (value := getattr(part, name)) is not None]
    return choose(values, default=None)


def _checkpoint(statuses: Sequence[ComparisonStatus]) -> CheckpointInfo:
    """The oldest checkpoint; none if a shard has none. Their sizes in the store are summed."""
    infos = [status.checkpoint for status in statuses]
    none = next((info for info in infos if info.written_at is None), None)
    oldest = none or min(infos, key=attrgetter("written_at"))
    return oldest.model_copy(update={"store_bytes": sum(info.store_bytes or 0 for info in infos)})


def _health(said: ShardStatuses, count: int) -> Health:
    own = {number: shard.status.health for number, shard in said.items()}
    degraded = [health for health in own.values() if health.status != "ok"]
    unreachable = dict.fromkeys(name for health in own.values() for name in health.unreachable)
    return Health(
        status="degraded" if degraded else "ok",
        reasons=of_shards({number: health.reasons for number, health in own.items()}, count),
        unreachable=list(unreachable),
        stalled=list(dict.fromkeys(side for health in own.values() for side in health.stalled)),
        standby=any(health.standby for health in own.values()),
    )
