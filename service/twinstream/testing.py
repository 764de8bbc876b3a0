"""The comparison in Python: `check` for recorded outputs, `Matcher` for events one at a time.

Both run what `twinstream check` runs, so a test and the service agree on what is equivalent. A comparison is
given as the path of its file, as a `Spec` that was loaded, or as a mapping with the keys of the file; in a
mapping ``version``, ``name``, ``reference`` and ``candidate`` may be left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from twinstream.adapters.files.jsonl import LineShape, merge, read_side, read_trace, shapes_of
from twinstream.adapters.files.lines import InputFile
from twinstream.adapters.files.values import read_values
from twinstream.answers import Answer
from twinstream.core.events import Side
from twinstream.errors import InputError, SpecError
from twinstream.offline.check import Check
from twinstream.offline.check import check as run_check
from twinstream.ports import Line
from twinstream.spec.file.model import Spec
from twinstream.spec.load import load, loads
from twinstream.status.common import Verdict

AnySpec = str | os.PathLike[str] | Spec | Mapping[str, Any]
Output = str | os.PathLike[str] | Iterable[Any]
Interleave = Literal["alternate", "reference-first", "candidate-first"]

_DEFAULTS: Mapping[str, Any] = {
    "version": 1,
    "name": "check",
    "reference": {"topic": "reference"},
    "candidate": {"topic": "candidate"},
}


def check(
    spec: AnySpec,
    reference: Output | None = None,
    candidate: Output | None = None,
    *,
    trace: str | os.PathLike[str] | None = None,
    interleave: Interleave = "alternate",
    open_ended: bool = False,
    allow_empty: bool = False,
    require_evidence: bool = False,
) -> Answer:
    """Compare two recorded outputs, as `twinstream check` does.

    Args:
        spec: The comparison: a path, a `Spec`, or a mapping with the keys of a comparison file.
        reference: The reference's output: a path (one value a line, `.gz` and `.zst` are read), or values in
            their order. A value has the types of JSON, or is the bytes of a record.
        candidate: The candidate's output, likewise.
        trace: Both outputs in one file, instead of the two above.
        interleave: How two outputs are read: in turn, or one after the other. The verdict does not depend on
            it, only `decided_at` and `max_unmatched` do.
        open_ended: The streams go on after the input, so unmatched events at its end are no difference.
        allow_empty: Two empty outputs are equivalent, not inconclusive.
        require_evidence: Ask for the evidence that the spec wants before a verdict of EQUIVALENT.

    Returns:
        The answer. Ask it for `equivalent`; a difference is an answer, never an exception.

    Raises:
        SpecError: The comparison breaks a rule.
        InputError: A file cannot be read, or a line or value is no event of the comparison.

    Runtime complexity: time O(n) in the events for every order but `callable`; memory O(unmatched events).

    >>> rides = [{"taxi": 7, "fare": 3}, {"taxi": 9, "fare": 5}, {"taxi": 7, "fare": 4}]
    >>> check({"order": {"per_key": ["taxi"]}}, rides, [rides[1], rides[0], rides[2]]).equivalent
    True
    >>> answer = check({"order": {"per_key": ["taxi"]}}, rides, [rides[1], rides[2], rides[0]])
    >>> answer.verdict, answer.decided_at, answer.examples[0].kind, answer.examples[0].scope
    ('DIVERGED', 4, 'reordered', {'taxi': 7})
    """
    comparison = spec_of(spec)
    answer = run_check(
        comparison,
        _lines(comparison, reference, candidate, trace, interleave),
        open_ended=open_ended,
        allow_empty=allow_empty,
        evidence=require_evidence,
    )
    return Answer.from_dict(answer)


class Matcher:
    """One comparison that is fed event by event; its verdict is known after each.

    The comparison is given as for `check`, or by the keys of a comparison file as arguments:

    >>> matcher = Matcher(
    ...     kinds={"end_of_day": {"where": {"type": "eod"}}, "ride": {}},
    ...     order={"barrier": "end_of_day", "inner": {"per_key": ["taxi"]}},
    ... )
    >>> matcher.reference({"taxi": 7, "fare": 3}, {"type": "eod"})
    >>> matcher.verdict
    'PENDING'
    >>> matcher.candidate({"type": "eod"})
    >>> matcher.verdict
    'DIVERGED'
    >>> matcher.end().examples[0].kind
    'missing'
    """

    def __init__(self, spec: AnySpec | None = None, /, **keys: Any) -> None:
        """Raises SpecError if the comparison breaks a rule."""
        if (spec is None) != bool(keys):
            raise TypeError("give a comparison, or the keys of one as arguments, such as order='total'")
        comparison = spec_of(keys if spec is None else spec)
        self._shapes = shapes_of(comparison)
        self._check = Check(comparison)
        self._fed = dict.fromkeys(Side, 0)
        self._lines = 0
        self._answer: Answer | None = None

    def reference(self, *values: Any) -> None:
        """Take the next events of the reference. Raises InputError, as `check` does."""
        self._feed(Side.LEFT, values)

    def candidate(self, *values: Any) -> None:
        """Take the next events of the candidate. Raises InputError, as `check` does."""
        self._feed(Side.RIGHT, values)

    def end_reference(self) -> None:
        """End the reference, while the candidate may go on."""
        self._end(Side.LEFT)

    def end_candidate(self) -> None:
        """End the candidate, while the reference may go on."""
        self._end(Side.RIGHT)

    @property
    def verdict(self) -> Verdict:
        """The verdict so far: EQUIVALENT means that every event up to now has its partner."""
        if self._answer is not None:
            return self._answer.verdict
        if not self._lines:
            return "PENDING"
        return self._check.verdict().value

    def end(self, *, open_ended: bool = False, allow_empty: bool = False) -> Answer:
        """The answer, with both sides at their end. Called again, it returns the same.

        With `open_ended` the sides stay open: unmatched events are then no difference, and the verdict may be
        PENDING. `allow_empty` is that of `check`.
        """
        if self._answer is None:
            data = self._check.finish(open_ended=open_ended, allow_empty=allow_empty)
            self._answer = Answer.from_dict(data)
        return self._answer

    def _feed(self, side: Side, values: Iterable[Any]) -> None:
        for line in read_values(values, side, self._shapes[side], self._fed[side]):
            self._take(line)
            self._fed[side] += 1

    def _end(self, side: Side) -> None:
        name = ("reference", "candidate")[side]
        self._take(Line(side, None, 0, self._fed[side], 0, name, self._fed[side] + 1, 0))

    def _take(self, line: Line) -> None:
        if self._answer is not None:
            raise InputError(line.file, line.number, "the comparison has ended")
        self._lines += 1
        self._check.feed(line._replace(position=self._lines))


def spec_of(given: AnySpec) -> Spec:
    """The comparison given by a path, a `Spec` or a mapping. Raises SpecError.

    >>> spec_of({"order": "total"}).name
    'check'
    """
    if isinstance(given, Spec):
        return given
    if not isinstance(given, Mapping):
        return load(os.fspath(given))
    try:
        # JSON is YAML, so a mapping is read by the same rules and refused in the same words as a file.
        return loads(json.dumps({**_DEFAULTS, **given}, default=str, ensure_ascii=False), "the comparison")
    except SpecError as error:
        raise SpecError(error.file, None, error.key, error.problem) from None


def _lines(
    spec: Spec,
    reference: Output | None,
    candidate: Output | None,
    trace: str | os.PathLike[str] | None,
    interleave: Interleave,
) -> Iterator[Line]:
    shapes = shapes_of(spec)
    if trace is not None and reference is None and candidate is None:
        return read_trace(InputFile(trace), shapes)
    if trace is not None or reference is None or candidate is None:
        raise TypeError("give reference and candidate, or trace alone")
    outputs = zip(Side, (reference, candidate), strict=True)
    left, right = (_output(side, output, shapes[side]) for side, output in outputs)
    return merge(left, right, interleave)


def _output(side: Side, output: Output, shape: LineShape) -> Iterator[Line]:
    name = ("reference", "candidate")[side]
    if isinstance(output, (str, os.PathLike)):
        return read_side(InputFile(output), side, shape)
    if isinstance(output, (bytes, Mapping)) or not isinstance(output, Iterable):
        kind = type(output).__name__
        raise InputError(name, None, f"must be a path or values in their order, but {kind} was given")
    return read_values(output, side, shape)
