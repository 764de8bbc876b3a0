"""The formats of records and their schema files, as a comparison file names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.refusals import HEAD
from twinstream.core.events import Side
from twinstream.errors import SpecError
from twinstream.spec.load import digest, load, loads

TOTAL = f"{HEAD}order: total\n"


def test_a_side_may_have_a_format_of_its_own() -> None:
    text = TOTAL.replace("ads.candidate}", "ads.candidate, decode: {format: msgpack}}")
    spec = loads(f"{text}decode: {{tombstones: ignore}}")
    assert (spec.decode_of(Side.LEFT).format, spec.decode_of(Side.LEFT).tombstones) == ("json", "ignore")
    assert (spec.decode_of(Side.RIGHT).format, spec.decode_of(Side.RIGHT).tombstones) == (
        "msgpack",
        "undecodable",
    )


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


def test_a_schema_file_that_has_gone_has_no_digest(tmp_path: Path) -> None:
    spec = load(folder_with(tmp_path / "a"))
    (tmp_path / "a" / "schemas" / "ride.avsc").unlink()
    with pytest.raises(SpecError, match=r"ride\.avsc: cannot be read: No such file or directory"):
        digest(spec)
