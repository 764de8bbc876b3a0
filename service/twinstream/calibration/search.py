"""Finds the tightest comparison file under which two runs of one version are equal.

1. If they are equal under the starting file, there is nothing to propose.
2. Events are paired (`pairing`), and the pairs show which fields are noise (`fields`), separately for kinds
   that differ in their noise. The fields used for pairing become the `identity` in the file.
3. The orders to which the starting file may be loosened are tried, the tightest first (`ordering`), each with
   the noise written as that order allows it (`proposals`). The first counts against which events moved
   (`broken`) only as in a few faults, not as in noise.
4. Each proposal is taken out again, and stays out if the runs are equal without it. So each remaining one is
   necessary, and together they are sufficient: both are answers of the comparison itself, not of the earlier
   steps, which only guess what is worth asking.

Pairs with differences that are not noise, and events whose moves are not noise, are set aside for steps 3 and
4, and make the outcome `unexplained`, even if the file would hide them: a difference in an A/A run never
becomes a rule. If the events do not decide, the outcome is `undecided`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from twinstream.calibration.evidence import (
    FEWEST_EVENTS,
    Members,
    PairedPlaces,
    RunEvent,
    Runs,
    Subset,
    Undecided,
    Verify,
    bare_record,
    field_text,
)
from twinstream.calibration.fields import Left, LeftOrder, Noise, noise_of, unlike
from twinstream.calibration.ordering import KeyScope, Moves, OrderingKey, broken, looser, movable, no_noise
from twinstream.calibration.pairing import RunPairing, inferred, named
from twinstream.calibration.proposals import (
    Draft,
    Proposal,
    decides,
    for_identity,
    for_kind,
    for_noise,
    for_order,
    for_replays,
)
from twinstream.calibration.spread import examined
from twinstream.core.events import Form, Side, alike
from twinstream.core.pairing.alignment import copies
from twinstream.errors import SettingsError, SpecError
from twinstream.spec.codec.codec import Codec
from twinstream.spec.file.orders import nodes
from twinstream.spec.file.paths import Path, overlap, parse_path
from twinstream.spec.file.source import dump
from twinstream.spec.laws.equality import equality_paths
from twinstream.spec.lint.cautions import one_partition

TAIL = 0.1
"""If reading was cut, an event in this last part of a run may have its partner behind the cut."""

NONE = Subset((), ())

Result = Literal["equal", "proposed", "unexplained", "undecided"]


@dataclass(frozen=True)
class Calibration:
    """The result of calibrating two runs of one version.

    `draft` is the starting file with the proposals. `rest` are the events that no proposal explains, `beyond`
    how many were left out because their partners may lie behind the end of reading.
    """

    result: Result
    reason: str
    draft: Draft
    pairs: int = 0
    named_by: tuple[str, ...] = ()
    unexplained: tuple[Left, ...] = ()
    rest: Subset = NONE
    beyond: int = 0


def calibrate(runs: Runs, start: Draft, judge: Verify, keys: Sequence[str] = ()) -> Calibration:
    """The tightest file, made from a starting file, under which both runs are equal.

    `keys` are the fields by which the order is kept, if the caller knows. Raises SettingsError if no file
    can order by them. Complexity: O(n) a question to `judge`, which is asked once for each order tried and
    each proposal; O(n) memory.
    """
    try:
        return _Search(runs, start, judge, keys).outcome()
    except Undecided as reason:
        return Calibration("undecided", f"Not enough to propose anything: {reason}.", start)


class _Reading:
    """Reads the events of both runs as a draft has them compared."""

    def __init__(self, draft: Draft) -> None:
        self.codec = Codec(draft.spec)
        self._bare = draft.declared.whole and not draft.spec.whole

    def form(self, event: RunEvent) -> Form:
        """The form of an event."""
        return self.codec.form(bare_record(event.record) if self._bare else event.record)

    def letter(self, form: Form) -> bytes:
        """The canonical form."""
        return self.codec.canonical(form[1])


class _Explained(NamedTuple):
    """A draft under which all events of a subset are equal, and the breaks of its order."""

    draft: Draft
    subset: Subset
    unkept: tuple[Left, ...] = ()


class _Search:
    def __init__(self, runs: Runs, start: Draft, judge: Verify, keys: Sequence[str]) -> None:
        self._runs, self._start, self._judge, self._given_keys = runs, start, judge, tuple(keys)
        self._all = Subset(range(len(runs.left)), range(len(runs.right)))
        self._beyond = 0
        self._names: list[Proposal] = []
        self._kinds: list[Proposal] = []
        self._spec = start.spec
        self._remembered: dict[tuple[str, bool], list[PairedPlaces]] = {}
        self._parted = any(len({event.partition for event in run}) > 1 for run in runs[:2])

    def outcome(self) -> Calibration:
        if self._parted and self._start.data["order"] != "total":
            for note in one_partition(self._start.spec):
                raise Undecided(f"the topics have several partitions, and `{note.key}`: {note.text}")
        for name, events in (("reference", self._runs.left), ("candidate", self._runs.right)):
            if len(events) < FEWEST_EVENTS:
                has = f"{len(events)} {'event' if len(events) == 1 else 'events'} to compare"
                raise Undecided(f"the {name} has {has}; at least {FEWEST_EVENTS} are needed")
        if self._judge(self._start.spec, self._all):
            reason = f"The runs are equal as they are, in all {len(self._runs.left):,} pairs."
            return Calibration("equal", reason, self._start, len(self._runs.left))
        pairing = self._paired()
        self._tell_kinds_apart(pairing)
        noise, unexplained = self._noise(pairing)
        suspects = {pair for one in unexplained for pair in one.places}
        found = self._explain([pair for pair in pairing.pairs if pair not in suspects], noise)
        if found is None:
            raise Undecided(_none_alike(unexplained))
        return self._told(self._pruned(found), pairing, unexplained)

    # -- pairs -------------------------------------------------------------------------------------------

    def _paired(self) -> RunPairing:
        """The pairs, and the events left over; near a cut some of those are left out of everything."""
        left, right = self._runs.left, self._runs.right
        identity = Codec(self._start.spec).identity
        if identity is None:
            pairing = inferred(left, right, self._usable())
            if pairing.named_by:
                self._names = [for_identity(pairing.named_by, self._naming(pairing))]
                self._spec = self._start.with_(self._names).spec
        else:
            names = [[(event.kind, identity(event.record)) for event in run] for run in (left, right)]
            pairing = named(left, right, names)._replace(named_by=tuple(self._start.spec.identity or ()))
        if not pairing.pairs:
            raise Undecided(_NO_PAIRS)
        if self._runs.cut:
            self._leave_out_tails(pairing.pairs)
        return pairing

    def _usable(self) -> Callable[[Path], bool]:
        """A test of which fields may name an event: those that the file compares unchanged."""
        changed = [
            parse_path(found.field) for found in equality_paths(self._spec) if found.does != "compare_only"
        ]
        return lambda path: not any(overlap(path, other) for other in changed)

    def _naming(self, pairing: RunPairing) -> str:
        columns = Members([self._runs.left[i].value for i, _ in pairing.pairs])
        names = len(set(columns.rows([parse_path(field) for field in pairing.named_by])))
        others = "no two of a run have the same" if names == len(pairing.pairs) else f"with {names:,} values"
        return f"{len(pairing.pairs):,} events of each run were paired by it; {others}"

    def _leave_out_tails(self, pairs: list[PairedPlaces]) -> None:
        """Leave out the events without a partner that lie near the cut of the other run."""
        alone = self._all_but(Subset(*zip(*pairs, strict=True)))
        runs = zip(Side, self._runs[:2], strict=True)
        ends = [_tail(run) if side.other in self._runs.cut else set() for side, run in runs]
        tails = Subset(*([i for i in some if i in end] for some, end in zip(alone, ends, strict=True)))
        self._beyond = len(tails.left) + len(tails.right)
        self._all = self._all_but(tails)

    def _all_but(self, some: Subset) -> Subset:
        """The events that are not in a subset."""
        both = zip(self._all, some, strict=True)
        return Subset(*(sorted(set(every) - set(these)) for every, these in both))

    # -- fields ------------------------------------------------------------------------------------------

    def _part(self, pair: PairedPlaces) -> str | None:
        """The kind of a pair, if it has an equality of its own."""
        kind = self._runs.left[pair[0]].kind
        return kind if kind in self._spec.equality.per_kind else None

    def _values(self, pairs: Sequence[PairedPlaces]) -> list[tuple[Any, Any]]:
        return [(self._runs.left[i].value, self._runs.right[j].value) for i, j in pairs]

    def _tell_kinds_apart(self, pairing: RunPairing) -> None:
        """Give kinds without the noise of the others an equality of their own."""
        kinds: dict[str, list[PairedPlaces]] = {}
        for pair in pairing.pairs:
            if self._part(pair) is None:
                kinds.setdefault(self._runs.left[pair[0]].kind, []).append(pair)
        if len(kinds) > 1:
            found = unlike({kind: self._values(pairs) for kind, pairs in kinds.items()})
            self._kinds = [for_kind(kind, field_text(path), self._start) for kind, path in found.items()]
            self._spec = self._start.with_([*self._kinds, *self._names]).spec

    def _noise(self, pairing: RunPairing) -> tuple[list[Noise], list[Left]]:
        """The noise of the fields, separately for each equality."""
        noise: list[Noise] = []
        unexplained: list[Left] = []
        for part in (None, *self._spec.equality.per_kind):
            pairs = [pair for pair in pairing.pairs if self._part(pair) == part]
            found, other = noise_of(self._values(pairs), pairs)
            unexplained += other
            for one in (each._replace(kind=part) for each in found):
                place = decides(self._spec, one)
                if place is None:
                    noise.append(one)
                else:
                    why = f"`{place}` reads it, so it must be compared as it is"
                    unexplained.append(Left(one.field, one.differed, one.seen, why))
        if not pairing.certain:
            _refuse_guesses(noise, unexplained)
        return noise, unexplained

    # -- order -------------------------------------------------------------------------------------------

    def _explain(self, pairs: list[PairedPlaces], noise: list[Noise]) -> _Explained | None:
        """The tightest draft that explains what can be explained: the first against which little moved.

        None if under no draft any pair is equal.
        """
        declared = self._draft(noise)
        for draft in chain((declared,), self._looser(declared, pairs, noise)):
            alike = self._alike(pairs, draft)
            if not alike or self._relates_partitions(draft):
                continue
            moved, unkept = self._unkept(draft, alike, noise)
            if moved and (unkept is None or (draft is declared and self._given_keys)):
                continue
            kept = [pair for number, pair in enumerate(alike) if number not in moved]
            subset = Subset([i for i, _ in kept], sorted(j for _, j in kept))
            if not self._is_equal(draft, subset):
                raise Undecided(_NOT_PLACED)
            self._refuse_emptiness(draft, subset)
            return _Explained(draft, subset, () if unkept is None else (unkept,))
        return None

    def _unkept(
        self, draft: Draft, alike: list[PairedPlaces], noise: list[Noise]
    ) -> tuple[set[int], Left | None]:
        """The pairs that moved against the order of a draft, by number; reported if they are not noise."""
        reading = _Reading(draft)
        forms = [reading.form(self._runs.left[i]) for i, _ in alike]
        breaks = broken(reading.codec.order, forms, [j for _, j in alike])
        moved = {one.moved for one in breaks}
        if not moved:
            return moved, None
        columns = Members([self._runs.left[i].value for i, _ in alike])
        tree = list(nodes(draft.spec.order, draft.spec.compared_kinds))
        within = movable(tree, reading.codec.order, forms, breaks)
        part = no_noise(breaks, within, examined(columns, [one.path for one in noise]))
        if part is None:
            return moved, None
        places = tuple(alike[number] for number in sorted(moved))
        return moved, LeftOrder("order", len(moved), len(alike), part.why, places)

    def _refuse_emptiness(self, draft: Draft, subset: Subset) -> None:
        """Refuse a draft under which all events are equal: it compares nothing, so pairs prove nothing."""
        reading = _Reading(draft)
        letters = (reading.letter(reading.form(self._runs.left[i])) for i in subset.left)
        first = next(letters)
        if draft.proposals and all(alike(letter, first) for letter in letters):
            raise Undecided(
                "with what differs left out all events would be equal, so nothing would be compared; "
                "are these two runs on the same input? --identity names the fields"
            )

    def _looser(self, declared: Draft, pairs: list[PairedPlaces], noise: list[Noise]) -> Iterator[Draft]:
        """The drafts with the likely orders looser than the declared one, the tightest first."""
        alike = self._alike(pairs, declared)
        evidence = moved = self._moved(declared, alike, noise)

        def keys(scope: KeyScope) -> Iterator[tuple[str, ...]]:
            nonlocal evidence
            if self._given_keys:
                yield (*scope.beside, *(field for field in self._given_keys if field not in scope.beside))
                return
            chosen = [(i, j) for i, j in alike if self._runs.left[i].kind not in scope.without]
            around, beside = (tuple(map(parse_path, fields)) for fields in (scope.around, scope.beside))
            values = [self._runs.left[i].value for i, _ in chosen]
            parts = [(self._runs.left[i].partition, self._runs.right[j].partition) for i, j in chosen]
            moves = Moves(values, [j for _, j in chosen], [one.path for one in noise], around, beside, parts)
            for key in moves.likely(divided=scope.divided):
                evidence = f"{moved}; {_kept(key)}"
                yield key.fields
            evidence = moved

        tightest = self._start.data["order"]
        for order in looser(tightest, keys, self._spec.compared_kinds):
            if order != tightest:
                tried = (tightest, order) == ("total", "unordered") and not self._given_keys
                none = "; no field of the value that recurs kept its order" if tried else ""
                draft = self._draft(noise, for_order(order, evidence + none))
                if self._given_keys and order != "unordered":
                    self._refuse_bad_keys(draft)
                yield draft

    def _refuse_bad_keys(self, draft: Draft) -> None:
        """Raises SettingsError if the keys that the caller gave make a file that a law refuses."""
        try:
            _ = draft.spec
        except SpecError as error:
            keys, problem = ", ".join(self._given_keys), f"`{error.key}`: {error.problem}"
            raise SettingsError(f"--key {keys}: no file can have that order: {problem}") from None

    def _relates_partitions(self, draft: Draft) -> bool:
        """Whether the order of a draft relates events of several partitions, so that it cannot hold."""
        return self._parted and any(one_partition(draft.spec))

    def _moved(self, declared: Draft, alike: list[PairedPlaces], noise: list[Noise]) -> str:
        """Why the declared order does not hold."""
        if self._relates_partitions(declared):
            return "the topics have several partitions, and Kafka keeps no order between them"
        moved, _ = self._unkept(declared, alike, noise)
        return f"the declared order is broken: {len(moved):,} of {len(alike):,} events changed places"

    def _draft(self, noise: list[Noise], order: Proposal | None = None) -> Draft:
        """The starting file, with another order if one is given, and with the noise as it allows that."""
        other = [] if order is None else [order]
        rules = for_noise(noise, self._spec, self._start.data["order"] if order is None else order.value)
        return self._start.with_([*other, *self._kinds, *rules, *self._names])

    def _alike(self, pairs: list[PairedPlaces], draft: Draft) -> list[PairedPlaces]:
        """The pairs that are equal under a draft, with equal events paired in their order.

        Drafts with one equality have the same pairs, so these are remembered.
        """
        key = (dump(draft.data.get("equality")), draft.spec.whole)
        if key not in self._remembered:
            self._remembered[key] = self._found_alike(pairs, draft)
        return self._remembered[key]

    def _found_alike(self, pairs: list[PairedPlaces], draft: Draft) -> list[PairedPlaces]:
        reading, runs = _Reading(draft), self._runs
        forms = [(reading.form(runs.left[i]), reading.form(runs.right[j])) for i, j in pairs]
        letters = [tuple(map(reading.letter, both)) for both in forms]
        equal = [at for at, both in enumerate(letters) if alike(*both)]
        close = reading.codec.close
        if close is not None:
            return [pairs[at] for at in equal if close(*(form[3] for form in forms[at]))]
        others = sorted((pairs[at][1], letters[at][1]) for at in equal)
        again = copies([letters[at][0] for at in equal], [letter for _, letter in others])
        return [(pairs[equal[one]][0], others[other][0]) for one, other in again]

    def _is_equal(self, draft: Draft, subset: Subset) -> bool:
        try:
            return self._judge(draft.spec, subset)
        except SpecError:
            return False

    # -- necessary proposals -----------------------------------------------------------------------------

    def _pruned(self, found: _Explained) -> _Explained:
        """Take out every proposal without which the events are still equal."""
        draft = found.draft
        for proposal in draft.proposals:
            less = draft.without(proposal)
            if proposal.loosens and self._is_equal(less, found.subset):
                draft = less
        return found._replace(draft=draft)

    def _told(self, found: _Explained, pairing: RunPairing, unexplained: list[Left]) -> Calibration:
        draft, rest, no_noise = found.draft, self._all_but(found.subset), [*unexplained, *found.unkept]
        if not any(one.places for one in no_noise) and any(rest):
            draft, rest = self._explained_whole(draft, rest)
        elif any(rest) and self._are_crossed(draft, no_noise):
            rest = NONE
        some_left = any(rest)
        return Calibration(
            "unexplained" if some_left else "proposed",
            _reason(draft, rest, len(found.subset.left)),
            draft,
            len(pairing.pairs),
            pairing.named_by,
            tuple(one._replace(hidden=self._hides(draft, one)) for one in no_noise) if some_left else (),
            rest,
            self._beyond,
        )

    def _explained_whole(self, draft: Draft, rest: Subset) -> tuple[Draft, Subset]:
        """A draft that explains the rest, too: this one, or one that recognizes rows a retry wrote again."""
        if self._is_equal(draft, self._all):
            return draft, NONE
        if self._marked(rest):
            count = len(rest.left) + len(rest.right)
            again = self._start.with_([*draft.proposals, for_replays(count)])
            if self._is_equal(again, self._all):
                return again, NONE
        return draft, rest

    def _are_crossed(self, draft: Draft, left: list[Left]) -> bool:
        """Whether the differences are only those of a pairing: of events of one name not the equal ones."""
        return not any(self._hides(draft, one) for one in left) and self._is_equal(draft, self._all)

    def _hides(self, draft: Draft, left: Left) -> int:
        """How many pairs of an unexplained difference are equal under a draft."""
        return 0 if isinstance(left, LeftOrder) else len(self._found_alike(list(left.places), draft))

    def _marked(self, rest: Subset) -> bool:
        """Whether the remaining events name the attempt that wrote them, and the file does not use it yet."""
        marked = (run[i].marked for run, some in zip(self._runs[:2], rest, strict=True) for i in some)
        return self._start.spec.duplicates.policy == "strict" and all(marked)


def _reason(draft: Draft, rest: Subset, explained: int) -> str:
    count = sum(proposal.loosens for proposal in draft.proposals)
    proposals = "no proposal" if not count else "1 proposal" if count == 1 else f"{count} proposals"
    if not any(rest):
        if not count:
            return "The runs are equal as they are."
        needed = "it is needed" if count == 1 else "each one is needed"
        return f"The runs are equal with {proposals}; {needed}."
    left = " and ".join(
        f"{len(some):,} {'event' if len(some) == 1 else 'events'} of the {name}"
        for some, name in zip(rest, ("reference", "candidate"), strict=True)
    )
    return f"No rule explains {left}; the other {explained:,} pairs are equal with {proposals}."


_NO_PAIRS = (
    "no field has the same values in both runs, so events cannot be paired. Are these two runs on the same "
    "input? Name the fields of the identity with --identity"
)


_NOT_PLACED = (
    "the comparison finds a difference, or cannot decide, but no event has moved; `check` with the same file "
    "tells why"
)


def _none_alike(unexplained: Sequence[Left]) -> str:
    if not unexplained:
        return "no event of the one run equals one of the other, whatever field is left out"
    most = max(unexplained, key=lambda one: one.differed)
    return f"`{most.field}` differed in {most.differed:,} of {most.seen:,} pairs, and {most.why}"


def _tail(run: Sequence[RunEvent]) -> set[int]:
    """The events in the last part of each partition, by index."""
    of_partition: defaultdict[int, list[int]] = defaultdict(list)
    for index, event in enumerate(run):
        of_partition[event.partition].append(index)
    return {index for indexes in of_partition.values() for index in indexes[int((1 - TAIL) * len(indexes)) :]}


def _kept(key: OrderingKey) -> str:
    names = " and ".join(f"`{field}`" for field in key.fields)
    count = key.kept + key.broken
    moved = f"{key.broken:,}" if key.broken else "none"
    kept = f"of the {count:,} that follow another of the same {names}, {moved} changed places"
    if not key.supported:
        return f"{kept}, but nothing moved as far as those stand apart, so that may be chance"
    return f"{kept}, and of those beside them {key.swaps:,}"


def _refuse_guesses(noise: Sequence[Noise], unexplained: Sequence[Left]) -> None:
    """If partners are a guess, only fields that differ in every pair differ whoever the partner is."""
    sure = all(
        one.how == "absent" or (one.how == "ignore" and not one.fractions and one.differed == one.seen)
        for one in noise
    )
    if unexplained or not sure:
        raise Undecided(
            "no fields name an event in both runs, so pairing is a guess; name such fields with --identity, "
            "or add them to the events"
        )
