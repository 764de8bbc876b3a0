"""A draft hides what it says it hides, and nothing else: the changed file is tried on the same outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.streams import HEAD
from twinstream.core.events import Side
from twinstream.grouping.drafts import Draft, Drafting
from twinstream.offline.check import check
from twinstream.ports import Line
from twinstream.spec.file.source import dump, read_source
from twinstream.spec.load import loads
from twinstream.spec.trial import as_trial
from twinstream.status.groups import Group, Pattern

FILE = HEAD + "order: {per_key: [taxi]}\nidentity: [id]\n"
KINDS = "kinds: {ride: {where: {type: ride}}, trip: {where: {type: trip}}}\n"
EQUALITY = "equality: {ignore: [at], unordered: [tags]}\n"
TODAY = datetime.now(UTC).date()
Event = dict[str, Any]
Found = Mapping[str, Any]


def event(number: int) -> Event:
    return {
        "id": number,
        "type": ("ride", "trip")[number // 2 % 2],
        "taxi": number % 2,
        "fare": 10.125 + number / 8,
        "campaign": 39,
        "meta": {"host": f"h{number}", "zone": "a"},
        "tags": [1, 2],
    }


RIGHT = [event(number) for number in range(480)]


BUGS: dict[tuple[int, int], Event] = {
    **{(1, place): {"campaign": 40} for place in (3, 5, 6)},
    (2, 3): {"campaign": 40, "fare": 1.0},
    **{(6, place): {"meta": {"host": "other", "zone": "a"}} for place in (3, 5)},
    (7, 3): {"meta": {"host": "other", "zone": "b"}},
    (7, 5): {"meta": {"zone": "a"}, "campaign": 40},
    (8, 3): {"tags": [1, 3]},
}
"""What changes, by the forty of an event and its place among twenty; each far from the next of its taxi."""
ROUNDED = [(3, 3), (3, 5), (3, 6)]
LOST, INVENTED, TWICE = [(0, 3), (0, 5)], [(4, 3), (4, 5)], [(5, 3)]


def wrong() -> list[Event]:
    """The events with a bug of each kind, in both kinds of event."""
    events: list[Event] = []
    for number, right in enumerate(RIGHT):
        at = number // 40, number % 20
        one = right | BUGS.get(at, {})
        if at in ROUNDED:
            one["fare"] = round(one["fare"], 1)
        copies = {"id": 1000 + number} if at in INVENTED else {}
        events += [one | copies] * (at in INVENTED + TWICE) + [one] * (at not in LOST)
    place = next(n for n, one in enumerate(events) if one["id"] == 380)
    events[place], events[place + 2] = events[place + 2], events[place]
    return events


def lines(candidate: list[Event]) -> Iterator[Line]:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    for side, events in zip(Side, (RIGHT, candidate), strict=True):
        for number, one in enumerate(events):
            yield Line(side, json.dumps(one).encode(), 0, number, now_ms, "trace", number + 1, number + 1)


def answered(text: str, candidate: list[Event] | None = None) -> dict[str, Any]:
    return check(loads(text), lines(wrong() if candidate is None else candidate))


def groups_of(answer: Found) -> list[Group]:
    return [Group.model_validate(group) for group in answer["groups"]]


def drafts_of(text: str, groups: list[Group], shards: int = 1) -> list[tuple[Group, Draft]]:
    drafting = Drafting(loads(text), groups, shards, TODAY)
    return [(group, draft) for group in groups for draft in drafting.drafts(group)]


def merged(text: str, draft: Draft) -> str:
    """The file with a draft pasted into it as its first line says."""
    data, added = (read_source(one, "file").data for one in (text, draft.yaml))
    if draft.change == "known_difference":
        added = {"known_differences": [*data.get("known_differences", []), *added["known_differences"]]}
    assert set(added) <= {"equality", "known_differences"}
    return dump(data | added)


def expected(group: Group, draft: Draft) -> Callable[[Found], bool]:
    """Whether a difference is one of those that a draft says it hides."""
    where: Any = read_source(draft.yaml, "draft").data.get("known_differences", [{"when": {}}])[0]["when"]

    def is_hidden(found: Found) -> bool:
        one = found["reference"] or found["candidate"]
        only = re.search(r"all `(\w+)` events", draft.hides)
        return (
            found["kind"] in {group.kind, "duplicate" if "copies included" in draft.hides else ""}
            and one["type"] == (only[1] if only else one["type"])
            and all(
                any(f"{field}.".startswith(f"{one}.") for one in group.fields or ())
                for field in found["fields"]
            )
            and all(one[field] == value for field, value in where.get("where", {}).items())
        )

    return is_hidden


def places(found: list[Found]) -> list[str]:
    return sorted(json.dumps(one["positions"], sort_keys=True) for one in found)


FILES = {
    "plain": FILE,
    "with an equality": FILE + KINDS + EQUALITY,
    "with an equality of a kind": f"{FILE}{KINDS}equality: {{per_kind: {{trip: {{sets: [tags]}}}}}}",
    "with a list of what is compared": f"{FILE}equality: {{compare_only: [id, taxi, campaign, fare, meta]}}",
    "with a list of parts": f"{FILE}equality: {{compare_only: [id, taxi, campaign, fare, meta.host]}}",
    "with a tolerance": f"{FILE}{KINDS}equality: {{tolerance: {{fare: {{abs: 0.001}}}}}}",
    "of a bag": FILE.replace("{per_key: [taxi]}", "unordered"),
    "of a known difference": FILE
    + "known_differences: [{id: changed-campaign, when: {divergences: [changed], fields: [tags]}, owner: me, "
    "expires: 2100-01-01, ceiling: {count: 1}}]",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_draft_loads_and_hides_what_it_says_and_nothing_else(text: str) -> None:
    before = answered(text)
    tried = drafts_of(text, groups_of(before))
    explained = {group.kind for group, draft in tried if draft.change == "known_difference"}
    forbidden = {"duplicate"} if "tolerance" in text else set()
    assert explained == {group.kind for group in groups_of(before)} - forbidden
    assert {group.kind for group, draft in tried if draft.change == "ignore"} == {"changed"}
    for group, draft in tried:
        after, is_hidden = answered(merged(text, draft)), expected(group, draft)
        hidden = [one for one in before["examples"] if is_hidden(one)]
        assert draft.count == len(hidden) >= group.count, draft
        said = f"Hides {draft.count} of {before['divergences']['total']} final differences: "
        assert draft.hides.startswith(said), draft
        assert places(after["examples"]) == places(
            [one for one in before["examples"] if not is_hidden(one)]
        ), draft


def test_a_draft_for_extra_events_hides_one_that_was_written_twice_and_one_for_copies_says_so() -> None:
    """Without a rule both are `extra`; under one the second is `duplicate`."""
    extra = {**RIGHT[-1], "id": 9000}
    twice = [*RIGHT, extra, extra]
    tried = drafts_of(FILE, groups_of(answered(FILE, twice)))
    (draft,) = (draft for _, draft in tried)
    assert (
        draft.hides == "Hides 2 of 2 final differences: all that are only in the candidate, copies included."
    )
    assert answered(merged(FILE, draft), twice)["verdict"] == "EQUIVALENT"
    tried = drafts_of(FILE, groups_of(answered(FILE, [*twice, RIGHT[-1]])))
    told = {group.kind: draft.hides for group, draft in tried}
    said = "that are one copy too many. A second copy of one that is only in the candidate is hidden, too."
    assert told["duplicate"].endswith(said)


# -- single drafts -----------------------------------------------------------------------------------------


def group(kind: Any = "changed", count: int = 10, fields: list[str] | None = None, **more: Any) -> Group:
    named = ["campaign"] if fields is None and kind == "changed" else fields or []
    return Group(
        **{"id": "g", "kind": kind, "count": count, "fields": named, "kinds": {"event": count}} | more
    )


def offered(text: str, *groups: Group, shards: int = 1) -> list[Draft]:
    """The drafts for the first of some groups."""
    return Drafting(loads(text), groups, shards, TODAY).drafts(groups[0])


def test_a_known_difference_has_a_ceiling_near_the_count_and_ends_in_a_month() -> None:
    draft = offered(FILE, group(count=7868), group("missing", 44))[1]
    assert draft.yaml == (
        "known_differences:\n"
        "  - id: changed-campaign\n"
        "    when: {divergences: [changed], fields: [campaign]}\n"
        "    owner: your-team\n"
        f"    expires: {TODAY + timedelta(30)}\n"
        "    ceiling: {count: 8654}\n"
    )
    assert draft.title == f"Declare a known difference: up to 8,654, until {TODAY + timedelta(30)}"
    assert draft.hides == "Hides 7,868 of 7,912 final differences: all that differ in `campaign` only."


def test_the_text_says_where_it_goes_in_a_file_that_has_the_key() -> None:
    known = "known_differences: [{id: missing, when: {divergences: [missing]}, owner: me, "
    text = f"{FILE}{known}expires: 2100-01-01, ceiling: {{count: 1}}}}]\n"
    (draft,) = offered(text, group("missing"))
    assert draft.yaml.startswith("# Add this entry to `known_differences` of the file.\n")
    assert "id: missing-2" in draft.yaml
    ignore, _ = offered(f"{FILE}equality: {{ignore: [at], quantum: {{campaign: 2}}}}\n", group())
    assert ignore.yaml == (
        "# Put this in place of `equality` in the file.\nequality:\n  ignore: [at, campaign]\n"
    )


def rounded(**pattern: Any) -> Group:
    told = {"field": "campaign", "pattern": "rounded", "side": "candidate", "by": 1, "count": 10, "text": ""}
    return group(patterns=[Pattern(**told | pattern)])


def test_a_rounded_number_may_be_tolerated_by_half_of_its_last_digit() -> None:
    titles = [offered(FILE, rounded(by=digits))[1].title for digits in (-2, 0, 1)]
    assert titles == [f"Tolerate {width} in `campaign`" for width in ("50", "0.5", "0.05")]
    hides = offered(FILE, rounded())[1].hides
    assert hides.endswith("by rounding. Any other change of up to 0.05 in `campaign` is hidden, too.")


@pytest.mark.parametrize(
    "pattern", [{"count": 9}, {"by": None}, {"pattern": "shift"}], ids=["not in all", "hidden", "not rounded"]
)
def test_nothing_is_tolerated_for_what_is_not_rounded_in_all_differences(pattern: dict[str, Any]) -> None:
    drafts = offered(FILE, rounded(**pattern))
    assert [draft.title.split()[0] for draft in drafts] == ["Ignore", "Declare"]


@pytest.mark.parametrize("field", ["taxi", "id", "type.name"])
def test_a_field_of_order_identity_or_kind_is_not_ignored(field: str) -> None:
    text = f"{FILE}kinds: {{event: {{where: {{type: ride}}}}}}\n"
    assert [draft.change for draft in offered(text, group(fields=[field]))] == ["known_difference"]


def test_a_trial_has_drafts_like_any_comparison() -> None:
    drafting = Drafting(as_trial(loads(FILE)), [group()], 1, TODAY)
    assert [draft.change for draft in drafting.drafts(group())] == ["ignore", "known_difference"]


def test_several_matchers_allow_no_known_difference() -> None:
    text = f"{FILE}co_partitioned: true\n"
    assert [draft.change for draft in offered(text, group(), shards=2)] == ["ignore"]
    assert offered(text, group("missing"), shards=2) == []


@pytest.mark.parametrize(
    "unclear",
    [
        group(fields=["prices.‹name, 3 characters, #a1›"]),
        group(fields=["a" * 99 + "…"]),
        group(fields=[""]),
        group().model_copy(update={"fields": None}),
        group(more_fields=1),
        group("others", kinds={}),
    ],
    ids=["a name that is data", "a name that is cut", "the whole value", "unknown", "more", "others"],
)
def test_a_group_whose_fields_are_not_all_known_has_no_draft(unclear: Group) -> None:
    assert offered(FILE, unclear) == []


def test_what_may_be_hidden_as_well_is_told_apart_from_what_is() -> None:
    groups = [
        group(fields=["a"]),
        group(fields=["a", "b"], count=3),
        group(fields=["a"], more_fields=2, count=4),
        group("others", count=5, kinds={}),
    ]
    ignore, known = offered(FILE, *groups)
    said = (
        "Hides 10 of 22 final differences: all that differ in `a` only. "
        "3 that also differ in other fields stay. 9 of unknown fields may be hidden, too."
    )
    assert (ignore.hides, ignore.count, known.hides, known.count) == (said, 10, said, 10)


def test_where_only_hashes_are_kept_a_known_difference_asks_for_no_value() -> None:
    (draft,) = offered(f"{FILE}{KINDS}keep: hashes\n", group("missing", kinds={"ride": 10}))
    assert "when: {divergences: [missing]}\n" in draft.yaml
