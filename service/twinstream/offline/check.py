"""`check`: compares recorded input line by line, and names the line that decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from twinstream.core.accounting.proven import NEVER
from twinstream.core.arrivals.run import Run
from twinstream.core.checks.property import BARRIER, NO_PROBLEM, Lacking
from twinstream.core.comparison import Comparison
from twinstream.core.diagnosis.findings import KINDS
from twinstream.core.diagnosis.known_differences import KnownDifferences
from twinstream.core.events import Form, Side
from twinstream.core.verdict import Verdict, verdict_of
from twinstream.errors import InputError
from twinstream.explain.coverage import SeenEvents, coverage_of
from twinstream.explain.divergence import NAMES, Explainer
from twinstream.explain.masking import EVERYTHING
from twinstream.explain.reason import compared_text, undecided
from twinstream.grouping.extent import Extent
from twinstream.grouping.groups import Groups
from twinstream.grouping.wording import with_sentences
from twinstream.intake.batches import marks_of
from twinstream.offline.file_start import Beginning, cut_in_events, with_partitions
from twinstream.offline.range_edges import (
    Edges,
    PairsOfRange,
    Sorted,
    count_by_side,
    count_settled,
    explain,
    told,
    undecided_text,
)
from twinstream.ports import Line
from twinstream.reporting.accounts import account_of, differ_text, doubts_of, hole_of
from twinstream.reporting.checks import results
from twinstream.spec.codec.codec import Codec, RefusedRecord, UnjudgedRecord
from twinstream.spec.compile.checks import FactReader
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.decode.headers import attempt_of, batch_mark
from twinstream.spec.file.evidence import lacking as missing
from twinstream.spec.file.evidence import wanted
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.status.comparison import Coverage

EXAMPLES_LIMIT = 100
UNDECIDED_LIMIT = 20
REVIEW_EVERY = 1000
SEEN = {"matched_by_kind", "events", "kinds", "more_fields", "keys", "more_keys", "notes"}
"""The parts of coverage that recorded input has, too; the rest is evidence that a service waits for."""


class Check:
    """One offline comparison. Feed lines, then `finish`. With `edges` they are a stretch of two topics.

    Raises InputError if a line is no event of the comparison, or comes after the end of its side.
    """

    def __init__(self, spec: Spec, edges: Edges | None = None) -> None:
        self._spec, self._edges = spec, edges
        self._codec = Codec(spec)
        rules = rules_of(spec, self._codec, running_at=datetime.now(UTC))
        self._known_last, self._pairs = None, None
        if edges is not None and edges.stretch.fuzzy:
            self._known_last, self._pairs = KnownDifferences(rules.known), PairsOfRange(edges)
            rules = replace(rules, known=())
        self.comparison = Comparison(rules, self._pairs)
        # Till all is read, since what comes later may show that there is no order.
        self.comparison.proven.vouch(0)
        # A range begins at its edge; within it only the time of an event tells that it is before the start.
        starts = edges is None or spec.start.at == "event_time"
        self.begins = Beginning(cut_in_events(spec, self._codec) if starts else None, self.comparison)
        self._seen = SeenEvents(spec, self._codec)
        self._extent = Extent()
        self._lines = 0
        self._max_unmatched = 0
        self._undecodable = 0
        self._events = self._no_events = 0
        self._compared = [0, 0]
        self._sorted = Sorted()
        self._facts = FactReader(spec, self._codec) if spec.all_checks else None

    def feed(self, line: Line) -> None:
        """Take one line."""
        self._lines += 1
        if self.begins.ended(line.side):
            raise InputError(line.file, line.number, f"the {NAMES[line.side]} goes on after its end")
        ends = line.record is None and not line.tombstone
        self.comparison.certainty.moment = NEVER if ends else line.position
        if ends:
            self.begins.end(line.side)
        else:
            self._feed_event(line)
        if self._lines % REVIEW_EVERY == 0:
            self.comparison.review()
            self.comparison.settle()
        self._max_unmatched = max(self._max_unmatched, self.comparison.ledger.waiting)

    def _feed_event(self, line: Line) -> None:
        run, refused = self._marked(line, *self._codec.forms((line.record,), line.side))
        attempt = run.attempts[0] if run.attempts else None
        place = "within" if self._edges is None else self._edges.note(line, attempt)
        if self._edges is not None and not self._edges.sharp and not refused:
            form = run.forms[0]
            self._edges.note_form(line, place, form, self.comparison.rules.canonical(form[1]))
        if refused:
            reason = refused[0].reason
            if reason is None:
                self.comparison.ignore(line.side, 1)
            elif isinstance(refused[0], UnjudgedRecord):
                self.comparison.stop(line.side, run, reason)
                reason = None
        else:
            if self._facts is not None and place != "beside":
                facts = self._facts.facts((line.record,), (line.key,), run.forms, line.side)
                if self._edges is not None and self._edges.may_be_replay(line):
                    facts = [list(map(_in_doubt, of_row)) for of_row in facts]
                run = run._replace(facts=facts)
            compared, reason = self.begins.feed(line.side, run)
            for side, behind in compared:
                self._seen.note(side, behind.forms)
                self._compared[side] += len(behind.forms) if place != "beside" else 0
        if reason is not None:
            self._refuse(line, reason)
            self._no_events += place != "beside"
        elif place != "beside":
            self._events += 1
            self._extent.note(NAMES[line.side], line.partition, line.offset, line.timestamp_ms)

    def _marked(
        self, line: Line, forms: list[Form], refused: list[RefusedRecord]
    ) -> tuple[Run, list[RefusedRecord]]:
        """The run of a line, with the marks that the comparison reads."""
        attempts, marks = None, None
        if self.comparison.retries is not None:
            attempts, refused = marks_of(attempt_of, (line.headers,), refused)
        if self.comparison.tells_batches:
            marks, refused = marks_of(batch_mark, (line.headers,), refused)
        run = Run(forms, line.partition, (line.offset,), (line.timestamp_ms,), 0.0, marks, attempts)
        return run, refused

    def _refuse(self, line: Line, reason: str) -> None:
        self._undecodable += 1
        if self._undecodable > self._spec.undecodable.budget:
            raise InputError(line.file, line.number, f"not an event of this comparison: {reason}")
        self.comparison.undecodable(line.side)

    def finish(
        self, *, open_ended: bool = False, allow_empty: bool = False, evidence: bool = False
    ) -> dict[str, Any]:
        """The answer after the last line, as the object that ``check --json`` prints.

        `open_ended` leaves sides without an explicit end open. `allow_empty` lets two streams without an
        event be equivalent. `evidence` requires the evidence of the spec.
        """
        self.comparison.certainty.moment = NEVER
        if not open_ended:
            for side in Side:
                if not self.begins.ended(side):
                    self.begins.end(side)
        self.comparison.review()
        self.comparison.refresh()
        self.comparison.proven.vouch(NEVER)
        return self._answer(allow_empty, evidence)

    def _answer(self, allow_empty: bool, evidence: bool) -> dict[str, Any]:
        comparison = self.comparison
        self._sorted = found = self._sort()
        verdict, reason = self._verdict(allow_empty, evidence)
        explainer = Explainer(self._spec, self._codec, EVERYTHING)
        kinds = [divergence.finding.kind for divergence in found.counted]
        answer = {
            "verdict": verdict.value,
            "decided_at": self._decided_at(),
            "reason": reason,
            "events": {NAMES[side]: comparison.accounts[side].consumed for side in Side},
            "matched": comparison.matched,
            "unmatched": {NAMES[side]: self._unmatched(side) for side in Side},
            "max_unmatched": self._max_unmatched,
            "accounts": {NAMES[side]: self._account(side) for side in Side},
            "divergences": {"total": len(kinds), "by_kind": {kind: kinds.count(kind) for kind in KINDS}},
            "explained_by_rule": (self._known_last or comparison.differences.known).counts,
            "holes": [hole_of(hole, self._spec) for hole in comparison.holes],
            "groups": self._groups(explainer),
            "examples": [explainer.report(divergence) for divergence in found.counted[:EXAMPLES_LIMIT]],
            "spec_digest": digest(self._spec),
            "coverage": self._coverage().model_dump(include=SEEN),
        }
        if self._spec.all_checks:
            found_there = results(comparison, self._spec, None)
            answer["checks"] = [one.model_dump(mode="json") for one in found_there]
        if self._edges is not None:
            undecided = [explainer.report(divergence) for divergence in found.undecided[:UNDECIDED_LIMIT]]
            answer["ranges"] = told(self._edges, self._spec, self._evident, found, undecided)
        return answer

    def _groups(self, explainer: Explainer) -> list[dict[str, Any]]:
        """The groups of all differences that count."""
        groups = Groups()
        for divergence in self._sorted.counted:
            groups.add(explainer.outline(divergence))
        told = with_sentences(groups.told(), self._extent.whole(self._coverage()))
        return [group.model_dump(mode="json") for group in told]

    def _coverage(self) -> Coverage:
        """The coverage of the events."""
        matched = self.comparison.ledger.matched_by_kind
        by_kind = {kind: matched[kind] for kind in self._spec.compared_kinds}
        told = self._seen.told()
        return coverage_of(wanted(self._spec), self.comparison.matched, 0.0, by_kind, None, {}, told)

    def _sort(self) -> Sorted:
        """Sort every divergence, as it was found last."""
        closed = {divergence.number: divergence for divergence in self.comparison.take_closed()}
        for number in self.comparison.take_tainted():
            closed[number] = closed[number]._replace(tainted=True)
        found = [*closed.values(), *self.comparison.provisional()]
        if self._edges is None:
            return Sorted(found)
        gave_up = self.comparison.open_scopes.gave_up
        found_there = self._edges.sort(found, self.comparison.rules, gave_up=gave_up)
        if self._known_last is None:
            return found_there
        return explain(found_there, self._known_last, self._evident)

    @property
    def _evident(self) -> int:
        """The number of pairs that are evidence: not those beside the range."""
        return self.comparison.matched if self._pairs is None else self._pairs.by_kind.total()

    @property
    def _evident_by_kind(self) -> Counter[str]:
        """The same by their kind."""
        return self.comparison.ledger.matched_by_kind if self._pairs is None else self._pairs.by_kind

    def _account(self, side: Side) -> dict[str, int]:
        """Where the events of a side went; undecided ones are not settled, left-out ones are ignored."""
        account = account_of(self.comparison, side)
        if self._spec.folding is None:
            del account["superseded"]  # Only rows that replace each other can be.
        undecided, left_out, explained = map(count_settled, self._sorted[1:])
        account["divergent"] -= undecided[side] + left_out[side] + explained[side]
        account["unmatched"] += undecided[side]
        account["ignored"] += left_out[side]
        account["explained"] += explained[side]
        return account

    def _decided_at(self) -> int | None:
        """The line that decided; None if an end did."""
        moment = self.comparison.proven.at
        return moment if self._sharp and moment != NEVER else None

    @property
    def _sharp(self) -> bool:
        return self._edges is None or self._edges.sharp

    @property
    def _diverged(self) -> bool:
        """Whether a difference is proven; at edges that are not sharp only one that counts."""
        counted = self._sharp or any(not divergence.tainted for divergence in self._sorted.counted)
        return self.comparison.diverged and counted

    def _unmatched(self, side: Side) -> int:
        if self._sharp:
            return self.comparison.unmatched(side) + self.comparison.partnerless.at_end[side]
        found = (*self._sorted.counted, *self._sorted.undecided, *self._sorted.explained)
        alone = (one for one in found if one.finding.kind != "reordered")
        return self.comparison.unmatched(side) + count_by_side(alone)[side]

    def verdict(self) -> Verdict:
        """The verdict so far; a side that has not ended is open."""
        return self._verdict(allow_empty=False, evidence=False)[0]

    def _verdict(self, allow_empty: bool, evidence: bool) -> tuple[Verdict, str]:
        comparison = self.comparison
        doubts = doubts_of(comparison, self._spec)
        if self._edges is not None and self._sorted.undecided:
            doubts.append(undecided_text(self._edges, self._sorted))
        if not doubts and not allow_empty and (nothing := self._nothing_compared()) is not None:
            doubts.append(f"{nothing}, so nothing was compared")
        lacking = self._lacking(evidence)
        verdict = verdict_of(diverged=self._diverged, doubts=bool(doubts), lacking=bool(lacking))
        return verdict, self._reason(verdict, doubts, lacking)

    def _nothing_compared(self) -> str | None:
        """Why nothing was compared; None if something was, or the start is not found yet."""
        if all(self._compared) or self.begins.waiting is not None:
            return None
        if any(self._compared):  # Rows that are all replaced or deleted leave no difference.
            empty = Side.RIGHT if self._compared[Side.LEFT] else Side.LEFT
            is_table = self._spec.folding is not None and self.begins.ended(empty)
            return f"the {NAMES[empty]} has no row" if is_table else None
        if not self._events:
            one_or_all = (
                "the one record is" if self._no_events == 1 else f"all {self._no_events:,} records are"
            )
            return f"{one_or_all} undecodable" if self._no_events else "neither side has an event"
        return f"none of the {self._events:,} events is behind the start and of a kind that is compared"

    def _lacking(self, evidence: bool) -> list[str]:
        comparison = self.comparison
        if self.begins.waiting is not None:
            return [self.begins.waiting]
        waiting = {side: comparison.unmatched(side) for side in Side}
        lacking = comparison.disagreeing_batches
        if any(waiting.values()) and not self._diverged:
            counts = " and ".join(f"{count:,} of the {NAMES[side]}" for side, count in waiting.items())
            lacking.append(f"{counts} are unmatched, and the sides have not ended")
        if evidence:
            asked = wanted(self._spec)._replace(seconds=0.0)  # Recorded events may have no times.
            lacking += missing(asked, self._evident, 0.0, self._evident_by_kind)
        return lacking

    def _reason(self, verdict: Verdict, doubts: list[str], lacking: list[str]) -> str:
        if verdict is Verdict.DIVERGED:
            decided_at = self._decided_at()
            what = "line" if self._edges is None else "record"
            when = f"{what} {decided_at:,}" if decided_at else "the end of the input"
            return differ_text(self.comparison, self._spec, f", first proven at {when}")
        if verdict is Verdict.INCONCLUSIVE:
            return undecided(doubts)
        if verdict is Verdict.PENDING:
            return f"Nothing wrong so far, but {'; '.join(lacking)}."
        matched = self.comparison.matched
        explained = sum((self._known_last or self.comparison.differences.known).counts.values())
        if explained:
            return compared_text(matched, explained, self._spec.order_text)
        if not matched:
            return "Nothing differs, but no pair was compared."
        what = "The one pair matches" if matched == 1 else f"All {matched:,} pairs match"
        return f"{what}. Compared {self._spec.order_text}."


def _in_doubt(fact: Any) -> Any:
    """What is sure of a row, known by its fact for a check, that may be no row of its own."""
    is_sure = fact is None or fact is BARRIER or fact == NO_PROBLEM
    return fact if is_sure else Lacking("may be a replay of one that was not read, from before the range")


def check(
    spec: Spec,
    lines: Iterable[Line],
    *,
    open_ended: bool = False,
    allow_empty: bool = False,
    evidence: bool = False,
) -> dict[str, Any]:
    """Compare recorded input; see `Check`."""
    run, lines = _begun(spec, lines)
    for line in lines:
        run.feed(line)
    return run.finish(open_ended=open_ended, allow_empty=allow_empty, evidence=evidence)


def equivalent(spec: Spec, lines: Iterable[Line]) -> bool:
    """Whether recorded input is equivalent; it is read up to the first difference."""
    run, lines = _begun(spec, lines)
    for line in lines:
        run.feed(line)
        if run.comparison.diverged:
            return False
    return bool(run.finish()["verdict"] == Verdict.EQUIVALENT.value)


def _begun(spec: Spec, lines: Iterable[Line]) -> tuple[Check, Iterable[Line]]:
    """A comparison, and the lines to feed it."""
    run = Check(spec)
    comparison = run.comparison
    if (
        comparison.copies
        or comparison.retries is not None
        or spec.all_checks
        or run.begins.waiting is not None
    ):
        partitions, lines = with_partitions(lines)
        if spec.co_partitioned:
            both = partitions[0] | partitions[1]  # A side may have a partition without a line.
            partitions = both, both
        run.begins.expect(partitions)
        for side in Side:
            comparison.expect_partitions(side, partitions[side])
            comparison.checks.expect_rows(side, len(partitions[side]))
    return run, lines
