"""Wires settings and specs into a running service. No other module of the service knows the adapters."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from twinstream.adapters.clocks import SystemClock, shared_clock
from twinstream.adapters.credentials import read_secret
from twinstream.adapters.kafka.results import ResultsTopics
from twinstream.adapters.kafka.source import LATEST, KafkaSource, record_reader
from twinstream.adapters.redis.shelf import RedisShelf, tag_of
from twinstream.adapters.redis.store import RedisStore
from twinstream.api.app import create_app, create_matcher_app
from twinstream.api.http.traffic import HttpMeter
from twinstream.api.metrics import MatcherCollector, StatusCollector, exposition, measure_process
from twinstream.api.routes.declared import KafkaLinks
from twinstream.api.routes.operations import obstacles_to_answering, obstacles_to_serving
from twinstream.api.routes.resets import Resetter
from twinstream.api.state.board import Board
from twinstream.api.state.expectation import Expectation
from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.core.events import Side
from twinstream.errors import Fenced, SettingsError, StoreError, TwinstreamError, place_of
from twinstream.explain.receipts.exclusions import exclusions
from twinstream.http_server import Access, bound
from twinstream.intake.falls import Caution, Trail
from twinstream.logs import configure_logging
from twinstream.matcher.memory import collect_rarely
from twinstream.matcher.worker import Ports, Worker
from twinstream.observing import Observers, Resets
from twinstream.processes.child import die_with_parent
from twinstream.processes.pipe import Failure, PipePublisher
from twinstream.processes.shards import ShardStore
from twinstream.processes.supervisor import MatcherProcess, StartArgs
from twinstream.reporting.checks import unread
from twinstream.settings import Settings, time_of
from twinstream.spec.file.evidence import wanted
from twinstream.spec.file.model import Spec
from twinstream.spec.laws.emits import service_refusal
from twinstream.spec.lint.sharding import refusal, refusal_by_key
from twinstream.spec.load import ComparisonFile, digest
from twinstream.spec.trial import changes, tried_beside
from twinstream.status.comparison import Version

MOST_PROCESSES = 64
"""The most shards of a comparison on one host."""


# -- the matcher process -----------------------------------------------------------------------------------


def run_matcher(settings: Settings, spec: Spec, pipe: Connection, brief: StartArgs) -> None:
    """The body of a matcher process: one worker until it is told to stop, or cannot continue."""
    die_with_parent()
    configure_logging()
    collect_rarely()
    if not brief.shard.whole:
        structlog.contextvars.bind_contextvars(shard=brief.shard.number)
    publisher = PipePublisher(pipe)
    try:
        while True:
            worker = make_worker(settings, spec, publisher, brief)
            if not worker.run(publisher.stopping):
                return
            del worker
            gc.collect()  # Objects of the ended comparison must not stay beside the new one.
            brief = brief._replace(left_out=())  # The new one has not fallen over anything.
    except Fenced as error:
        publisher.publish(Failure(reason=f"stopped: {error}"))
    except TwinstreamError as error:
        publisher.publish(Failure(reason=str(error)))
    except (BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, the service must be told
        structlog.get_logger().exception("matcher failed", comparison=spec.name)
        with suppress(OSError):
            publisher.publish(Failure(reason=f"its matcher failed with {place_of(error)}"))


def make_worker(settings: Settings, spec: Spec, publisher: Any, brief: StartArgs) -> Worker:
    """A worker on real Kafka and Redis."""
    source = _make_source(settings, spec, brief.shard)
    shelf = RedisShelf(settings.redis, spec.name, brief.token)
    store, relay = ShardStore(shelf, brief.shard), shelf.relay(brief.shard)
    trail, limit, clock = Trail(brief.trail), settings.memory_limit, SystemClock()
    caution = Caution(trail, brief.left_out, limit)
    secret = partial(_mask_secret, settings, store)
    where = f"{socket.gethostname()} ({settings.bind})"
    kept = (source, store, relay, publisher, clock, secret, source.recall)
    ports = Ports(*kept, shards=store, clock_name=shared_clock())
    return Worker(spec, ports, brief.shard, caution, where)


def _mask_secret(settings: Settings, store: ShardStore) -> bytes:
    return store.mask_secret() if settings.mask_key_file is None else read_secret(settings.mask_key_file)


def _make_source(settings: Settings, spec: Spec, shard: Shard = WHOLE) -> KafkaSource:
    return KafkaSource(
        settings.brokers,
        spec.name if shard.whole else f"{spec.name}.{shard.number}-of-{shard.of}",
        {side: spec.version_of(side).topic for side in Side},
        settings.kafka,
        record_reader(spec),
        headers=spec.reads_marks,
        keys=spec.reads_keys,
        control=spec.followed,
        read_from=_read_from(settings),
    )


def _read_from(settings: Settings) -> int | None:
    """The time in milliseconds from which records are read, which is not negative; None for all of them."""
    if settings.read_from == "latest":
        return LATEST
    moment = time_of(settings.read_from)
    return None if moment is None else max(0, int(moment.timestamp() * 1000))


def _release(settings: Settings, name: str, shard: Shard, token: str) -> None:
    """Release the lease of a fallen matcher; if that fails, the lease expires."""
    with suppress(StoreError):
        store = RedisStore(settings.redis, tag_of(name, shard), token)
        store.release()
        store.close()


# -- the service -------------------------------------------------------------------------------------------


def serve(settings: Settings, files: list[ComparisonFile], announce: Callable[[str], object]) -> None:
    """Run the service until SIGTERM or SIGINT; `announce` gets its address.

    Raises SettingsError if it cannot start.
    """
    configure_logging()
    settings = _of_results(settings)
    specs = [file.spec for file in files]
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SettingsError(f"two comparison files have the name {twice!r}: give each its own")
    for spec in specs:
        if (problem := service_refusal(spec)) is not None:
            raise SettingsError(f"comparison {spec.name!r}: {problem}")
        if settings.read_from != "earliest" and not spec.start.is_cut:
            raise SettingsError(
                f"--from {settings.read_from} leaves out the beginnings of both topics, which `start: "
                f"{spec.start.at}` of {spec.name} compares; declare a cut (offsets, event_time, "
                "barrier or input)"
            )
        refused = refusal_by_key if settings.results else refusal
        reason = refused(spec, settings.shards)
        if reason is not None:
            raise SettingsError(reason)
    _try_settings(settings, specs[0])
    if settings.mask_key_file is not None:
        read_secret(settings.mask_key_file)
    access = Access.of(settings)
    listening = bound(settings.bind)
    host, port = listening.getsockname()[:2]
    scheme = "http" if access.certificate is None else "https"
    at = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{settings.base_path}/"
    announce(f"{at}readyz" if settings.role == "matcher" else at)
    asyncio.run(_serve(settings, files, listening, access))


def _of_results(settings: Settings) -> Settings:
    """The settings, with the role of a process that shows what a Spark job says, if it is one."""
    if settings.results is None:
        if settings.shards > MOST_PROCESSES:
            raise SettingsError(
                f"--shards {settings.shards}: a service divides a comparison over at most {MOST_PROCESSES} "
                "processes; beyond that a Spark job carries it (docs/scale.md)"
            )
        return settings
    if settings.role == "matcher":
        raise SettingsError("--results shows what a Spark job says, and --role matcher shows nothing")
    return settings.model_copy(update={"role": "api"})


def _try_settings(settings: Settings, spec: Spec) -> None:
    """Build the clients once, without connecting, so that a wrong setting is reported at once."""
    try:
        if settings.role != "api":
            _make_source(settings, spec).close()
        if settings.results is None:
            RedisStore(settings.redis, spec.name).close()
        else:
            ResultsTopics(settings.brokers, settings.results, settings.kafka).close()
    except TwinstreamError as error:
        raise SettingsError(str(error)) from None


async def _serve(
    settings: Settings, files: list[ComparisonFile], listening: socket.socket, access: Access
) -> None:
    board = Board()
    specs = [file.spec for file in files]
    for file in files:
        board.expect(expectation(file, settings.shards, specs))
    backend = (Observers if settings.role == "api" else Matchers)(settings, specs, board)
    resets = Resets(settings, board)
    server = access.server(_app(settings, board, access, resets.reset))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    backend.start()
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    renewing = asyncio.create_task(access.renew(server))
    await stop.wait()
    structlog.get_logger().info("stopping", process=os.getpid())
    await backend.stop()
    renewing.cancel()
    resets.stop()
    board.close()
    server.should_exit = True
    await serving


def _app(settings: Settings, board: Board, access: Access, reset: Resetter) -> FastAPI:
    """The application of the process's role, with the metrics that no process of another role has."""
    registry = CollectorRegistry()
    measure_process(registry)
    if settings.role != "api":
        registry.register(MatcherCollector(board.views))
    if settings.role == "matcher":
        return create_matcher_app(board, exposition(registry), keys=access.keys, base_path=settings.base_path)
    registry.register(StatusCollector(board.views))
    return create_app(
        board,
        exposition(registry),
        keys=access.keys,
        base_path=settings.base_path,
        traffic=HttpMeter(registry),
        reset=reset,
        kafka=KafkaLinks(brokers=settings.brokers, record_url=settings.record_url),
        obstacles=obstacles_to_answering if settings.role == "api" else obstacles_to_serving,
    )


