"""Replay in a bag: what it says of all divergences of a run is what the new rules find in that run."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twinstream import check
from twinstream.offline.replay import Replay, cases_of
from twinstream.spec.load import loads

events = st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.integers(0, 2), "k": st.sampled_from("xy")})
BAG: dict[str, Any] = {"order": "unordered"}
RULES: tuple[dict[str, Any], ...] = (
    {},
    {"equality": {"ignore": ["b"]}},
    {"equality": {"ignore": ["a", "b"]}},
    {"equality": {"quantum": {"a": 2}}},
    {"kinds": {"x": {"where": {"k": "x"}, "ignore": True}, "y": {}}},
)
KINDS = {"x": {"where": {"k": "x"}}, "y": {}}


@given(st.lists(events, max_size=12), st.lists(events, max_size=12), st.sampled_from(RULES))
def test_what_is_still_reported_is_what_the_new_rules_find(
    reference: list[Any], candidate: list[Any], changes: dict[str, Any]
) -> None:
    was, now = {"kinds": KINDS, **BAG}, {"kinds": KINDS, **BAG, **changes}
    before = check(was, reference, candidate, allow_empty=True).to_dict()
    after = check(now, reference, candidate, allow_empty=True).to_dict()
    names = {
        "version": 1,
        "name": "t",
        "reference": {"topic": "reference"},
        "candidate": {"topic": "candidate"},
    }
    answers = Replay(loads(json.dumps({**names, **now}))).answers(cases_of("kept", before["examples"]))
    assert {answer.outcome for answer in answers} <= {"hidden", "reported"}
    sides = {
        report["id"]: "reference" if report["reference"] else "candidate" for report in before["examples"]
    }
    left = Counter(sides[answer.id] for answer in answers if answer.outcome == "reported")
    for side in ("reference", "candidate"):
        assert left[side] == after["accounts"][side]["divergent"]
