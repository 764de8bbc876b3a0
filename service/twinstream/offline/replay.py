"""Replay: tells how a changed comparison file would treat divergences that were found and kept.

The events of each divergence, and those that prove it, are compared once more, alone and with the new rules.
Alone, they are the whole comparison; in the original streams they are a part. So an answer is given only if
it holds there, too; otherwise it is `unknown`, with the reason:

- Left out by the new rules, or equal now and dependent on nothing: `hidden`, wherever the events are.
- Covered by a known difference within its ceiling: `explained`.
- Equal now, and dependent on others: `equal`. The difference is gone; only the streams show whether both
  events have the same place among those others.
- Still a difference: `reported`.
- Events that were in another order, may change places now, and depend on others: `unknown`, since only one
  pair of the events that would prove it is kept.
- An event without a partner, if another divergence now has an equal one: both are `hidden` if both lack a
  partner and depend on nothing, else `unknown`.

Values that are masked, cut, or inexact cannot be used: if the new rules read one, the answer is unknown.
So it is for a record that is read again and is another than the reported one, since its topic was deleted and
created anew: it is of a later time than the divergence, or contradicts what the report shows of its value.

Replay covers neither `start` and the effect of clocks on unmatched events, nor new findings outside the kept
events.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, get_args

import orjson

from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.diagnosis.ceilings import Ceilings, Choices
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import OFFSET, PARTITION, Event, Form, Place, Side
from twinstream.core.order import Epochs, ordered_class
from twinstream.core.pairing.tolerant import matching
from twinstream.errors import InputError
from twinstream.explain.divergence import NAMES
from twinstream.explain.masking import plain
from twinstream.ports import KeptRecord
from twinstream.reporting.truncate import MORE
from twinstream.spec.codec.codec import IGNORED, Codec
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.compile.known import known_differences
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, read

Outcome = Literal["hidden", "explained", "equal", "reported", "unknown"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

MASKED = "its values are masked or cut, and the new rules read them; --brokers reads the records"
NO_VALUES = "only its place is kept; --brokers reads the record"
CLOCKS_APART_MS = 5_000
"""The host that wrote a record may be so far ahead of the one that saw the divergence."""
ALONE = 1 << 62
"""A ceiling that one divergence alone does not reach."""
_SIDES: dict[str, Side] = {NAMES[side]: side for side in Side}
_SIDES_OF = {"missing": {Side.LEFT}, "extra": {Side.RIGHT}, "duplicate": {Side.RIGHT}}
"""The side of the one event that a divergence of each kind is about; others are about two."""
ONE_ROW = "the row of the other side, which decides it, is not kept"
_INEXACT = re.compile(r"[-+]?(\d[\d.e+-]{14,}|\d[\d.]*e[+-]\d{3,}|nan|inf(inity)?)", re.IGNORECASE)
"""A number that a report can hold only as text: it has more digits than a double, or is beyond its range."""


class Seat(NamedTuple):
    """An event of a divergence: its position, and its value if kept."""

    place: Place
    topic: str
    value: Any = ABSENT


class Case(NamedTuple):
    """A kept divergence: its own events, and those that prove it."""

    id: str
    kind: str
    own: tuple[Seat, ...]
    witness: tuple[Seat, ...]
    seen_at: datetime | None

    def answer(self, outcome: Outcome, why: str = "", rule: str | None = None) -> Replayed:
        """The outcome under the new rules; `rule` explains it, `why` says more."""
        return Replayed(self.id, self.kind, outcome, why, rule)

    @property
    def lacks_a_row(self) -> bool:
        """Whether it is a difference of tables without the row that one of them has held for longer."""
        sides = {seat.place[0] for seat in self.own}
        return len(sides) == 1 and sides.isdisjoint(_SIDES_OF.get(self.kind, ()))

    @property
    def seats(self) -> tuple[Seat, ...]:
        """All of them, in the order of their positions."""
        return tuple(sorted((*self.own, *self.witness), key=lambda seat: seat.place))


class Replayed(NamedTuple):
    """The outcome of one divergence under the new rules; `rule` explains it, `why` says more."""

    id: str
    kind: str
    outcome: Outcome
    why: str = ""
    rule: str | None = None


def case_of(report: Mapping[str, Any]) -> Case:
    """The divergence of a report, or of a line of an export. Raises KeyError, TypeError, ValueError."""
    own = tuple(
        _seat(side, position, report.get(side, ABSENT))
        for side, position in report["positions"].items()
        if position is not None
    )
    witness = tuple(_seat(one["side"], one["position"], one["value"]) for one in report.get("witness", ()))
    if not own:
        raise ValueError("it is of no event")
    seen = report.get("first_seen")
    return Case(str(report["id"]), str(report["kind"]), own, witness, None if seen is None else _moment(seen))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a zone is no moment")
    return moment


def _seat(side: str, position: Mapping[str, Any], value: Any) -> Seat:
    place = (_SIDES[side], int(position["partition"]), int(position["offset"]))
    return Seat(place, str(position["topic"]), value)


class Unknown(Exception):  # noqa: N818 - an answer, not an error
    """No answer is possible; the text says why."""


class _Alone(NamedTuple):
    """A divergence compared alone: its own events, the new findings about them, and the rules for it."""

    case: Case
    forms: dict[Place, Form]
    found: list[Finding]
    rules: Choices


class Replay:
    """Compares divergences with the rules of `spec`. `records` are those read again, by position.

    If the record of an event is missing, its value is taken from the report.
    """

    def __init__(self, spec: Spec, records: Mapping[Place, KeptRecord] | None = None) -> None:
        self._spec, self._codec, self._records = spec, Codec(spec), records
        self._now = datetime.now(UTC)
        self._declared = {rule.id: rule for rule in known_differences(spec, self._codec)}
        known = tuple(replace(rule, count=ALONE, share=None) for rule in self._declared.values())
        rules = rules_of(spec, self._codec, running_at=self._now)
        self._rules = replace(rules, halt=False, replay_horizon=None, known=known)
        self._ceilings = Ceilings()

    def answers(self, cases: Iterable[Case]) -> list[Replayed]:
        """The outcome of each divergence, in the order in which they were first seen."""
        ordered = sorted(cases, key=lambda case: case.seen_at or self._now)
        told: dict[str, Replayed] = {}
        left: list[_Alone] = []
        for case in ordered:
            try:
                alone = self._compared(case)
                told[case.id] = self._answer(alone)
            except Unknown as reason:
                told[case.id] = case.answer("unknown", str(reason))
                continue
            if case.kind != "reordered" and told[case.id].outcome == "reported":
                left.append(alone)
        told.update({answer.id: answer for answer in self._paired(left)})
        return [told[case.id] for case in ordered]

    # -- one divergence ------------------------------------------------------------------------------------

    def _compared(self, case: Case) -> _Alone:
        """Compare the events of a divergence. Raises Unknown."""
        if case.lacks_a_row:
            raise Unknown(ONE_ROW)
        comparison = Comparison(self._rules)
        for side in Side:
            partitions = {seat.place[1] for seat in case.seats if seat.place[0] is side}
            comparison.expect_partitions(side, partitions)
        own = {seat.place for seat in case.own}
        forms: dict[Place, Form] = {}
        for seat in case.seats:
            form, at_ms = self._form(case, seat)
            if seat.place in own:
                forms[seat.place] = form
            if form is IGNORED:
                continue
            side, partition, offset = seat.place
            if case.kind == "duplicate":
                comparison.ledger.note_original(Event(form, partition, offset - 1, at_ms, 0.0))
            comparison.feed(side, Run([form], partition, [offset], [at_ms], 0.0))
        for side in Side:
            comparison.end(side)
        comparison.review()
        if comparison.holes:
            raise Unknown(f"not all of it was compared: {comparison.holes[0].reason}")
        found = [one.finding for one in comparison.take_closed()]
        covered = comparison.differences.known.take_examples()
        rule = next((one.rule for one in covered if own & _places(one.finding)), None)
        choices = next((of for of in comparison.differences.known.by_choices if rule in of), ())
        return _Alone(case, forms, [one for one in found if own & _places(one)], choices)

    def _form(self, case: Case, seat: Seat) -> tuple[Form, int]:
        """The form of an event under the new rules, `IGNORED` if they leave it out, and its time."""
        record, at_ms = self._record(case, seat)
        (form,), refused = self._codec.forms([record], seat.place[0])
        if refused and refused[0].reason is not None:
            raise Unknown(f"{_where(seat)} is not an event under the new rules: {refused[0].reason}")
        if self._records is not None and record is not None and seat.value not in (ABSENT, None):
            self._check_value(seat, record)
        return form, at_ms

    def _check_value(self, seat: Seat, record: bytes) -> None:
        """Raise Unknown if a record that was read again is surely not the reported one."""
        found = self._codec.decode(self._codec.held(record, seat.place[0]))
        if _contradicts(_value(seat.value), plain(_value(found))):
            raise Unknown(f"{_another(seat)}, or the new rules decode it differently")

    def _record(self, case: Case, seat: Seat) -> tuple[bytes | None, int]:
        if self._records is not None:
            found = self._records.get(seat.place)
            if found is None:
                raise Unknown(f"Kafka does not have {_where(seat)} any more")
            seen = case.seen_at
            if seen is not None and found.timestamp_ms > seen.timestamp() * 1000 + CLOCKS_APART_MS:
                raise Unknown(_another(seat))
            return found
        if seat.value is ABSENT:
            raise Unknown(NO_VALUES)
        return self._written(seat), self._moment_ms(case)

    def _written(self, seat: Seat) -> bytes:
        """The record that a value was read from, as far as the new rules can reconstruct it."""
        spec = self._spec
        if spec.whole or spec.decode_of(seat.place[0]).format != "json":
            raise Unknown("its record is more than its value, or no JSON; --brokers reads the record")
        record = orjson.dumps(seat.value)
        deciding = [spec.path_of(field) for kind in spec.kinds.values() for field in kind.where]
        deciding += [spec.path_of(field) for rule in spec.known_differences for field in rule.when.where]
        if any(map(_unknown, (read(seat.value, path) for path in deciding))):
            raise Unknown(MASKED)
        (form,), _ = self._codec.forms([record], seat.place[0])
        if form is not IGNORED and _unknown(self._codec.compared(record)):
            raise Unknown(MASKED)
        return record

    def _moment_ms(self, case: Case) -> int:
        """The latest possible time of a record: a divergence was seen after it."""
        if case.seen_at is None:
            return int(self._now.timestamp() * 1000)
        seen_ms = int(case.seen_at.timestamp() * 1000)
        if any(rule.expires <= case.seen_at.date() for rule in self._spec.known_differences):
            raise Unknown("a known difference expires by the time of the record; --brokers reads the record")
        return seen_ms

    def _answer(self, alone: _Alone) -> Replayed:
        case = alone.case
        if alone.found:
            kinds = " and ".join(dict.fromkeys(one.kind for one in alone.found))
            return case.answer("reported", "" if kinds == case.kind else f"as {kinds}")
        if alone.rules:
            return self._within_ceilings(case, alone.rules)
        compared = [form for form in alone.forms.values() if form is not IGNORED]
        if not compared:
            return case.answer("hidden", "its kind is left out")
        if not any(map(self._depends, compared)):
            return case.answer(
                "hidden", "the events are equal" if case.kind == "changed" else "their order is free"
            )
        if case.kind == "reordered":
            return case.answer(
                "unknown", "the events that prove it may change places, and others are not kept"
            )
        return case.answer("equal")

    def _within_ceilings(self, case: Case, rules: Choices) -> Replayed:
        """Count a divergence against the rules that cover it, as a comparison does (see `ceilings`)."""
        rule = self._ceilings.take(rules, self._is_free)
        if rule is not None:
            named = rule if rule in rules else rules[0]
            return case.answer("explained", f"by {named}", named)
        shared = [one for one in self._ceilings.reachable(rules) if self._declared[one].share is not None]
        if shared:
            why = f"{shared[0]} covers it, and its ceiling is a share of the pairs, which are not kept"
            return case.answer("unknown", why)
        return case.answer("reported", f"{rules[0]} covers it, beyond its ceiling")

    def _is_free(self, rule: str) -> bool:
        """Whether a rule surely has a free place: a share allows at least one."""
        declared = self._declared[rule]
        return self._ceilings.count(rule) < (declared.count if declared.share is None else 1)

    def _depends(self, form: Form) -> bool:
        """Whether an event depends on any other under the new rules."""
        order = self._rules.order
        return isinstance(order, Epochs) or ordered_class(order, form[0]) is not None

    # -- several divergences -------------------------------------------------------------------------------

    def _paired(self, left: Sequence[_Alone]) -> Iterator[Replayed]:
        """The outcomes for divergences with an event that now equals one of another divergence."""
        singles: dict[bytes, tuple[list[_Alone], list[_Alone]]] = defaultdict(lambda: ([], []))
        for alone in left:
            if len(alone.forms) == 1:
                ((side, letter),) = self._letters(alone)
                singles[letter][side].append(alone)
        rest: list[_Alone] = []
        for pieces in singles.values():
            pairs = matching(*pieces, self._equal)
            for i, j in pairs:
                one, two = pieces[0][i], pieces[1][j]
                yield from (self._with_partner(one, two), self._with_partner(two, one))
            for side in Side:
                paired = {pair[side] for pair in pairs}
                rest += (alone for place, alone in enumerate(pieces[side]) if place not in paired)
        yield from self._entangled([*rest, *(alone for alone in left if len(alone.forms) > 1)])

    def _letters(self, alone: _Alone) -> list[tuple[Side, bytes]]:
        forms = alone.forms.items()
        return [(place[0], self._rules.canonical(form[1])) for place, form in forms if form is not IGNORED]

    def _equal(self, one: _Alone, another: _Alone) -> bool:
        """Whether an event of one divergence equals an event on the other side of another."""
        return any(
            self._rules.equal(_event(form), _event(other))
            for (side, *_), form in one.forms.items()
            for (facing, *_), other in another.forms.items()
            if facing is side.other and form is not IGNORED and other is not IGNORED
        )

    def _with_partner(self, alone: _Alone, other: _Alone) -> Replayed:
        case, equal = alone.case, f"it is equal to the event of {other.case.id}"
        if any(map(self._depends, alone.forms.values())):
            return case.answer("unknown", f"{equal}; their places among others are not compared")
        return case.answer("hidden", equal)

    def _entangled(self, left: Sequence[_Alone]) -> Iterator[Replayed]:
        """Divergences of which one event could be paired with one of another; only the streams tell how."""
        at: dict[tuple[Side, bytes], list[_Alone]] = defaultdict(list)
        for alone in left:
            for key in self._letters(alone):
                at[key].append(alone)
        for alone in left:
            equal = (other for side, letter in self._letters(alone) for other in at[side.other, letter])
            other = next((one for one in equal if one is not alone and self._equal(alone, one)), None)
            if other is not None:
                why = f"an event of it is equal to one of {other.case.id}, and may be paired with it"
                yield alone.case.answer("unknown", why)


def _event(form: Form) -> Event:
    return Event(form, 0, 0, 0, 0.0)


def _places(finding: Finding) -> set[Place]:
    return {(side, event[PARTITION], event[OFFSET]) for side, event in finding.events if event is not None}


def _where(seat: Seat) -> str:
    _, partition, offset = seat.place
    return f"offset {offset} of partition {partition} of {seat.topic}"


def _another(seat: Seat) -> str:
    return f"Kafka has another record at {_where(seat)} by now"


def _value(whole: Any) -> Any:
    """The value alone: old and new rules may differ in whether they read more of a record."""
    return whole.get("$value", whole) if isinstance(whole, dict) else whole


def _contradicts(kept: Any, found: Any) -> bool:
    """Whether a value of a report cannot be that of a record: `found`, with nothing hidden.

    What the report hides fits everything. So does a text for a value with members: the new rules may open a
    text that the old ones left closed.
    """
    if isinstance(kept, dict) and isinstance(found, dict):
        told = {name for name in kept if name != MORE and not _unknown(name)}
        if not told <= found.keys() or (len(told) == len(kept) and len(told) < len(found)):
            return True
        return any(_contradicts(kept[name], found[name]) for name in told)
    if isinstance(kept, list) and isinstance(found, list):
        hides = bool(kept) and _unknown(kept[-1])
        return (not hides and len(kept) != len(found)) or any(map(_contradicts, kept, found))
    if isinstance(kept, dict | list) or isinstance(found, dict | list):
        return kept is None or found is None
    return not _unknown(kept) and kept != found


def _unknown(value: Any) -> bool:
    """Whether a value has a part that a report does not show: masked, cut, or a number as text."""
    if isinstance(value, str):
        return "‹" in value or _INEXACT.fullmatch(value) is not None
    if isinstance(value, dict):
        return any(map(_unknown, value)) or any(map(_unknown, value.values()))
    return isinstance(value, list) and any(map(_unknown, value))


def cases_of(name: str, reports: Iterable[Any]) -> list[Case]:
    """The divergences of a file. Raises InputError if an entry is not one."""
    cases = {}
    for number, report in enumerate(reports, 1):
        try:
            case = case_of(report)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(name, number, "is not a divergence of Twinstream") from None
        cases[case.id] = case
    return list(cases.values())
