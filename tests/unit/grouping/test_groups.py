"""What groups count, what they forget, and what outlasts a restart."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgpack
import pytest

from twinstream.core.diagnosis.findings import KINDS
from twinstream.grouping.common import Members
from twinstream.grouping.difference import FIELDS, Changes, Difference, changes_of
from twinstream.grouping.groups import EXAMPLES, GROUPS, KEYS, PARTITIONS, Groups
from twinstream.grouping.merging import merged_groups
from twinstream.status.groups import Group, Member


def difference(
    kind: Any = "missing", number: int = 0, *, changes: Changes | None = None, **more: Any
) -> Difference:
    place = {
        "key": f"ad {number % 7}",
        "partition": number % 3,
        "offset": number,
        "time_ms": 1000 * (number + 1),
    }
    known = {"event_kind": "ride", **place, "id": lambda: f"id{number}", **more}
    return Difference(kind, changes or Changes(), **known)


def changed(number: int, **fields: tuple[Any, Any]) -> Difference:
    named = changes_of((name, values, True) for name, values in fields.items())
    return difference("changed", number, changes=named)


def fed(differences: list[Difference]) -> Groups:
    groups = Groups()
    for one in differences:
        groups.add(one)
    return groups


def restarted(groups: Groups) -> Groups:
    return Groups.of(msgpack.unpackb(msgpack.packb(groups.state())))


def some(random: Random, count: int) -> list[Difference]:
    """Differences of all kinds, in few fields."""
    found = []
    for number in range(count):
        kind = random.choice(KINDS)
        if kind == "changed":
            fields = random.choice([("fare",), ("fare", "tip"), ("tip",)])
            found.append(
                changed(number, **{name: (number, number + random.choice([1, 2])) for name in fields})
            )
        else:
            found.append(difference(kind, number))
    return found


def test_a_group_counts_what_its_differences_have_in_common() -> None:
    (group,) = fed([changed(number, fare=(number, number + 1)) for number in range(20)]).told()
    assert (group.kind, group.fields, group.count, group.kinds) == ("changed", ["fare"], 20, {"ride": 20})
    assert [(share.partition, share.count, share.first, share.last) for share in group.partitions] == [
        (0, 7, 0, 18),
        (1, 7, 1, 19),
        (2, 6, 2, 17),
    ]
    assert (group.keys, group.more_keys, group.top_keys[0].key) == (7, False, "ad 0")
    assert group.examples == [f"id{number}" for number in range(EXAMPLES)]
    assert (group.first_at, group.last_at) == tuple(datetime.fromtimestamp(s, UTC) for s in (1, 20))
    assert [(one.field, one.text, one.count) for one in group.patterns] == [("fare", "value + 1", 20)]


def test_the_id_of_a_group_is_of_its_kind_and_its_fields_in_every_process_and_version() -> None:
    found = [difference(), difference("extra"), changed(0, fare=(1, 2)), changed(0, fare=(1, 2), tip=(3, 4))]
    ids = {(group.kind, *(group.fields or ())): group.id for group in fed(found).told()}
    assert len(set(ids.values())) == len(found)
    assert ids["changed", "fare"] == "248078f3b8ac966b"


def test_differences_without_times_have_none() -> None:
    (group,) = fed([difference(time_ms=0), difference(time_ms=-1)]).told()
    assert group.first_at is group.last_at is None


@pytest.mark.parametrize("seed", range(5))
def test_counts_add_up_and_do_not_depend_on_the_order_of_feeding(seed: int) -> None:
    random = Random(seed)
    differences = some(random, 500)
    shuffled = random.sample(differences, len(differences))
    one, other = fed(differences), fed(shuffled)
    assert sum(group.count for group in one.told()) == one.total == 500, f"seed {seed}"
    assert _told(one) == _told(other), f"seed {seed}"


def _told(groups: Groups) -> dict[object, Any]:
    """All that must not depend on the order: all but which examples are kept."""
    return {
        (group.kind, str(group.fields)): group.model_copy(update={"examples": []}) for group in groups.told()
    }


@pytest.mark.parametrize("seed", range(5))
def test_a_restart_anywhere_changes_nothing(seed: int) -> None:
    random = Random(seed)
    differences = some(random, 400)
    going_on = fed(differences[: (cut := random.randrange(400))])
    going_on = restarted(going_on)
    for one in differences[cut:]:
        going_on.add(one)
    assert going_on.told() == fed(differences).told(), f"seed {seed}"


def test_what_finds_no_group_is_counted_in_others() -> None:
    groups = fed([changed(number, **{f"f{number}": (1, 2)}) for number in range(GROUPS + 5)])
    told = groups.told()
    assert len(told) == GROUPS + 1
    assert told[-1] == Group(id="others", kind="others", count=5)
    assert sum(group.count for group in told) == groups.total


def test_bounds_of_keys_partitions_and_fields_keep_the_count() -> None:
    many = {f"f{number:02}": (1, 2) for number in range(FIELDS + 3)}
    spread = [
        changed(number, **many)._replace(key=f"key {number} {'x' * 50}", partition=number)
        for number in range(KEYS + PARTITIONS)
    ]
    (group,) = fed(spread).told()
    assert (group.count, group.keys, group.more_keys) == (len(spread), KEYS, True)
    assert len(group.partitions) == PARTITIONS
    assert group.more_partitions == len(spread) - PARTITIONS
    assert (len(group.fields or ()), group.more_fields) == (FIELDS, 3)


def test_fields_that_are_unknown_are_not_no_fields() -> None:
    hidden = difference("changed", changes=Changes(None))
    told = fed([hidden, changed(1, fare=(1, 2)), difference("missing")]).told()
    assert Counter((group.kind, str(group.fields)) for group in told) == Counter(
        [("changed", "None"), ("changed", "['fare']"), ("missing", "[]")]
    )


def test_one_found_again_moves_to_its_new_group() -> None:
    groups = fed([difference("missing", number) for number in range(5)])
    groups.move(2, difference("missing", 2), difference("reordered", 2))
    assert [(group.kind, group.count, group.examples) for group in groups.told()] == [
        ("missing", 4, ["id0", "id1"]),
        ("reordered", 1, ["id2"]),
    ]
    assert groups.total == 5


def test_a_group_that_all_have_left_is_not_told() -> None:
    groups = restarted(fed([difference("missing")]))
    groups.move(0, difference("missing"), difference("reordered"))
    assert [group.kind for group in groups.told()] == ["reordered"]


def test_one_in_others_leaves_them_when_it_moves() -> None:
    groups = fed([changed(number, **{f"f{number}": (1, 2)}) for number in range(GROUPS)])
    groups.add(difference("missing", GROUPS))
    groups.move(GROUPS, difference("missing", GROUPS), changed(GROUPS, f0=(1, 2)))
    assert groups.total == sum(group.count for group in groups.told()) == GROUPS + 1
    assert groups.told()[0].fields == ["f0"]


def test_differences_before_the_groups_began_are_others() -> None:
    groups = Groups(since=7)
    groups.add(difference("missing", 7))
    groups.move(3, difference("missing", 3), difference("reordered", 3))
    assert [(group.kind, group.count) for group in groups.told()] == [("missing", 1), ("others", 7)]


def test_differences_that_were_never_fed_are_others() -> None:
    groups = fed([difference("missing", number) for number in range(3)])
    groups.skip_to(2)
    groups.skip_to(7)
    assert groups.total == 7
    assert [(group.kind, group.count) for group in groups.told()] == [("missing", 3), ("others", 4)]


def test_values_of_masked_fields_are_neither_told_nor_kept() -> None:
    named = changes_of([("fare", (0, 4712), False), ("name", ("geheim", "Geheim"), False)])
    groups = fed([difference("changed", number, changes=named) for number in range(3)])
    (group,) = groups.told()
    assert [one.text for one in group.patterns] == ["upper and lower case differ"]
    for text in (group.model_dump_json(), repr(groups.state())):
        assert "471" not in text
        assert "eheim" not in text


# -- shards ------------------------------------------------------------------------------------------------


def test_groups_of_shards_add_up() -> None:
    differences = [changed(number, fare=(number, number + 1)) for number in range(30)]
    parts = [[one for one in differences if one.partition % 2 == shard] for shard in range(2)]
    whole = fed(differences).told()
    merged = merged_groups(fed(part).told() for part in parts)
    assert [group.id for group in merged] == [group.id for group in whole]
    assert [group.count for group in merged] == [group.count for group in whole] == [30]
    assert merged[0].partitions == whole[0].partitions
    assert merged[0].patterns == whole[0].patterns
    assert (merged[0].first_at, merged[0].last_at) == (whole[0].first_at, whole[0].last_at)


def test_a_pattern_of_one_shard_alone_is_not_told_of_all() -> None:
    parts = [
        [changed(n, fare=(n, n + 1)) for n in range(5)],
        [changed(n, fare=(n, n * n)) for n in range(5, 9)],
    ]
    (group,) = merged_groups(fed(part).told() for part in parts)
    assert (group.count, group.patterns) == (9, [])


def test_shards_have_in_common_what_each_of_them_has() -> None:
    def of(carrier: str, day: int) -> list[Difference]:
        members = Members({"carrier": carrier, "day": day}, lambda _, value: str(value))
        return [difference(number=number, members=members) for number in range(2)]

    (group,) = merged_groups(fed(part).told() for part in (of("DL", 1), of("DL", 2)))
    assert group.common == [Member(field="carrier", value="DL")]


def test_too_many_groups_of_shards_are_others() -> None:
    parts = [
        fed([changed(0, **{f"s{shard}f{number}": (1, 2)}) for number in range(GROUPS + 1)]).told()
        for shard in range(2)
    ]
    merged = merged_groups(parts)
    assert len(merged) == GROUPS + 1
    assert [group.id for group in merged if group.kind == "others"] == [parts[0][-1].id] == ["others"]
    assert sum(group.count for group in merged) == 2 * (GROUPS + 1)
