"""A divergence in the words of its owner: names for sides, values, positions, the differing fields, a text.

The core knows events of the left and the right. Here they become outputs of the reference and the candidate,
and the proof becomes two or three sentences that make sense without the theory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import orjson

from twinstream.core.comparison import Divergence
from twinstream.core.events import Event, Side
from twinstream.core.findings import Finding
from twinstream.spec.codec import Codec, canonical_value, decode
from twinstream.spec.model import Spec
from twinstream.spec.paths import ABSENT, parse_path, path_text

NAMES = {Side.LEFT: "reference", Side.RIGHT: "candidate"}
_TEXT_LIMIT = 300

Show = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """A decoded value as JSON can carry it: decimals as numbers or texts without loss."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def masked(shown: list[str]) -> Show:
    """Hide every value but those of the fields in `shown`: type and length stay."""
    paths = {parse_path(field) for field in shown}

    def show(value: Any, at: tuple[str, ...] = ()) -> Any:
        if any(at[: len(path)] == path for path in paths):
            return plain(value)
        if isinstance(value, dict):
            return {name: show(member, (*at, name)) for name, member in value.items()}
        return _mask(value)

    return show


def _mask(value: Any) -> str:
    if value is None:
        return "‹null›"
    if isinstance(value, bool):
        return "‹boolean›"
    if isinstance(value, str):
        return f"‹text, {len(value)} characters›"
    return f"‹list of {len(value)}›" if isinstance(value, list) else "‹number›"


class Explainer:
    """Turns divergences of one comparison into reports. `show` maps a value to what may be seen of it."""

    def __init__(self, spec: Spec, digest: str, codec: Codec, show: Show) -> None:
        self._spec, self._digest, self._codec, self._show = spec, digest, codec, show
        self._topics = {Side.LEFT: spec.reference.topic, Side.RIGHT: spec.candidate.topic}

    def report(self, divergence: Divergence) -> dict[str, Any]:
        """The divergence as plain data: the shape of `examples` in ``check --json`` and of the HTTP API."""
        finding = divergence.finding
        events = {Side.LEFT: finding.left, Side.RIGHT: finding.right}
        scope = self._codec.scope(_record(finding.left or finding.right))
        positions = {NAMES[side]: self._position(side, event) for side, event in events.items()}
        return {
            "id": self._id(scope, divergence),
            "kind": finding.kind,
            "scope": dict(self._shown_scope(scope)),
            **{NAMES[side]: None if event is None else self._value(event) for side, event in events.items()},
            "positions": positions,
            "fields": self._fields(finding.left, finding.right) if finding.kind == "changed" else {},
            "witness": [
                {"side": NAMES[side], "position": self._position(side, event), "value": self._value(event)}
                for side, event in finding.witness
            ],
            "text": self._text(divergence, scope),
            "tainted": divergence.tainted,
        }

    def _id(self, scope: dict[str, Any], divergence: Divergence) -> str:
        """The same divergence found again, after a replay or with its other half, has the same id."""
        first = divergence.first or divergence.finding
        side = Side.RIGHT if first.left is None else Side.LEFT
        position = self._position(side, first.event)
        parts = [self._spec.name, self._digest, {k: str(v) for k, v in scope.items()}, NAMES[side], position]
        return blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()

    def _position(self, side: Side, event: Event | None) -> dict[str, Any] | None:
        if event is None:
            return None
        return {"topic": self._topics[side], "partition": event[1], "offset": event[2]}

    def _value(self, event: Event | None) -> Any:
        return self._show(decode(_record(event)))

    def _fields(self, left: Event | None, right: Event | None) -> dict[str, Any]:
        values = [self._codec.compared(_record(event)) for event in (left, right)]
        return {
            path_text(path): {
                NAMES[side]: None if member is ABSENT else self._shown_at(path, member)
                for side, member in zip(Side, members, strict=True)
            }
            for path, members in _differences(values[0], values[1], ())
        }

    def _shown_at(self, path: tuple[str, ...], member: Any) -> Any:
        wrapped = member
        for name in reversed(path):
            wrapped = {name: wrapped}
        shown = self._show(wrapped)
        for name in path:
            shown = shown[name]
        return shown

    # -- prose ---------------------------------------------------------------------------------------------

    def _text(self, divergence: Divergence, scope: dict[str, Any]) -> str:
        finding = divergence.finding
        lane = ", ".join(f"{field} {self._brief(value)}" for field, value in self._shown_scope(scope))
        what = _WHAT[finding.kind].format(
            left=self._at(finding.left),
            right=self._at(finding.right),
            value=self._brief(self._value(finding.left or finding.right)),
            places=_places(finding.left, finding.right),
        )
        sentences = [f"For {lane}, {what[:1].lower()}{what[1:]}" if lane else what]
        if finding.kind == "changed":
            fields = self._fields(finding.left, finding.right)
            sentences.append(f"They differ in {', '.join(filter(None, fields)) or 'the whole value'}.")
        else:
            sentences.append(self._why(finding))
        if divergence.tainted:
            sentences.append(
                "It lies behind a part of the input that was not checked, so it decides nothing."
            )
        return " ".join(sentences)

    def _why(self, finding: Finding) -> str:
        order = f"The outputs are compared {self._spec.order_text}"
        if finding.witness:
            return (
                f"{order}: {_PROOF[finding.kind].format(places=_places(*(e for _, e in finding.witness)))}."
            )
        if self._codec.bag:
            return f"{order}, and no equal one came before the other side ended or was long past it."
        return f"{order}, and in its place the other side ended or went on with something else."

    def _shown_scope(self, scope: dict[str, Any]) -> list[tuple[str, Any]]:
        return [(field, self._shown_at(parse_path(field), value)) for field, value in scope.items()]

    def _at(self, event: Event | None) -> str:
        return "" if event is None else f"{self._brief(self._value(event))} ({_place(event)})"

    @staticmethod
    def _brief(value: Any) -> str:
        text = orjson.dumps(value, default=str).decode()
        return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"


_WHAT = {
    "missing": "The reference put out {left}, and the candidate did not.",
    "extra": "The candidate put out {right}, and the reference did not.",
    "duplicate": "The candidate put out {right} once more than the reference.",
    "changed": "The reference put out {left}, and the candidate {right} instead.",
    "reordered": "Both sides put out {value}, but not in the same order: {places}.",
}
_GONE_ON = (
    "both sides have gone on to an equal pair behind it ({places}), so its partner cannot come any more"
)
_PROOF = {
    "missing": _GONE_ON,
    "extra": _GONE_ON,
    "duplicate": _GONE_ON,
    "reordered": "on one side it comes before an equal pair ({places}), on the other behind it",
}


def _record(event: Event | None) -> bytes:
    assert event is not None, "a finding has an event on at least one side"
    return event[0][3]


def _place(event: Event) -> str:
    return f"partition {event[1]} offset {event[2]}"


def _places(left: Event | None, right: Event | None) -> str:
    events = zip(Side, (left, right), strict=True)
    return ", ".join(f"{NAMES[side]} {_place(event)}" for side, event in events if event is not None)


def _differences(
    left: Any, right: Any, at: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[Any, Any]]]:
    """The paths at which two values differ, with both members."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in sorted({*left, *right}):
            yield from _differences(left.get(name, ABSENT), right.get(name, ABSENT), (*at, name))
    elif left is ABSENT or right is ABSENT or canonical_value(left) != canonical_value(right):
        yield at, (left, right)
