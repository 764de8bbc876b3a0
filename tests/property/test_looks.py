"""Where a scope is looked at hangs on what came of it, and never on when it was asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.diagnosis.looks import Look, Looks
from twinstream.core.events import Exact
from twinstream.core.order import BARRIER, Epochs, Lanes
from twinstream.core.pairing.pieces import Item

LIMIT = 400

names = st.one_of(st.none(), *[st.integers(0, 400).map(str)] * 5)
pieces = st.tuples(*[st.lists(names, min_size=10, max_size=90)] * 2)
"""What a scope has of both sides: barriers, and events of a bag."""


def items(piece: list[str | None]) -> list[Item]:
    return [
        Item(place, Exact(b"end" if name is None else name.encode()), BARRIER if name is None else b"")
        for place, name in enumerate(piece)
    ]


def looks_of(looks: Looks, ended: tuple[bool, bool]) -> list[Look]:
    found = []
    while (look := looks.next(ended, LIMIT)) is not None and not look.lost:
        found.append(look)
    return found


@given(pieces, st.tuples(st.booleans(), st.booleans()))
def test_who_asks_again_before_more_has_come_is_told_of_no_further_look(
    written: tuple[list[str | None], list[str | None]], ended: tuple[bool, bool]
) -> None:
    left, right = map(items, written)
    looks = Looks(Epochs(Lanes()), (left, right), tolerant=False)
    looks_of(looks, ended)
    assert looks_of(looks, ended) == []


@given(pieces, st.lists(st.integers(0, 90), max_size=6))
def test_the_looks_at_epochs_are_the_same_however_their_events_come(
    written: tuple[list[str | None], list[str | None]], stops: list[int]
) -> None:
    left, right = map(items, written)
    at_once = looks_of(Looks(Epochs(Lanes()), (left, right), tolerant=False), (True, True))
    came: tuple[list[Item], list[Item]] = [], []
    looks, found = Looks(Epochs(Lanes()), came, tolerant=False), []
    for stop in sorted(stops):
        for some, whole in zip(came, (left, right), strict=True):
            some[:] = whole[:stop]
        found += looks_of(looks, (False, False))
    for some, whole in zip(came, (left, right), strict=True):
        some[:] = whole
    assert [*found, *looks_of(looks, (True, True))] == at_once
