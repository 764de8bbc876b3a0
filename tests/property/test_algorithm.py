"""Every index pairs, event by event, as the algorithm does over a list; up to the first difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

from tests.support.streams import record
from tests.support.worlds import World, worlds
from twinstream.core.events import Event, Side
from twinstream.core.matching.choice import index_of
from twinstream.core.matching.index import Hooks, Index
from twinstream.core.order import Pairwise, dependent
from twinstream.core.relation import Relation

DIFFERS = "differs"


class _DiffersError(Exception):
    """An index sets something aside."""


def _differs(*_: Any) -> Any:
    raise _DiffersError


def _hooks(relation: Relation) -> Hooks:
    def nothing(*_: Any) -> None: ...

    return Hooks(relation.canonical, relation.equal, _differs, nothing, nothing, nothing, nothing, 10_000)


def _answers(index: Index, events: list[tuple[Side, Event]]) -> Iterator[Event | str | None]:
    """The partner of each event, until one shows that the streams differ."""
    for side, event in events:
        try:
            yield index.take(side, event, event[0][0])
        except _DiffersError:
            yield DIFFERS
            return


@settings(max_examples=500)  # a few tell a rule with a wrong look-up from a right one
@given(worlds())
def test_an_index_answers_each_event_as_the_three_steps_do(world: World) -> None:
    driver = world.driver()
    relation, form = driver.comparison.rules, driver.codec.form
    steps = [(step.side, record(step.event, step.style)) for step in world.steps if step.event is not None]
    events = [(side, Event(form(text), 0, place, place, 0.0)) for place, (side, text) in enumerate(steps)]
    plain = Pairwise(lambda one, other: dependent(relation.order, one, other))
    found, expected = (index_of(order, _hooks(relation)) for order in (relation.order, plain))
    assert list(_answers(found, events)) == list(_answers(expected, events))
