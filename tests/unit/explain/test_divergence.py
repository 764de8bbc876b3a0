from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, Batch, Driver, batches, record, spec, waiting_events
from tests.support.tables import Pair
from twinstream.core.accounting.halves import Divergence
from twinstream.core.accounts import Hole
from twinstream.core.clocks.late import DroppedUnevenly
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import Event
from twinstream.explain.masking import EVERYTHING, Mask
from twinstream.explain.picture import diagram
from twinstream.spec.decode.deletions import deletion


def reports(
    order: str, text: str | Sequence[Batch], more: str = "", *, show: Mask = EVERYTHING, hole: bool = False
) -> list[dict[str, Any]]:
    driver = Driver(spec(order, more))
    if hole:
        driver.comparison.hole(Hole("lost"))
    driver.take(batches(text) if isinstance(text, str) else text, review=True)
    driver.end()
    return driver.reports(show)


def changed(
    left: Any, right: Any, more: str = "identity: [id]", *, order: str = "unordered", show: Mask = EVERYTHING
) -> dict[str, Any]:
    """The report of a value that became another one."""
    steps = [Batch(LEFT, [record(left)]), Batch(RIGHT, [record(right)])]
    (report,) = reports(order, steps, more, show=show)
    assert report["kind"] == "changed"
    return report


def event(word: str) -> dict[str, Any]:
    """``7a`` is ride a of taxi 7, at the time of its letter; ``N`` is the end of day N."""
    if word.isdigit():
        return {"type": "eod", "day": int(word), "ts": 100}
    return {"taxi": int(word[0]), "ride": word[1:], "ts": ord(word[1])}


def rides(text: str) -> list[Batch]:
    """``L:7a`` is an event of the left."""
    words = (word.split(":") for word in text.split())
    return [Batch(LEFT if side == "L" else RIGHT, [record(event(word))]) for side, word in words]


KINDS = "kinds: {night: {where: {type: eod}}, ride: {}}\nequality: {ignore: [ts]}"
TEXTS = [
    (
        "total",
        "L:7a L:7b R:7b",
        "taxi 7 · ride a",
        """
        Missing from the candidate: {"taxi":7,"ride":"a"}. Reference p0:0. Both sides have since written
        {"taxi":7,"ride":"b"} (reference p0:1, candidate p0:0). All events must keep their order, so the
        candidate can no longer write it.
        """,
    ),
    (
        "{per_key: [taxi]}",
        "L:7b R:7a R:7b",
        "taxi 7 · ride a",
        """
        Only in the candidate: {"taxi":7,"ride":"a"}. Candidate p0:0. Both sides have since written
        {"taxi":7,"ride":"b"} (reference p0:0, candidate p0:1). Both belong to taxi 7, so the reference can
        no longer write it.
        """,
    ),
    (
        "{per_key: [taxi]}",
        "L:7a R:7a R:7a",
        "taxi 7 · ride a",
        """
        One copy too many in the candidate: {"taxi":7,"ride":"a"}. Candidate p0:1. The reference has ended,
        or is long past this point.
        """,
    ),
    (
        "{per_key: [taxi]}",
        "L:7a L:7b L:7c R:7b R:7c R:7a",
        "a before b → b before a · taxi 7",
        """
        The reference wrote {"taxi":7,"ride":"a"} before {"taxi":7,"ride":"b"}; the candidate wrote them in
        the opposite order. Reference p0:0 and p0:1, candidate p0:0 and p0:2. Both belong to taxi 7, so
        their order matters.
        """,
    ),
    (
        "unordered",
        "L:7a",
        "taxi 7 · ride a",
        """
        Missing from the candidate: {"taxi":7,"ride":"a"}. Reference p0:0. The candidate has ended, or is
        long past this point.
        """,
    ),
]


def shortened(text: str) -> str:
    """Without the field that only the rules about time read."""
    return re.sub(r',"ts":\d+', "", text)


@pytest.mark.parametrize(("order", "trace", "title", "text"), TEXTS)
def test_a_difference_is_told_in_a_title_and_in_plain_words(
    order: str, trace: str, title: str, text: str
) -> None:
    (report,) = reports(order, rides(trace), KINDS)
    assert (report["title"], shortened(report["text"])) == (title, " ".join(text.split()))


