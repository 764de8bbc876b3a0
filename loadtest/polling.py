"""What it costs the API process to be asked all the time, while its matchers publish.

    python -m loadtest.polling [--partitions 200] [--seconds 15] [--json FILE]

The real application and server, in a process of its own, over the statuses of two comparisons with many
partitions. They are published as matchers do it: as JSON, which the process has to read, once a second, with
20 divergences a second beside them. Then:

- *publications alone*;
- *polled*: ten clients ask ten times a second each, for status (with the ETag of the last answer) and gate;
- *stalled*: the same, with 500 event streams of clients that read nothing;

each for a while. What counts is the time of an answer, and the CPU time and memory of the process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click
import uvicorn

from loadtest.measuring import environment, write_report
from twinstream.api.app import create_app
from twinstream.api.state.board import Board, utc_now
from twinstream.api.state.expectation import Expectation, placeholder
from twinstream.api.stream.mailbox import SEND_BUFFER_BYTES
from twinstream.matcher.memory import resident_bytes
from twinstream.status.common import Sides
from twinstream.status.comparison import (
    ComparisonStatus,
    DivergenceReport,
    Health,
    PartitionProgress,
    Position,
    Version,
)

CLIENTS, ASKS_A_SECOND = 10, 10
STALLED = 500
RECEIVE_BYTES = 4096
"""So that a client that does not read holds its stream up soon."""
DIVERGENCES_A_SECOND = 20
NAMES = ("one", "two")
SETTLE_SECONDS = 5.0


# -- the process of the API --------------------------------------------------------------------------------


def serve(pipe: Connection, partitions: int) -> None:
    """The API with its publications, until the pipe says stop; it tells at each word what it has taken."""
    asyncio.run(_serve(pipe, partitions))


async def _serve(pipe: Connection, partitions: int) -> None:
    board = Board()
    for name in NAMES:
        board.expect(_expectation(name))
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # as the service does
    app = create_app(board, lambda: (b"", "text/plain"))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    tasks = [asyncio.create_task(server.serve(sockets=[listening]))]
    tasks.append(asyncio.create_task(_publish(board, partitions)))
    pipe.send(listening.getsockname()[1])
    while await asyncio.to_thread(pipe.recv) != "stop":
        pipe.send((time.process_time(), resident_bytes(), board.listeners))
    tasks[1].cancel()
    board.close()
    server.should_exit = True
    await asyncio.wait(tasks)


async def _publish(board: Board, partitions: int) -> None:
    number = 0
    while True:
        for name in NAMES:
            data = _status(name, partitions, number).model_dump_json()
            board.accept(ComparisonStatus.model_validate_json(data))
        for _ in range(DIVERGENCES_A_SECOND):
            number += 1
            data = _divergence(NAMES[number % 2], number).model_dump_json()
            board.accept(DivergenceReport.model_validate_json(data))
            await asyncio.sleep(1 / DIVERGENCES_A_SECOND)


def _expectation(name: str) -> Expectation:
    return Expectation(
        name=name,
        spec_digest="0",
        order="in order per k",
        reference=Version(topic=f"{name}.reference"),
        candidate=Version(topic=f"{name}.candidate"),
    )


def _status(name: str, partitions: int, number: int) -> ComparisonStatus:
    now = utc_now()
    progress = [
        PartitionProgress(partition=p, position=number, end=number + p, lag=p, newest_event_at=now)
        for p in range(partitions)
    ]
    offsets = {str(partition): number for partition in range(partitions)}
    update = {
        "health": Health(status="ok"),
        "matched": number,
        "progress": Sides(reference=progress, candidate=progress),
        "verified_up_to": Sides(reference=offsets, candidate=offsets),
        "verified_through": now,
        "verified_age_seconds": 0.0,
    }
    return placeholder(_expectation(name), now).model_copy(update=update)


def _divergence(name: str, number: int) -> DivergenceReport:
    value = {"k": number, "text": "x" * 1000}
    return DivergenceReport(
        id=f"{number:016x}",
        comparison=name,
        kind="missing",
        provisional=False,
        scope={"k": number},
        reference=value,
        candidate=None,
        positions=Sides(
            reference=Position(topic=f"{name}.reference", partition=0, offset=number), candidate=None
        ),
        fields={},
        witness=[],
        text="The candidate has no such event.",
        first_seen=utc_now(),
    )


# -- those who ask -----------------------------------------------------------------------------------------


async def _poll(port: int, client: int, until: float, took: list[float]) -> None:
    """One client: status and gate in turn, at its pace; an answer that is late does not slow it down."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path, tag = f"/v1/comparisons/{NAMES[client % 2]}", ""
    due = time.monotonic() + client / (CLIENTS * ASKS_A_SECOND)
    turn = 0
    while due < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        turn += 1
        known = f"If-None-Match: {tag}\r\n" if tag and turn % 2 else ""
        target = path if turn % 2 else f"{path}/gate"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{known}\r\n".encode())
        headers = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in headers.split("\r\n")[1:] if ": " in line)
        await reader.readexactly(int(fields.get("content-length", 0)))
        took.append(time.monotonic() - due)
        tag = fields["etag"] if turn % 2 else tag
        due += 1 / ASKS_A_SECOND
    writer.close()


