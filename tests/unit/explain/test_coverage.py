"""What was seen: kinds, keys and fields, sampled, bounded, and without a value that could be read back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.streams import LEFT, RIGHT, record, spec
from twinstream.explain import coverage
from twinstream.explain.coverage import FIELDS_LIMIT, FIRST, KEYS_LIMIT, STRIDE, SeenEvents, notes
from twinstream.explain.masking import Mask
from twinstream.spec.codec.codec import Codec
from twinstream.spec.file.model import Spec
from twinstream.status.comparison import Coverage

PER_KEY = spec("{per_key: [k]}")
SECRET = b"a secret of the tests"
KINDS = """
kinds: {day: {where: {t: d}}, ride: {}}
equality: {ignore: [noise], per_kind: {ride: {ignore: [fee]}}}
"""


def nothing_seen(of: Spec, codec: Codec, secret: bytes = SECRET) -> SeenEvents:
    return SeenEvents(of, codec, Mask.of(of, secret))


def seen(
    events: list[dict[str, Any]], of: Spec = PER_KEY, *, run: int = 7, secret: bytes = SECRET
) -> SeenEvents:
    """What was seen of events of the reference, which come in runs."""
    codec = Codec(of)
    found = nothing_seen(of, codec, secret)
    feed(found, codec, events, run)
    return found


def feed(found: SeenEvents, codec: Codec, events: list[dict[str, Any]], run: int = 7) -> None:
    forms, refused = codec.forms([record(event) for event in events])
    assert not refused
    for start in range(0, len(forms), run):
        found.note(LEFT, forms[start : start + run])


def fields(found: SeenEvents, kind: str = "event") -> dict[str, Any]:
    told: dict[str, Any] = found.told()["kinds"][kind].model_dump()
    return told


def noted(found: SeenEvents) -> list[str]:
    asked: dict[str, Any] = {"matched_required": 1, "seconds": 0, "seconds_required": 0, "missing": []}
    return notes(Coverage(matched=1, matched_by_kind={"event": 1}, **asked, **found.told()))


def test_fields_are_told_by_whether_they_varied() -> None:
    events = [{"k": n, "currency": "EUR", "discount": None, "meta": {"host": n, "zone": 1}} for n in range(3)]
    assert fields(seen(events)) == {
        "sampled": 3,
        "varied": ["k", "meta.host"],
        "constant": ["currency", "meta.zone"],
        "always_null": ["discount"],
    }


def test_null_and_a_value_are_two_values_and_equal_numbers_are_one() -> None:
    found = seen([{"k": 1, "a": None, "b": 1.0}, {"k": 1, "a": 0, "b": 1}])
    assert fields(found)["varied"] == ["a"]
    assert fields(found)["constant"] == ["b", "k"]


@pytest.mark.parametrize(
    ("events", "varied", "always_null"),
    [
        ([{"a": "p"}, {}], ["a"], []),
        ([{}, {"a": "p"}], ["a"], []),
        ([{"a": {}}, {"a": {"x": 1}}], ["a", "a.x"], []),
        ([{"a": {"x": 1}}, {"a": 5}], ["a", "a.x"], []),
        ([{"a": None}, {"a": {"x": 1}}], ["a", "a.x"], []),
        ([{"a": {"x": 1}}, {"a": None}], ["a", "a.x"], []),
        ([{"a": None}, {}, {"a": None}], [], ["a"]),
        ([{}, {"a": None}], [], ["a"]),
        ([{}, {"a": None}, {"a": 1}], ["a"], []),
    ],
)
def test_a_field_that_is_absent_or_of_another_shape_in_some_events_varied(
    events: list[dict[str, Any]], varied: list[str], always_null: list[str]
) -> None:
    """But it had no value at all where it was only null or absent."""
    told = fields(seen([{"k": 1, **event} for event in events]))
    assert (told["varied"], told["constant"], told["always_null"]) == (varied, ["k"], always_null)


def test_what_is_not_compared_is_not_told() -> None:
    of = spec("{per_key: [k]}", KINDS)
    found = seen([{"t": "d", "k": 1, "noise": 1}, {"t": "r", "k": 1, "fee": 3, "noise": 2}], of)
    assert fields(found, "day")["constant"] == ["k", "t"]
    assert "fee" not in fields(found, "ride")["constant"]


def test_keys_are_counted_up_to_a_limit_and_then_forgotten() -> None:
    found = seen([{"k": n % 5} for n in range(50)])
    assert (found.told()["keys"], found.told()["more_keys"]) == (5, False)
    found = seen([{"k": n} for n in range(FIRST + 3 * STRIDE)], run=1000)
    assert (found.told()["keys"], found.told()["more_keys"]) == (KEYS_LIMIT, True)
    assert found.state()["keys"] == []


def test_without_keys_in_the_order_none_are_counted() -> None:
    assert seen([{"k": 1}], spec("total")).told()["keys"] is None


def test_fields_are_bounded() -> None:
    found = seen([{"k": 1, **{f"f{n}": n for n in range(FIELDS_LIMIT + 50)}}])
    assert found.told()["more_fields"]
    assert sum(map(len, (fields(found)["varied"], fields(found)["constant"]))) == FIELDS_LIMIT


@pytest.mark.parametrize("run", [1, 7, 1000, 5000])
def test_the_sample_is_the_same_however_events_come(run: int) -> None:
    count = 10 * FIRST
    found = seen([{"k": 1, "n": n} for n in range(count)], run=run)
    assert found.state() == seen([{"k": 1, "n": n} for n in range(count)], run=count).state()
    assert FIRST < fields(found)["sampled"] < 2 * FIRST
    assert found.told()["events"] == count


def test_a_stream_is_looked_at_from_end_to_end() -> None:
    found = seen([{"k": n // FIRST} for n in range(20 * FIRST)])
    assert found.told()["keys"] == 20


def test_far_out_one_event_in_a_stride_is_looked_at() -> None:
    few = seen([{"k": 1}], run=1)
    place = few.state() | {"count": [STRIDE * 300] * 2, "next": [STRIDE * 300] * 2}
    few.restore(place)
    feed(few, Codec(PER_KEY), [{"k": 1}] * (3 * STRIDE))
    assert fields(few)["sampled"] == 1 + 3


def test_what_was_seen_goes_on_after_a_restart() -> None:
    events = [{"k": n, "v": n // FIRST, "one": 7} for n in range(3 * FIRST)]
    whole = seen(events)
    codec = Codec(PER_KEY)
    first, second = nothing_seen(PER_KEY, codec), nothing_seen(PER_KEY, codec)
    feed(first, codec, events[:1234])
    second.restore(json.loads(json.dumps(first.state())))
    feed(second, codec, events[1234:])
    assert second.state() == whole.state()


def test_no_value_can_be_read_from_the_state() -> None:
    state = json.dumps(seen([{"k": "secret-key", "name": "secret-name"}]).state())
    assert "secret" not in state


def test_who_has_no_secret_cannot_find_a_value_by_trying() -> None:
    event = {"k": "FR", "adult": True, "also": True}
    first, other = seen([event]), seen([event], secret=b"another secret of the tests")
    hashes = first.constants()["event"]
    assert len({*hashes.values(), *first.state()["keys"]}) == 4, "equal values of two fields look alike"
    assert not set(hashes.values()) & set(other.constants()["event"].values())
    assert not set(first.state()["keys"]) & set(other.state()["keys"])


def test_with_another_secret_what_was_seen_is_told_anew() -> None:
    before = seen([{"k": 1}]).state()
    without = {name: member for name, member in before.items() if name != "mask"}
    for state in (before, without):
        found = seen([], secret=b"another secret of the tests")
        found.restore(state)
        assert (found.told()["events"], found.told()["keys"], fields(found)["constant"]) == (0, 0, [])


def test_a_value_that_varies_is_not_even_hashed_any_more() -> None:
    state = seen([{"k": 1, "n": n} for n in range(2)]).state()
    assert state["fields"]["event"]["n"] == ""
    assert len(state["fields"]["event"]["k"]) == 16


def test_notes_say_what_was_not_put_to_the_test_and_of_how_many_events() -> None:
    found = seen([{"k": 1, "n": n} for n in range(FIRST + 1)])
    assert noted(found) == [
        "all events are of one key",
        "`k` never varied",
        "fields and keys were looked at in 1,000 of 1,001 events",
    ]


def test_of_few_events_it_is_no_wonder_that_they_are_alike() -> None:
    assert noted(seen([{"k": 1, "n": None}] * 19)) == []


def test_many_fields_are_not_all_named() -> None:
    (note,) = noted(seen([{"k": n, **{f"f{m:02}": None for m in range(12)}} for n in range(50)]))
    assert note.startswith("`f00`, `f01`, ")
    assert note.endswith(f"`f{coverage.NAMED - 1:02}` and 4 more were always null")


def test_a_whole_record_names_its_fields_as_the_comparison_file_does() -> None:
    from twinstream.spec.decode.formats.envelope import envelope

    of = spec("{per_key: [$key]}")
    codec = Codec(of)
    found = nothing_seen(of, codec)
    records = [envelope(b'{"v":1}', b"key", (), 5, 0) for _ in range(2)]
    found.note(RIGHT, codec.forms(records, RIGHT)[0])
    assert fields(found)["constant"] == ["$key", "v"]


def test_a_map_is_one_field_since_its_names_are_data() -> None:
    of = spec("unordered", "maps: [tips]")
    codec = Codec(of)
    found = nothing_seen(of, codec)
    records = [b'{"v":1,"tips":{"ann@example.com":1}}', b'{"v":1,"tips":{"bob@example.com":1}}']
    found.note(RIGHT, codec.forms(records, RIGHT)[0])
    assert (fields(found)["constant"], fields(found)["varied"]) == (["v"], ["tips"])
