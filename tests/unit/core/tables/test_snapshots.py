"""Whole tables are compared when both versions have written them for the same input, and not before."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT
from tests.support.tables import Pair
from twinstream.core.tables.snapshots import GONE


@pytest.fixture(params=[False, True], ids=["", "restarted behind every step"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair("complete", restarts=request.param)


def test_tables_of_different_inputs_are_not_compared(pair: Pair) -> None:
    assert pair.go_on("L0:a=1,b=1 L0!10 R0:a=2 R0!15") == (0, [], [[0, 1], [0]])
    assert pair.go_on("L1:a=2 L1!15") == (1, [], [[], []])
    assert pair.superseded() == [2, 0]


def test_a_batch_that_is_written_again_is_no_news(pair: Pair) -> None:
    pair.go_on("L0:a=1,b=1 L0!10 R0:a=1,b=1 R0!10 L0:a=1,b=1")
    pair.finish(LEFT, 10, batch=0, run="another run")
    assert pair.go_on("") == (2, [], [[], []])
    assert pair.superseded() == [2, 0]


def test_a_batch_without_input_that_wrote_no_row_leaves_the_table_as_it_was(pair: Pair) -> None:
    assert pair.go_on("L0:a=1 L0!10 R0:a=1 R0!10 L1!10 R1:a=1 R1!10") == (1, [], [[], []])


def test_a_key_that_only_one_version_drops_for_the_same_input_is_unknown(pair: Pair) -> None:
    pair.go_on("L0:a=1,b=1 L0!10 R0:a=1,b=1 R0!10")
    assert pair.go_on("R1:a=1 R1!10") == (2, [], [[], []])
    assert [hole.reason for hole in pair.driver.comparison.holes] == [GONE]
    assert pair.go_on("L2:a=1,b=1 L2!20 R2:a=1 R2!20") == (3, ["missing"], [[], []])


def test_a_table_written_anew_alone_is_compared_with_what_the_other_one_holds(pair: Pair) -> None:
    pair.go_on("L0:a=1,b=1 L0!10 R0:a=1 R0!10")
    assert pair.go_on("R1:a=2,b=1,c=1 R1!10") == (1, ["changed", "extra", "missing"], [[], []])