def _stall(port: int) -> list[socket.socket]:
    """Event streams of clients that never read."""
    stalled = []
    for _ in range(STALLED):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stalled.append(client)
    return stalled


# -- measuring ---------------------------------------------------------------------------------------------


def _ask(pipe: Connection) -> tuple[float, int, int]:
    pipe.send("how")
    found: tuple[float, int, int] = pipe.recv()
    return found


async def _phase(port: int, pipe: Connection, seconds: float, *, polled: bool) -> dict[str, Any]:
    cpu, _, _ = _ask(pipe)
    began, took = time.monotonic(), list[float]()
    until = began + seconds
    if polled:
        await asyncio.gather(*(_poll(port, client, until, took) for client in range(CLIENTS)))
    await asyncio.sleep(max(0.0, until - time.monotonic()))
    passed = time.monotonic() - began
    cpu_now, resident, listeners = _ask(pipe)
    took.sort()
    ms = {f"p{q}_ms": round(1000 * took[int(len(took) * q / 100)], 2) for q in (50, 99)} if took else {}
    return {
        "requests_a_second": round(len(took) / passed, 1),
        **ms,
        **({"longest_ms": round(1000 * took[-1], 2)} if took else {}),
        "cpu_share": round((cpu_now - cpu) / passed, 4),
        "resident_mib": round(resident / 2**20, 1),
        "event_streams": listeners,
    }


def measure(partitions: int, seconds: float) -> dict[str, Any]:
    """All phases, one after the other."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(theirs, partitions), daemon=True
    )
    process.start()
    port = ours.recv()
    stalled: list[socket.socket] = []
    try:
        asyncio.run(_phase(port, ours, SETTLE_SECONDS, polled=True))
        phases = {
            "publications alone": asyncio.run(_phase(port, ours, seconds, polled=False)),
            "polled": asyncio.run(_phase(port, ours, seconds, polled=True)),
        }
        stalled = _stall(port)
        asyncio.run(_phase(port, ours, SETTLE_SECONDS, polled=False))
        phases["stalled"] = asyncio.run(_phase(port, ours, seconds, polled=True))
    finally:
        for client in stalled:
            client.close()
        ours.send("stop")
        process.join(30)
    size = len(_status(NAMES[0], partitions, 0).model_dump_json())
    return {"partitions": partitions, "status_bytes": size, "phases": phases}


@click.command(help=__doc__)
@click.option("--partitions", default=200, show_default=True, help="Of each topic.")
@click.option("--seconds", default=15.0, show_default=True, help="Of each phase.")
@click.option(
    "--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Where the report goes."
)
def main(partitions: int, seconds: float, file: Path | None) -> None:
    """Measure, and write the report."""
    report = {**environment(), **measure(partitions, seconds)}
    write_report(report, None if file is None else str(file))


if __name__ == "__main__":
    main()
