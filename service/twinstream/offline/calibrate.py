"""`calibrate`: reads two recorded runs of one version, and judges each proposed file by comparing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from twinstream.calibration.evidence import RunEvent, Runs, Subset, bare_record
from twinstream.calibration.fields import Left
from twinstream.calibration.proposals import Draft
from twinstream.calibration.search import Calibration
from twinstream.calibration.search import calibrate as search
from twinstream.calibration.writing import file_text
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Form, Side
from twinstream.errors import InputError
from twinstream.explain.divergence import NAMES
from twinstream.intake.batches import marks_of
from twinstream.offline.check import check, equivalent
from twinstream.ports import Line
from twinstream.spec.codec.codec import IGNORED, Codec
from twinstream.spec.compile.cut import cut_of
from twinstream.spec.decode.headers import attempt_of
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, parse_path, read
from twinstream.spec.file.source import dump, read_source
from twinstream.spec.load import load, loads

TIGHTEST: Mapping[str, Any] = {
    "version": 1,
    "name": "calibrated",
    "reference": {"topic": "reference"},
    "candidate": {"topic": "candidate"},
    "order": "total",
}
"""The start without a given file: everything is compared, and in its order."""

MOST_PLACES = 20
"""At most so many places of an unexplained difference are in the JSON output."""


def start_of(file: str | None, topics: Mapping[str, str | None], identity: Sequence[str]) -> Draft:
    """The file to loosen: a comparison file, or the tightest of all.

    `topics`, by side, and `identity`, if given, replace those of the file. Raises SpecError.
    """
    data, given = dict(TIGHTEST), None
    if file is not None:
        given = load(file)
        data = dict(read_source(Path(file).read_text(encoding="utf-8"), file).data)
    for side, topic in topics.items():
        if topic is not None:
            data[side] = {**data[side], "topic": topic}
    if identity:
        data["identity"] = list(identity)
    spec = loads(dump(data), file or "the command line")
    if given is not None:
        sides = {side: getattr(spec, side).model_copy(update={"decode": getattr(given, side).decode})
                 for side in ("reference", "candidate")}  # fmt: skip
        spec = spec.model_copy(update={"decode": given.decode, **sides})
    return Draft(data, spec, given is not None)


class Recording:
    """The events of both runs, fed as lines and kept. `limit` bounds the events of each side.

    Events before a start at a time are not kept: no file compares them, so they are no evidence.
    """

    def __init__(self, spec: Spec, limit: int) -> None:
        self._spec, self._codec, self._limit = spec, Codec(spec), limit
        self._cut = cut_of(spec, self._codec) if spec.start.at == "event_time" else None
        self._undecodable = 0
        self._lines: tuple[list[Line], list[Line]] = ([], [])
        self._events: tuple[list[RunEvent], list[RunEvent]] = ([], [])
        self.cut: set[Side] = set()

    def read(self, lines: Iterable[Line]) -> None:
        """Keep the events of one side, up to the limit.

        Raises InputError if a line is no event, beyond the budget of the file.
        """
        for line in lines:
            if len(self._lines[line.side]) == self._limit:
                self.cut.add(line.side)
                return
            event = self._event(line)
            if event is not None:
                self._lines[line.side].append(line)
                self._events[line.side].append(event)

    def _event(self, line: Line) -> RunEvent | None:
        (form,), refused = self._codec.forms((line.record,), line.side)
        if form is IGNORED:
            if refused[0].reason is not None:
                self._refuse(line, refused[0].reason)
            return None
        if not self._is_behind_start(line, form):
            return None
        value = self._codec.compared(form[3])
        compared = value["$value"] if self._spec.whole else value
        (attempt,), _ = marks_of(attempt_of, (line.headers,), [])
        return RunEvent(form[3], form[2], compared, attempt is not None, line.partition)

    def _is_behind_start(self, line: Line, form: Form) -> bool:
        if self._cut is None:
            return True
        run = Run([form], line.partition, (line.offset,), (line.timestamp_ms,), 0.0)
        passed = self._cut.take(line.side, run)
        for _, reason in passed.refused:
            self._refuse(line, reason)
        return any(part.behind for part in passed.parts)

    def _refuse(self, line: Line, reason: str) -> None:
        self._undecodable += 1
        if self._undecodable > self._spec.undecodable.budget:
            raise InputError(line.file, line.number, f"not an event of this comparison: {reason}")

    @property
    def whole(self) -> bool:
        """Whether the records are read with their keys and headers, as the starting file names some."""
        return self._spec.whole

    @property
    def runs(self) -> Runs:
        """The events in the form that calibration reads."""
        return Runs(*self._events, frozenset(self.cut))

    def lacking(self, fields: Iterable[str]) -> str | None:
        """The first of these fields that no event of either run has; None also if there are no events."""
        values = [event.value for event in chain(*self._events)]
        for field in fields:
            path = parse_path(field)
            if values and not field.startswith("$") and all(read(value, path) is ABSENT for value in values):
                return field
        return None

    def judge(self, spec: Spec, subset: Subset) -> bool:
        """Whether some of the events are equal under a comparison file, its known differences left out."""
        try:
            return equivalent(_explaining_nothing(spec), self._of(spec, subset))
        except InputError:
            return False

    def check(self, spec: Spec) -> dict[str, Any]:
        """The answer of `check` for all events under a comparison file, likewise."""
        return check(
            _explaining_nothing(spec), self._of(spec, Subset(*(range(len(lines)) for lines in self._lines)))
        )

    def _of(self, spec: Spec, subset: Subset) -> Iterable[Line]:
        """The lines of some events, alternating as long as both sides have some."""
        bare = self._spec.whole and not spec.whole
        sides = [[lines[i] for i in some] for lines, some in zip(self._lines, subset, strict=True)]
        in_turn = chain.from_iterable(zip_longest(*sides))
        for position, line in enumerate(filter(None, in_turn), 1):
            record = bare_record(line.record) if bare and line.record is not None else line.record
            yield line._replace(position=position, record=record)


def _explaining_nothing(spec: Spec) -> Spec:
    """A comparison file without known differences: one of two versions explains nothing in runs of one."""
    return spec.model_copy(update={"known_differences": []})


class Calibrated(NamedTuple):
    """A calibration, the proposed file, and the differences that it leaves unexplained (from `check`)."""

    found: Calibration
    file: str | None
    differences: dict[str, Any] | None

    def to_dict(self, recording: Recording) -> dict[str, Any]:
        """The result as ``calibrate --json`` prints it."""
        found, runs = self.found, recording.runs
        return {
            "result": found.result,
            "reason": found.reason,
            "events": {NAMES[side]: len(run) for side, run in zip(Side, runs[:2], strict=True)},
            "cut": bool(runs.cut),
            "beyond_cut": found.beyond,
            "pairs": found.pairs,
            "paired_by": list(found.named_by),
            "proposals": [proposal.to_dict() for proposal in found.draft.proposals],
            "unexplained": [{**one._asdict(), "places": _places(one)} for one in found.unexplained],
            "differences": self.differences,
            "file": self.file,
        }


def _places(left: Left) -> list[dict[str, int]]:
    """The first places of an unexplained difference, as numbers of events counted from 1."""
    return [{"reference": i + 1, "candidate": j + 1} for i, j in left.places[:MOST_PLACES]]


def calibrate(recording: Recording, start: Draft, keys: Sequence[str] = ()) -> Calibrated:
    """The tightest file under which both runs are equal; see `twinstream.calibration.search`."""
    found = search(recording.runs, start, recording.judge, keys)
    if found.result == "undecided":
        return Calibrated(found, None, None)
    differences = recording.check(found.draft.spec) if found.result == "unexplained" else None
    file = file_text(found)
    said, meant = loads(file, "the proposed file"), found.draft.spec
    assert (said.order, said.equality) == (meant.order, meant.equality), "the file is the draft"
    return Calibrated(found, file, differences)
