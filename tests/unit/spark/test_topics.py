"""What the driver asks Kafka keeps nobody waiting who does not need the answer."""

from __future__ import annotations

from threading import Event

from twinstream.spark.topics import close_beside


class Stuck:
    """A client of Kafka in a JVM that does not answer."""

    def __init__(self) -> None:
        self.asked, self.answers, self.closed = Event(), Event(), Event()

    def close(self) -> None:
        self.asked.set()
        self.answers.wait(10)
        self.closed.set()


def test_a_client_is_closed_and_nobody_waits_for_a_jvm_that_does_not_answer() -> None:
    client = Stuck()
    close_beside(client)
    assert client.asked.wait(10)
    assert not client.closed.is_set(), "it still waits for the answer"
    client.answers.set()
    assert client.closed.wait(10)
