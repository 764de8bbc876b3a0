"""The examples of the DiffStream paper (sections 2 to 4 and 6), each as an order and two small streams.

Source: Kallas, Niksic, Stanford, Alur, "DiffStream" (OOPSLA 2020). `paper.txt` has orders, below each of them
claims, and below each claim streams (`REFERENCE | CANDIDATE`) with the answer: that they are the same, or at
which line they are known to differ, where the sides take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.examples import INTERLEAVINGS, compare, events, lines
from tests.support.oracle import PlainMatcher
from tests.support.orders import dependent


def examples() -> Iterator[Any]:
    """The order, the kinds, both streams and the answer of each example, by its claim."""
    for group in Path(__file__).with_name("paper.txt").read_text().split("\n\n"):
        order, kinds, *rest = group.splitlines()
        declared, claim = yaml.safe_load(f"{order}\n{kinds}"), ""
        for line in rest:
            if line.startswith(" "):
                streams = [part.strip() for part in line.split("|")]
                yield pytest.param(
                    declared["order"], declared["kinds"], *streams, id=f"{claim}: {streams[1]}"
                )
            else:
                claim = line


def decided_at(order: Any, reference: str, candidate: str, interleave: str) -> int | None:
    """The line at which the plain matcher knows that the streams differ, if it does before their end."""
    streams = {0: events(reference), 1: events(candidate)}
    plain = PlainMatcher[dict[str, Any]](lambda a, b: dependent(order, a, b), lambda a, b: a == b)
    for line in lines(reference, candidate, interleave):
        plain.feed(line.side, streams[line.side].pop(0))
    return plain.decided_at


@pytest.mark.parametrize(("order", "kinds", "reference", "candidate", "told"), list(examples()))
def test_an_example_of_the_paper_is_decided_as_it_says_however_the_streams_are_interleaved(
    order: Any, kinds: list[str], reference: str, candidate: str, told: str
) -> None:
    for interleave in INTERLEAVINGS:
        answer = compare(order, reference, candidate, interleave, kinds=kinds)
        at, differences = answer["decided_at"], answer["divergences"]["total"]
        if told == "same":
            assert (answer["verdict"], at, differences) == ("EQUIVALENT", None, 0)
            continue
        assert answer["verdict"] == "DIVERGED"
        assert at == decided_at(order, reference, candidate, interleave)
        assert interleave != "alternate" or told == ("at the end" if at is None else f"at {at}")


def test_independent_events_are_not_known_to_differ_while_the_sides_are_open() -> None:
    open_sides = compare("unordered", "a1 a2 a3", "b1 b2 b3", open_ended=True)
    assert (open_sides["verdict"], open_sides["max_unmatched"]) == ("PENDING", 6)
