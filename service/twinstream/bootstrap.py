"""Where everything is wired: settings and specs become a running service. Nothing else knows adapters."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version as installed_version
from multiprocessing.connection import Connection
from typing import Any, TextIO, cast

import structlog
import uvicorn
from confluent_kafka import Message
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from twinstream.adapters.kafka import LATEST, KafkaSource, whole_record
from twinstream.adapters.memory import SystemClock
from twinstream.adapters.prometheus import StatusCollector, exposition
from twinstream.adapters.prometheus_http import HttpMeter, measure_process
from twinstream.adapters.redis import RedisStore
from twinstream.adapters.redis_shelf import RedisShelf
from twinstream.adapters.tls import Certificate
from twinstream.adapters.token_file import TokenFile
from twinstream.api.app import create_app
from twinstream.api.board import Board
from twinstream.api.expectation import Expectation
from twinstream.api.mailbox import SEND_BUFFER_BYTES
from twinstream.core.events import Side
from twinstream.core.sharding import WHOLE, Shard
from twinstream.errors import Fenced, SettingsError, StoreError, TwinstreamError
from twinstream.runtime.poison import Caution, Trail
from twinstream.runtime.redealing import Redealing
from twinstream.runtime.shards import ShardStore
from twinstream.runtime.supervisor import Brief, Failure, MatcherProcess, PipePublisher, ignore_terminal
from twinstream.runtime.worker import Worker
from twinstream.settings import Settings, split_address, time_of
from twinstream.spec.evidence import wanted
from twinstream.spec.load import digest
from twinstream.spec.model import Spec
from twinstream.spec.sharding import Part, refusal
from twinstream.status import Reset, ResetRefused, ResetRequest, Version

GC_THRESHOLD = 200_000
"""Matching makes no cycles: looking for them after every 700 objects costs a tenth of the time."""
RENEW_SECONDS = 10.0
"""How soon a renewed certificate is in use; it is renewed days before the former ends."""
_PR_SET_PDEATHSIG = 1


class _StandardError:
    """Standard error, which may be gone: a log that nobody reads any more stops nothing."""

    def write(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def configure_logging() -> None:
    """JSON lines on standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _StandardError())),
    )


# -- the matcher process -----------------------------------------------------------------------------------


