"""What is remembered of keys, and what a checkpoint has of it."""

from __future__ import annotations

from random import Random

import pytest

from twinstream.core.checks.memory import Memory, merged


@pytest.mark.parametrize("seed", range(5))
def test_a_whole_state_and_the_changes_after_it_are_the_whole_state(seed: int) -> None:
    random = Random(seed)
    memory = Memory(8)
    states = [memory.state(whole=True)]
    for step in range(300):
        memory.put(bytes([random.randrange(20)]), (step, random.random() < 0.5))
        if random.random() < 0.1:
            list(memory.forget_while(lambda value, step=step: value[0] < step - 6))
        if random.random() < 0.2:
            states.append(memory.state(whole=random.random() < 0.2))
            joined, whole = merged(states), memory.state(whole=True)
            assert joined == whole, f"seed {seed}, step {step}"
            states = states if random.random() < 0.9 else [joined]


def test_a_restored_memory_goes_on_as_the_one_before() -> None:
    memory, restored = Memory(2), Memory(2)
    for key in (b"a", b"b", b"a"):
        memory.put(key, (key.decode(),))
    restored.restore(memory.state(whole=True))
    assert restored.put(b"c", ("c",)) == memory.put(b"c", ("c",)) == ("b",)
    assert restored.state(whole=False) == memory.state(whole=False)


def test_nothing_remembered_is_a_state_too() -> None:
    restored = Memory(2)
    restored.restore(merged([Memory(2).state(whole=True)] * 2))
    assert len(restored) == 0
