"""A comparison that is dealt out by key gives, all shards together, the answer of the whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.examples import line
from tests.support.orders import NO_KINDS, Order, key_fields, orders, spec_of
from tests.support.statuses import START, expectation, status
from tests.support.streams import record
from tests.support.worlds import World, worlds
from twinstream.api.state.merging import merged
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.events import Side
from twinstream.offline.check import Check
from twinstream.ports import Line
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.addresses import Addresses
from twinstream.spec.decode.headers import attempt_headers
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.sharding import refusal_by_key
from twinstream.status.common import DIVERGENCE_KINDS
from twinstream.status.comparison import CheckStatus, ExplainedCount, ShardStatus

PARTITIONS = 3
IDENTITIES = st.sampled_from([None, None, None, ["k"], ["k", "n"], ["k", "m", "n"], ["k", "m", "type", "j"]])
RULES = st.builds(
    lambda kinds, where, most: {
        "when": {"divergences": kinds, "where": where},
        "ceiling": {"count": most},
        "owner": "me",
        "expires": "2999-01-01",
    },
    st.lists(st.sampled_from(DIVERGENCE_KINDS), min_size=1, max_size=5, unique=True),
    st.sampled_from([{}, {}, {"v": 0}, {"type": "a"}]),
    st.sampled_from([1, 1, 1, 2, 3]),
)


CHECKS: list[dict[str, Any]] = [
    {"once": ["k"], "horizon": "1h"},
    {"once": ["k", "m", "v"], "horizon": "1h"},
    {"once": ["k", "m", "ts", "type"], "horizon": "1h"},
    {"ascending": "v", "per": ["k"]},
    {"ascending": "v", "per": ["m", "k"]},
    {"ascending": "v"},
    {"key_partition": [], "partitions": PARTITIONS},
    {"key_partition": ["k"], "partitions": PARTITIONS},
    {"not_null": ["m"]},
]


@st.composite
def declared(draw: st.DrawFn) -> dict[str, Any]:
    """What a file may declare beside its order."""
    rules = draw(st.lists(RULES, min_size=1, max_size=3) | st.just([]))
    found: dict[str, Any] = {"known_differences": [{**rule, "id": f"R-{n}"} for n, rule in enumerate(rules)]}
    if (identity := draw(IDENTITIES)) is not None:
        found["identity"] = identity
    checks = draw(st.lists(st.sampled_from(CHECKS), max_size=2))
    return found | {"checks": [{"id": f"c{number}", **check} for number, check in enumerate(checks)]}


def parts_identities(spec: Spec, lines: list[Line], shards: int) -> bool:
    """Whether events of one identity go to several shards: their keys or their kinds differ."""
    codec, found = Codec(spec), defaultdict[Any, set[int]](set)
    if codec.identity is None:
        return False
    addresses = Addresses(codec, shards)
    for one in lines:
        assert one.record is not None
        found[codec.identity(one.record)].update(addresses.of([one.record], one.side))
    return any(len(numbers) > 1 for numbers in found.values())


def lines_of(spec: Spec, world: World, random: Random) -> list[Line]:
    """The lines of a world without explicit ends, as its partitions may be read.

    Events that may depend on each other share a partition.
    """
    partition_of = Addresses(Codec(spec), PARTITIONS)
    queues = defaultdict[tuple[Side, int], list[bytes]](list)
    for side, event, _ in world.steps:
        if event is not None:
            (partition,) = partition_of.of([record(event)], side)
            queues[side, partition].append(record(event))
    turns = [place for place, queue in queues.items() for _ in queue]
    random.shuffle(turns)
    counts = Counter[tuple[Side, int]]()
    lines = []
    for number, (side, partition) in enumerate(turns, 1):
        offset = counts[side, partition]
        counts[side, partition] += 1
        lines.append(Line(side, queues[side, partition][offset], partition, offset, 0, "", number, number))
    return lines


class Answer:
    """What one comparison says of some lines, as `check` and as a shard."""

    def __init__(self, spec: Spec, lines: list[Line]) -> None:
        run = Check(spec)
        for one in lines:
            run.feed(one)
        self.found = run.finish(allow_empty=True)
        known = run.comparison.differences.known.by_choices
        explained = [
            ExplainedCount(rules=list(rules), count=count, final=count) for rules, count in known.items()
        ]
        checks = [CheckStatus.model_validate(one) for one in self.found.get("checks", ())]
        said = status(verdict=self.found["verdict"], checks=checks)
        self.shard = ShardStatus(status=said, explained=explained)


def dealt(spec: Spec, lines: list[Line], shards: int) -> list[Answer]:
    """The answers of the shards."""
    addresses = Addresses(Codec(spec), shards)
    mine: list[list[Line]] = [[] for _ in range(shards)]
    for one in lines:
        (number,) = addresses.of([one.record], one.side)
        mine[number].append(one)
    return [Answer(spec, part) for part in mine]


def summed(spec: Spec, answers: list[Answer]) -> dict[str, Any]:
    """What must be the same of all shards together and of the whole."""
    ceilings = {rule.id: rule.ceiling.count or 0 for rule in spec.known_differences}
    expected = expectation(shards=len(answers), ceilings=ceilings, matched_required=0, seconds_required=0)
    whole = merged(expected, {number: answer.shard for number, answer in enumerate(answers)}, START)
    found = [answer.found for answer in answers]
    kinds = Counter[str]()
    accounts = {side: Counter[str]() for side in ("reference", "candidate")}
    for one in found:
        kinds.update(one["divergences"]["by_kind"])
        for side, counts in accounts.items():
            counts.update(one["accounts"][side])
    return {
        "verdict": whole.verdict,
        "checks": [
            [(one.state, one.checked, one.violations) for one in (check.reference, check.candidate) if one]
            for check in whole.checks
        ],
        "kinds": kinds,
        "accounts": accounts,
        "explained": Counter(whole.explained_by_rule).total(),
        "matched": sum(one["matched"] for one in found),
        "ids": {example["id"] for one in found for example in one["examples"]},
    }


def mostly_by_key(kinds: Sequence[str]) -> st.SearchStrategy[Order]:
    """Orders of which two thirds can be dealt out by key."""
    within_keys = st.builds(lambda key, inner: {"by_key": key, "inner": inner}, key_fields, orders(kinds, 2))
    return st.one_of(st.just("unordered"), within_keys, orders(kinds))


@given(
    worlds(faults=4, ordered=mostly_by_key), st.integers(2, 5), declared(), st.randoms(use_true_random=False)
)
def test_shards_by_key_give_the_answer_of_the_whole(
    world: World, shards: int, more: dict[str, Any], random: Random
) -> None:
    spec = world.driver(**more).spec
    assume(refusal_by_key(spec, shards) is None)
    lines = lines_of(spec, world, random)
    one = Answer(spec, lines)
    parts, whole = summed(spec, dealt(spec, lines, shards)), summed(spec, [one])
    if parts_identities(spec, lines, shards):
        # An event whose key or kind has changed is `missing` in one shard and `extra` in another.
        same = {"verdict", "matched", "checks"}
    elif spec.known_differences and whole["verdict"] == "DIVERGED":
        # Beyond a ceiling the shards explain more than the whole.
        same = {"verdict", "matched", "checks"}
    else:
        same = parts.keys() | whole.keys()
    assert {name: parts[name] for name in same} == {name: whole[name] for name in same}


def test_attempts_that_agree_in_each_shard_may_not_agree_together() -> None:
    """Why a job with `replays` has one shard: two executions wrote one row each, and none of them both."""
    spec = spec_of({"per_key": ["k"]}, NO_KINDS, duplicates={"policy": "replays"})
    wrote = [(Side.LEFT, "one"), (Side.LEFT, "one"), (Side.RIGHT, "one"), (Side.RIGHT, "other")]
    found = [
        line(side, {"k": number % 2}, number % 2, number + 1)._replace(
            headers=attempt_headers(Attempt("q", 1, execution, 0, 0))
        )
        for number, (side, execution) in enumerate(wrote)
    ]
    whole, parts = Answer(spec, found), dealt(spec, found, 64)
    assert whole.found["verdict"] == "INCONCLUSIVE"
    assert Counter(part.found["matched"] for part in parts)[1] == 2
    assert {part.found["verdict"] for part in parts} == {"EQUIVALENT"}