MATTERS = "so their order matters"
BEFORE = "before: {field: ts}}"


@pytest.mark.parametrize(
    ("order", "events", "reason"),
    [
        ("{barrier: night, inner: {per_key: [taxi]}}", "7a 1", "No event may move across a night event"),
        ("{dependent: [{pair: [ride, ride], same: [taxi]}, [night, night]]}", "7a 7b",
         f"Both belong to taxi 7, {MATTERS}"),
        ("{dependent: [[night, ride]]}", "1 7a", "Events of kinds night and ride must keep their order"),
        (
            "{dependent: [{pair: [ride, ride], within: {field: ts, less_than: 1.5}}]}", "7a 8b",
            f"Their ts differ by less than 1.5, {MATTERS}",
        ),
        (
            "{dependent: [{pair: [ride, ride], same: [taxi], within: {field: ts, less_than: 2}}]}", "7a 7b",
            f"Both belong to taxi 7 and their ts differ by less than 2, {MATTERS}",
        ),
        (
            f"{{dependent: [{{pair: [night, ride], {BEFORE}, {{pair: [ride, night], {BEFORE}]}}", "7a 1",
            f"The ts of the ride is smaller than that of the night, {MATTERS}",
        ),
        (
            "{dependent: [{pair: [ride, night], same: [{first: taxi, second: day}]}]}", "1a 1",
            f"The taxi of the ride is the day of the night (1), {MATTERS}",
        ),
    ],
)  # fmt: skip
def test_the_rule_that_holds_for_two_events_that_changed_places_is_the_reason(
    order: str, events: str, reason: str
) -> None:
    one, other = events.split()
    trace = f"L:{one} L:{other} R:{other} R:{one}"
    (report,) = reports(order, rides(trace), "kinds: {night: {where: {type: eod}}, ride: {}}")
    first, second = (record(event(word)).decode() for word in (one, other))
    moved = f"The reference wrote {first} before {second}; the candidate wrote them in the opposite order."
    where = "Reference p0:0 and p0:1, candidate p0:0 and p0:1."
    assert report["text"] == f"{moved} {where} {reason}."


def test_where_offsets_do_not_tell_which_came_first_the_text_does_not_either() -> None:
    driver = Driver(spec("total"))
    for side, records in ((LEFT, "ab"), (RIGHT, "ba")):
        for partition, key in enumerate(records):
            driver.feed(side, [record({"k": key})], partition=partition)
    driver.end()
    (report,) = driver.reports()
    assert report["text"].startswith('One side has {"k":"a"} before {"k":"b"}, the other has it after.')
    assert report["title"] == "a and b"


def test_a_change_names_the_fields_that_differ_and_are_compared() -> None:
    report = changed(
        {"id": 1, "v": 1, "same": 1.0, "t": 5, "o": {"x": 1}},
        {"id": 1, "v": 2, "same": 1, "t": 6, "o": {"x": 1, "y.z": "new"}},
        "identity: [id]\nequality: {ignore: [t]}",
    )
    assert report["fields"] == {
        "o.y\\.z": {"reference": "‹absent›", "candidate": "new"},
        "v": {"reference": 1, "candidate": 2},
    }
    assert report["text"] == (
        '`o.y\\.z` changed from absent to "new" and `v` changed from 1 to 2 in id 1. '
        "Reference p0:0, candidate p0:0."
    )
    assert report["title"] == "o.y\\.z absent → new, v 1 → 2 · id 1"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("x" * 400 + "OLD", "x" * 400 + "NEW", 'xxxOLD" to …xxx'),
        ([*range(200)], [*range(150), -1, *range(151, 200)], "148,149,-1,151,"),
        ("é", "e\u0301", r'from "\xe9" to "e\u0301" in id 1'),
    ],
)
def test_of_long_or_like_values_that_is_told_in_which_they_differ(before: Any, after: Any, told: str) -> None:
    assert told in changed({"id": 1, "v": before}, {"id": 1, "v": after})["text"]


