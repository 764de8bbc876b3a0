"""Matcher processes under their supervisor: real processes, with bodies that the tests give them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from tests.support.statuses import reset
from tests.support.waiting import eventually
from twinstream.core.events import Side
from twinstream.intake.falls import Trail
from twinstream.ports import Batch
from twinstream.processes.pipe import PipePublisher
from twinstream.processes.supervisor import MatcherProcess, RunMatcher, StartArgs, die_with_parent
from twinstream.status.comparison import Publication, Withdrawn

WAIT_SECONDS = 10.0


class Heard:
    """Who is told what matchers publish."""

    def __init__(self) -> None:
        self.published: list[Publication] = []
        self.losses: list[str] = []

    def accept(self, publication: Publication, *_: float) -> None:
        self.published.append(publication)

    def lost(self, _name: str, reason: str, _shard: int) -> None:
        self.losses.append(reason)


class Supervised:
    """A matcher process under its supervisor, on an event loop in a thread of its own."""

    def __init__(self, body: RunMatcher) -> None:
        self.heard = Heard()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._body = body

    async def _start(self) -> None:
        self._matcher = MatcherProcess("test", self._body, self.heard, lambda _: None)
        self._matcher.start()

    async def _stop(self) -> None:
        await self._matcher.stop()

    async def _nothing(self) -> None:
        return None

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(WAIT_SECONDS)

    def loop_goes_on(self) -> None:
        """The event loop does what it is asked for."""
        asyncio.run_coroutine_threadsafe(self._nothing(), self._loop).result(WAIT_SECONDS)

    def stop(self) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(2 * WAIT_SECONDS)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(WAIT_SECONDS)
            if not self._thread.is_alive():
                self._loop.close()


@contextmanager
def supervised(body: RunMatcher) -> Iterator[Supervised]:
    running = Supervised(body)
    running.start()
    try:
        yield running
    finally:
        running.stop()


def withdrawn(number: int) -> Withdrawn:
    return Withdrawn(id=str(number), comparison="test")


def _stops_within_a_message(pipe: Connection, _: StartArgs) -> None:
    """Send one message and a part of another, and the rest of it when a word comes."""
    read, written = os.pipe()
    with Connection(written, readable=False) as end:
        publisher = PipePublisher(end)
        for number in range(2):
            publisher.publish(withdrawn(number))
    both = os.read(read, 100_000)
    os.write(pipe.fileno(), both[:-5])
    pipe.recv_bytes()
    os.write(pipe.fileno(), both[-5:])


def test_a_matcher_that_is_frozen_within_a_message_does_not_hold_up_its_supervisor() -> None:
    with supervised(_stops_within_a_message) as running:
        eventually(lambda: running.heard.published, what="the first message is heard")
        running.loop_goes_on()
        assert running.heard.published == [withdrawn(0)]
    assert running.heard.published == [withdrawn(0), withdrawn(1)]


def _sends_long_and_short_ones(pipe: Connection, _: StartArgs) -> None:
    publisher = PipePublisher(pipe)
    for number in range(20):
        publisher.publish(Withdrawn(id="x" * (number % 4 * 300_000 + number), comparison="test"))
    while not publisher.stopping(1.0):
        pass


def test_messages_of_any_length_are_heard_whole_and_in_their_order() -> None:
    with supervised(_sends_long_and_short_ones) as running:
        eventually(lambda: len(running.heard.published) == 20, what="all are heard")
    lengths = [len(each.id) for each in running.heard.published if isinstance(each, Withdrawn)]
    assert lengths == [number % 4 * 300_000 + number for number in range(20)]


def _falls(pipe: Connection, _: StartArgs) -> None:
    PipePublisher(pipe).publish(withdrawn(0))


def _dies_over_one_batch(pipe: Connection, brief: StartArgs) -> None:
    """Be killed while a batch is taken, by whoever does not leave it out; then begin anew, and say so."""
    publisher = PipePublisher(pipe)
    publisher.publish(withdrawn(len(brief.left_out)))
    if not brief.left_out:
        Trail(brief.trail).enter(Batch(Side.RIGHT, 0, [b"", b""], [7, 8], [0, 0]))
        os.kill(os.getpid(), signal.SIGKILL)
    publisher.publish(reset())


def test_after_three_falls_over_one_batch_a_matcher_leaves_it_out_until_the_comparison_begins_anew() -> None:
    with supervised(_dies_over_one_batch) as running:
        told = [*map(withdrawn, (0, 0, 0, 1)), reset(), withdrawn(0)]
        eventually(lambda: len(running.heard.published) >= len(told), seconds=30, what="six things are told")
        assert running.heard.published[: len(told)] == told


def _is_killed_further_on_each_time(pipe: Connection, brief: StartArgs) -> None:
    publisher = PipePublisher(pipe)
    publisher.publish(withdrawn(len(brief.left_out)))
    first = time.monotonic_ns()
    Trail(brief.trail).enter(Batch(Side.RIGHT, 0, [b""], [first], [0]))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_matcher_that_is_killed_in_different_batches_leaves_nothing_out() -> None:
    with supervised(_is_killed_further_on_each_time) as running:
        eventually(lambda: len(running.heard.published) >= 4, seconds=30, what="it was killed three times")
        assert running.heard.published[:4] == [withdrawn(0)] * 4


@contextmanager
def no_file_left() -> Iterator[None]:
    """This process may open no file more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_matcher_that_cannot_be_started_again_is_tried_until_it_can() -> None:
    with supervised(_falls) as running:
        eventually(lambda: running.heard.losses, what="it falls")
        with no_file_left():
            eventually(
                lambda: (
                    "its matcher process cannot be started: Too many open files; it is tried again"
                    in running.heard.losses
                ),
                what="it cannot be started",
            )
        before = len(running.heard.published)
        eventually(lambda: len(running.heard.published) > before, what="it is started again")


def _goes_without_notice(folder: Path) -> None:
    """A service that is killed while the process that it started comes up."""
    multiprocessing.get_context("spawn").Process(target=_comes_up_late, args=(folder, os.getpid())).start()
    time.sleep(60)


def _comes_up_late(folder: Path, parent: int) -> None:
    (folder / "born").write_text(str(os.getpid()))
    while os.getppid() == parent:
        time.sleep(0.01)
    die_with_parent()
    (folder / "works").touch()


def _lives(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_a_matcher_whose_service_was_killed_while_it_came_up_does_nothing(tmp_path: Path) -> None:
    service = multiprocessing.get_context("spawn").Process(target=_goes_without_notice, args=(tmp_path,))
    service.start()
    born = tmp_path / "born"
    matcher = int(eventually(lambda: born.exists() and born.read_text(), seconds=60, what="it comes up"))
    assert _lives(matcher)
    service.kill()
    service.join()
    eventually(lambda: not _lives(matcher), what="it ends")
    assert not (tmp_path / "works").exists()
