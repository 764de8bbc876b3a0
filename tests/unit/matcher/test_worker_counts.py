"""Final and provisional differences are two numbers of the status, and every text tells these."""

from __future__ import annotations

import io

import orjson
import pytest
from rich.console import Console

from tests.support.workers import SPEC, Bench
from twinstream.cli.asking.status import Overview
from twinstream.core.events import Side
from twinstream.explain.receipts.markdown import markdown
from twinstream.explain.receipts.receipt import receipt_of_status
from twinstream.status.comparison import ComparisonStatus

NAMED = f"{SPEC}identity: [k, id]\n"
MET = 20
"""So many pairs behind a difference make its explanation final."""


def _changed(bench: Bench, key: str, count: int, *, closed: bool) -> None:
    for side in Side:
        for number in range(count):
            value = {"k": key, "id": number, "n": number + (side is Side.RIGHT)}
            bench.source.append(side, 0, orjson.dumps(value), 0)
    if closed:
        bench.write_both(*((key, number) for number in range(100, 100 + MET)))


def _numbers(status: ComparisonStatus) -> tuple[int, int]:
    """How many differences are final, and how many provisional."""
    final = status.closed_divergences.total
    return final, status.divergences.total - final


def _table(status: ComparisonStatus) -> str:
    """What the command `status` shows of it."""
    paper = io.StringIO()
    Console(file=paper, width=200).print(Overview([status.model_dump()]))
    return paper.getvalue().rstrip()


@pytest.fixture
def found() -> ComparisonStatus:
    """Three differences are saved, two in a closed scope are not, and four are in a scope that is open."""
    bench = Bench(spec=NAMED)
    _changed(bench, "saved", 3, closed=True)
    bench.run()
    bench.storage.down = "the store is away"
    _changed(bench, "closed", 2, closed=True)
    _changed(bench, "open", 4, closed=False)
    return bench.run()


def test_the_reason_tells_the_numbers_of_the_status(found: ComparisonStatus) -> None:
    assert _numbers(found) == (3, 6)
    assert found.reason.startswith("The outputs differ: 9 changed (3 final, 6 provisional). ")


def test_the_command_line_tells_the_numbers_of_the_status(found: ComparisonStatus) -> None:
    assert _table(found).endswith(" 3 final, 6 provisional")


def test_a_receipt_tells_the_numbers_of_the_status(found: ComparisonStatus) -> None:
    text = markdown(receipt_of_status(found, None, (), found.updated_at, "0"))
    assert "9 found: 9 changed (3 final, 6 provisional)." in text


def test_where_all_are_final_no_text_divides_them() -> None:
    bench = Bench(spec=NAMED)
    _changed(bench, "saved", 3, closed=True)
    status = bench.run()
    assert status.reason.startswith("The outputs differ: 3 changed. ")
    assert _table(status).endswith(" 3")


def test_one_that_turns_up_elsewhere_is_final_under_its_new_kind_and_counted_under_its_first() -> None:
    bench = Bench()
    bench.write(Side.LEFT, ("a", -1))
    bench.write_both(*(("a", number) for number in range(MET)))
    bench.run()
    bench.write(Side.RIGHT, ("a", -1))
    bench.write_both(*(("a", number) for number in range(100, 100 + MET)))
    status = bench.run()
    assert status.closed_divergences == status.divergences
    assert status.closed_divergences.by_kind["reordered"] == 1
    assert status.counted_divergences is not None
    assert status.counted_divergences.by_kind["missing"] == 1
