"""A comparison that is dealt out by key gives, all shards together, the answer of the whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.examples import line
from tests.support.worlds import World, worlds
from twinstream.core.events import Side
from twinstream.offline.check import check
from twinstream.ports import Line
from twinstream.spark.matcher.addresses import Addresses
from twinstream.spec.codec.codec import Codec
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.sharding import refusal_by_key

EQUIVALENT = "EQUIVALENT"
IDENTITIES = st.sampled_from([None, ["k"], ["k", "n"], ["k", "n", "type", "j"]])


def key_of(spec: Spec) -> set[str]:
    """The fields that keep events apart."""
    return {*(decision.field for decision in spec.decisions if decision.what == "order")}


def lines_of(world: World) -> list[Line]:
    """The lines of a world without explicit ends."""
    counts = Counter[Side]()
    found = []
    for number, step in enumerate((step for step in world.steps if step.event is not None), 1):
        found.append(line(step.side, step.event, counts[step.side], number))
        counts[step.side] += 1
    return found


def dealt(spec: Spec, lines: list[Line], shards: int) -> list[dict[str, Any]]:
    """The answers of the shards."""
    addresses = Addresses(Codec(spec), shards)
    mine: list[list[Line]] = [[] for _ in range(shards)]
    for one in lines:
        (number,) = addresses.of([one.record], one.side)
        mine[number].append(one)
    return [check(spec, part, allow_empty=True) for part in mine]


def summed(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """What must be the same of all shards together and of the whole."""
    verdicts = {answer["verdict"] for answer in answers}
    kinds = Counter[str]()
    accounts = {side: Counter[str]() for side in ("reference", "candidate")}
    for answer in answers:
        kinds.update(answer["divergences"]["by_kind"])
        for side, counts in accounts.items():
            counts.update(answer["accounts"][side])
    return {
        "equivalent": verdicts == {EQUIVALENT},
        "kinds": kinds,
        "accounts": accounts,
        "matched": sum(answer["matched"] for answer in answers),
        "ids": {example["id"] for answer in answers for example in answer["examples"]},
    }


@given(worlds(), st.integers(2, 5), IDENTITIES)
def test_shards_by_key_give_the_answer_of_the_whole(
    world: World, shards: int, identity: list[str] | None
) -> None:
    spec = world.driver(**({} if identity is None else {"identity": identity})).spec
    assume(refusal_by_key(spec, shards) is None)
    lines = lines_of(world)
    parts, whole = summed(dealt(spec, lines, shards)), summed([check(spec, lines, allow_empty=True)])
    if identity is not None and not key_of(spec) <= {*identity}:
        # An event whose key has changed is `missing` in one shard and `extra` in another.
        parts, whole = ({name: one[name] for name in ("equivalent", "matched")} for one in (parts, whole))
    assert parts == whole
