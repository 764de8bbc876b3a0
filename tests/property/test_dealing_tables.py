"""Rows that replace each other, dealt out by key, give in all shards together what the whole gives."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_tables import (
    BY_INPUT,
    BY_WATERMARK,
    RECORDED,
    Job,
    Windows,
    World,
    actions,
    losses,
    skips,
)
from tests.support.searching import examples
from tests.support.streams import Driver
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Side
from twinstream.reporting.checks import results
from twinstream.spec.compile.addresses import Addresses
from twinstream.spec.compile.checks import FactReader

CHECKED = "checks: [{id: closed, closed_windows: {end: end}}, {id: up, ascending: v, per: [k, end]}]\n"
PER_KEY = BY_INPUT.replace("order: unordered", "order: {per_key: [k]}")


class Dealt(World):
    """The same world, read by a matcher of the whole and by those of shards."""

    def __init__(self, file: str, job: Job, loses: Any, skips: list[bool], shards: int) -> None:
        super().__init__(file, job, loses, skips)
        spec, codec = self.driver.spec, self.driver.codec
        self.whole, self.parts = Driver(spec), [Driver(spec) for _ in range(shards)]
        self._addresses, self._facts = Addresses(codec, shards), FactReader(spec, codec)

    @property
    def _all(self) -> list[Driver]:
        return [self.whole, *self.parts]

    def act(self, action: tuple[Any, ...]) -> None:
        for driver in self._all if action[0] == "restart" else ():
            driver.restart()
        super().act(action)

    def read(self, side: Side, partition: int, count: int) -> None:
        first = self.versions[side].read[partition]
        records = [row for row, _ in self.versions[side].topic[partition][first : first + count]]
        super().read(side, partition, count)
        if not records:
            return
        forms, _ = self.driver.codec.forms(records, side)
        offsets, times_ms = range(first, first + len(records)), [0] * len(records)
        facts = self._facts.facts(records, None, forms, side)
        run = Run(forms, partition, offsets, times_ms, 0.0, facts=facts)
        self.whole.comparison.feed(side, run)
        numbers = self._addresses.of(records, side)
        for number, part in enumerate(self.parts):
            if own := [place for place, found in enumerate(numbers) if found == number]:
                part.comparison.feed(side, run.only(own))

    def hear(self, side: Side, count: int) -> None:
        for fact in self.versions[side].said[:count]:
            for driver in self._all:
                driver.comparison.note_finished(side, fact)
        super().hear(side, count)

    def look(self) -> None:
        super().look()
        for driver in self._all:
            for side in Side:
                read = dict(self.versions[side].read)
                driver.comparison.look(side, read, {}, 0.0)
                driver.comparison.checks.look(side, read, 0)
            driver.comparison.survey((False, False))
        assert self.said(self.parts) == self.said([self.whole])

    def end(self) -> None:
        for driver in self._all:
            driver.end()
        assert self.said(self.parts) == self.said([self.whole])

    def said(self, drivers: list[Driver]) -> Any:
        """What must be the same of the whole and of all shards."""
        comparisons = [driver.comparison for driver in drivers]
        accounts = [
            sum((Counter(vars(comparison.accounts[side])) for comparison in comparisons), Counter[str]())
            for side in Side
        ]
        checks = zip(*(results(one, self.driver.spec, frozenset()) for one in comparisons), strict=True)
        judged = [
            (sum(one.candidate.checked for one in same), sum(one.candidate.violations for one in same))
            for same in checks
        ]
        places = sorted(
            event[1:3]
            for divergence in chain.from_iterable(driver.findings() for driver in drivers)
            for _, event in divergence.finding.events
            if event is not None
        )
        matched = sum(comparison.matched for comparison in comparisons)
        diverged = any(comparison.diverged for comparison in comparisons)
        return accounts, matched, diverged, places, judged


@pytest.mark.parametrize(
    ("file", "job"),
    [(BY_INPUT, Job()), (PER_KEY, Job()), (RECORDED, Job()), (BY_WATERMARK + CHECKED, Windows())],
)
@examples(150)
@given(losses, skips, st.lists(actions, max_size=60), st.integers(2, 4))
def test_shards_by_key_settle_the_rows_that_the_whole_settles(
    file: str, job: Job, loses: Any, skips: tuple[bool, bool], steps: list[Any], shards: int
) -> None:
    world = Dealt(file, job, loses, list(skips), shards)
    for step in steps:
        world.act(step)
    for version in world.versions:
        version.close()
    world.read_all()
    world.end()
