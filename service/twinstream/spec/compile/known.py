"""Compiles the known differences of a comparison file: which findings a rule covers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time
from typing import Any

from twinstream.core.diagnosis.findings import Finding
from twinstream.core.diagnosis.known_differences import KnownDifference
from twinstream.core.events import FORM, KIND, RECORD
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.reduction import differences
from twinstream.spec.codec.routes import condition
from twinstream.spec.file.known_differences import KnownDifference as Declared
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, holds
from twinstream.spec.file.values import WantedValues

Holds = Callable[[Any], bool]


def known_differences(
    spec: Spec, codec: Codec, *, running_at: datetime | None = None
) -> tuple[KnownDifference, ...]:
    """The rules of a spec for the core.

    A rule covers records with a timestamp before its day of expiry. If `running_at` is given, as for recorded
    input, it covers all records if `running_at` lies before that day, else none.
    """
    running_ms = None if running_at is None else int(running_at.timestamp() * 1000)
    covering = [(rule, _Coverage(rule, spec, codec)) for rule in spec.known_differences]
    return tuple(
        KnownDifference(
            rule.id,
            coverage.covers,
            rule.ceiling.count or 0,
            rule.ceiling.share,
            _until(rule, running_ms),
            coverage.may_cover,
        )
        for rule, coverage in covering
    )


def _until(rule: Declared, running_ms: int | None) -> float:
    """When a rule expires, by the timestamps of events; for recorded input, always or never."""
    expires_ms = datetime.combine(rule.expires, time(), UTC).timestamp() * 1000
    if running_ms is None:
        return expires_ms
    return math.inf if running_ms < expires_ms else -math.inf


def _conditions(spec: Spec, where: Mapping[str, WantedValues]) -> dict[str, Holds]:
    """By kind, whether a value fulfils `where`, if it asks for anything.

    An absent field is null there where the equality of the kind says so.
    """
    if not where:
        return {}
    nulls = {kind: spec.equality_of(kind).absent_is_null for kind in spec.kind_names}
    return {kind: condition(spec, where, None if null else ABSENT) for kind, null in nulls.items()}


class _Coverage:
    def __init__(self, rule: Declared, spec: Spec, codec: Codec) -> None:
        self._kinds = frozenset(rule.when.divergences)
        if codec.close is not None and "extra" in self._kinds:
            self._kinds |= {"duplicate"}  # which of the two it is called makes no difference then
        where = rule.when.where
        key = [] if spec.folding is None else [spec.path_of(field) for field in spec.folding.key]
        by_key = {field: wanted for field, wanted in where.items() if spec.path_of(field) in key}
        self._reads_key_only = len(by_key) == len(where)
        self._where = _conditions(spec, where)
        self._where_of_key = self._where if spec.folding is None else _conditions(spec, by_key)
        self._fields = [spec.path_of(field) for field in rule.when.fields]
        self._codec = codec

    def covers(self, finding: Finding) -> bool:
        """Whether the rule applies to a finding."""
        if not self.may_cover(finding):
            return False
        if finding.kind == "changed" and self._fields:
            return finding.is_whole and self._only_these_differ(finding)
        return finding.is_whole or self._reads_key_only

    def may_cover(self, finding: Finding) -> bool:
        """Whether the rule applies to this kind, and to the events that the finding has so far.

        The deletion of a row tells no more of that row than its key.
        """
        if finding.kind not in self._kinds:
            return False
        events = [event for event in (finding.left, finding.right) if event is not None]
        deletes = not finding.is_whole and finding.kind != "changed"
        where = self._where_of_key if deletes else self._where
        forms = [event[FORM] for event in events]
        return not where or all(where[form[KIND]](self._codec.decode(form[RECORD])) for form in forms)

    def _only_these_differ(self, finding: Finding) -> bool:
        left, right = finding.left, finding.right
        assert left is not None
        assert right is not None
        values = self._codec.compared_pair(left[0][3], right[0][3])
        return all(any(holds(field, path) for field in self._fields) for path, _ in differences(*values))
