"""Which difference is planted where, and when none can be."""

from __future__ import annotations

import msgpack
import orjson
import pytest

from tests.support.drilled import pair, record, rides, spec_with
from twinstream.drill.copies import CopiedPair
from twinstream.drill.editing import check_writable
from twinstream.drill.planting import KINDS, PlantedKind, plan
from twinstream.errors import SettingsError
from twinstream.spec.drills import HEADER, DrillRecord
from twinstream.spec.file.model import Decode

TEXTS = {
    "drop": "was left out",
    "duplicate": "was written twice",
    "reorder": "written after the event of offset 104, but must stay before it",
    "field": "p was changed",
    "stall": "the last one before the candidate falls silent",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_difference_is_planted_into_the_middle_of_the_copy_and_can_be_proven(kind: PlantedKind) -> None:
    found = plan(spec_with(more="identity: [n]\n"), pair(), kind, "5f0c")
    assert found.text == TEXTS[kind]
    assert found.origin.offset == (99 if kind == "stall" else 100)
    assert found.proven
    assert found.closed == (kind != "stall")


@pytest.mark.parametrize("kind", ["duplicate", "reorder", "field"])
def test_what_is_planted_keeps_key_partition_and_headers_and_carries_the_mark(kind: PlantedKind) -> None:
    found = plan(spec_with(), pair(), kind, "5f0c")
    (place,) = found.marked
    planted = found.pair.candidate[place]
    assert planted.headers == [("trace", b"1"), (HEADER, b"5f0c")]
    assert planted.key == b"key"
    assert planted.partition == 0


def test_a_barrier_is_not_touched_where_another_event_will_do() -> None:
    spec = spec_with(
        "{barrier: day, inner: {per_key: [k]}}", "kinds: {day: {where: {k: day}}, ride: {}}\nidentity: [n]\n"
    )
    days = [record(n, {"k": "day", "n": n}) if n % 10 == 0 else one for n, one in enumerate(rides())]
    found = plan(spec, CopiedPair(days, days), "drop", "5f0c")
    assert orjson.loads(found.origin.value or b"")["k"] != "day"


def test_a_field_that_is_named_is_the_one_that_is_changed() -> None:
    found = plan(spec_with(), pair(), "field", "5f0c", "n")
    (place,) = found.marked
    assert orjson.loads(found.pair.candidate[place].value or b"") == {"k": 0, "n": 201, "p": 1.5}


def test_the_field_is_changed_beyond_quantum_and_tolerance() -> None:
    spec = spec_with(more="equality: {ignore: [n], tolerance: {p: {abs: 3, rel: 0}}}\n")
    made = [record(n, {"k": n % 4, "n": n, "p": 10.5}) for n in range(200)]
    found = plan(spec, CopiedPair(made, made), "field", "5f0c")
    assert found.text == "p was changed"
    assert found.proven


def test_a_field_with_fields_of_its_own_may_be_named() -> None:
    made = [record(n, {"k": n % 4, "n": n, "m": {"a": n}}) for n in range(200)]
    assert plan(spec_with(), CopiedPair(made, made), "field", "5f0c", "m").text == "m was changed"


def test_msgpack_is_written_as_msgpack() -> None:
    spec = spec_with(more="decode: {format: msgpack}\nidentity: [n]\n")
    packed = [record(n, msgpack.packb({"k": n % 4, "n": n, "p": "x"})) for n in range(200)]
    found = plan(spec, CopiedPair(packed, packed), "field", "5f0c")
    value = found.pair.candidate[found.marked[0]].value
    assert msgpack.unpackb(value or b"") == {"k": 0, "n": 100, "p": "x drill"}


@pytest.mark.parametrize(
    ("equality", "field", "reason"),
    [
        ("{}", "k", "kind field .* into rides: `k` decides the kind or the order"),
        ("{}", "q", "^no event has a field `q`: name another --field$"),
        ("{ignore: [p]}", "p", r"^`p` is not compared, or not so closely \(`equality`"),
        ("{ignore: [n, p]}", None, "^no field of rides can be changed so that it shows: each is left"),
    ],
)
def test_a_field_that_cannot_show_a_difference_is_refused_with_the_reason(
    equality: str, field: str | None, reason: str
) -> None:
    with pytest.raises(SettingsError, match=reason):
        plan(spec_with(more=f"equality: {equality}\n"), pair(), "field", "5f0c", field)


UNORDERED = "^there is no order to break: the events of rides are compared in"
UNRELATED = "^among the last 100 events no two of one partition differ .* --records"


@pytest.mark.parametrize(
    ("order", "run", "reason"),
    [
        ("unordered", rides(100), UNORDERED),
        ("{per_key: [k]}", rides(100, keys=1000), UNRELATED),
        ("{per_key: [k]}", [record(n, {"k": 1}) for n in range(100)], UNRELATED),
    ],
    ids=["no order", "keys that come once", "equal events"],
)
def test_where_no_order_can_be_broken_that_is_told(order: str, run: list[DrillRecord], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        plan(spec_with(order), CopiedPair(run, run), "reorder", "5f0c")


def test_a_known_difference_that_would_explain_it_is_named() -> None:
    known = """known_differences:
  - {id: PRICE-17, when: {divergences: [changed]}, owner: us, expires: 2199-01-01, ceiling: {count: 9}}
"""
    spec = spec_with(more=f"identity: [n]\n{known}")
    with pytest.raises(SettingsError, match=r"known difference PRICE-17 explains it, so there is no alarm$"):
        plan(spec, pair(), "field", "5f0c")
    assert plan(spec, pair(), "drop", "5f0c").proven


def test_a_format_without_a_writer_is_refused_for_fields() -> None:
    with pytest.raises(
        SettingsError, match=r"^a field of a record in the format avro cannot be changed by a"
    ):
        check_writable(Decode(format="avro", schema_file="ride.avsc"))


def test_a_plan_is_not_taken_where_the_comparison_finds_more_than_what_was_planted() -> None:
    lossy = [one for one in rides() if one.offset != 150]
    for kind in ("drop", "duplicate", "reorder", "field"):
        with pytest.raises(SettingsError, match=r": the comparison finds no difference, or more than the pl"):
            plan(spec_with(more="identity: [n]\n"), CopiedPair(rides(), lossy), kind, "5f0c")


def test_equal_events_that_change_places_are_no_difference_and_cost_no_try() -> None:
    """From the middle on more equal events than are tried, and then others."""
    texts = ["y"] * 80 + ["x"] * 20 + ["y"] * 60
    run = [record(n, {"k": 1, "p": text}) for n, text in enumerate(texts)]
    found = plan(spec_with(), CopiedPair(run, run), "reorder", "5f0c")
    assert (found.origin.offset, found.proven) == (99, True)
