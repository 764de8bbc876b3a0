"""What is proposed is told from noise: what shows at few places stays a difference, and is told with them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.noise import calibrated, proposed, run_of, with_noise
from tests.support.plants import flights, rerun
from tests.unit.calibration.test_calibrate import rows, spec_file
from twinstream.calibration.ordering import Moves
from twinstream.calibration.writing import summary
from twinstream.offline.calibrate import Calibrated

RIDES = "kinds: {night: {where: {type: eod}}, ride: {}}\n"


def outcome(answer: Calibrated) -> tuple[str, Any]:
    return answer.found.result, answer.found.draft.data["order"]


# -- order ---------------------------------------------------------------------------------------------------


def swapped(flights: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with one departure and the next of its flight exchanged."""
    same = [n for n, event in enumerate(flights) if n >= 300 and event["flight"] == flights[300]["flight"]]
    found = list(flights)
    found[same[0]], found[same[1]] = flights[same[1]], flights[same[0]]
    return found


def test_a_number_of_which_some_come_far_oftener_is_not_taken_for_one_that_reports_in_turn() -> None:
    values = [{"in turn": n % 20, "measured": (n * n) % 41, "id": n} for n in range(400)]
    places = [n ^ 1 for n in range(400)]
    assert [key.fields for key in Moves(values, places, []).likely()] == [("in turn",)]


