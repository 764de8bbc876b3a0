"""What a control record says of rows that were dropped as late, and of which input."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.saying import control_record
from twinstream.core.clocks.input import DroppedRows
from twinstream.intake.control import finished
from twinstream.spec.decode import control

IN = ("in", 0)


def late(**more: Any) -> DroppedRows | None:
    said = control_record("1", 7, {"in": {"0": 20}}, {}, consumed_from={"in": {"0": 10}}, **more)
    return finished(control.control_record(said), "out").late


@pytest.mark.parametrize(
    ("before", "consumed"), [(7, 10), (8, 20)], ids=["as the batch begins", "as the batch ends"]
)
def test_rows_were_dropped_of_the_input_before_the_batch_that_is_named(before: int, consumed: int) -> None:
    said = {"rows": 3, "since": 2, "before": before}
    assert late(late=said) == DroppedRows(3, 2, {IN: consumed})


@pytest.mark.parametrize(
    "more", [{}, {"late": None}, {"late": {"rows": 3, "since": 2, "before": 6}}], ids=["old", "null", "early"]
)
def test_a_record_that_does_not_say_it_for_its_batch_says_nothing(more: dict[str, Any]) -> None:
    assert late(**more) is None
