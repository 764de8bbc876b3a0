"""Publishes a sample of the unmatched events: the oldest of each side.

It is bounded in number and size, made after each survey of all unmatched events, and sent when it has
changed; an event that stays in it is decoded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from twinstream.core.comparison import Comparison
from twinstream.core.events import FORM, OFFSET, PARTITION, RECORD, TIMESTAMP_MS, Event, Side
from twinstream.explain.divergence import Explainer
from twinstream.ports import Publisher
from twinstream.reporting.truncate import cut
from twinstream.status import comparison as status
from twinstream.status.timestamps import moment_of

SAMPLE_EVENTS = 200
SAMPLE_BYTES = 256_000
"""Of each side, as records: a few large ones are enough, and all of it goes through a pipe."""

_Key = tuple[Side, int, int, bool]
"""Side, partition, offset, and whether it is overdue."""


class UnmatchedSampler:
    """Publishes the sample of one comparison."""

    def __init__(self, name: str, explainer: Explainer, publisher: Publisher) -> None:
        self._name, self._explainer, self._publisher = name, explainer, publisher
        self._shown: dict[_Key, status.UnmatchedEvent] | None = None
        self._lacking: set[_Key] = set()

    @property
    def shown(self) -> tuple[status.UnmatchedEvent, ...]:
        """The sample published last."""
        return tuple((self._shown or {}).values())

    def show(self, comparison: Comparison, at_end: tuple[bool, bool]) -> None:
        """Publish the events that have waited longest, as of the last survey, if they have changed.

        Complexity: O(sample); about 20 µs for an event that is new in it.
        """
        before = self._shown or {}
        oldest = {
            (side, event[PARTITION], event[OFFSET], overdue): event
            for side in Side
            for event, overdue in _bounded(comparison.oldest(side, at_end, SAMPLE_EVENTS))
        }
        known = {key: told for key, told in before.items() if key not in self._lacking}
        due = {key: [(key[0], event)] for key, event in oldest.items() if key[3] and key not in known}
        with self._explainer.at_hand(chain.from_iterable(due.values())):
            sample = {key: known.get(key) or self._told(key, event) for key, event in oldest.items()}
            self._lacking = {key for key, events in due.items() if self._explainer.lacks(events)}
        if self._shown is None or sample.keys() != self._shown.keys() or not known.keys() >= sample.keys():
            events = tuple(sample.values())
            self._publisher.publish(status.UnmatchedSample(comparison=self._name, events=events))
        self._shown = sample

    def _told(self, key: _Key, event: Event) -> status.UnmatchedEvent:
        plain = self._explainer.waiting(key[0], event)
        short = {"scope": cut(plain["scope"]), "value": cut(plain["value"])}
        more = {"at": moment_of(event[TIMESTAMP_MS]), "overdue": key[3]}
        return status.UnmatchedEvent.model_validate({**plain, **short, **more})


def _bounded(oldest: Iterator[tuple[Event, bool]]) -> Iterator[tuple[Event, bool]]:
    """The first event, and more up to `SAMPLE_BYTES` in total."""
    size = 0
    for event, overdue in oldest:
        size += len(event[FORM][RECORD])
        if size > SAMPLE_BYTES and size > len(event[FORM][RECORD]):
            return
        yield event, overdue
