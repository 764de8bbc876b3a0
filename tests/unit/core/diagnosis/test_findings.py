"""Streams are words whose letters are events; a pairing names the places on both sides."""

from __future__ import annotations

from twinstream.core.diagnosis.findings import Finding, Naming
from twinstream.core.events import Event, Form, Side
from twinstream.core.pairing.pieces import Pairing

LEFT, RIGHT = Side


def named(
    left: str, right: str, pairing: Pairing, dependent: str, *, identity: bool = False
) -> list[Finding]:
    """`dependent` lists the pairs of letters that are."""
    pieces = [
        [
            Event(Form(letter, content, "event", content), 0, place, 0, 0.0)
            for place, (letter, content) in rows
        ]
        for rows in (enumerate((letter, letter.encode()) for letter in word) for word in (left, right))
    ]
    contents = [[event[0][1] for event in piece] for piece in pieces]
    pairs = {frozenset(pair) for pair in dependent.split()}
    naming = Naming(
        (pieces[0], pieces[1]),
        (contents[0], contents[1]),
        pairing,
        lambda one, another: frozenset((one[0][0], another[0][0])) in pairs,
    )
    return naming.findings(bytes.lower if identity else None, lambda *_: False)


def witness(left: str, right: str, pairing: Pairing, dependent: str) -> list[int]:
    """The places of the witness of the only finding, none where nothing proves it."""
    (finding,) = named(left, right, pairing, dependent)
    return [event[2] for _, event in finding.witness]


def test_a_missing_event_is_proven_by_the_first_pair_behind_it_that_depends_on_it() -> None:
    assert witness("xab", "ab", Pairing([(1, 0), (2, 1)], rest=([0], [])), "xb") == [2, 1]
    assert witness("bxa", "ba", Pairing([(0, 0), (2, 1)], rest=([1], [])), "xb") == []


def test_so_is_an_extra_one_wherever_it_stands() -> None:
    assert witness("ab", "axb", Pairing([(0, 0), (1, 2)], rest=([], [1])), "xb") == [1, 2]
    assert witness("ab", "xab", Pairing([(0, 1), (1, 2)], rest=([], [0])), "xb xa") == [0, 1]
    assert witness("ba", "bxa", Pairing([(0, 0), (1, 2)], rest=([], [1])), "xb") == []


def test_a_moved_event_is_proven_by_a_pair_between_its_places_in_either_direction() -> None:
    assert witness("xba", "axb", Pairing([(1, 2), (2, 0)], ([0], [1])), "xa xb") == [2, 0]
    assert witness("axb", "xba", Pairing([(0, 2), (2, 1)], ([1], [0])), "xa xb") == [0, 2]


def test_of_equal_leftovers_the_oldest_belong_together_in_whatever_order_they_are_given() -> None:
    moved, extra = named("xa", "axax", Pairing([(1, 0)], ([0], [3, 1])), "xa")
    assert [event[2] for _, event in moved.events if event] == [0, 1]
    assert (extra.kind, extra.event[2]) == ("extra", 3)


def test_findings_stand_in_the_order_of_their_events() -> None:
    found = named("pqXr", "xsr", Pairing([(3, 2)], ([0, 1, 2], [0, 1])), "", identity=True)
    assert [(finding.kind, finding.event[0][0]) for finding in found] == [
        ("missing", "p"),
        ("missing", "q"),
        ("extra", "s"),
        ("changed", "X"),
    ]
