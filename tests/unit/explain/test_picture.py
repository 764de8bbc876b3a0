from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from twinstream.explain.picture import ASCII, UNICODE, diagram, value_text

A: dict[str, Any] = {"taxi": 7, "ride": "a"}
C: dict[str, Any] = {"taxi": 7, "ride": "c"}
LONG = {"note": "x" * 200, **A}


def at(side: str, offset: int, partition: int = 0) -> dict[str, Any]:
    return {"topic": f"rides.{side[:3]}", "partition": partition, "offset": offset}


def report(
    kind: str,
    reference: tuple[Any, int] | None,
    candidate: tuple[Any, int] | None,
    witness: tuple[Any, int, int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A report as the API has it: events as (value, offset), the witness as (value, both offsets)."""
    sides = {"reference": reference, "candidate": candidate}
    seen = [] if witness is None else list(zip(sides, (witness[0],) * 2, witness[1:], strict=True))
    return {
        "kind": kind,
        "scope": {"taxi": 7},
        **{side: event and event[0] for side, event in sides.items()},
        "positions": {side: event and at(side, event[1]) for side, event in sides.items()},
        "fields": {},
        "witness": [{"side": side, "position": at(side, n), "value": value} for side, value, n in seen],
        **more,
    }


REORDERED = report("reordered", (A, 0), (A, 12), (C, 2, 11))
PICTURES = {
    "reordered": (
        REORDERED,
        """
   reference rides.ref partition 0              candidate rides.can partition 0
0  {"taxi":7,"ride":"a"} ────────────╲ ╱─── 11  {"taxi":7,"ride":"c"}
                                      ╳
2  {"taxi":7,"ride":"c"} ────────────╱ ╲─── 12  {"taxi":7,"ride":"a"}
""",
    ),
    "missing, with its witness": (
        report("missing", (A, 0), None, (C, 1, 0)),
        """
   reference rides.ref partition 0             candidate rides.can partition 0
0  {"taxi":7,"ride":"a"} ─────────────✕        (no equal event)
1  {"taxi":7,"ride":"c"} ────────────────── 0  {"taxi":7,"ride":"c"}
""",
    ),
    "extra, without a witness": (
        report("extra", None, (A, 5)),
        """
  reference                    candidate rides.can partition 0
  (no equal event)    ✕──── 5  {"taxi":7,"ride":"a"}
""",
    ),
    "changed": (
        report("changed", (A, 3), (C, 3), fields={"ride": {"reference": "a", "candidate": "c"}}),
        """
   reference rides.ref partition 0             candidate rides.can partition 0
3  {"taxi":7,"ride":"a"} ─────────────≠──── 3  {"taxi":7,"ride":"c"}
   ride: "a" → "c"
""",
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_divergence_is_drawn_in_the_order_of_offsets(name: str) -> None:
    found, picture = PICTURES[name]
    assert "\n".join(diagram(found)) == picture.strip("\n")


def test_without_unicode_it_is_drawn_in_ascii() -> None:
    lines = diagram(REORDERED, 100, ASCII)
    assert all(line.isascii() for line in lines)
    assert "\\ /" in lines[1]
    assert "X" in lines[2]
    assert "/ \\" in lines[3]


@pytest.mark.parametrize("width", [20, 40, 63, 64, 80, 120])
@pytest.mark.parametrize("value", [A, LONG, "名" * 100, [1] * 100, None])
@pytest.mark.parametrize("marks", [UNICODE, ASCII])
def test_no_line_is_wider_than_asked(width: int, value: Any, marks: Any) -> None:
    for found in (
        report("reordered", (value, 0), (value, 1), (C, 1, 0)),
        report("changed", (value, 0), (C, 100), fields={"": {"reference": value, "candidate": C}}),
    ):
        assert max(map(cell_len, diagram(found, width, marks))) <= max(width, 34)


def test_on_a_narrow_terminal_the_events_stand_one_under_the_other() -> None:
    assert diagram(REORDERED, 50) == [
        "reference rides.ref partition 0",
        ' * 0  {"taxi":7,"ride":"a"}',
        '   2  {"taxi":7,"ride":"c"}',
        "candidate rides.can partition 0",
        '   11  {"taxi":7,"ride":"c"}',
        ' * 12  {"taxi":7,"ride":"a"}',
    ]


def test_a_value_that_does_not_fit_keeps_what_tells_it_from_the_other() -> None:
    lines = diagram(report("reordered", (LONG, 0), (LONG, 2), ({**LONG, "ride": "c"}, 1, 1)), 80)
    assert '{"taxi":7,"ride":"a",…}' in lines[1]
    assert '{"taxi":7,"ride":"c",…}' in lines[3]


def test_the_partition_stands_at_each_offset_where_there_are_several() -> None:
    found = report("missing", (A, 4), None, (C, 3, 0))
    found["witness"][0]["position"]["partition"] = 1
    heading, first, second = diagram(found)
    assert heading.split() == ["reference", "rides.ref", "candidate", "rides.can", "partition", "0"]
    assert (first.split()[0], second.split()[0]) == ("0:4", "1:3")


def test_a_witness_of_one_side_only_is_shown_without_a_partner() -> None:
    found = report("missing", (A, 4), None, (C, 5, 0))
    del found["witness"][1]
    assert [line.count("✕") for line in diagram(found)] == [0, 1, 1]


def test_an_event_that_is_its_own_witness_is_shown_once() -> None:
    assert len(diagram(report("missing", (A, 4), None, (A, 4, 0)))) == 2


def test_a_value_cannot_act_on_the_terminal() -> None:
    found = report("missing", ({"k": "\x9b31m\u202e\x1b]"}, 0), None, scope={})
    text = "\n".join(diagram(found))
    assert text.replace("\n", "").isprintable()
    assert "\\x9b31m\\u202e" in text


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("x" * 400 + "OLD" + "y" * 300, "x" * 400 + "NEW" + "y" * 300, "…xxxxxOLDyyyyy… → …xxxxxNEWyyyyy…"),
        ([*range(99)], [*range(98)], "…96,97,98] → …96,97]"),
        ("‹text, 3 characters›", "‹text, 3 characters›", '"‹text, 3 char… → "‹text, 3 char…'),
        ("é" * 3, "e\u0301" * 3, '"\\xe9\\xe9\\xe9" → "e\\u0301e\\u030…'),
    ],
)
def test_of_long_values_that_changed_the_part_is_shown_that_differs(
    before: Any, after: Any, line: str
) -> None:
    found = report("changed", (A, 0), (A, 1), fields={"s": {"reference": before, "candidate": after}})
    assert diagram(found, 40)[-1] == f"   s: {line}"


@pytest.mark.parametrize(
    ("value", "room", "text"),
    [
        ({"a": 1}, 7, '{"a":1}'),
        ({"a": 1}, 6, '{"a":…'),
        ({"long": "x" * 50, "b": 2}, 20, '{"b":2,…}'),
        ("x" * 50, 10, '"xxxxxxxx…'),
        ([1, 2, 3, 4, 5], 6, "[1,2,…"),
    ],
)
def test_a_value_is_cut_where_it_must_be(value: Any, room: int, text: str) -> None:
    assert value_text(value, room) == text


NOISE = {f"noise{number}": "a long text that is ignored" for number in range(4)}
OTHER = dict.fromkeys(NOISE, "a text that differs and counts as equal")


def test_what_names_and_changed_an_event_is_shown_before_what_may_differ() -> None:
    one, other = {**NOISE, "id": 7, "fare": 1}, {**OTHER, "id": 7, "fare": 2}
    fields = {"fare": {"reference": 1, "candidate": 2}}
    _, line, _ = diagram(report("changed", (one, 3), (other, 3), fields=fields, identity=["id"]))
    assert line.split("  ", 1)[1].startswith('{"id":7,"fare":1,…} ─')
    assert line.endswith(' 3  {"id":7,"fare":2,…}')


def test_of_a_whole_record_the_members_of_its_value_are_shown_first() -> None:
    beside = {"$partition": "‹number, #bf64daed›", "$headers": {"tenant": "‹text, 1 characters, #56e129dd›"}}
    one, other = ({"$value": {"type": "ride", "id": 7, "v": v}, **beside} for v in (1, 5))
    fields = {"v": {"reference": 1, "candidate": 5}}
    found = report("changed", (one, 3), (other, 4), fields=fields, identity=["id"])
    _, line, _ = diagram({**found, "scope": {"$headers.tenant": "‹text, 1 characters, #56e129dd›"}})
    assert line.split("  ", 1)[1].startswith('{"type":"ride","id":7,"v":1,…} ─')


def test_what_differs_between_equal_events_does_not_tell_events_apart() -> None:
    first = {**NOISE, "ride": "a"}, {**OTHER, "ride": "a"}
    found = report("missing", ({**NOISE, "ride": "b"}, 1), None)
    seen = [
        {"side": side, "position": at(side, 4), "value": value}
        for side, value in zip(("reference", "candidate"), first, strict=True)
    ]
    drawn = "\n".join(diagram({**found, "witness": seen}))
    assert '"ride":"b"' in drawn
    assert drawn.count('"ride":"a"') == 2


def test_without_the_records_of_a_change_all_that_differs_is_shown() -> None:
    one, other = {"k": 1, "hash": "x" * 20}, {"k": 1, "hash": "y" * 20}
    drawn = "\n".join(diagram(report("changed", (one, 3), (other, 3), identity=["k"])))
    assert '"hash":"xxx' in drawn
