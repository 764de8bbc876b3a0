"""What a comparison file means once it is read, and what is said about a wrong one (the tables)."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.refusals import HEAD, answer, recorded
from twinstream.core.events import Side
from twinstream.errors import SpecError
from twinstream.spec.codec.codec import Codec
from twinstream.spec.load import digest, load, loads, with_schemas

TOTAL = f"{HEAD}order: total\n"


def test_plain_words_and_dates_are_texts_as_they_are_in_a_record() -> None:
    text = "{country: NO, day: 2026-01-01, at: 12:30, code: 007, on: yes, flag: true, n: -1.5e3}"
    where = loads(f"{TOTAL}kinds: {{a: {{where: {text}}}}}").kinds["a"].where
    texts = {"country": "NO", "day": "2026-01-01", "at": "12:30", "code": "007", "on": "yes"}
    assert where == texts | {"flag": True, "n": -1500.0}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("60", 60),
        ("1.5", 1.5),
        ("60.50000000000000000001", 60.5),
        ("90 s", 90),
        ("5m", 300),
        ("1d", 86400),
    ],
)
def test_a_duration_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    spec = loads(f"{TOTAL}gate: {{max_staleness: {text}}}")
    assert spec.gate.max_staleness == timedelta(seconds=seconds)


def test_a_start_has_a_short_form() -> None:
    one, other = (loads(f"{TOTAL}start: {text}") for text in ("earliest", "{at: earliest}"))
    assert one == other


def test_a_known_difference_is_read() -> None:
    when = "when: {divergences: [changed], where: {country: [FR, null]}, fields: [price]}"
    rule = f"{{id: P-17, {when}, owner: me, expires: 2026-12-31, ceiling: {{share: 0.05}}}}"
    (difference,) = loads(f"{TOTAL}known_differences: [{rule}]").known_differences
    assert difference.when.where == {"country": ["FR", None]}
    assert difference.expires == date(2026, 12, 31)
    assert (difference.ceiling.count, difference.ceiling.share, difference.ticket) == (None, 0.05, None)


def test_the_digest_is_of_the_meaning() -> None:
    said_otherwise = f"# a remark\norder: 'total'\n{HEAD}gate: {{max_staleness: 300}}"
    assert digest(loads(said_otherwise)) == digest(loads(f"{HEAD}order: total"))


def test_the_order_of_kinds_has_a_meaning() -> None:
    kinds = ("a: {where: {x: 1}}", "b: {}")
    files = (loads(f"{TOTAL}kinds: {{{', '.join(listed)}}}") for listed in (kinds, kinds[::-1]))
    assert len({digest(file) for file in files}) == 2


@pytest.mark.parametrize(
    "spellings",
    [
        ["0.01", "1e-2"],
        ["0.5", "0.50"],
        ["100", "1e2"],
        ["1", "1.0"],
        ["0.1", "'0.1'"],
        ["1e-9"],
        [f"{10**40}"],
        ["0.10000000000000000001", "'0.10000000000000000001'"],
    ],
)
def test_a_number_is_the_decimal_that_is_written_in_any_spelling(spellings: list[str]) -> None:
    files = [loads(f"{TOTAL}equality: {{quantum: {{x: {text}}}}}") for text in spellings]
    assert all(file.equality.quantum == {"x": Decimal(spellings[0])} for file in files)
    assert len({digest(file) for file in files}) == 1


@pytest.mark.parametrize("number", [str(10**40), "0.10000000000000000001", "1e400"])
def test_a_number_of_any_size_has_a_digest(number: str) -> None:
    assert digest(loads(f"{TOTAL}kinds: {{a: {{where: {{x: {number}}}}}}}"))


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


# -- formats ---------------------------------------------------------------------------------------------


def test_a_side_may_have_a_format_of_its_own() -> None:
    text = TOTAL.replace("ads.candidate}", "ads.candidate, decode: {format: msgpack}}")
    spec = loads(f"{text}decode: {{tombstones: ignore}}")
    decodes = [spec.decode_of(side) for side in Side]
    assert [(way.format, way.tombstones) for way in decodes] == [
        ("json", "ignore"),
        ("msgpack", "undecodable"),
    ]


# -- schema files ----------------------------------------------------------------------------------------

AVRO = "decode: {format: avro, schema_file: schemas/ride.avsc}\n"


def folder_with(folder: Path, schema: str = "{}", text: str = TOTAL + AVRO) -> Path:
    (folder / "schemas").mkdir(parents=True)
    (folder / "schemas" / "ride.avsc").write_text(schema, encoding="utf-8")
    (folder / "ads.yaml").write_text(text, encoding="utf-8")
    return folder / "ads.yaml"


def test_a_schema_file_is_found_beside_the_comparison_file_and_for_a_side_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path / "a")
    folder_with(tmp_path / "b", text=TOTAL.replace("ads.reference}", f"ads.reference, {AVRO.strip()}}}"))
    monkeypatch.chdir(tmp_path)
    assert load("a/ads.yaml").decode.schema_file == str(tmp_path / "a" / "schemas" / "ride.avsc")
    files = [load("b/ads.yaml").decode_of(side).schema_file for side in Side]
    assert files == [str(tmp_path / "b" / "schemas" / "ride.avsc"), None]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (TOTAL + "decode:\n  format: avro\n  schema_file: ride.avsc", "8: `decode.schema_file`"),
        (
            TOTAL.replace("ads.candidate}", "ads.candidate, decode: {format: avro, schema_file: ride.avsc}}"),
            "4: `candidate.decode.schema_file`",
        ),
    ],
)
def test_a_schema_file_that_is_not_there_is_named(tmp_path: Path, text: str, place: str) -> None:
    file = folder_with(tmp_path / "a", text=text)
    with pytest.raises(SpecError) as caught:
        load(file)
    missing = "there is no file `ride.avsc`; the path is relative to the comparison file"
    assert str(caught.value) == f"{file}:{place}: {missing}"


def test_the_digest_is_of_the_schema_and_not_of_its_place(tmp_path: Path) -> None:
    one, same, other = (
        load(folder_with(tmp_path / name, schema)) for name, schema in (("a", "{}"), ("b", "{}"), ("c", "[]"))
    )
    assert one.decode.schema_file != same.decode.schema_file
    assert digest(one) == digest(same) != digest(other)


@pytest.mark.parametrize(
    "text", [TOTAL + AVRO, TOTAL.replace("ads.reference}", f"ads.reference, {AVRO.strip()}}}")]
)
def test_a_spec_for_another_host_has_the_schema_itself(tmp_path: Path, text: str) -> None:
    spec = load(folder_with(tmp_path / "a", '"long"', text))
    named, carried = digest(spec), with_schemas(spec)
    (tmp_path / "a" / "schemas" / "ride.avsc").unlink()
    forms, refused = Codec(carried).forms([b"\x02"], Side.LEFT)
    assert (len(forms), refused, digest(carried)) == (1, [], named)


def test_a_schema_file_that_has_gone_has_no_digest(tmp_path: Path) -> None:
    spec = load(folder_with(tmp_path / "a"))
    (tmp_path / "a" / "schemas" / "ride.avsc").unlink()
    with pytest.raises(SpecError, match=r"ride\.avsc: cannot be read: No such file or directory"):
        digest(spec)


# -- refusals --------------------------------------------------------------------------------------------

RECORDED = recorded(sorted(Path(__file__).with_name("refusals").glob("*.txt")))


@pytest.mark.parametrize("claim", RECORDED)
def test_a_file_is_refused_with_the_sentence_beside_it_or_taken(claim: str) -> None:
    text, said, _ = RECORDED[claim]
    assert answer(text) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[" * 5000, "ads.yaml: is nested too deep, or refers to itself"),
        ("\0", "ads.yaml: is not YAML: unacceptable character #x0000"),
        ("1" * 5000, "ads.yaml: holds a value that cannot be read: Exceeds the"),
        (
            f"1e{'9' * 30}",
            "ads.yaml: holds a value that cannot be read: the exponent of a number is out of range",
        ),
        (
            "[]\nkinds: {a: {where: {x: 1e9999999}}}",
            "ads.yaml: holds a value that cannot be read: the exponent of a number is out of range",
        ),
        (
            "[]\n"
            + "".join(f"x{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else '1'] * 10)}]\n" for n in range(8)),
            "ads.yaml: has more than 100,000 places, each counted as often as an alias repeats it",
        ),
    ],
    ids=lambda value: value[:30],
)
def test_what_no_file_should_hold_is_refused_in_a_sentence(value: str, said: str) -> None:
    assert answer(f"{TOTAL}show: {value}").startswith(said)


def test_a_file_without_checks_has_the_digest_that_it_had_before_there_were_any() -> None:
    checks = "checks: [{id: a, not_null: [n]}]"
    assert digest(loads(f"{HEAD}order: total")) == digest(loads(f"{TOTAL}checks: []")) == "4274b84529e6653e"
    assert (
        digest(loads(f"{TOTAL}{checks}"))
        != digest(loads(f"{TOTAL}{checks.replace('n]', 'm]')}"))
        != "4274b84529e6653e"
    )


SHAPE = """\
version: 1
name: Orders
refernce: {topic: r}
candidate: {topic: c, versin: 2}
ordr: total
equality: {tolerance: {x: {abs: -1}}, ignor: [a]}
foo: 1
"""
LAWS = f"{HEAD}order: {{per_key: [a]}}\nequality: {{ignore: [a]}}\nshow: [x, x]\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            SHAPE,
            [
                (2, "name"), (3, "refernce"), (4, "candidate.versin"), (5, "ordr"),
                (6, "equality.ignor"), (6, "equality.tolerance.x.abs"), (7, "foo"),
            ],
        ),
        (LAWS, [(6, "equality.ignore"), (7, "show")]),
        (LAWS.replace("x, x", "x"), [(6, "equality.ignore")]),
        (f"{LAWS}name: b\n", [(6, "equality.ignore"), (7, "show"), (8, "name")]),
    ],
    ids=["of the shape", "of the laws", "one alone", "a key that stands twice among them"],
)  # fmt: skip
def test_all_faults_of_a_file_are_told_at_once_with_their_lines(
    text: str, told: list[tuple[int, str]]
) -> None:
    with pytest.raises(SpecError) as caught:
        loads(text, "ads.yaml")
    assert [(fault.line, fault.key) for fault in caught.value.faults] == told


def test_the_first_fault_is_the_most_urgent_one_wherever_it_stands() -> None:
    with pytest.raises(SpecError, match=r"ads.yaml:3: `refernce`: .* did you mean `reference`\?$"):
        loads(SHAPE, "ads.yaml")
