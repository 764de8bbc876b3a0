"""The sentence of a group, and its likely cause only where there is evidence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from twinstream.grouping.wording import Whole, cause, provisional_with_sentences, sentence
from twinstream.status.groups import Group, KeyShare, Member, PartitionShare, Pattern

MIDNIGHT = datetime(2013, 3, 10, tzinfo=UTC)


def group(**more: Any) -> Group:
    return Group(**{"kind": "changed", "fields": ["fare"], "count": 40, "side": "reference", **more})


def share(partition: int, count: int, first: int, last: int) -> PartitionShare:
    return PartitionShare(partition=partition, count=count, first=first, last=last)


FOUR = {"reference": dict.fromkeys(range(4), (0, 10_000))}


def test_the_sentence_names_fields_keys_times_and_patterns() -> None:
    patterns = [
        Pattern(field="fare", pattern="shift", by=1, count=40, text="value + 1"),
        Pattern(field="tip", pattern="null", side="candidate", count=39, text="null in the candidate"),
    ]
    until = MIDNIGHT + timedelta(hours=2)
    found = group(fields=["fare", "tip"], patterns=patterns, keys=3, first_at=MIDNIGHT, last_at=until)
    assert sentence(found, Whole({}, keys=100)) == (
        "40 changed, all in `fare` and `tip`; 3 of 100 keys; from 2013-03-10 00:00:00 to 02:00:00 UTC; "
        "`fare`: value + 1 in 100 %; `tip`: null in the candidate in 97 %."
    )


def test_one_key_is_named() -> None:
    found = group(kind="reordered", fields=[], keys=1, top_keys=[KeyShare(key="carrier UA", count=40)])
    assert sentence(found, Whole({})) == "40 in another order; all of carrier UA."


def test_keys_are_counted_of_those_that_were_seen() -> None:
    found = group(keys=39)
    assert sentence(found, Whole({}, keys=39)).endswith("; all 39 keys.")
    assert sentence(found, Whole({}, keys=100, more_keys=True)).endswith("; 39 of at least 100 keys.")
    assert sentence(found, Whole({}, keys=20, more_keys=True)).endswith("; 39 keys.")
    assert sentence(group(keys=100, more_keys=True), Whole({}, keys=900)).endswith("; at least 100 keys.")


def test_members_in_common_are_named_where_other_events_have_others_and_chance_is_unlikely() -> None:
    common = [Member(field="year", value="2013"), Member(field="carrier", value="DL")]
    whole = Whole({}, constants=frozenset(["year"]))
    assert sentence(group(common=common), whole) == "40 changed, all in `fare`; all with `carrier` DL."
    few = group(common=common, count=40, keys=10)
    assert "carrier" not in sentence(few, whole), "ten keys may have one carrier by chance"


def test_a_share_that_is_not_all_is_never_100_percent() -> None:
    found = group(
        count=1000, patterns=[Pattern(field="fare", pattern="sign", count=999, text="opposite sign")]
    )
    assert sentence(found, Whole({})).endswith("opposite sign in 99 %.")


def test_one_partition_of_several_is_a_cause() -> None:
    found = cause(group(partitions=[share(3, 40, 12, 9000)]), Whole(FOUR))
    assert found is not None
    assert found.startswith("All are in partition 3, one of 4")


def test_one_partition_is_no_cause_where_one_key_or_chance_explains_it() -> None:
    assert cause(group(partitions=[share(3, 40, 12, 9000)], keys=1), Whole(FOUR)) is None
    assert cause(group(count=3, partitions=[share(3, 3, 12, 9000)]), Whole(FOUR)) is None
    assert cause(group(partitions=[share(0, 40, 0, 9000)]), Whole({"reference": {0: (0, 10_000)}})) is None


def test_nothing_before_an_offset_is_a_cause_and_says_how_much_was_compared_before() -> None:
    found = cause(group(partitions=[share(0, 40, 9_000, 9_900)]), Whole({"reference": {0: (100, 10_000)}}))
    assert found is not None
    assert found.startswith("None before offset 9,000 of partition 0, though 8,900 offsets were compared")


def test_a_stretch_that_ends_again_is_no_cause() -> None:
    whole = Whole({"reference": {0: (0, 10_000)}})
    assert cause(group(partitions=[share(0, 40, 9_000, 9_100)]), whole) is None


def test_a_time_shifted_only_for_a_while_is_a_cause() -> None:
    later = Pattern(field="dep", pattern="later", by=3600, count=40, text="1 h later")
    day = group(fields=["dep"], patterns=[later], first_at=MIDNIGHT, last_at=MIDNIGHT + timedelta(hours=20))
    year = Whole(FOUR, first_at=MIDNIGHT - timedelta(days=90), last_at=MIDNIGHT + timedelta(days=90))
    assert cause(day, year) == (
        "`dep` is 1 h later only from 2013-03-10 00:00:00 to 20:00:00 UTC: a time zone or daylight saving is "
        "the likely cause."
    )
    throughout = Whole(FOUR, first_at=MIDNIGHT, last_at=MIDNIGHT + timedelta(hours=21))
    assert cause(day, throughout) is None
    mixed = day.model_copy(update={"patterns": [later.model_copy(update={"count": 39})]})
    assert cause(mixed, year) is None


def test_the_newest_differences_of_a_final_group_have_no_cause_of_their_own() -> None:
    whole = Whole({"reference": {0: (0, 10_000)}})
    newest = [group(id=name, partitions=[share(0, 40, 9_000, 9_900)]) for name in ("known", "new")]
    known, new = provisional_with_sentences(newest, [group(id="known")], whole)
    assert (known.text, known.cause) == (sentence(newest[0], whole), None)
    assert new.cause == cause(newest[1], whole) is not None


def test_others_have_no_cause() -> None:
    assert cause(Group(kind="others", count=9), Whole(FOUR)) is None


def test_one_copy_is_no_plural() -> None:
    assert sentence(Group(kind="duplicate", count=1), Whole({})) == "1 duplicate in the candidate."
