import tracemalloc

from twinstream.core.matching.buckets import Bucket


def filled(*numbers: int) -> Bucket[str]:
    bucket = Bucket[str]()
    for number in numbers:
        bucket.add(number, f"event {number}")
    return bucket


def test_an_empty_bucket_has_no_oldest_event():
    bucket = filled()
    assert bucket.oldest() is None
    assert bucket.number is None
    assert len(bucket) == 0
    assert list(bucket) == []


def test_the_oldest_is_the_one_of_the_smallest_number():
    assert filled(3, 5, 8).oldest() == (3, "event 3")


def test_number_and_event_can_be_read_without_a_call():
    bucket = filled(3, 5)
    assert (bucket.number, bucket.event) == bucket.oldest()


def test_the_next_one_follows_when_the_oldest_is_discarded():
    bucket = filled(3, 5, 8)
    bucket.discard(3)
    assert bucket.oldest() == (5, "event 5")
    bucket.check()


def test_an_event_that_was_discarded_behind_the_oldest_is_passed_over():
    bucket = filled(3, 5, 8, 9)
    for number in (3, 8, 5):
        bucket.discard(number)
    assert bucket.oldest() == (9, "event 9")
    bucket.check()


def test_events_come_out_in_the_order_in_which_they_arrived():
    bucket = filled(*range(0, 40, 2))
    for number in (0, 2, 20, 38):
        bucket.discard(number)
    bucket.add(41, "event 41")
    assert [number for number, _ in bucket] == [*range(4, 20, 2), *range(22, 38, 2), 41]


def test_discarding_a_number_that_is_not_there_changes_nothing():
    for numbers in ((), (3,), (3, 5)):
        bucket = filled(*numbers)
        bucket.discard(4)
        assert [number for number, _ in bucket] == list(numbers)
        bucket.check()


def test_a_bucket_that_was_emptied_can_be_filled_again():
    bucket = filled(3)
    for number in range(4, 60):
        bucket.add(number, f"event {number}")
        bucket.discard(number - 1)
        assert bucket.oldest() == (number, f"event {number}")
        bucket.check()
    bucket.discard(59)
    assert not bucket
    bucket.add(60, "event 60")
    assert bucket.oldest() == (60, "event 60")


def test_discarding_tells_whether_an_event_is_left():
    assert not filled().discard(3)
    assert filled(3).discard(4)
    bucket = filled(3, 5, 8)
    assert [bucket.discard(number) for number in (5, 3, 3, 8, 8)] == [True, True, True, False, False]


def test_none_is_an_event_like_any_other():
    bucket = Bucket[None]()
    bucket.add(1, None)
    bucket.add(2, None)
    bucket.discard(1)
    assert bucket.oldest() == (2, None)


def test_a_bucket_that_has_drained_gives_its_memory_back():
    for survivors in ({9_999}, {0}, {5_000, 5_001}):
        tracemalloc.start()
        bucket = filled(*range(10_000))
        full = tracemalloc.get_traced_memory()[0]
        for number in range(10_000):
            if number not in survivors:
                bucket.discard(number)
        assert tracemalloc.get_traced_memory()[0] < full / 100
        tracemalloc.stop()
        bucket.check()
