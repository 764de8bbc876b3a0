"""A bucket against a plain list, whatever comes and goes."""

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.matching.buckets import Bucket

WHAT = st.sampled_from(["add", "front", "middle", "back", "absent"])
OPERATIONS = st.lists(st.tuples(WHAT, st.integers(0, 99)))


class Plain:
    """The same by a scan."""

    def __init__(self):
        self.entries = []
        self.next = 0

    def number(self, what, place):
        """The number that an operation is about."""
        if what == "add" or what == "absent" or not self.entries:
            return self.next + place % 3
        return self.entries[{"front": 0, "middle": place % len(self.entries), "back": -1}[what]][0]


def step(bucket, plain, what, place):
    number = plain.number(what, place)
    if what == "add":
        bucket.add(number, str(number))
        plain.entries.append((number, str(number)))
        plain.next = number + 1
    else:
        bucket.discard(number)
        plain.entries = [entry for entry in plain.entries if entry[0] != number]


def compare(bucket, plain):
    assert bucket.oldest() == (plain.entries[0] if plain.entries else None)
    assert len(bucket) == len(plain.entries)
    assert list(bucket) == plain.entries
    bucket.check()


@given(OPERATIONS)
def test_a_bucket_agrees_with_a_list_after_every_operation(operations):
    bucket, plain = Bucket(), Plain()
    for what, place in operations:
        step(bucket, plain, what, place)
        compare(bucket, plain)


@given(st.integers(0, 200), st.permutations(range(200)), st.integers(0, 3))
def test_a_bucket_agrees_with_a_list_while_it_drains_in_any_order(size, order, between):
    bucket, plain = Bucket(), Plain()
    for _ in range(size):
        step(bucket, plain, "add", 0)
    for number in order:
        bucket.discard(number)
        plain.entries = [entry for entry in plain.entries if entry[0] != number]
        for place in range(between if number % 4 == 0 else 0):
            step(bucket, plain, "add", place)
        compare(bucket, plain)
