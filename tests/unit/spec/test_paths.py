from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.spec.file.paths import ABSENT, Path, overlap, parse_path, path_text, read

paths = st.lists(st.text("ab.\\", min_size=1), min_size=1).map(tuple)


@given(paths)
def test_a_path_written_and_read_is_the_same(path: Path) -> None:
    assert parse_path(path_text(path)) == path


@pytest.mark.parametrize(
    ("one", "another", "expected"),
    [("a", "a", True), ("a", "a.b", True), ("a.b", "a", True), ("a.b", "a.c", False), ("a", "ab", False)],
)
def test_paths_overlap_where_one_holds_the_other(one: str, another: str, expected: bool) -> None:
    assert overlap(parse_path(one), parse_path(another)) is expected


VALUE: dict[str, Any] = {"a": {"b": None, "c.d": [1]}, "e": "x"}


def test_null_is_read_and_a_missing_member_is_absent() -> None:
    assert read(VALUE, ("a", "b")) is None
    assert read(VALUE, ("a", "c.d")) == [1]
    for missing in (("x",), ("a", "x"), ("e", "x"), ("a", "c.d", "0")):
        assert read(VALUE, missing) is ABSENT
    assert read([VALUE], ("a",)) is ABSENT
