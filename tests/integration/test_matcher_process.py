"""Matcher processes under their supervisor: real processes, with bodies that the tests give them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.statuses import reset
from tests.support.waiting import eventually
from twinstream.core.events import Side
from twinstream.intake.falls import Trail
from twinstream.ports import Batch
from twinstream.processes.child import die_with_parent
from twinstream.processes.pipe import PipePublisher
from twinstream.processes.supervisor import MatcherProcess, RunMatcher, StartArgs
from twinstream.status.comparison import Publication, Withdrawn

TIMES, EVERY_SECONDS = 1500, 0.02


class Heard:
    """Who is told what matchers publish."""

    def __init__(self) -> None:
        self.published: list[Publication] = []
        self.losses: list[str] = []

    def accept(self, publication: Publication, *_: float) -> None:
        self.published.append(publication)

    def lost(self, _name: str, reason: str, _shard: int) -> None:
        self.losses.append(reason)


@asynccontextmanager
async def supervised(body: RunMatcher) -> AsyncIterator[Heard]:
    """A matcher process under its supervisor, on the event loop of the test."""
    heard = Heard()
    matcher = MatcherProcess("test", body, heard, lambda _: None)
    matcher.start()
    try:
        yield heard
    finally:
        await matcher.stop()


async def until(look: Callable[[], object], what: str) -> None:
    """Let the event loop go on until something is true, as `eventually` does."""
    for _ in range(TIMES):
        if look():
            return
        await asyncio.sleep(EVERY_SECONDS)
    raise AssertionError(what)


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that runs on an event loop of its own."""

    def run() -> None:
        asyncio.run(test())

    return run


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


@on_a_loop
async def test_a_matcher_that_is_frozen_within_a_message_does_not_hold_up_its_supervisor() -> None:
    async with supervised(_stops_within_a_message) as heard:
        await until(lambda: heard.published, "the first message is heard")
        await asyncio.sleep(0)
        assert heard.published == [withdrawn(0)]
    assert heard.published == [withdrawn(0), withdrawn(1)]


def _sends_long_and_short_ones(pipe: Connection, _: StartArgs) -> None:
    publisher = PipePublisher(pipe)
    for number in range(20):
        publisher.publish(Withdrawn(id="x" * (number % 4 * 300_000 + number), comparison="test"))
    while not publisher.stopping(1.0):
        pass


@on_a_loop
async def test_messages_of_any_length_are_heard_whole_and_in_their_order() -> None:
    async with supervised(_sends_long_and_short_ones) as heard:
        await until(lambda: len(heard.published) == 20, "all are heard")
    lengths = [len(each.id) for each in heard.published if isinstance(each, Withdrawn)]
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


@on_a_loop
async def test_after_three_falls_over_one_batch_a_matcher_leaves_it_out_until_the_comparison_begins_anew():
    told = [*map(withdrawn, (0, 0, 0, 1)), reset(), withdrawn(0)]
    async with supervised(_dies_over_one_batch) as heard:
        await until(lambda: len(heard.published) >= len(told), "six things are told")
        assert heard.published[: len(told)] == told


@on_a_loop
async def test_a_matcher_that_cannot_be_started_again_is_tried_until_it_can() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = "its matcher process cannot be started: Too many open files; it is tried again"
    async with supervised(_falls) as heard:
        await until(lambda: heard.losses, "it falls")
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            await until(lambda: said in heard.losses, "it cannot be started")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        before = len(heard.published)
        await until(lambda: len(heard.published) > before, "it is started again")


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


def _is_killed_further_on_each_time(pipe: Connection, brief: StartArgs) -> None:
    PipePublisher(pipe).publish(withdrawn(len(brief.left_out)))
    Trail(brief.trail).enter(Batch(Side.RIGHT, 0, [b""], [time.monotonic_ns()], [0]))
    os.kill(os.getpid(), signal.SIGKILL)


@on_a_loop
async def test_a_matcher_that_is_killed_in_different_batches_leaves_nothing_out() -> None:
    async with supervised(_is_killed_further_on_each_time) as heard:
        await until(lambda: len(heard.published) >= 4, "it was killed three times")
        assert heard.published[:4] == [withdrawn(0)] * 4
