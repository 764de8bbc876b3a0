"""Bounded memories of the core against plain lists: what matched lately, and what found no partner."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from twinstream.core.accounting.halves import Divergence, Half, tainted, weight
from twinstream.core.accounting.recent_matches import RecentMatches
from twinstream.core.accounting.unpaired import Lookups, Unpaired
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import Event, Form, Side

contents = st.lists(st.sampled_from([b"a", b"A", b"b", b"c"]), max_size=4)


@examples(400)
@given(st.integers(0, 4), st.lists(st.tuples(contents, st.sampled_from(["", "ask", "restart"])), max_size=12))
def test_the_latest_matches_are_known_in_any_spelling_and_over_restarts(
    limit: int, steps: list[tuple[list[bytes], str]]
) -> None:
    recent, plain = RecentMatches(limit, bytes.lower), list[bytes]()
    for noted, then in steps:
        recent.note(noted)
        plain = [*plain, *map(bytes.lower, noted)][-limit:] if limit else []
        if then == "restart":
            state, recent = recent.state(), RecentMatches(limit, bytes.lower)
            recent.restore(state)
        for content in (b"A", b"b", b"C", b"d") if then == "ask" else ():
            event = Event(Form("", content, "event", content), 0, 0, 0, 0.0)
            assert recent.is_copy(event) == (content.lower() in plain)
            assert recent.is_copy(event, [event]) == (limit > 0)


LIMIT, BYTES = 4, 12
letters, identities = st.sampled_from([b"a", b"b"]), st.sampled_from(["i", "j", None])
keys, sides = st.builds(Lookups, letters, identities), st.sampled_from(Side)
fitting = st.integers(0, 3)
"""A stray fits that weighs at least so much."""
actions = st.one_of(
    st.tuples(st.just("note"), sides, keys, st.integers(1, 6)),
    st.tuples(st.just("note"), sides, keys, st.integers(1, 6)),
    st.tuples(st.just("equal"), sides, keys, fitting),
    st.tuples(st.just("named"), sides, keys, fitting),
    st.tuples(st.just("take"), sides, keys, st.integers(4, 6)),
    st.tuples(st.just("amend"), sides, keys, fitting),
)


def leftover(number: int, size: int) -> Half:
    event = Event(Form("", b"", "event", bytes(size)), 0, number, 0, 0.0)
    finding = Finding("missing", event, None, ())
    return Half(Divergence(finding, False, finding), number)


@examples(1600)
@given(st.lists(actions, min_size=4, max_size=30))
def test_what_has_no_partner_is_claimed_oldest_first_and_the_oldest_is_forgotten(
    steps: list[tuple[Any, ...]],
) -> None:
    strays = Unpaired(LIMIT, BYTES)
    plain: tuple[list[Any], list[Any]] = ([], [])
    for number, (what, side, key, size) in enumerate(steps):
        kept, expected = plain[side], None
        if what == "note":
            strays.note(side, key, stray := leftover(number, size))
            kept.append((key, stray))
            while len(kept) > LIMIT or sum(weight(stray) for _, stray in kept) > BYTES:
                del kept[0]
        elif what == "amend":
            strays.amend(tainted)
            for of_side in plain:
                of_side[:] = [(key, tainted(stray)) for key, stray in of_side]
        if what in ("note", "amend"):
            assert strays.take_changed()
            continue
        if what == "take":
            expected = [stray for _, stray in kept if weight(stray) >= size]
            found: Any = strays.take(side, lambda stray, least=size: weight(stray) >= least)  # type: ignore[misc]
            kept[:] = [one for one in kept if one[1] not in expected]
        else:
            place = 0 if what == "equal" else 1
            alike = [one for one in kept if one[0][place] == key[place] and key[place] is not None]
            expected = next((stray for _, stray in alike if weight(stray) >= size), None)
            claim = strays.claim_equal if what == "equal" else strays.claim_named
            found = claim(side, key, lambda stray, least=size: weight(stray) >= least)  # type: ignore[misc]
            kept[:] = [one for one in kept if one[1] != expected]
        assert found == expected
        assert strays.take_changed() == bool(found)
        assert [list(strays.all(one)) for one in Side] == [[stray for _, stray in side] for side in plain]
        assert len(strays) == len(plain[0]) + len(plain[1])
