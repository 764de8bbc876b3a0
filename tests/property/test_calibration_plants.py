"""A fault at one place, at one time or at one key is never explained away by what is proposed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.noise import calibrated, equal_under, loosened, proposed
from tests.support.plants import FIELD_PLANTS, ORDER_PLANTS, Event, flights, rerun
from tests.support.searching import examples
from twinstream.offline.calibrate import Calibrated
from twinstream.spec.load import loads

SEEDS = st.integers(0, 2**32)
COUNT = 600
PLANTS = {**ORDER_PLANTS, **FIELD_PLANTS}
NOISE = {("equality.ignore", "read_at"), ("number", "fuel")}
DECLARED = "version: 1\nname: t\nreference: {topic: a}\ncandidate: {topic: b}\norder: {per_key: [flight]}\n"


def finds(answer: Calibrated, one: list[Event], other: list[Event]) -> bool:
    """Whether the proposed file tells the runs apart."""
    assert answer.file is not None
    return not equal_under(loads(answer.file), one, other)


@pytest.mark.parametrize("plant", sorted(PLANTS))
@examples(2)
@given(seed=SEEDS)
def test_a_fault_alone_asks_for_no_rule(
    plant: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    random = Random(seed)
    one = flights(random, COUNT)
    other = [dict(event) for event in one]
    PLANTS[plant](random, other)
    file = tmp_path_factory.mktemp("plant") / "spec.yaml"
    file.write_text(DECLARED)
    answer = calibrated(one, other, str(file))
    assert (answer.found.result, loosened(answer)) == ("unexplained", [])
    assert finds(answer, one, other)


@pytest.mark.parametrize("plant", sorted(PLANTS))
@examples(2)
@given(seed=SEEDS)
def test_a_fault_is_told_beside_noise(plant: str, seed: int) -> None:
    random = Random(seed)
    one = flights(random, COUNT, 12)
    other = rerun(random, one)
    PLANTS[plant](random, other)
    answer = calibrated(one, other)
    assert answer.found.result == "unexplained"
    assert proposed(answer) <= {*NOISE, ("order", None)}
    assert answer.found.draft.data["order"] != "unordered"
    assert finds(answer, one, other)


@examples(5)
@given(seed=SEEDS, swaps=st.booleans())
def test_noise_alone_is_explained(seed: int, swaps: bool) -> None:
    """Without a fault, also where no order at all is kept."""
    random = Random(seed)
    one = flights(random, COUNT, 12)
    other = rerun(random, one, keep=None if swaps else "flight")
    answer = calibrated(one, other)
    assert answer.found.result == "proposed"
    assert proposed(answer) == {*NOISE, ("order", None)}
    assert answer.found.draft.data["order"] == ("unordered" if swaps else {"per_key": ["flight"]})


@examples(5)
@given(seed=SEEDS)
def test_a_declared_order_is_given_up_where_it_is_broken_everywhere(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    random = Random(seed)
    one = flights(random, COUNT, 12)
    file: Path = tmp_path_factory.mktemp("everywhere") / "spec.yaml"
    file.write_text(DECLARED)
    answer = calibrated(one, rerun(random, one, keep=None), str(file))
    assert (answer.found.result, answer.found.draft.data["order"]) == ("proposed", "unordered")
