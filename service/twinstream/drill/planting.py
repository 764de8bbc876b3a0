"""Plans the difference of a drill, and has the offline comparison find it and nothing else.

A plan is a copy of the candidate in which one event is missing, is repeated, comes after an event that
depends on it, or has another field; or one that ends too early. The event is found by trial: among those in
the middle of the copy, first the ones on which most later events depend, since those prove the difference. A
plan is accepted if the comparison finds the planted difference, and no other, once both copies have ended.

The plan also says whether the records alone prove it, or only a clock can (`PlantedDifference.proven`): the
same comparison decides that with copies that have not ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, get_args

from twinstream.core.events import Form, Side, alike
from twinstream.core.order import dependent, ordered_class
from twinstream.drill.copies import CopiedPair, CopyReader, Records, lines_of, placed
from twinstream.drill.editing import changed, check_writable, fields_of
from twinstream.errors import DecodeError, InputError, RelationError, SettingsError
from twinstream.offline.check import Check
from twinstream.spec.drills import HEADER, DrillRecord
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import Path, holds, parse_path, path_text

PlantedKind = Literal["drop", "duplicate", "reorder", "field", "stall"]
KINDS: tuple[PlantedKind, ...] = get_args(PlantedKind)

TRIED_EVENTS = 12
TRIED_FIELDS = 8
"""Each try compares both copies."""
FIT_ENOUGH = 3
"""At most so many accepted plans are examined for one that is closed, too."""
FOLLOWERS = 32
"""More later dependent events than this do not help: a scope meets again within half of them."""
REACH = 2_000
"""How far behind an event to look for one that depends on it."""

_FOUND: Mapping[PlantedKind, Sequence[Sequence[str]]] = {
    "drop": [["missing"]],
    "duplicate": [["duplicate"], ["extra"]],
    "reorder": [["reordered"]],
    "field": [["changed"], ["extra", "missing"]],
}
"""The kinds that the comparison may report for each planted kind."""


@dataclass(frozen=True)
class PlantedDifference:
    """A difference planted into the copy of the candidate.

    The first `before` records of each side hold no difference; it shows at the record `at` of the candidate's
    copy, which for a silence is its last one. `marked` are the positions in the copy of the candidate that
    carry the mark; `origin` is the record that the difference is about, `text` describes the change,
    `touched` holds the canonical forms of the affected events. `proven`: the records alone prove the
    difference; `closed`: it is also classified for good.
    """

    kind: PlantedKind
    pair: CopiedPair
    before: tuple[int, int]
    at: int
    marked: tuple[int, ...]
    origin: DrillRecord
    text: str
    touched: frozenset[bytes]
    proven: bool = False
    closed: bool = False

    @property
    def places(self) -> list[tuple[int, int]]:
        """The partition and the offset of each marked record in the copy of the candidate."""
        every = placed(self.pair.candidate)
        return [every[place] for place in self.marked]

    def about(self, spec: Spec) -> frozenset[tuple[Side, int, int]]:
        """The positions in the copies that a report of this difference may name."""
        reading = CopyReader(spec)
        return frozenset(
            (side, *place)
            for side in Side
            for record, place in zip(self.pair[side], placed(self.pair[side]), strict=True)
            if reading.letter(record, side) in self.touched
        )


class Unfit(Exception):  # noqa: N818 - one try of several
    """An unsuitable plan; its text is the reason."""


class NotCompared(Unfit):
    """The changed field is not compared."""


Attempt = Callable[[], PlantedDifference]
"""Makes a plan; raises Unfit if it cannot be made."""


def plan(
    spec: Spec, pair: CopiedPair, kind: PlantedKind, identifier: str, field: str | None = None
) -> PlantedDifference:
    """Plant a difference of a kind. Raises SettingsError with the reason if none can be planted.

    Complexity: at most `TRIED_EVENTS` * `TRIED_FIELDS` comparisons of the pair; one if the first plan is
    accepted.
    """
    planter = _Planter(spec, pair, kind, identifier, field)
    if kind == "stall":
        return planter.stalled()
    fit: list[PlantedDifference] = []
    why: list[Unfit] = []
    for attempt in planter.attempts():
        try:
            fit.append(_judged(spec, attempt()))
        except Unfit as unfit:
            why.append(unfit)
            continue
        if fit[-1].closed or len(fit) == FIT_ENOUGH:
            break
    if not fit:
        raise SettingsError(planter.refusal(why))
    return max(fit, key=lambda found: (found.proven, found.closed))


def _judged(spec: Spec, attempt: PlantedDifference) -> PlantedDifference:
    """The plan with the result of its comparison. Raises Unfit if that is not the planted difference."""
    run = Check(spec)
    lines = lines_of(spec, attempt.pair)
    try:
        for side in Side:
            run.comparison.expect_partitions(side, {line.partition for line in lines if line.side is side})
        for line in lines:
            run.feed(line)
        run.comparison.refresh()
        proven, open_scopes = run.comparison.diverged, run.comparison.provisional()
        answer = run.finish()
    except (InputError, RelationError) as error:
        raise Unfit(f"it makes a record that is not an event of this comparison ({error})") from None
    if hits := run.comparison.differences.known.hits:
        raise Unfit(f"the known difference {min(hits)} explains it, so there is no alarm")
    found = [one["kind"] for one in answer["examples"]]
    if sorted(found) not in _FOUND[attempt.kind]:
        raise Unfit("the comparison finds no difference, or more than the planted one")
    return replace(attempt, proven=proven, closed=proven and not open_scopes)


class _Planter:
    """Makes plans: it chooses the events to try, and changes them."""

    def __init__(
        self, spec: Spec, pair: CopiedPair, kind: PlantedKind, identifier: str, field: str | None
    ) -> None:
        self._spec, self._pair, self._kind, self._field = spec, pair, kind, field
        self._mark = (HEADER, identifier.encode())
        self._reading = CopyReader(spec)
        self._forms = [self._reading.form(record, Side.RIGHT) for record in pair.candidate]
        self._half = len(pair.candidate) // 2
        self._before = (len(pair.reference) // 2, self._half)

    # -- choosing events -----------------------------------------------------------------------------------

    def _places(self) -> list[int]:
        """Events of the second half, first those on which most later events depend."""
        later: Counter[Any] = Counter()
        ranks = []
        alike = Counter(form.content for form in self._forms if form is not None)
        for place in range(len(self._forms) - 1, self._half - 1, -1):
            form = self._forms[place]
            if form is None:
                continue
            one = ordered_class(self._reading.codec.order, form[0])
            followers = 0 if one is None else min(later[one], FOLLOWERS)
            later[one] += 1
            is_barrier = form[0] is None
            ranks.append((is_barrier, alike[form.content] > 1, -followers, place))
        return [place for *_, place in sorted(ranks)]

    def attempts(self) -> Iterator[Attempt]:
        """The possible plans, the best first."""
        ways: Mapping[str, Callable[[int], list[Attempt]]] = {
            "drop": self._drops,
            "duplicate": self._duplicates,
            "reorder": self._reorders,
            "field": self._changes,
        }
        if self._kind == "field":
            check_writable(self._spec.decode_of(Side.RIGHT))
        fit = filter(None, map(ways[self._kind], self._places()))
        return chain.from_iterable(islice(fit, TRIED_EVENTS))

    # -- changing them -------------------------------------------------------------------------------------

    def _drops(self, place: int) -> list[Attempt]:
        return [partial(self._plan, self._with(place), (), place, "was left out")]

    def _duplicates(self, place: int) -> list[Attempt]:
        record = self._pair.candidate[place]
        twice = self._with(place, record, self._marked(record))
        return [partial(self._plan, twice, (place + 1,), place, "was written twice")]

    def _reorders(self, place: int) -> list[Attempt]:
        behind = self._dependent_behind(place)
        if behind is None:
            return []
        other, moved = self._pair.candidate[behind], self._with(place)
        moved.insert(behind, self._marked(self._pair.candidate[place]))
        text = f"written after the event of offset {other.offset}, but must stay before it"
        return [partial(self._plan, moved, (behind,), place, text, other)]

    def _dependent_behind(self, place: int) -> int | None:
        """The next event of its partition that depends on this one, if it is a different event."""
        form, partition = self._forms[place], self._pair.candidate[place].partition
        assert form is not None, "only events are tried"
        for behind in range(place + 1, min(len(self._forms), place + REACH)):
            other = self._forms[behind]
            if other is None or self._pair.candidate[behind].partition != partition:
                continue
            if dependent(self._reading.codec.order, form, other):
                return behind if self._differ(form, other) else None
        return None

    def _differ(self, one: Form, other: Form) -> bool:
        canonical = self._reading.codec.canonical
        return not alike(canonical(one.content), canonical(other.content))

    def _changes(self, place: int) -> list[Attempt]:
        value = self._pair.candidate[place].value
        paths = [] if value is None else self._paths(value)
        return [partial(self._change, place, path) for path in paths[:TRIED_FIELDS]]

    def _paths(self, value: bytes) -> list[Path]:
        every = fields_of(self._spec.decode_of(Side.RIGHT), value)
        if self._field is not None:
            wanted = parse_path(self._field)
            return [wanted] if any(holds(wanted, path) for path in every) else []
        deciding = {path_text(path) for path in every} & set(self._spec.deciding_fields)
        return [path for path in every if path_text(path) not in deciding]

    def _change(self, place: int, path: Path) -> PlantedDifference:
        record, name = self._pair.candidate[place], path_text(path) or "the value"
        assert record.value is not None, "a tombstone has no fields"
        try:
            value = changed(self._spec.decode_of(Side.RIGHT), record.value, path)
        except (DecodeError, ValueError, OverflowError) as error:
            raise Unfit(f"`{name}` cannot be written with another value ({error})") from None
        other = self._marked(record._replace(value=value))
        before, after = self._forms[place], self._reading.form(other, Side.RIGHT)
        assert before is not None, "only events are tried"
        rerouted = after is not None and before.route != after.route and self._routed(before)
        if after is None or after.kind != before.kind or rerouted:
            raise Unfit(f"`{name}` decides the kind or the order of an event, or whether it is one")
        if not self._differ(before, after) and not self._too_far(before, after):
            raise NotCompared(
                f"`{name}` is not compared, or not so closely (`equality` in the comparison file)"
            )
        what = f"{name} was changed"
        return self._plan(self._with(place, other), (place,), place, what)

    def _routed(self, form: Form) -> bool:
        """Whether the route is more than the event itself, which is a lane of its own in a bag."""
        return ordered_class(self._reading.codec.order, form[0]) is not None

    def _too_far(self, before: Form, after: Form) -> bool:
        """Whether two events that are equal except for a tolerance exceed it."""
        close = self._reading.codec.close
        return close is not None and not close(before.record, after.record)

    def stalled(self) -> PlantedDifference:
        """The candidate falls silent after the first half."""
        first, text = self._pair.candidate[: self._half], "the last one before the candidate falls silent"
        return replace(self._plan(first, (), self._half - 1, text), proven=True)

    def _plan(
        self, candidate: Records, marked: tuple[int, ...], place: int, text: str, *others: DrillRecord
    ) -> PlantedDifference:
        origin = self._pair.candidate[place]
        records = [origin, *others, *(candidate[one] for one in marked)]
        touched = frozenset(filter(None, (self._reading.letter(one, Side.RIGHT) for one in records)))
        at = marked[0] if marked else min(place, len(candidate) - 1)
        pair = CopiedPair(self._pair.reference, candidate)
        return PlantedDifference(self._kind, pair, self._before, at, marked, origin, text, touched)

    def _with(self, place: int, *records: DrillRecord) -> list[DrillRecord]:
        """The copy of the candidate with some records in the place of one."""
        return [*self._pair.candidate[:place], *records, *self._pair.candidate[place + 1 :]]

    def _marked(self, record: DrillRecord) -> DrillRecord:
        return record._replace(headers=[*record.headers, self._mark])

    # -- refusals ------------------------------------------------------------------------------------------

    def refusal(self, why: Sequence[Unfit]) -> str:
        """Why nothing could be planted, as a sentence."""
        if self._kind == "reorder" and not why:
            return self._no_order()
        if self._kind == "field" and all(isinstance(one, NotCompared) for one in why):
            return self._no_field(why)
        reason = Counter(map(str, why)).most_common(1)
        told = reason[0][0] if reason else "there is no event in the second half of the copy"
        return f"a difference of the kind {self._kind} cannot be planted into {self._spec.name}: {told}"

    def _no_order(self) -> str:
        if not any(form is not None and self._routed(form) for form in self._forms):
            return (
                f"there is no order to break: the events of {self._spec.name} are compared "
                f"{self._spec.order_text}; take another --kind"
            )
        return (
            f"among the last {len(self._forms)} events no two of one partition differ and must keep their "
            "order: give more --records, or take another --kind"
        )

    def _no_field(self, why: Sequence[Unfit]) -> str:
        if self._field is not None:
            return str(why[0]) if why else f"no event has a field `{self._field}`: name another --field"
        return (
            f"no field of {self._spec.name} can be changed so that it shows: each is left out by `equality`, "
            "or decides the kind, the order or the identity of an event; take another --kind"
        )