class Matchers:
    """The matcher processes of this host."""

    def __init__(self, settings: Settings, specs: list[Spec], board: Board) -> None:
        self._all = [
            MatcherProcess(
                spec.name,
                partial(run_matcher, settings, spec),
                board,
                partial(_release, settings, spec.name, shard),
                shard,
            )
            for spec in specs
            for shard in (Shard(number, settings.shards) for number in range(settings.shards))
        ]

    def start(self) -> None:
        """Start all of them."""
        for matcher in self._all:
            matcher.start()

    async def stop(self) -> None:
        """Have all of them save and end."""
        await asyncio.gather(*(matcher.stop() for matcher in self._all))


def expectation(file: ComparisonFile, shards: int = 1, specs: Sequence[Spec] = ()) -> Expectation:
    """What a board expects of a comparison that so many matchers share, among all those of a service."""
    spec = file.spec
    beside = tried_beside(spec.name)
    live = next((one for one in specs if one.name == beside), spec)
    return Expectation(
        name=spec.name,
        spec_digest=digest(spec),
        order=spec.order_text,
        reference=Version(topic=spec.reference.topic, version=spec.reference.version),
        candidate=Version(topic=spec.candidate.topic, version=spec.candidate.version),
        kinds=tuple(name for name, kind in spec.kinds.items() if not kind.ignore) or ("event",),
        matched_required=spec.evidence.matched,
        seconds_required=spec.evidence.seconds,
        max_staleness_seconds=spec.gate.max_staleness.total_seconds(),
        kinds_required=wanted(spec).kinds,
        undecodable_budget=spec.undecodable.budget,
        ceilings={rule.id: rule.ceiling.count or 0 for rule in spec.known_differences},
        exclusions=exclusions(spec),
        checks=unread(spec),
        shards=shards,
        trial_of=beside,
        changes=changes(live, spec),
        file=file,
    )
