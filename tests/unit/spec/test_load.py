"""Every way to write a comparison file wrong, and the sentence that says so."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.refusals import HEAD, refusal
from twinstream.errors import SpecError
from twinstream.spec.load import digest, load, loads


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "order: total\nequalty: {ignore: [n]}",
            "ads.yaml:6: `equalty`: is not a key of this mapping; did you mean `equality`?",
        ),
        (
            "order: total\nequality: {ignored: [n]}",
            "ads.yaml:6: `equality.ignored`: is not a key of this mapping; did you mean `ignore`?",
        ),
        (
            "order: total\ngate: {zzz: 1}",
            "ads.yaml:6: `gate.zzz`: is not a key of this mapping; known are max_staleness",
        ),
        (
            "order: total\nkinds: {int: {wehre: 1}}",
            "ads.yaml:6: `kinds.int.wehre`: is not a key of this mapping; did you mean `where`?",
        ),
        ("order: total\n7: x", "ads.yaml:6: `7`: is not a key of this mapping; known are"),
        ("ordr: total", "ads.yaml:5: `ordr`: is not a key of this mapping; did you mean `order`?"),
        (
            "equality: {ignore: [n]}",
            "ads.yaml:1: `order`: is required and missing: there is no safe default; write `order: u",
        ),
        ("order: total\nname: b", "ads.yaml:6: `name`: stands twice in one mapping"),
        (
            "order: total\ngate: {max_staleness: 1m,\n max_staleness: 2m}",
            "ads.yaml:7: `max_staleness`: stands twice in one mapping",
        ),
        (
            "order: total\nemits: upsert",
            "ads.yaml:6: `emits`: topics written in update or complete mode emit a number of",
        ),
        (
            "order: total\nstart: latest",
            "ads.yaml:6: `start.at`: must be 'earliest', 'offsets', 'event_time', 'barrier' or 'input', but",
        ),
        (
            "order: total\nstart: {at: event_time, field: ts}",
            "ads.yaml:6: `start`: `at: event_time` needs `from`: the time of the first event",
        ),
        (
            "order: total\nstart: {at: event_time, field: ts, from: soon}",
            '`start.from`: "soon" is no time; write it like 2026-01-01T00:00:00Z, or a number',
        ),
        (
            "order: total\nstart: {at: event_time, field: ts, from: 5, warm_up: 10m}",
            "`start.warm_up`: must be a number in the unit of the field, since `from` is one",
        ),
        (
            "order: total\nstart: {at: offsets, reference: {0: 1}, candidate: {0: 1}, field: ts}",
            "`start.field`: is for `at: event_time`, and means nothing with `at: offsets`",
        ),
        (
            "order: total\nstart: {at: offsets, reference: {0: -1}, candidate: {0: 1}}",
            "`start.reference.0`: must be 0 or more, but -1 was given",
        ),
        (
            "order: total\nstart: barrier",
            "`start.at`: `barrier` is a start only where the outermost form of `order` is a barrier",
        ),
        (
            "order: total\nstart: {at: event_time, field: ts, from: 5}\nequality: {ignore: [ts]}",
            "`equality.ignore`: may not name `ts`: `ts` decides the start (`start.field`)",
        ),
        (
            "order: total\non_divergence: stop",
            "ads.yaml:6: `on_divergence`: must be 'continue' or 'halt', but \"stop\" was given",
        ),
    ],
)
def test_a_wrong_key_is_named_with_what_was_meant(more: str, message: str) -> None:
    assert message in refusal(HEAD + more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("kinds:", "`kinds`: must be a mapping, but null was given"),
        ("kinds: {a: 5}", "`kinds.a`: must be a mapping, but 5 was given"),
        ("kinds: {1: {}}", "`kinds.1`: must be a text, but 1 was given"),
        ("kinds: {a: {ignore: 0}}", "`kinds.a.ignore`: must be true or false, but 0 was given"),
        ("overdue: {proves: NO}", '`overdue.proves`: must be true or false, but "NO" was given'),
        ("kinds: {a: {ignore: maybe}}", '`kinds.a.ignore`: must be true or false, but "maybe" was given'),
        (
            "kinds: {a: {where: {x: {y: 1}}}}",
            "`kinds.a.where.x`: must be a text, a number, true, false, null, or a list of these",
        ),
        ("kinds: {a: {where: {x: .inf}}}", "`kinds.a.where.x`: must be a text, a number, true, false, null"),
        (
            "kinds: {a: {where: {x..y: 1}}}",
            "`kinds.a.where.x..y`: 'x..y' is no field path: write names joined by single dots",
        ),
        ("show: city", '`show`: must be a list, but "city" was given'),
        ("show: [5]", "`show.0`: must be a text, but 5 was given"),
        ("show: ['']", '`show.0`: must not be empty, but "" was given'),
        ("show: ['.a']", "`show.0`: '.a' is no field path"),
        ("show: ['a\\']", "`show.0`: 'a\\\\' is no field path"),
        ("equality: {ignore: ['.']}", "`equality.ignore.0`: '.' is no field path"),
        ("identity: []", "`identity`: must name 1 or more, but [] was given"),
        (
            "overdue: {after: soon}",
            "`overdue.after`: 'soon' is not a duration; write it like 500ms, 60s, 5m, 2h or 1d",
        ),
        (
            "overdue: {clock: event_time}",
            "`overdue`: `clock: event_time` needs `field`: the field that holds an event's time",
        ),
        ("overdue: {field: ts}", "`overdue`: `field` names the event time of an event: it belongs to"),
        ("overdue: {window_end: ts}", "`overdue`: `window_end` belongs to `clock: input`"),
        (
            "overdue: {clock: input, proves: true}",
            "`overdue`: `proves` has no meaning for `clock: input`, which always proves; leave it out",
        ),
        ("overdue: {clock: input}", "`overdue.clock`: `input` needs `control`, the topic on which both"),
        (
            "start: {at: input}",
            "`start.at`: `input` needs `control`, the topic on which both versions say how",
        ),
        ("start: input", "`start.at`: `input` needs `control`, the topic on which both versions say how far"),
        ("start: {at: input, field: ts}", "`start.field`: is for `at: event_time`, and means nothing with"),
        ("control: ads.reference", "`control`: `ads.reference` is read for events; control records need a"),
        ("control: said", "`control`: `reference.version` is missing: control records of `said` are told by"),
        (
            "overdue: {clock: event_time, field: $timestamp}",
            "`overdue.field`: `$timestamp` is not in the value, and only a field of the value can be named",
        ),
        (
            "overdue: {clock: event_time, field: ts}\ndecode: {format: utf8}",
            "`overdue.field`: `ts` cannot be there: a value in the format utf8 has no fields",
        ),
        ("overdue: {clock: event_time, field: ts, unit: h}", "`overdue.unit`: must be 's', 'ms' or 'us'"),
        ("overdue: {after: .inf}", "`overdue.after`: inf is not a duration"),
        ("overdue: {after: .nan}", "`overdue.after`: nan is not a duration"),
        ("overdue: {after: true}", "`overdue.after`: True is not a duration"),
        ("overdue: {after: 999999999999d}", "`overdue.after`: '999999999999d' is not a duration"),
        ("overdue: {after: 10ms}", "`overdue.after`: must be at least 1s, since Kafka's clocks are no finer"),
        ("gate: {max_staleness: -5}", "`gate.max_staleness`: -5 is not a duration"),
        ("evidence: {matched: 0}", "`evidence.matched`: must be 1 or more, but 0 was given"),
        ("evidence: {matched: 1.5}", "`evidence.matched`: must be a whole number, but 1.5 was given"),
        ("evidence: {matched: many}", '`evidence.matched`: must be a whole number, but "many" was given'),
        ("evidence: {seconds: .inf}", "`evidence.seconds`: must be a finite number, but Infinity was given"),
        ("evidence: {seconds: long}", '`evidence.seconds`: must be a number, but "long" was given'),
        (
            "evidence: {may_be_absent: [rde]}\nkinds: {ride: {}}",
            "`evidence.may_be_absent`: `rde` is not a declared kind; did you mean `ride`?",
        ),
        ("evidence: {may_be_absent: [x]}", "`evidence.may_be_absent`: `x` is not a declared kind"),
        (
            "limits: {unmatched_bytes: big}",
            "`limits.unmatched_bytes`: must be a number of bytes, such as 500MB or 2GiB",
        ),
        ("limits: {scope_events: 5}", "`limits.scope_events`: must be 32 or more, but 5 was given"),
        ("undecodable: {budget: -1}", "`undecodable.budget`: must be 0 or more, but -1 was given"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_must_be(more: str, message: str) -> None:
    assert f"ads.yaml:6: {message}" in refusal(f"{HEAD}order: total\n{more}\n")


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        (
            "name: ads",
            "name: Ads_1",
            "ads.yaml:2: `name`: must be a DNS label (lower-case letters, digits and inner hyphens",
        ),
        ("name: ads", "name: 5", "ads.yaml:2: `name`: must be a text, but 5 was given"),
        ("name: ads", "nam: ads", "ads.yaml:2: `nam`: is not a key of this mapping; did you mean `name`?"),
        (
            "{topic: ads.reference}",
            "{topic: a b}",
            "ads.yaml:3: `reference.topic`: must be the name of a Kafka topic",
        ),
        ("{topic: ads.reference}", "{}", "ads.yaml:3: `reference.topic`: is required and missing"),
        (
            "{topic: ads.reference}",
            "ads",
            'ads.yaml:3: `reference`: must be a mapping, but "ads" was given',
        ),
        (
            "{topic: ads.candidate}",
            "{topic: ads.reference}",
            "ads.yaml:4: `candidate.topic`: both sides read `ads.reference`: each version needs a topic",
        ),
        ("version: 1", "version: 2", "ads.yaml:1: `version`: must be 1, but 2 was given"),
        ("version: 1", "version: [1", "ads.yaml:2: is not YAML: expected ',' or ']', but got ':'"),
        (
            "version: 1",
            "version: !foo 1",
            "ads.yaml:1: is not YAML: could not determine a constructor for the tag '!foo'",
        ),
        ("version: 1", "version: *one", "ads.yaml:1: is not YAML: found undefined alias 'one'"),
        ("version: 1", "? [a]\n: 1", "ads.yaml:1: a key must be a text"),
        ("version: 1", "version: &one {a: *one}", "ads.yaml: is nested too deep, or refers to itself"),
        ("version: 1", "version: " + "[" * 5000, "ads.yaml: is nested too deep, or refers to itself"),
        ("version: 1", "\0", "ads.yaml: is not YAML: unacceptable character #x0000"),
        ("version: 1", "version: " + "1" * 5000, "ads.yaml: holds a value that cannot be read: Exceeds the"),
        ("version: 1", '"\\ud800": 1', "ads.yaml:1: a text holds half of a surrogate pair"),
        ("name: ads", 'name: "\\ud800"', "ads.yaml:2: a text holds half of a surrogate pair"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(wrong: str, right: str, message: str) -> None:
    assert message in refusal(f"{HEAD}order: total\n".replace(wrong, right))


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "ads", "---\n"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    assert refusal(text) == "ads.yaml:1: must be a mapping that begins with `version: 1`"


def test_plain_words_and_dates_are_texts_as_they_are_in_a_record() -> None:
    text = "{country: NO, day: 2026-01-01, at: 12:30, code: 007, on: yes, flag: true, n: -1.5e3}"
    where = loads(f"{HEAD}order: total\nkinds: {{a: {{where: {text}}}}}").kinds["a"].where
    texts = {"country": "NO", "day": "2026-01-01", "at": "12:30", "code": "007", "on": "yes"}
    assert where == texts | {"flag": True, "n": -1500.0}


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("60", 60), ("1.5", 1.5), ("90 s", 90), ("5m", 300), ("1d", 86400)]
)
def test_a_duration_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    spec = loads(f"{HEAD}order: total\ngate: {{max_staleness: {text}}}")
    assert spec.gate.max_staleness == timedelta(seconds=seconds)


def test_a_start_has_a_short_form() -> None:
    assert loads(f"{HEAD}order: total\nstart: earliest") == loads(
        f"{HEAD}order: total\nstart: {{at: earliest}}"
    )


def test_the_digest_is_of_the_meaning() -> None:
    base = loads(f"{HEAD}order: total")
    assert digest(loads(f"# said otherwise\norder: 'total'\n{HEAD}gate: {{max_staleness: 300}}")) == digest(
        base
    )
    assert digest(loads(f"{HEAD}order: unordered")) != digest(base)


def test_the_digest_is_not_of_the_place_of_the_file(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(f"{HEAD}order: total", encoding="utf-8")
    assert digest(load(tmp_path / "a.yaml")) == digest(load(str(tmp_path / "b.yaml")))


def test_the_order_of_kinds_has_a_meaning() -> None:
    one, other = (
        digest(loads(f"{HEAD}order: total\nkinds: {{{kinds}}}"))
        for kinds in ("a: {where: {x: 1}}, b: {}", "b: {}, a: {where: {x: 1}}")
    )
    assert one != other


@pytest.mark.parametrize(
    ("one", "other"), [("0.01", "1e-2"), ("0.5", "0.50"), ("100", "1e2"), ("1", "1.0"), ("0.1", "'0.1'")]
)
def test_a_number_has_one_meaning_in_all_spellings(one: str, other: str) -> None:
    files = [loads(f"{HEAD}order: total\nequality: {{quantum: {{x: {text}}}}}") for text in (one, other)]
    assert files[0] == files[1]
    assert digest(files[0]) == digest(files[1])


@pytest.mark.parametrize("number", [str(10**40), "0.10000000000000000001", "1e400"])
def test_a_number_of_any_size_has_a_digest(number: str) -> None:
    assert digest(loads(f"{HEAD}order: total\nkinds: {{a: {{where: {{x: {number}}}}}}}"))


def test_numbers_are_as_they_are_written_also_where_a_float_would_be_another() -> None:
    more = "equality: {quantum: {x: 0.10000000000000000001}}\noverdue: {after: 60.50000000000000000001}"
    found = loads(f"{HEAD}order: total\n{more}")
    assert found.equality.quantum == {"x": Decimal("0.10000000000000000001")}
    assert found.overdue.after == timedelta(seconds=60.5)


def test_a_number_that_nothing_can_hold_is_refused() -> None:
    with pytest.raises(SpecError, match="the exponent of a number is out of range"):
        loads(f"{HEAD}order: total\nkinds: {{a: {{where: {{x: 1e{'9' * 30}}}}}}}")


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, message in (
        (tmp_path / "none.yaml", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (binary, "is not a UTF-8 text; save it as UTF-8"),
    ):
        with pytest.raises(SpecError) as caught:
            load(path)
        assert str(caught.value) == f"{path}: {message}"