@pytest.mark.parametrize("number", ["1.10", "1E+20", "9223372036854775808", "-0.1000000000000000055"])
def test_a_number_that_became_a_text_is_told_apart_from_it(number: str) -> None:
    shown = "1.1" if number == "1.10" else "1e+20" if number == "1E+20" else number
    (report,) = reports(
        "unordered",
        [Batch(LEFT, [f'{{"id":1,"v":{number}}}'.encode()]), Batch(RIGHT, [record({"id": 1, "v": number})])],
        "identity: [id]",
    )
    assert report["title"] == f'v {shown} → "{number}" · id 1'
    assert report["text"].startswith(f'`v` changed from {shown} to "{number}" in id 1.')
    (report,) = reports("unordered", [Batch(LEFT, [f'{{"id":{number}}}'.encode()])])
    assert report["text"].startswith(f'Missing from the candidate: {{"id":{shown}}}.')


def test_of_many_fields_that_changed_only_the_names_are_told() -> None:
    report = changed({"id": 1, **dict.fromkeys("abcd", 0)}, {"id": 1, **dict.fromkeys("abcd", 1)})
    assert report["text"].startswith("4 fields changed in id 1: `a`, `b`, `c`, `d`.")
    assert report["title"] == "a 0 → 1, b 0 → 1, c 0 → 1 and 1 more field · id 1"


def test_values_that_are_no_objects_differ_as_a_whole() -> None:
    driver = Driver(spec("unordered", "identity: [id]"))
    driver.take([Batch(LEFT, [b"5"]), Batch(RIGHT, [b"6"])])
    (five,), (six,) = (waiting_events(driver.comparison, side) for side in (LEFT, RIGHT))
    finding = Finding("changed", five, six, ())
    report = driver.explainer().report(Divergence(finding, False, finding))
    assert report["fields"] == {"": {"reference": 5, "candidate": 6}}
    assert (report["title"], report["text"].split(".")[0]) == ("5 → 6", "The whole value changed from 5 to 6")


def test_what_lies_behind_a_hole_says_so() -> None:
    (report,) = reports("unordered", "L:a1", hole=True)
    assert report["tainted"] is True
    assert report["text"].endswith(
        "It comes after input that was not checked, so it does not count towards the verdict."
    )


def test_positions_scope_and_witness_are_data() -> None:
    (report,) = reports("{per_key: [k]}", "L:a1 L:a2 R:a2")
    assert report["kind"] == "missing"
    assert report["scope"] == {"k": "a"}
    assert report["positions"] == {
        "reference": {"topic": "r", "partition": 0, "offset": 0},
        "candidate": None,
    }
    assert (report["reference"], report["candidate"]) == ({"k": "a", "v": 1}, None)
    assert [(seen["side"], seen["position"]["offset"], seen["value"]["v"]) for seen in report["witness"]] == [
        ("reference", 1, 2),
        ("candidate", 0, 2),
    ]


def test_the_same_difference_found_again_has_the_same_id_and_another_has_another() -> None:
    ids = [reports("total", trace)[0]["id"] for trace in ("L:a1 L:b1 R:b1", "L:a1 R:. L:b1", "R:a1")]
    assert ids[0] == ids[1] != ids[2]


def test_long_values_are_cut_and_control_characters_do_not_reach_a_terminal() -> None:
    steps = [Batch(LEFT, [b'{"k":"\\u001b[31m","v":"%s"}' % (b"x" * 1000)])]
    (report,) = reports("{per_key: [k]}", steps)
    assert len(report["text"]) < 700
    assert "…" in report["text"]
    assert "\x1b" not in report["text"]


def test_numbers_that_json_libraries_would_round_are_kept_as_texts() -> None:
    numbers = b'{"v":[0.10000000000000000001,1.0,1e400,123456789012345678901]}'
    (report,) = reports("total", [Batch(LEFT, [numbers])])
    assert report["reference"] == {"v": ["0.10000000000000000001", 1.0, "1E+400", "123456789012345678901"]}


def test_what_a_text_says_of_masked_fields_is_only_their_names() -> None:
    report = changed({"id": "s", "v": 0}, {"id": "s", "v": 1}, show=Mask([]))
    assert report["text"].startswith("`v` changed (hidden value). ")
    assert report["title"] == "v · 2 hidden fields"
    (report,) = reports("{per_key: [k]}", "L:a1 L:a2 R:a2 R:a1", show=Mask([]))
    assert report["text"].startswith(
        "The candidate wrote two events in the opposite order, each an event with"
    )
    assert report["text"].endswith("Both have the same k, so their order matters.")
    assert report["title"] == "2 hidden fields"


