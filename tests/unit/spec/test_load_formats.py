"""Formats and their schemas, and known differences: every way to write them wrong, and what is said."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.support.refusals import HEAD, refusal
from twinstream.core.events import Side
from twinstream.errors import SpecError
from twinstream.spec.load import digest, load, loads

TOTAL = f"{HEAD}order: total\n"


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (
            "{format: xml}",
            "decode.format`: must be 'json', 'msgpack', 'utf8', 'bytes', 'avro' or 'protobuf', but \"xml\"",
        ),
        ("{formt: json}", "decode.formt`: is not a key of this mapping; did you mean `format`?"),
        ("json", 'decode`: must be a mapping, but "json" was given'),
        ("{tombstones: keep}", "decode.tombstones`: must be 'undecodable' or 'ignore', but \"keep\""),
        ("{format: avro}", "decode`: avro needs exactly one of `schema_file` and `registry`"),
        ("{format: protobuf}", "decode`: protobuf needs exactly one of `schema_file` and `registry`"),
        (
            "{format: avro, schema_file: a, registry: 'http://r'}",
            "decode`: avro needs exactly one of `schema_file` and `registry`",
        ),
        ("{schema_file: a}", "decode`: `schema_file` is for avro and protobuf; json has no schema"),
        (
            "{format: msgpack, registry: 'http://r'}",
            "decode`: `registry` is for avro and protobuf; msgpack has no",
        ),
        ("{format: bytes, message: a.B}", "decode`: `message` is for avro and protobuf; bytes has no schema"),
        (
            "{format: protobuf, schema_file: a}",
            "decode`: protobuf with `schema_file` needs `message`: the type of a record in that file",
        ),
        ("{format: avro, schema_file: a, message: B}", "decode`: `message` names the type in a protobuf"),
        (
            "{format: protobuf, registry: 'http://r', message: B}",
            "decode`: `message` names the type in a protobuf",
        ),
        (
            "{format: avro, registry: localhost}",
            "decode.registry`: must be the address of a schema registry, such as https://registry:8081, but",
        ),
        ("{format: avro, schema_file: ''}", 'decode.schema_file`: must not be empty, but "" was given'),
    ],
)
def test_a_wrong_format_is_named_with_what_it_must_be(decode: str, message: str) -> None:
    assert f"ads.yaml:6: `{message}" in refusal(f"{TOTAL}decode: {decode}")
    side = TOTAL.replace("{topic: ads.candidate}", f"{{topic: ads.candidate, decode: {decode}}}")
    assert f"ads.yaml:4: `candidate.{message}" in refusal(side)


def test_a_side_may_have_a_format_of_its_own() -> None:
    text = TOTAL.replace("ads.candidate}", "ads.candidate, decode: {format: msgpack}}")
    spec = loads(f"{text}decode: {{tombstones: ignore}}")
    assert (spec.decode_of(Side.LEFT).format, spec.decode_of(Side.LEFT).tombstones) == ("json", "ignore")
    assert (spec.decode_of(Side.RIGHT).format, spec.decode_of(Side.RIGHT).tombstones) == (
        "msgpack",
        "undecodable",
    )


@pytest.mark.parametrize("form", ["utf8", "bytes"])
def test_a_value_without_fields_decides_nothing(form: str) -> None:
    text = f"{HEAD}decode: {{format: {form}}}\norder: {{per_key: [taxi]}}"
    assert refusal(text) == (
        f"ads.yaml:6: `order.per_key`: `taxi` cannot be there: a value in the format {form} has no fields; "
        "name one of $key, $timestamp, $partition and $headers.NAME"
    )
    loads(text.replace("taxi", "$key"))
    assert "`identity`: `id` cannot be there" in refusal(
        TOTAL.replace("ads.candidate}", f"ads.candidate, decode: {{format: {form}}}}}") + "identity: [id]"
    )


# -- schema files ----------------------------------------------------------------------------------------

AVRO = "decode: {format: avro, schema_file: schemas/ride.avsc}\n"


def folder_with(folder: Path, schema: str = "{}", text: str = TOTAL + AVRO) -> Path:
    (folder / "schemas").mkdir(parents=True)
    (folder / "schemas" / "ride.avsc").write_text(schema, encoding="utf-8")
    (folder / "ads.yaml").write_text(text, encoding="utf-8")
    return folder / "ads.yaml"


def test_a_schema_file_is_found_beside_the_comparison_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert load("a/ads.yaml").decode.schema_file == str(tmp_path / "a" / "schemas" / "ride.avsc")


def test_a_schema_file_of_a_side_is_found_as_well(tmp_path: Path) -> None:
    sides = TOTAL.replace("ads.reference}", f"ads.reference, {AVRO.strip()}}}")
    spec = load(folder_with(tmp_path / "a", text=sides))
    assert spec.decode_of(Side.LEFT).schema_file == str(tmp_path / "a" / "schemas" / "ride.avsc")
    assert spec.decode_of(Side.RIGHT).schema_file is None


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


def test_a_schema_file_that_has_gone_has_no_digest(tmp_path: Path) -> None:
    spec = load(folder_with(tmp_path / "a"))
    (tmp_path / "a" / "schemas" / "ride.avsc").unlink()
    with pytest.raises(SpecError, match=r"ride\.avsc: cannot be read: No such file or directory"):
        digest(spec)


# -- known differences -----------------------------------------------------------------------------------

KNOWN = {
    "id": "PRICE-17",
    "when": "{divergences: [changed], where: {country: [FR, null]}, fields: [price]}",
    "owner": "data-platform",
    "expires": "2026-12-31",
    "ceiling": "{count: 1000}",
}


def known(**changes: str | None) -> str:
    members = {name: text for name, text in (KNOWN | changes).items() if text is not None}
    return (
        f"{TOTAL}known_differences:\n- {{{', '.join(f'{name}: {text}' for name, text in members.items())}}}"
    )


def test_a_known_difference_is_read() -> None:
    (difference,) = loads(known(ticket="T-1")).known_differences
    assert difference.when.where == {"country": ["FR", None]}
    assert difference.expires == date(2026, 12, 31)
    assert (difference.ceiling.count, difference.ceiling.share, difference.ticket) == (1000, None, "T-1")
    assert loads(known(ceiling="{share: 0.05}")).known_differences[0].ceiling.share == 0.05


@pytest.mark.parametrize("name", list(KNOWN))
def test_every_member_of_a_known_difference_is_required(name: str) -> None:
    assert refusal(known(**{name: None})) == (
        f"ads.yaml:7: `known_differences.0.{name}`: is required and missing"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "''"}, '.id`: must not be empty, but "" was given'),
        ({"onwer": "me"}, ".onwer`: is not a key of this mapping; did you mean `owner`?"),
        ({"when": "{}"}, ".when.divergences`: is required and missing"),
        ({"when": "{divergences: []}"}, ".when.divergences`: must name 1 or more, but [] was given"),
        (
            {"when": "{divergences: [lost]}"},
            ".when.divergences.0`: must be 'missing', 'extra', 'changed', 'reordered' or 'duplicate', but",
        ),
        (
            {"when": "{divergences: [missing], wher: {}}"},
            ".when.wher`: is not a key of this mapping; did you mean `where`?",
        ),
        (
            {"when": "{divergences: [missing], fields: [price]}"},
            ".when`: `fields` may differ in a changed event only; add `changed` to `divergences`",
        ),
        (
            {"when": "{divergences: [missing], where: {a: {b: 1}}}"},
            '.when.where.a`: must be a text, a number, true, false, null, or a list of these, but {"b":',
        ),
        ({"when": "{divergences: [missing], where: {a: .nan}}"}, ".when.where.a`: must be a text, a number"),
        ({"when": "{divergences: [missing], where: {a.: 1}}"}, ".when.where.a.`: 'a.' is no field path"),
        ({"when": "{divergences: [missing], where: {$key: 1}}"}, ".when.where`: `$key` is not in the value"),
        ({"when": "{divergences: [changed], fields: [$key]}"}, ".when.fields`: `$key` is not in the value"),
        ({"when": "{divergences: [changed], fields: [a, a.b]}"}, ".when.fields`: names `a.b` beside `a`"),
        ({"expires": "31.12.2026"}, '.expires`: "31.12.2026" is not a date; write it like 2026-12-31'),
        ({"expires": "2026-02-30"}, '.expires`: "2026-02-30" is not a date; write it like 2026-12-31'),
        ({"expires": "1798675200"}, ".expires`: 1798675200 is not a date; write it like 2026-12-31"),
        ({"ceiling": "{}"}, ".ceiling`: must have exactly one of `count` and `share`"),
        ({"ceiling": "{count: 1, share: 0.5}"}, ".ceiling`: must have exactly one of `count` and `share`"),
        ({"ceiling": "{count: 0}"}, ".ceiling.count`: must be 1 or more, but 0 was given"),
        ({"ceiling": "{share: 0}"}, ".ceiling.share`: must be more than 0, but 0 was given"),
        ({"ceiling": "{share: 1.5}"}, ".ceiling.share`: must be 1 or less, but 1.5 was given"),
        ({"ceiling": "1000"}, ".ceiling`: must be a mapping, but 1000 was given"),
    ],
)
def test_a_wrong_known_difference_is_named(changes: dict[str, str], message: str) -> None:
    assert f"ads.yaml:7: `known_differences.0{message}" in refusal(known(**changes))


def test_two_known_differences_have_two_names() -> None:
    second = f"- {{{', '.join(f'{name}: {text}' for name, text in KNOWN.items())}}}"
    assert refusal(f"{known()}\n{second}") == (
        "ads.yaml:8: `known_differences.1.id`: `PRICE-17` names two known differences"
    )