def run_matcher(settings: Settings, spec: Spec, pipe: Connection, brief: Brief) -> None:
    """The body of a matcher process: one worker until it is told to stop, or cannot go on."""
    _die_with_parent()
    ignore_terminal()
    configure_logging()
    gc.set_threshold(GC_THRESHOLD, 50, 100)
    if not brief.shard.whole:
        structlog.contextvars.bind_contextvars(shard=brief.shard.number)
    publisher = PipePublisher(pipe)
    try:
        while make_worker(settings, spec, publisher, brief).run(publisher.stopping, publisher.asked):
            gc.collect()  # What was kept of the comparison that has ended is not kept beside the new one.
    except Fenced as error:
        publisher.publish(Failure(reason=f"stopped: {error}"))
    except TwinstreamError as error:
        publisher.publish(Failure(reason=str(error)))
    except (BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, the service must be told
        structlog.get_logger().exception("matcher failed", comparison=spec.name)
        with suppress(OSError):
            publisher.publish(Failure(reason=f"its matcher failed with {type(error).__name__}: {error}"))


def make_worker(settings: Settings, spec: Spec, publisher: Any, brief: Brief) -> Worker:
    """A worker on real Kafka and Redis."""
    source, store = _make_source(settings, spec, brief.shard), _make_store(settings, spec, brief)
    caution = Caution(Trail(brief.trail), brief.suspicion, settings.memory_limit)
    part = Part(brief.shard, settings.shard_by)
    return Worker(spec, source, store, publisher, SystemClock(), caution, part, store.exchange, store)


def _make_store(settings: Settings, spec: Spec, brief: Brief) -> ShardStore:
    shelf = RedisShelf(settings.redis, spec.name, brief.token)
    return ShardStore(shelf, spec.name, brief.shard, Redealing(spec, settings.shard_by).deal)


def _make_source(settings: Settings, spec: Spec, shard: Shard = WHOLE) -> KafkaSource:
    return KafkaSource(
        settings.brokers,
        spec.name if shard.whole else f"{spec.name}.{shard.number}-of-{shard.of}",
        {side: spec.version_of(side).topic for side in Side},
        settings.kafka,
        whole_record if spec.whole else Message.value,
        headers=spec.reads_marks,
        control=spec.followed,
        read_from=_read_from(settings),
    )


def _read_from(settings: Settings) -> int | None:
    """The time in milliseconds from which on records are read; None for all of them."""
    if settings.read_from == "latest":
        return LATEST
    moment = time_of(settings.read_from)
    return None if moment is None else int(moment.timestamp() * 1000)


def _die_with_parent() -> None:
    """Have the kernel kill this process when the service is gone, however it went."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _release(settings: Settings, name: str, shard: Shard, token: str) -> None:
    """Hand the lease of a fallen matcher back; if that fails, it ends by itself."""
    with suppress(StoreError):
        shelf = RedisShelf(settings.redis, name, token)
        layout = shelf.layout()
        if layout.shards == shard.of:
            store = shelf.store(layout, shard.number)
            store.release()
            store.close()
        shelf.close()


# -- the service -------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """Leaves signals to the service, which has matchers to stop before HTTP."""

    def capture_signals(self) -> Any:
        return nullcontext()


def serve(settings: Settings, specs: list[Spec]) -> None:
    """Run the service until SIGTERM or SIGINT. Raises SettingsError where it cannot start."""
    configure_logging()
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SettingsError(f"two comparison files have the name {twice!r}: give each its own")
    for spec in specs:
        if settings.read_from != "earliest" and not spec.start.is_cut:
            raise SettingsError(
                f"--from {settings.read_from} leaves out the beginnings of both topics, which `start: "
                f"{spec.start.at}` of {spec.name} compares; declare a cut (offsets, event_time, "
                "barrier or input)"
            )
        if reason := refusal(spec, settings.shards, settings.shard_by):
            raise SettingsError(reason)
    _try_settings(settings, specs[0])
    access = Access.of(settings)
    listening = _bind(settings.bind)
    host, port = listening.getsockname()[:2]
    scheme = "http" if access.certificate is None else "https"
    sys.stdout.write(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{settings.base_path}/\n")
    sys.stdout.flush()
    asyncio.run(_serve(settings, specs, listening, access))


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask, and the certificate that tells askers who answers."""

    keys: TokenFile | None
    certificate: Certificate | None

    @classmethod
    def of(cls, settings: Settings) -> Access:
        """Read the files that the settings name. Raises SettingsError for those that cannot be used."""
        keys = None if settings.token_file is None else TokenFile(settings.token_file)
        if settings.tls_cert is None or settings.tls_key is None:
            return cls(keys, None)
        return cls(keys, Certificate(settings.tls_cert, settings.tls_key))

    def server(self, app: FastAPI) -> _Server:
        """The HTTP server."""
        tls = self.certificate
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=2,
            ssl_certfile=tls.cert if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        return _Server(config)

    async def renew(self, server: _Server) -> None:
        """Keep the certificate as its files are."""
        while self.certificate is not None:
            await asyncio.sleep(RENEW_SECONDS)
            if server.config.ssl is not None:
                self.certificate.renew(server.config.ssl)


def _try_settings(settings: Settings, spec: Spec) -> None:
    """Build the clients once, which connects nothing, so that a wrong setting is heard of at once."""
    try:
        _make_source(settings, spec).close()
        RedisStore(settings.redis, spec.name).close()
    except TwinstreamError as error:
        raise SettingsError(str(error)) from None


def _bind(address: str) -> socket.socket:
    host, port = split_address(address)
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listening.bind(place)
    except OSError as error:
        raise SettingsError(
            f"bind address {address} cannot be used: {error.strerror}; choose another --bind"
        ) from None
    return listening


async def _serve(settings: Settings, specs: list[Spec], listening: socket.socket, access: Access) -> None:
    board = Board()
    for spec in specs:
        board.expect(_expectation(spec, settings.shards))
    registry = CollectorRegistry()
    registry.register(StatusCollector(board.views, installed_version("twinstream")))
    measure_process(registry)
    by_name: dict[str, list[MatcherProcess]] = {}
    app = create_app(
        board,
        exposition(registry),
        keys=access.keys,
        base_path=settings.base_path,
        traffic=HttpMeter(registry),
        reset=partial(_reset, by_name),
    )
    server = access.server(app)
    matchers = [
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
    for spec in specs:
        by_name[spec.name] = [matcher for matcher in matchers if matcher.name == spec.name]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    for matcher in matchers:
        matcher.start()
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    renewing = asyncio.create_task(access.renew(server))
    await stop.wait()
    structlog.get_logger().info("stopping", process=os.getpid())
    await asyncio.gather(*(matcher.stop() for matcher in matchers))
    renewing.cancel()
    board.close()
    server.should_exit = True
    await serving


async def _reset(
    matchers: Mapping[str, list[MatcherProcess]], name: str, request: ResetRequest
) -> Reset | ResetRefused:
    """Have the matcher of a comparison begin it anew."""
    if len(matchers[name]) == 1:
        return await matchers[name][0].reset(request)
    reason = (
        "several matchers share it, which cannot be reset together: start the service with --shards 1, reset "
        "it, and share it again once it has begun"
    )
    return ResetRefused(id=request.id, reason=reason)


def _expectation(spec: Spec, shards: int) -> Expectation:
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
        shards=shards,
    )