HIDING = [
    (["v"], "v 0 → 1 · 1 hidden field", "`v` changed from 0 to 1."),
    (["id"], "v · id s · 1 hidden field", '`v` changed (hidden value) in id "s".'),
]


@pytest.mark.parametrize(("show", "title", "sentence"), HIDING)
def test_hidden_fields_are_left_out_and_counted(show: list[str], title: str, sentence: str) -> None:
    report = changed({"id": "s", "v": 0}, {"id": "s", "v": 1}, show=Mask(show))
    assert report["title"] == title
    assert report["text"].startswith(sentence)


def test_an_event_is_told_by_what_may_be_shown_of_it() -> None:
    (report,) = reports("unordered", rides("L:7a"), KINDS, show=Mask(["taxi"]))
    assert report["title"] == "taxi 7"
    assert report["text"].startswith('Missing from the candidate: {"taxi":7} and 2 hidden fields.')
    (report,) = reports("unordered", rides("L:7a"), KINDS, show=Mask([]))
    assert report["title"] == "ride · 3 hidden fields"
    assert report["text"].startswith("Missing from the candidate: a ride event with 3 hidden fields.")


def test_a_title_is_one_line_of_at_most_120_characters() -> None:
    names = [f"{letter}\n" * 30 for letter in "abcd"]
    report = changed(
        {"id": "1\n" * 99, **dict.fromkeys(names, "0")}, {"id": "1\n" * 99, **dict.fromkeys(names, "9")}
    )
    assert len(report["title"]) <= 120
    assert report["title"].isprintable()


def test_a_masked_report_holds_no_value_that_may_not_be_seen() -> None:
    left, right = ({"id": "secret-1", "v": f"secret-{n}"} for n in (2, 3))
    for order in ("unordered", "{per_key: [id]}", "total"):
        assert "secret" not in str(changed(left, right, order=order, show=Mask([])))


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("clicks:2:1041", " It comes from the input record in clicks partition 2 offset 1041."),
        ("", ""),
        (None, ""),
    ],
)
def test_an_event_without_a_partner_names_the_input_record_that_it_comes_from(
    mark: str | None, told: str
) -> None:
    driver = Driver(spec("unordered"))
    driver.take(rides("L:7a"), review=True)
    driver.end()
    (divergence,) = driver.findings()
    event = divergence.finding.event[:-1]
    marked = divergence.finding._replace(left=Event(*event, mark))
    report = driver.explainer(EVERYTHING).report(divergence._replace(finding=marked))
    assert report["text"].endswith(f"The candidate has ended, or is long past this point.{told}")


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ([("in", 0, 5, 6)], "in partition 0 offset 5"),
        ([("a", 0, 5, 9), ("b", 1, 0, 3)], "a partition 0 offsets 5 to 8 and b partition 1 offsets 0 to 2"),
        (
            [("in", partition, 8, 9) for partition in range(5)],
            "in partition 0 offset 8, in partition 1 offset 8, in partition 2 offset 8 and 2 more partitions",
        ),
    ],
)
def test_what_the_versions_dropped_as_late_is_told_with_the_input_that_it_was_part_of(
    inputs: list[tuple[str, int, int, int]], told: str
) -> None:
    driver = Driver(spec("unordered"))
    driver.take(rides("L:7a"), review=True)
    driver.end()
    (divergence,) = driver.findings()
    uneven = divergence._replace(uneven=DroppedUnevenly(tuple(inputs), 1, 1200))
    text = driver.explainer(EVERYTHING).report(uneven)["text"]
    cause = "a different watermark or trigger is the likely cause."
    dropped = "the reference dropped 1 row as late and the candidate 1,200"
    assert text.endswith(f" Of the input in {told}, {dropped}: {cause}")


def test_a_report_names_the_fields_that_name_its_event() -> None:
    assert changed({"id": 1, "v": 1}, {"id": 1, "v": 2})["identity"] == ["id"]
    (lost,) = reports("total", rides("L:7a L:7b R:7b"))
    assert lost["identity"] == []


