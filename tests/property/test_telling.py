"""Whatever differs under whatever order: it can be told, and what is told is true of the two events."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.worlds import World, worlds
from twinstream.explain.masking import EVERYTHING, Mask
from twinstream.explain.picture import ASCII, NARROW, UNICODE, Strokes, diagram
from twinstream.explain.text import tell_divergence


def reports(world: World, *, shown: bool = True) -> list[dict[str, Any]]:
    """Every difference of the two streams, both ended."""
    driver = world.driver(identity=["v"])
    driver.take(world.batches())
    driver.end()
    driver.comparison.review()
    return driver.reports(EVERYTHING if shown else Mask([]))


@given(worlds(), st.integers(NARROW - 30, 120), st.sampled_from([UNICODE, ASCII]))
def test_every_difference_is_drawn_and_told_within_the_width(
    world: World, width: int, marks: Strokes
) -> None:
    for report in reports(world):
        lines = diagram(report, width, marks)
        assert max(map(cell_len, lines)) <= width
        told = tell_divergence(report, width, marks)
        assert str(report["kind"]) in told


@given(worlds())
def test_the_events_of_a_difference_are_drawn_at_their_offsets(world: World) -> None:
    for report in reports(world):
        positions = [*report["positions"].values(), *(seen["position"] for seen in report["witness"])]
        offsets = {position["offset"] for position in positions if position is not None}
        drawn = {
            int(number)
            for number in re.findall(r"(?:^|[─ ]) ?(\d+)  \{", "\n".join(diagram(report, 160)), re.M)
        }
        assert drawn == offsets


@given(worlds())
def test_a_sentence_names_the_events_that_prove_it_and_a_reason(world: World) -> None:
    for report in reports(world):
        text = str(report["text"])
        assert text.endswith(".")
        if report["witness"] and report["kind"] != "changed":
            assert re.search(r"keep their order|move across|their order matters|no longer write", text)
            assert "The declared order relates them" not in text
        assert len(re.findall(r"[.] |[.]$", text)) in {2, 3, 4}


@given(worlds())
def test_what_may_not_be_seen_is_in_no_sentence_and_no_picture(world: World) -> None:
    for report in reports(world, shown=False):
        told = tell_divergence(report, 200)
        assert not re.search(r'"(type|k|m|ts|v)":[^"‹]', told)