def test_neighbours_that_are_independent_anyhow_are_no_evidence_for_a_key() -> None:
    """One line goes ahead of the other, and nothing moved in either: that speaks for `line` alone."""
    values = [{"line": n % 2, "seat": n // 2 % 2} for n in range(400)]
    ahead = sorted(range(400), key=lambda n: (n // 10, n % 2, n))
    places = [ahead.index(n) for n in range(400)]
    assert [key.fields for key in Moves(values, places, []).likely() if key.supported] == [("line",)]
    beside = Moves(values, places, [], beside=(("line",),))
    assert not any(key.supported for key in beside.likely())


def test_a_key_that_is_given_is_loosened_by_noise_alone() -> None:
    one = flights(Random(6), 600)
    answer = calibrated(one, swapped(one), keys=["flight"])
    assert outcome(answer) == ("unexplained", "total")
    other = swapped(rerun(Random(7), one))
    answer = calibrated(one, other, keys=["flight"])
    assert outcome(answer) == ("unexplained", {"per_key": ["flight"]})


def test_only_the_branch_that_is_broken_is_loosened(tmp_path: Path) -> None:
    branches = "{days: {kinds: [night], order: total}, rides: {kinds: [ride], order: total}}"
    file = spec_file(tmp_path, f"{RIDES}order: {{parallel: {branches}}}\n")
    one = [
        event
        for n, event in enumerate(run_of(Random(8), 200))
        for event in ([event, {"type": "eod", "ride": f"e{n}"}] if n % 4 == 0 else [event])
    ]
    other = list(one)
    rides = [n for n, event in enumerate(one) if "type" not in event]
    for at, ride in zip(rides, Random(9).sample(rides, len(rides)), strict=True):
        other[at] = one[ride]
    answer = calibrated(one, other, file)
    result, order = outcome(answer)
    orders = {name: branch["order"] for name, branch in order["parallel"].items()}
    assert (result, orders) == ("proposed", {"days": "total", "rides": "unordered"})


BRANCHES = "{parallel: {a: {kinds: [night], order: unordered}, b: {kinds: [ride], order: total}}}"


@pytest.mark.parametrize("tightest", [BRANCHES, "{dependent: [[ride, ride]]}"])
def test_events_without_an_order_need_not_have_moved_against_one(tmp_path: Path, tightest: str) -> None:
    file = spec_file(tmp_path, f"{RIDES}order: {tightest}\n")
    one = [{"type": ("eod", "ride")[n % 2], "id": n} for n in range(400)]
    answer = calibrated(one, Random(4).sample(one, len(one)), file)
    assert answer.found.result == "proposed"


def test_noise_in_one_branch_need_not_show_in_another(tmp_path: Path) -> None:
    """Half of the events are in the other branch, whose order is kept, and stays declared."""
    both = "{parallel: {a: {kinds: [night], order: total}, b: {kinds: [ride], order: total}}}"
    one = [{"type": ("eod", "ride")[n % 2], "id": n} for n in range(400)]
    rides = Random(4).sample(one[1::2], 200)
    other = [event for pair in zip(one[::2], rides, strict=True) for event in pair]
    answer = calibrated(one, other, spec_file(tmp_path, f"{RIDES}order: {both}\n"))
    orders = {name: branch["order"] for name, branch in outcome(answer)[1]["parallel"].items()}
    assert (answer.found.result, orders) == ("proposed", {"a": "total", "b": "unordered"})


def test_what_only_events_of_one_branch_do_at_a_barrier_is_no_noise(tmp_path: Path) -> None:
    """To give the barrier up would hide it of the other branch, too."""
    kinds = "kinds: {day: {where: {type: day}}, night: {where: {type: eod}}, ride: {}}\n"
    both = "{parallel: {a: {kinds: [night], order: total}, b: {kinds: [ride], order: total}}}"
    one, other = [], []
    for day in range(40):
        inside = [{"type": ("eod", "ride")[n % 2], "id": f"{day}.{n}"} for n in range(10)]
        end = {"type": "day", "id": f"{day}"}
        one += [*inside, end]
        other += [*inside[:-1], end, inside[-1]]
    answer = calibrated(one, other, spec_file(tmp_path, f"{kinds}order: {{barrier: day, inner: {both}}}\n"))
    assert answer.found.result == "unexplained"
    assert "2 of the 3 values of `type`" in answer.found.unexplained[0].why


def test_only_the_rule_that_is_broken_is_given_up(tmp_path: Path) -> None:
    rules = '[[night, "*"], {pair: [ride, ride], same: [taxi]}]'
    file = spec_file(tmp_path, f"{RIDES}order: {{dependent: {rules}}}\n")
    parts = [run_of(Random(day), 40) for day in range(6)]
    for day, part in enumerate(parts):
        for event in part:
            event["ride"] = f"{day}.{event['ride']}"
    night = [{"type": "eod", "ride": f"e{day}", "taxi": 0} for day in range(6)]
    one = [event for part, end in zip(parts, night, strict=True) for event in (*part, end)]
    mixed = [Random(day).sample(part, len(part)) for day, part in enumerate(parts)]
    other = [event for part, end in zip(mixed, night, strict=True) for event in (*part, end)]
    answer = calibrated(one, other, file)
    assert outcome(answer) == ("proposed", {"dependent": [["night", "*"]]})


# -- names ---------------------------------------------------------------------------------------------------


def test_what_events_were_paired_by_stands_in_the_file_so_that_a_changed_one_is_told_as_changed() -> None:
    one = flights(Random(10), 300)
    other = [dict(event) for event in one]
    other[100]["arr_delay"] += 3
    answer = calibrated(one, other)
    assert answer.found.draft.data["identity"] == list(answer.found.named_by) == ["time"]
    assert answer.differences is not None
    assert answer.differences["divergences"]["by_kind"]["changed"] == 1
    assert "it is needed" not in answer.found.reason


def test_what_the_file_rounds_names_no_event(tmp_path: Path) -> None:
    one = rows(60, at=lambda n: n * 100, id=lambda n: f"i{n}", load=lambda n: n % 7)
    other = [{**row, "load": row["load"] + 100} for row in one]
    file = spec_file(tmp_path, "order: total\nequality: {quantum: {id: 1}}\n")
    assert calibrated(one, other, file).found.named_by == ("at",)


def test_a_measure_names_events_only_where_nothing_else_does() -> None:
    one = rows(60, price=lambda n: n + 0.25, shop=lambda n: n % 6, day=lambda n: n // 6, at=lambda n: n)
    other = [{**row, "at": row["at"] + 1000} for row in one]
    assert set(calibrated(one, other).found.named_by) == {"shop", "day"}
    bare = [[{"price": row["price"], "at": row["at"]} for row in run] for run in (one, other)]
    assert calibrated(*bare).found.named_by == ("price",)


def test_kinds_are_named_together_where_each_keeps_the_names_of_the_others(tmp_path: Path) -> None:
    file = spec_file(tmp_path, RIDES + "order: total\n")
    one = [
        {"type": "eod", "day": f"d{n}", "at": n} if n % 3 == 0 else {"type": "ride", "id": f"i{n}", "at": n}
        for n in range(90)
    ]
    other = [{**row, "at": row["at"] + 1000} for row in one]
    answer = calibrated(one, other, file)
    assert set(answer.found.draft.data["identity"]) == {"day", "id"}
    assert proposed(answer) == {("equality.ignore", "at")}


def test_an_identity_that_several_events_have_pairs_those_that_are_alike(tmp_path: Path) -> None:
    """Else half of the states would differ, and be left out of what is compared."""
    states = ["new", "paid", "sent", "done"]
    one = [{"order": n // 4, "state": states[n % 4], "at": n} for n in range(240)]
    other = Random(11).sample([{**row, "at": row["at"] + 10_000} for row in one], len(one))
    answer = calibrated(one, other, spec_file(tmp_path, "order: unordered\nidentity: [order]\n"))
    assert (answer.found.result, proposed(answer)) == ("proposed", {("equality.ignore", "at")})
    other[7]["state"] = "lost"
    answer = calibrated(one, other, spec_file(tmp_path, "order: unordered\nidentity: [order]\n"))
    assert (answer.found.result, proposed(answer)) == ("unexplained", {("equality.ignore", "at")})


# -- fields --------------------------------------------------------------------------------------------------


def test_one_value_that_differs_five_times_as_far_does_not_widen_a_tolerance() -> None:
    random = Random(13)
    one = rows(300, id=lambda n: n, price=lambda n: 10.25 + n)
    other = [{**row, "price": row["price"] + random.choice([-0.01, 0.01])} for row in one]
    other[77]["price"] = one[77]["price"] + 0.05
    answer = calibrated(one, other, identity=["id"])
    assert answer.found.result == "unexplained"
    assert answer.found.draft.spec.equality.tolerance["price"].abs <= 0.02
    assert [left.places for left in answer.found.unexplained] == [((77, 77),)]


def test_what_a_rule_told_from_another_field_hides_is_told_all_the_same() -> None:
    """Nulls of `note` are always missing; that one of `city` is says a rule for all fields, and not why."""
    one = run_of(Random(15), 200)
    one[50]["city"] = None
    other = with_noise(Random(16), one, ["null"])
    del other[50]["city"]
    answer = calibrated(one, other)
    assert (answer.found.result, proposed(answer)) == ("unexplained", {("equality.absent_is_null", None)})
    (left,) = answer.found.unexplained
    assert (left.field, left.hidden, left.places) == ("city", 1, ((50, 50),))
    assert ", and the proposed file hides it" in summary(answer.found)
    more = replace(answer.found, unexplained=(left._replace(differed=2, places=((50, 50), (60, 60))),))
    assert "and the proposed file hides 1 of these differences" in summary(more)


def test_a_field_called_order_is_no_order() -> None:
    one = rows(200, id=lambda n: f"r{n}", note=lambda n: None if n % 4 else "n", order=lambda _: 5)
    one[77]["order"] = None
    other = [{name: value for name, value in row.items() if value is not None} for row in one]
    answer = calibrated(one, other)
    assert (answer.found.result, proposed(answer)) == ("unexplained", {("equality.absent_is_null", None)})
    (left,) = answer.found.unexplained
    assert (left.field, left.hidden, left.places) == ("order", 1, ((77, 77),))


def test_a_kind_without_the_noise_of_others_is_compared_by_itself(tmp_path: Path) -> None:
    file = spec_file(tmp_path, RIDES + "order: total\nequality: {ignore: [host]}\n")
    one = [{"type": "eod" if n % 20 == 0 else "ride", "id": n, "at": 5 * n, "host": n} for n in range(400)]
    other = [{**row, "at": row["at"] + (10_000 if row["type"] == "ride" else 0)} for row in one]
    answer = calibrated(one, other, file)
    equality = answer.found.draft.spec.equality
    assert (answer.found.result, proposed(answer)) == ("proposed", {("equality.ignore", "at")})
    assert (equality.ignore, equality.per_kind["night"].ignore) == (["host", "at"], ["host"])
    other[40]["at"] += 1
    answer = calibrated(one, other, file)
    assert answer.found.result == "unexplained"
    assert [(left.field, left.hidden) for left in answer.found.unexplained] == [("at", 0)]


def test_a_kind_that_keeps_its_nulls_is_compared_by_itself(tmp_path: Path) -> None:
    file = spec_file(tmp_path, RIDES + "order: total\n")
    kinds = ("eod", "ride")
    one = [{"type": kinds[n % 2], "id": n, "note": None if n % 3 else ["late"]} for n in range(300)]
    other: list[dict[str, Any]] = [
        {name: value for name, value in row.items() if row["type"] == "eod" or value is not None}
        for row in one
    ]
    answer = calibrated(one, other, file)
    equality = answer.found.draft.spec.equality
    assert (answer.found.result, proposed(answer)) == ("proposed", {("equality.absent_is_null", None)})
    assert (equality.absent_is_null, equality.per_kind["night"].absent_is_null) == (True, False)


def test_what_is_put_aside_in_one_element_of_an_array_sets_no_tolerance_by_another() -> None:
    """At sixteen events one element is far off, and the other a little: both are of that cause."""
    rng = Random(1)

    def near(event: int, element: int) -> float:
        size = rng.uniform(0.01, 0.05) if not 100 <= event < 116 else 0.15 if element else 1.5
        return rng.choice((-1, 1)) * size

    one = [{"id": n, "bag": [{"n": i, "v": rng.uniform(0, 1000)} for i in (0, 1)]} for n in range(400)]
    other = [
        {**event, "bag": [{**item, "v": item["v"] + near(event["id"], item["n"])} for item in event["bag"]]}
        for event in one
    ]
    answer = calibrated(one, other, identity=["id"])
    assert answer.found.result == "unexplained"
    assert answer.found.draft.data["equality"] == {"tolerance": {"bag.v": {"abs": Decimal("0.05")}}}