def test_groups_see_the_compared_members_and_the_text_of_those_that_may_be_shown() -> None:
    driver = Driver(spec("unordered", "equality: {ignore: [at]}"))
    driver.feed(LEFT, [record({"carrier": "DL", "name": "Ann", "at": 1})])
    driver.end()
    (found,) = driver.findings()
    members = driver.explainer(Mask(["carrier"])).outline(found).members
    texts = {name: members.text(name, value) for name, value in members.values.items()}
    assert texts == {"carrier": "DL", "name": None}


def test_an_event_that_faces_another_one_of_its_identity_within_tolerance_is_told() -> None:
    more = "kinds: {day: {where: {day: 1}}, ride: {}}\nidentity: [k]\nequality: {tolerance: {v: {abs: 1}}}"
    driver = Driver(spec("{by_key: [k], inner: {barrier: day, inner: unordered}}", more))
    day = record({"k": 0, "day": 1})
    one, two, three, four = (record({"k": 0, "day": 0, "v": value}) for value in (2, 1, 0, 3))
    driver.feed(LEFT, [one, day, two])
    driver.feed(RIGHT, [three, day, four])
    driver.end()
    driver.comparison.review()
    texts = [report["text"] for report in driver.reports()]
    assert any(text.startswith("Nothing changed beyond its tolerance in k 0.") for text in texts), texts


NEW, OLD = "has a new row of a key", "holds another one, which is not kept."
ONE_ROW = [
    (
        "L:a=3 L!2 R!2",
        ("changed", "k a"),
        f'Only the reference {NEW}: {{"k":"a","v":3}}. The table of the candidate {OLD} Reference p0:1.',
    ),
    (
        "L!2 R:a=3 R!2",
        ("changed", "k a"),
        f'Only the candidate {NEW}: {{"k":"a","v":3}}. The table of the reference {OLD} Candidate p0:1.',
    ),
    (
        "L:a=- L!2 R!2",
        ("extra", "k a"),
        'Only in the candidate: the row that the reference has deleted with {"k":"a"}. Reference p0:1.',
    ),
    (
        "L!2 R:a=- R!2",
        ("missing", "k a"),
        'Missing from the candidate: the row that it has deleted with {"k":"a"}. Candidate p0:1.',
    ),
]


@pytest.mark.parametrize(("rows", "title", "text"), ONE_ROW)
def test_a_row_that_is_compared_with_a_table_is_told_alone(
    rows: str, title: tuple[str, str], text: str
) -> None:
    pair = Pair()
    pair.go_on(f"L:a=2 R:a=2 L!1 R!1 {rows}")
    (report,) = pair.driver.reports()
    assert ((report["kind"], report["title"]), report["text"]) == (title, text)
    assert (report["fields"], len(list(filter(None, report["positions"].values())))) == ({}, 1)
    assert any("(no equal event)" in line for line in diagram(report))


def test_groups_know_no_fields_of_a_row_that_is_compared_with_a_table() -> None:
    pair = Pair()
    pair.go_on("L:a=2 R:a=2 L!1 R!1 L:a=3 L!2 R!2")
    (found,) = pair.driver.findings()
    assert pair.driver.explainer().outline(found).changes.fields is None


def test_a_hidden_row_that_is_compared_with_a_table_shows_nothing() -> None:
    pair = Pair()
    pair.go_on("L:a=2 R:a=2 L!1 R!1 L:a=3 L!2 R!2")
    (report,) = pair.driver.reports(Mask([]))
    assert report["title"] == "2 hidden fields"
    assert "an event with 2 hidden fields. The table of the candidate holds another one" in report["text"]


def test_a_deletion_that_only_one_side_wrote_between_barriers_is_what_is_told() -> None:
    more = "kinds: {night: {where: {k: night}}, row: {}}\nemits: {upsert: {key: [k], settled_by: barrier}}"
    driver = Driver(spec("{barrier: night, inner: unordered}", more))
    gone, night = deletion(b"a"), record({"k": "night"})
    assert gone is not None
    driver.feed(LEFT, [record({"k": "a"}), night, gone, night])
    driver.feed(RIGHT, [record({"k": "a"}), night, night])
    driver.end()
    (report,) = driver.reports()
    assert (report["kind"], report["title"]) == ("missing", "deletion · k a")
    assert report["text"].startswith('Missing from the candidate: the deletion of {"k":"a"}.')
