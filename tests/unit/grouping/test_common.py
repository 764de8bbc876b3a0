"""The members that all differences of a group have in common."""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack
import pytest

from twinstream.grouping.common import MEMBERS, NO_MEMBERS, CommonMembers, Members


def told(value: Any) -> Members:
    return Members(value, lambda name, one: None if name.startswith("hidden") else repr(one))


def fed(*values: Any) -> CommonMembers:
    common = CommonMembers()
    for value in values:
        common.add(told(value))
    return common


def restarted(common: CommonMembers) -> CommonMembers:
    found = CommonMembers()
    found.restore(msgpack.unpackb(msgpack.packb(common.state())))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_they_are_the_members_with_one_value_in_all_also_over_restarts(seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        events = [
            {name: random.choice([1, 1, 1, True, "1", None]) for name in "abcd" if random.random() < 0.9}
            for _ in range(random.randint(1, 6))
        ]
        common = CommonMembers()
        for event in events:
            if random.random() < 0.3:
                common = restarted(common)
            common.add(told(event))
        expected = {
            (name, repr(value))
            for name, value in events[0].items()
            if all(name in event and repr(event[name]) == repr(value) for event in events)
        }
        assert set(common) == expected, events


def test_a_hidden_member_is_neither_told_nor_kept() -> None:
    common = fed({"hidden": "secret", "a": 1}, {"hidden": "secret", "a": 1})
    assert list(common) == [("a", "1")]
    assert "secret" not in repr(common.state())


def test_a_difference_whose_members_are_unknown_leaves_nothing_in_common() -> None:
    common = fed({"a": 1})
    common.add(NO_MEMBERS)
    common.add(told({"a": 1}))
    assert list(common) == []


def test_only_so_many_plain_members_are_looked_at() -> None:
    event = {"list": [1], "object": {"a": 1}, **{f"m{number}": number for number in range(MEMBERS + 5)}}
    common = fed(event, event)
    assert len(list(common)) == MEMBERS
    assert not {"list", "object"} & dict(common).keys()
