"""`twinstream status` and `twinstream gate` as a user and a release tool run them, on a running service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import orjson
import pytest

from tests.support.server import Served, served
from tests.support.statuses import NAME, diverged, expectation, status
from twinstream.api.board import Board
from twinstream.status import Health

COMMAND = Path(sys.executable).with_name("twinstream")


def run(service: Served, *arguments: str, encoding: str = "utf-8") -> tuple[int, str, str]:
    done = subprocess.run(
        [COMMAND, *arguments],
        env={**os.environ, "TWINSTREAM_SERVICE": service.url, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    out, err = done.stdout.decode(encoding), done.stderr.decode()
    assert "Traceback" not in out + err
    return done.returncode, out, err


@pytest.fixture
def service() -> Iterator[Served]:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation()))
        service.publish(status(at=datetime.now(UTC)))
        yield service


def test_the_gate_is_one_line_and_an_exit_code(service: Served) -> None:
    code, out, err = run(service, "gate", NAME)
    assert (code, err) == (0, "")
    assert out.startswith("pass Equivalent: 5000 events matched; verified through ")
    assert out.count("\n") == 1
    service.publish(diverged(at=datetime.now(UTC)))
    code, out, err = run(service, "gate", NAME)
    assert (code, err) == (1, "")
    assert out.startswith("fail ")


def test_the_state_is_a_table_with_the_reasons_below(service: Served) -> None:
    code, out, err = run(service, "status")
    assert (code, err) == (0, "")
    heading, row, reason = out.splitlines()
    assert heading.split() == [
        "comparison", "verdict", "health", "reference", "candidate", "matched", "unmatched", "divergences",
    ]  # fmt: skip
    assert row.split()[:3] == [NAME, "EQUIVALENT", "ok"]
    assert reason.startswith(f"{NAME}: ")


@pytest.mark.parametrize(
    ("command", "path"),
    [(("status",), ""), (("status", NAME), f"/{NAME}"), (("gate", NAME), f"/{NAME}/gate")],
)
def test_json_is_the_object_of_the_service_on_a_line(
    service: Served, command: tuple[str, ...], path: str
) -> None:
    code, out, err = run(service, *command, "--json")
    assert (code, err) == (0, "")
    told = orjson.loads(out)
    assert out.encode() == orjson.dumps(told) + b"\n"
    assert list(told) == list(httpx.get(f"{service.url}/v1/comparisons{path}").json())


@pytest.mark.parametrize(
    "command", [("gate", NAME), ("status",), ("gate", NAME, "--json"), ("status", "--json")]
)
def test_an_answer_that_cannot_be_written_is_one_sentence(service: Served, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [COMMAND, *command, "--service", service.url], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert b"the answer cannot be written: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("command", "code"), [(("gate", NAME), 3), (("status", NAME), 0)])
def test_a_terminal_without_a_character_shows_its_number(
    service: Served, command: tuple[str, ...], code: int
) -> None:
    """An unhealthy comparison says why, in the words of whoever failed."""
    health = Health(status="degraded", reasons=["Verbindung zu „kafka“ verloren"])
    service.publish(status(at=datetime.now(UTC), health=health))
    found, out, err = run(service, *command, encoding="ascii")
    assert (found, err) == (code, "")
    assert "\\u201ekafka\\u201c" in out
