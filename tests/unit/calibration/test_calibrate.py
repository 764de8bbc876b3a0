"""What two runs tell in special cases: names, keys, barriers, retries, cuts, and too little to tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.noise import calibrated, interleaved_anew, loosened, proposed, run_of, with_noise
from twinstream.calibration.proposals import Proposal
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.events import Side
from twinstream.errors import InputError
from twinstream.offline.calibrate import Recording, calibrate, start_of
from twinstream.ports import Line
from twinstream.spec.decode.headers import attempt_headers
from twinstream.spec.load import loads

HEAD = "version: 1\nname: t\nreference: {topic: a}\ncandidate: {topic: b}\n"


def spec_file(folder: Path, text: str) -> str:
    path = folder / "spec.yaml"
    path.write_text(HEAD + text)
    return str(path)


def rows(count: int, **columns: Any) -> list[dict[str, Any]]:
    """Events of which each column is a function of their number."""
    return [{name: value(number) for name, value in columns.items()} for number in range(count)]


# -- which events belong together ----------------------------------------------------------------------------


def test_a_counter_of_the_output_is_not_taken_for_a_name() -> None:
    """Both runs have the same numbers 0, 1, 2 …, but of different events."""
    random = Random(1)
    one = [{**event, "seq": n} for n, event in enumerate(run_of(random, 60))]
    other = [{**event, "seq": n} for n, event in enumerate(interleaved_anew(random, one))]
    answer = calibrated(one, other)
    assert proposed(answer) == {("equality.ignore", "seq"), ("order", None)}
    assert answer.found.named_by == ("ride",)


def test_two_names_that_pair_in_different_ways_are_ambiguous_until_one_is_given() -> None:
    one = rows(40, a=lambda n: f"a{n}", b=lambda n: f"b{n}")
    other = rows(40, a=lambda n: f"a{n}", b=lambda n: f"b{(n + 7) % 40}")
    answer = calibrated(one, other)
    assert (answer.found.result, answer.file) == ("undecided", None)
    assert "both `a` and `b` could name an event" in answer.found.reason
    assert proposed(calibrated(one, other, identity=["a"])) == {("equality.ignore", "b")}


def test_a_field_and_one_inside_it_do_not_name_an_event_together() -> None:
    one = [{"c": f"x{n}" if n % 2 else {"a": f"y{n}"}} for n in range(80)]
    answer = calibrated(one, Random(1).sample(one, len(one)))
    assert (answer.found.result, answer.found.named_by) == ("proposed", ())


def test_events_of_one_name_are_not_told_as_different_where_the_proposed_file_makes_them_equal() -> None:
    one: list[dict[str, Any]] = rows(36, k=lambda n: n, a=lambda n: None if n % 4 else 0)
    one += [{"k": 8, "a": 0}, {"k": 7, "a": 0}, {"a": None}]
    other = [{name: value for name, value in event.items() if value is not None} for event in one[::-1]]
    assert proposed(calibrated(one, other)) == {("order", None), ("equality.absent_is_null", None)}


def test_two_fields_together_may_name_an_event() -> None:
    one = rows(60, shop=lambda n: n % 6, day=lambda n: n // 6, open=lambda n: n < 30, at=lambda n: n)
    other = [{**row, "at": row["at"] + 1000} for row in reversed(one)]
    answer = calibrated(one, other)
    assert set(answer.found.named_by) == {"shop", "day"}
    assert proposed(answer) == {("equality.ignore", "at"), ("order", None)}


def test_numbers_of_events_without_a_name_are_not_guessed_at() -> None:
    random = Random(2)
    one = [{"sensor": n % 3, "value": random.uniform(0, 100)} for n in range(60)]
    other = [{**row, "value": row["value"] + random.uniform(1e-9, 1e-8)} for row in one]
    random.shuffle(other)
    answer = calibrated(one, other)
    assert answer.found.result == "undecided"
    assert "so pairing is a guess" in answer.found.reason


def test_runs_on_different_inputs_are_told() -> None:
    one = rows(40, a=lambda n: f"a{n}")
    other = rows(40, a=lambda n: f"b{n}")
    assert "Are these two runs on the same input?" in calibrated(one, other).found.reason


def test_what_would_leave_nothing_to_compare_is_not_proposed() -> None:
    one = rows(40, host=lambda _: "h", a=lambda n: f"a{n}")
    other = rows(40, host=lambda _: "h", a=lambda n: f"b{n}")
    answer = calibrated(one, other)
    assert (answer.found.result, answer.file) == ("undecided", None)
    assert "nothing would be compared" in answer.found.reason


@pytest.mark.parametrize("count", [0, 19])
def test_few_events_show_nothing(count: int) -> None:
    events = rows(count, a=lambda n: n)
    answer = calibrated(events, events)
    assert answer.found.result == "undecided"
    assert f"the reference has {count} events to compare; at least 20 are needed" in answer.found.reason


# -- keys and partitions -------------------------------------------------------------------------------------


def test_where_a_barrier_has_copies_an_event_that_crossed_it_gives_no_order_up(tmp_path: Path) -> None:
    """Nothing tells which event crossed it, so nothing is proposed."""
    text = "kinds: {night: {where: {type: eod}}, ride: {}}\n"
    text += "order: {barrier: night, copies: per_partition, inner: unordered}\n"
    one: list[dict[str, Any]] = []
    for day in range(5):
        one += [{"id": 10 * day + n, "part": n % 2} for n in range(10)]
        one += [{"type": "eod", "day": day, "part": part} for part in (0, 1)]
    other = [*one[:8], *one[9:12], one[8], *one[12:]]
    file = spec_file(tmp_path, text + "equality: {ignore: [part]}\n")
    answer = calibrated(one, other, file, partition=lambda event: event["part"])
    assert answer.found.result == "undecided"
    assert "the comparison finds a difference" in answer.found.reason


def test_where_no_event_is_compared_the_runs_are_not_equal(tmp_path: Path) -> None:
    start = "order: total\nstart: {at: event_time, field: at, from: 2030-01-01T00:00:00Z}\n"
    one = rows(30, id=lambda n: n, at=lambda n: f"2026-01-01T00:00:{n:02}Z")
    other = [{**row, "id": -row["id"]} for row in one]
    assert calibrated(one, other, spec_file(tmp_path, start)).found.result == "undecided"


def test_null_is_a_value_of_a_key() -> None:
    one = run_of(Random(5), 200)
    one[70]["taxi"] = None
    answer = calibrated(one, interleaved_anew(Random(6), one))
    assert answer.found.draft.data["order"] == {"per_key": ["taxi"]}


def by_taxi(event: dict[str, Any]) -> int:
    return int(event["taxi"]) % 2


def test_a_field_whose_events_are_in_several_partitions_is_no_key() -> None:
    one = [{"ride": n, "city": n // 2 % 5} for n in range(200)]
    answer = calibrated(one, one, partition=lambda event: event["ride"] % 2)
    assert answer.found.draft.data["order"] == "unordered"
    assert "no field of the value that recurs kept its order" in loosened(answer)[0].evidence


def test_a_barrier_in_several_partitions_is_refused_with_its_reason(tmp_path: Path) -> None:
    text = "kinds: {night: {where: {city: Bonn}}, ride: {}}\norder: {barrier: night, inner: unordered}\n"
    one = run_of(Random(5), 200)
    answer = calibrated(one, one[:-1], spec_file(tmp_path, text), partition=by_taxi)
    assert answer.found.result == "undecided"
    assert "or write a copy to each partition, with `copies: per_partition`" in answer.found.reason


def test_a_part_of_a_field_that_the_file_compares_is_no_noise(tmp_path: Path) -> None:
    """A list of the fields to compare cannot leave it out."""
    one = rows(60, id=lambda n: n, meta=lambda n: {"at": n, "city": "Bonn"})
    other = [{**row, "meta": {"at": row["id"] + 100, "city": "Bonn"}} for row in one]
    file = spec_file(tmp_path, "order: total\nidentity: [id]\nequality: {compare_only: [id, meta]}\n")
    answer = calibrated(one, other, file)
    assert answer.found.result == "undecided"
    assert "`meta.at` differed in 60 of 60 pairs, and `equality.compare_only` reads it" in answer.found.reason


# -- fields --------------------------------------------------------------------------------------------------


def test_a_number_in_an_array_without_an_order_is_rounded() -> None:
    random = Random(3)
    one = run_of(random, 60)
    other = json.loads(json.dumps(one))
    for event in other:
        event["items"].reverse()
        for item in event["items"]:
            item["price"] += random.uniform(1e-13, 1e-12)
    answer = calibrated(one, other)
    assert proposed(answer) == {("equality.unordered", "items"), ("number", "items.price")}
    assert "items.price" in answer.found.draft.spec.equality.quantum


def test_repeated_elements_are_proposed_as_a_set() -> None:
    one = rows(40, id=lambda n: n, tags=lambda n: [n, n + 1])
    other = [{**row, "tags": [row["tags"][1], *row["tags"]]} for row in one]
    assert proposed(calibrated(one, other)) == {("equality.sets", "tags")}


def test_a_field_that_seldom_differs_is_no_noise() -> None:
    one = rows(100, id=lambda n: n, colour=lambda _: "red")
    other = [{**row, "colour": "blue" if row["id"] % 10 == 0 else "red"} for row in one]
    answer = calibrated(one, other)
    assert (answer.found.result, proposed(answer)) == ("unexplained", set())
    (colour,) = answer.found.unexplained
    assert (colour.field, colour.differed, colour.seen) == ("colour", 10, 100)
    assert answer.differences is not None
    assert answer.differences["divergences"]["by_kind"]["changed"] == 10


def test_what_only_an_unexplained_event_would_need_is_not_proposed() -> None:
    """The one event that lacks its null has another fare, too: the others are equal without any rule."""
    one = rows(40, id=lambda n: n, note=lambda _: None, fare=lambda n: n / 4)
    other = [dict(row) for row in one]
    other[20] = {"id": 20, "fare": 99.5}
    answer = calibrated(one, other)
    assert (answer.found.result, proposed(answer)) == ("unexplained", set())


def test_members_with_odd_names_are_named_as_a_file_names_them() -> None:
    one = [{"$id": n, "a.b": n, "😀": n, "": 0} for n in range(40)]
    other = [{**row, "a.b": row["a.b"] + 100, "😀": row["😀"] + 100} for row in one]
    answer = calibrated(one, other)
    assert answer.found.named_by == ("\\$id",)
    assert proposed(answer) == {("equality.ignore", "a\\.b"), ("equality.ignore", "😀")}
    other = [{**row, "$id": row["$id"] + 100} for row in one]
    assert proposed(calibrated(one, other, identity=["😀"])) == {("equality.ignore", "\\$id")}


def test_a_member_that_a_file_cannot_name_is_told_so_only_where_it_is_noise() -> None:
    one = [{"id": n, "": n + 0.25} for n in range(40)]
    for differing, why in ((30, "a comparison file cannot name it"), (3, "fewer than 10 are too few")):
        other = [{**row, "": row[""] + 1e-6 * (7 * n % 40 < differing)} for n, row in enumerate(one)]
        (left,) = calibrated(one, other, identity=["id"]).found.unexplained
        assert left.why.startswith(why)


def test_a_proposal_is_not_changed_by_one_inside_it() -> None:
    own = Proposal(("equality", "per_kind", "night"), None, {"ignore": ["host"]}, "", "")
    more = Proposal((*own.at, "ignore"), "run", None, "", "")
    data = start_of(None, {}, ()).with_([own, more]).data
    assert data["equality"] == {"per_kind": {"night": {"ignore": ["host", "run"]}}}
    assert own.value == {"ignore": ["host"]}


def test_values_that_are_no_objects_have_no_fields() -> None:
    one: list[Any] = list(range(40))
    assert calibrated(one, [value + 0.5 for value in one]).found.result == "undecided"
    assert proposed(calibrated(one, one[::-1])) == {("order", None)}


def test_a_whole_number_that_always_differs_is_ignored_and_never_rounded() -> None:
    one = rows(40, id=lambda n: n, load=lambda n: n * 1000)
    other = [{**row, "load": row["load"] + 1} for row in one]
    assert proposed(calibrated(one, other)) == {("equality.ignore", "load")}


def test_a_clock_of_seconds_with_a_fraction_is_ignored() -> None:
    one = rows(40, id=lambda n: n, at=lambda n: 1_700_000_000.25 + 100 * n)
    other = [{**row, "at": row["at"] + 0.125} for row in one]
    assert proposed(calibrated(one, other)) == {("equality.ignore", "at")}


@pytest.mark.parametrize("changed", [1, 4])
def test_a_number_that_seldom_differs_is_no_noise_however_small_the_difference(changed: int) -> None:
    """Prices up to 500, of which some are a cent higher: a rule would hide a cent in all of them."""
    one = rows(100, id=lambda n: n, price=lambda n: 1.25 + 5 * n)
    other = [{**row, "price": row["price"] + 0.01 * (row["id"] < changed)} for row in one]
    answer = calibrated(one, other)
    assert (answer.found.result, proposed(answer)) == ("unexplained", set())
    assert [(part.field, part.differed) for part in answer.found.unexplained] == [("price", changed)]


def test_a_number_that_differs_by_little_in_some_of_the_pairs_is_noise() -> None:
    one = rows(100, id=lambda n: n, price=lambda n: 1.25 + 5 * n)
    other = [{**row, "price": row["price"] + 0.01 * (row["id"] % 10 == 0)} for row in one]
    assert proposed(calibrated(one, other)) == {("number", "price")}


@pytest.mark.parametrize(("part", "share"), [(1e-15, 0.02), (1e-7, 0.2)])
def test_digits_that_a_sum_loses_may_show_in_few_pairs(part: float, share: float) -> None:
    one = rows(1000, id=lambda n: n, sum=lambda n: 12345.678 * (n + 1))
    other = [{**row, "sum": row["sum"] * (1 + part * (row["id"] % round(1 / share) == 0))} for row in one]
    assert proposed(calibrated(one, other)) == {("number", "sum")}


def test_numbers_of_many_sizes_are_tolerated_by_their_part() -> None:
    """A wobble of a billionth: the largest one alone would hide whatever becomes of the small numbers."""
    one = rows(100, id=lambda n: n, load=lambda n: 1.001 * 10 ** (n / 10))
    other = [{**row, "load": row["load"] * (1 + 1e-9)} for row in one]
    answer = calibrated(one, other)
    (number,) = loosened(answer)
    assert answer.found.draft.spec.equality.tolerance["load"].rel == Decimal("1E-9") * 2
    assert number.hides == "a change of `load` by up to 0.000000002 of the larger number"
    assert "in no pair more than 2e-9 of the larger number" in number.evidence


@pytest.mark.parametrize(("powers", "largest"), [((0, 900), "2.00e+896"), ((-900, -900), "2e-904")])
def test_numbers_beyond_a_double_are_calibrated_as_others(powers: tuple[int, int], largest: str) -> None:
    def x(number: int, more: int) -> Decimal:
        return Decimal(f"1.0{number:02}{more}").scaleb(powers[number % 2])

    one = rows(60, id=lambda n: f"r{n}", x=lambda n: x(n, 0))
    other = [{**row, "x": x(n, 1 + n % 2)} for n, row in enumerate(one)]
    (found,) = loosened(calibrated(one, other))
    assert found.evidence.startswith(f"differed in 60 of 60 pairs, by at most {largest}")


def test_a_quantum_says_how_many_values_lie_near_a_boundary() -> None:
    random = Random(5)
    one = [{"id": n, "bag": [{"n": i, "v": random.uniform(0, 100)} for i in (0, 1)]} for n in range(200)]
    other = [
        {**row, "bag": [{**item, "v": item["v"] + random.uniform(-1e-6, 1e-6)} for item in row["bag"][::-1]]}
        for row in one
    ]
    (number,) = [p for p in calibrated(one, other).found.draft.proposals if p.field == "bag.v"]
    assert number.key == "equality.quantum"
    assert "near a rounding boundary" in number.evidence
    assert "of less than" in number.hides


# -- order ---------------------------------------------------------------------------------------------------


def test_a_few_swaps_do_not_tell_the_key() -> None:
    one = run_of(Random(6), 60)
    place = next(n for n in range(60) if one[n]["taxi"] != one[n + 1]["taxi"])
    other = [*one[:place], one[place + 1], one[place], *one[place + 2 :]]
    answer = calibrated(one, other)
    assert (answer.found.result, proposed(answer)) == ("unexplained", set())
    (order,) = answer.found.unexplained
    assert (order.field, order.places) == ("order", ((place, place + 1),))
    assert "fewer than 30 events are too few to tell noise from a difference" in order.why
    given = calibrated(one, other, keys=["taxi"])
    assert given.found.draft.data["order"] == {"per_key": ["taxi"]}


def test_a_key_whose_events_stand_too_far_apart_to_be_swapped_is_not_given_up() -> None:
    """Twenty sensors report in turn, and neighbours change places: they are never of one sensor."""
    one = rows(200, id=lambda n: n, sensor=lambda n: f"s{n % 20}")
    other = [one[n ^ 1] for n in range(200)]
    answer = calibrated(one, other)
    (order,) = loosened(answer)
    assert answer.found.draft.data["order"] == {"per_key": ["sensor"]}
    assert "nothing moved as far as those stand apart, so that may be chance" in order.evidence


NIGHTS = "kinds: {night: {where: {type: eod}}, ride: {}}\norder: {barrier: night, inner: INNER}\n"


@pytest.mark.parametrize("inner", ["unordered", "total", "{per_key: [taxi]}"])
@pytest.mark.parametrize("fault", ["the first is lost", "the second is lost", "the second is written twice"])
def test_of_equal_barriers_one_too_few_or_too_many_gives_no_order_up(
    inner: str, fault: str, tmp_path: Path
) -> None:
    parts = list(days(Random(8)))
    for number, event in enumerate(event for part in parts for event in part):
        event["ride"] = f"r{number}"
    one = [event for part in parts for event in (*part, {"type": "eod"})]
    nights = [place for place, event in enumerate(one) if event["type"] == "eod"]
    other = list(one)
    if "lost" in fault:
        del other[nights["second" in fault]]
    else:
        other.insert(nights[1] + 7, one[nights[1]])
    answer = calibrated(one, other, spec_file(tmp_path, NIGHTS.replace("INNER", inner)))
    assert (answer.found.result, answer.found.unexplained) == ("unexplained", ())
    assert not loosened(answer)
    assert sorted(map(len, answer.found.rest)) == [0, 1]


DAYS = "kinds: {night: {where: {type: eod}}, ride: {}}\norder: {barrier: night, inner: total}\n"


def days(random: Random, count: int = 4) -> Iterator[list[dict[str, Any]]]:
    for day in range(count):
        yield [{"type": "ride", "day": day, **event} for event in run_of(random, 40)]


def with_nights(parts: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [event for day, part in enumerate(parts) for event in (*part, {"type": "eod", "day": day})]


def test_the_order_between_barriers_is_loosened_before_the_barrier(tmp_path: Path) -> None:
    random = Random(8)
    parts = list(days(random))
    moved = [interleaved_anew(random, part) for part in parts]
    file = spec_file(tmp_path, DAYS)
    answer = calibrated(with_nights(parts), with_nights(moved), file)
    assert answer.found.draft.data["order"] == {"barrier": "night", "inner": {"per_key": ["taxi"]}}
    mixed = [random.sample(part, len(part)) for part in parts]
    answer = calibrated(with_nights(parts), with_nights(mixed), file)
    assert answer.found.draft.data["order"] == {"barrier": "night", "inner": "unordered"}


def test_what_a_starting_file_declares_stands(tmp_path: Path) -> None:
    random = Random(9)
    one = run_of(random, 60)
    other = with_noise(random, one, ["clock", "random id", "keys"])
    file = spec_file(tmp_path, "order: {per_key: [taxi]}\nequality: {ignore: [processed_at]}\nshow: [taxi]\n")
    answer = calibrated(one, other, file)
    assert proposed(answer) == {("equality.ignore", "meta.request")}
    assert answer.file is not None
    said = loads(answer.file)
    assert (said.equality.ignore, said.show) == (["processed_at", "meta.request"], ["taxi"])


def test_events_before_the_start_are_no_pairs(tmp_path: Path) -> None:
    """They are not compared, so what they would show is no evidence either."""
    one = rows(80, id=lambda n: f"r{n}", ts=lambda n: n, note=lambda n: n % 7)
    other = [{**row, "note": -1} if row["ts"] < 40 else row for row in one]
    head = "order: total\nidentity: [id]\nstart: {at: event_time, field: ts, from: "
    answer = calibrated(one, other, spec_file(tmp_path, head + "40}\n"))
    assert (answer.found.result, answer.found.pairs) == ("equal", 40)
    answer = calibrated(one, other, spec_file(tmp_path, head + "39}\n"))
    assert (answer.found.result, answer.found.pairs) == ("unexplained", 41)
    answer = calibrated(one, other, spec_file(tmp_path, head + "79}\n"))
    assert "the reference has 1 event to compare; at least 20 are needed" in answer.found.reason
    with pytest.raises(InputError, match="tells what lies before the start, is missing"):
        calibrated([*one, {"id": "x"}], other, spec_file(tmp_path, head + "40}\n"))


def test_a_kind_with_an_equality_of_its_own_gets_its_own_proposals(tmp_path: Path) -> None:
    kinds = "kinds: {night: {where: {type: eod}}, ride: {}}\norder: total\n"
    file = spec_file(tmp_path, kinds + "equality: {per_kind: {night: {}}}\n")
    one = with_nights([[{"type": "ride", "id": f"{d}.{n}", "at": n} for n in range(3)] for d in range(30)])
    for n, event in enumerate(one):
        event["at"] = n
    other = [{**event, "at": event["at"] + 5000} if event["type"] == "eod" else event for event in one]
    answer = calibrated(one, other, file)
    assert proposed(answer) == {("equality.per_kind.night.ignore", "at")}


def test_a_field_that_decides_is_never_left_out(tmp_path: Path) -> None:
    file = spec_file(tmp_path, "order: {per_key: [host]}\n")
    one = rows(40, id=lambda n: n, host=lambda n: f"h{n % 3}")
    other = [{**row, "host": f"{row['host']}-b"} for row in one]
    answer = calibrated(one, other, file)
    assert "host" not in str(proposed(answer))
    assert answer.found.result == "undecided"


# -- what is read twice, and what is cut ---------------------------------------------------------------------


def line(side: Side, offset: int, value: Any, execution: str | None = None) -> Line:
    headers = attempt_headers(Attempt("q", offset // 100, execution, 0, 0)) if execution else ()
    place = ("run", offset + 1, offset + 1)
    return Line(side, json.dumps(value).encode(), 0, offset, 0, *place, headers=headers)


def test_rows_that_a_retry_wrote_again_are_proposed_as_replays() -> None:
    one = rows(60, id=lambda n: n)
    start = start_of(None, {}, ())
    recording = Recording(start.spec, 1000)
    recording.read(line(Side.LEFT, n, row, "first") for n, row in enumerate(one))
    twice = [(row, "first") for row in one] + [(row, "again") for row in one]
    recording.read(
        line(Side.RIGHT, 0, row, execution)._replace(offset=n) for n, (row, execution) in enumerate(twice)
    )
    answer = calibrate(recording, start)
    assert proposed(answer) == {("duplicates.policy", None)}
    assert answer.found.result == "proposed"


def test_partners_behind_the_cut_are_no_difference() -> None:
    random = Random(10)
    one = run_of(random, 300)
    other = []
    for first in range(0, 300, 10):
        other += random.sample(one[first : first + 10], 10)
    answer = calibrated(one, other, limit=195)
    assert answer.found.result == "proposed"
    assert answer.found.beyond > 0
    assert answer.found.draft.data["order"] == "unordered"


def test_partners_behind_the_cut_of_a_partition_are_no_difference() -> None:
    """The same share of each partition was read, one after the other, and the last partner is missing."""
    one = rows(200, id=lambda n: n)
    parts = [[row for row in one if row["id"] % 2 == part] for part in (0, 1)]
    other = [*parts[0][:-1], *parts[1][:-1]]
    answer = calibrated([*parts[0], *parts[1]], other, partition=lambda row: row["id"] % 2, cut=set(Side))
    assert (answer.found.result, answer.found.beyond) == ("proposed", 2)


def test_at_a_cut_of_one_run_only_the_other_may_lack_partners() -> None:
    one = rows(200, id=lambda n: n)
    answer = calibrated(one, one[:181], limit=190)
    assert (answer.found.result, answer.found.beyond) == ("unexplained", 0)
    answer = calibrated(one[:181], one, limit=190)
    assert (answer.found.result, answer.found.beyond) == ("unexplained", 0)


def test_known_differences_are_no_noise(tmp_path: Path) -> None:
    rule = "{id: P, when: {divergences: [missing]}, owner: o, expires: 2999-01-01, ceiling: {count: 50}}"
    file = tmp_path / "file.yaml"
    head = "version: 1\nname: t\nreference: {topic: a}\ncandidate: {topic: b}\norder: unordered\n"
    file.write_text(f"{head}identity: [id]\nknown_differences: [{rule}]\n")
    one = rows(100, id=lambda n: n)
    answer = calibrated(one, one[10:], str(file))
    assert (answer.found.result, len(answer.found.rest.left)) == ("unexplained", 10)
    assert answer.differences is not None
    assert (answer.differences["verdict"], answer.differences["divergences"]["total"]) == ("DIVERGED", 10)


def test_an_event_that_is_lost_far_from_the_cut_is_a_difference() -> None:
    one = rows(300, id=lambda n: n)
    answer = calibrated(one, [*one[:50], *one[51:]], limit=200)
    assert answer.found.result == "unexplained"
    assert (answer.found.beyond, list(answer.found.rest.left)) == (1, [50])
