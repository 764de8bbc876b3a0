"""What is saved beside the state of a comparison when it is divided and joined."""

from __future__ import annotations

import pytest

from tests.support.workers import Bench
from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.moving import divided_checkpoint, joined_checkpoint, state_of
from twinstream.core.events import Side
from twinstream.errors import CheckpointError
from twinstream.ports import Stored
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.addresses import Addresses
from twinstream.spec.load import loads


def saved(bench: Bench) -> Stored:
    """What a worker has saved: one event of each of six keys waits."""
    bench.write_both(*((f"k{n % 6}", n) for n in range(60)))
    bench.write(Side.LEFT, *((f"k{n}", 100 + n) for n in range(6)))
    worker = bench.started()
    bench.run(worker)
    worker.stop()
    return bench.storage.stored


def shards_of(bench: Bench, stored: Stored, count: int) -> list[Stored]:
    return divided_checkpoint(stored, Addresses(Codec(loads(bench.spec)), count).of_stored, count)


def test_one_shard_has_the_state_as_it_is() -> None:
    bench = Bench()
    stored = saved(bench)
    (one,) = shards_of(bench, stored, 1)
    assert state_of(one) == state_of(stored) == state_of(joined_checkpoint([one]))


def test_shards_share_what_waits_and_the_first_has_the_rest() -> None:
    bench = Bench()
    stored = saved(bench)
    states = [state_of(one)[1] for one in shards_of(bench, stored, 4)]
    waiting = [len(state["held"][Side.LEFT]["records"]) for state in states]
    assert sum(waiting) == 6
    assert max(waiting) < 6
    assert [state["matched"] for state in states] == [60, 0, 0, 0]
    assert [state["accounts"][Side.LEFT]["consumed"] for state in states] == [60 + waiting[0], *waiting[1:]]
    back = state_of(joined_checkpoint(shards_of(bench, stored, 4)))
    for part, before in zip(back, state_of(stored), strict=True):
        assert {name: part[name] for name in before if name not in ("seen", "held")} == {
            name: before[name] for name in before if name not in ("seen", "held")
        }


@pytest.mark.parametrize(
    ("starts", "joined"),
    [
        ([[[0, 0, 5], [1, 0, 7]], [[1, 0, 7]]], [[1, 0, 7]]),
        ([[[0, 0, 5]], []], []),
        ([[[0, 0, 5]], None], None),
        ([None, None], None),
    ],
)
def test_a_beginning_of_which_one_shard_has_read_an_event_is_read(
    starts: list[list[list[int]] | None], joined: list[list[int]] | None
) -> None:
    bench = Bench()
    shards = shards_of(bench, saved(bench), 2)
    heads = [
        {**checkpoint.decode(one.head), "start": start} for one, start in zip(shards, starts, strict=True)
    ]
    saved_so = [one._replace(head=checkpoint.encode(head)) for one, head in zip(shards, heads, strict=True)]
    assert checkpoint.decode(joined_checkpoint(saved_so).head)["start"] == joined


def test_shards_at_different_positions_are_not_joined() -> None:
    bench = Bench()
    one, other = shards_of(bench, saved(bench), 2)
    head = checkpoint.decode(other.head)
    head["positions"] = [[[0, 1]], [[0, 2]]]
    with pytest.raises(CheckpointError, match="its shards have come to different positions"):
        joined_checkpoint([one, other._replace(head=checkpoint.encode(head))])


@pytest.mark.parametrize(
    ("part", "held", "named"),
    [
        ("checks", [1], "`checks`"),
        ("replays", {"batches": 1}, "`duplicates: {policy: replays}`"),
        ("known_ceilings", [1], "`known_differences`"),
    ],
)
def test_what_belongs_to_no_key_is_refused_by_name(part: str, held: object, named: str) -> None:
    bench = Bench()
    stored = saved(bench)
    head, state = state_of(stored)
    more = Stored(1, checkpoint.encode(head), [checkpoint.encode({**state, part: held})], {})
    with pytest.raises(CheckpointError, match="parts of no single key") as refused:
        shards_of(bench, more, 2)
    assert named in str(refused.value)
    assert len(shards_of(bench, more, 1)) == 1


def test_a_comparison_that_reads_again_what_was_lost_is_not_moved() -> None:
    bench = Bench()
    stored = saved(bench)
    head = {**checkpoint.decode(stored.head), "rereading": {"left": 1}}
    with pytest.raises(CheckpointError, match="reads again what its store had lost"):
        shards_of(bench, stored._replace(head=checkpoint.encode(head)), 2)
