"""`serve` beyond loopback, and the commands that ask it: tokens, TLS, and what is refused at the start."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.embedded.processes import listens
from tests.support.certificates import certify
from tests.support.commands import COMMAND, twinstream
from tests.support.processes import marked, new_mark
from tests.support.server import READER
from tests.support.service import spec_file
from tests.support.waiting import eventually

NOWHERE = ("--brokers", "127.0.0.1:1", "--redis", "redis://127.0.0.1:1/0")
ENDED = 30


def run(*arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    code, out, err = twinstream(*arguments, **environment)
    assert READER not in out + err
    return code, out, err


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return spec_file(tmp_path, "ads", "ads.v1", "ads.v2")


@contextmanager
def serving(spec: Path, *options: str | Path) -> Iterator[str]:
    """A service that reaches neither Kafka nor Redis, which says so and answers; its address."""
    log, mark = spec.with_suffix(".log"), new_mark()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [COMMAND, "serve", spec, *NOWHERE, *options],
            stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **mark},
        )  # fmt: skip
    assert process.stdout is not None
    try:
        address = process.stdout.readline().decode().strip()
        assert address, log.read_text()
        port = urlsplit(address).port
        assert port
        eventually(lambda: listens(port), seconds=30, what=f"port {port} is open")
        yield address
    finally:
        process.terminate()
        assert process.wait(ENDED) == 0
        process.stdout.close()
    assert READER not in log.read_text()
    eventually(lambda: not marked(mark), what="nothing of it is left")


def test_beyond_loopback_it_asks_for_tokens_and_serves_by_tls(
    spec: Path, tokens: Path, tmp_path: Path
) -> None:
    cert, key = certify(tmp_path)
    mine = tmp_path / "mine"
    mine.write_text(READER + "\n")
    options = ("--bind", "0.0.0.0:0", "--token-file", tokens, "--tls-cert", cert, "--tls-key", key)
    with serving(spec, *options, "--base-path", "/twinstream") as printed:
        assert printed.startswith("https://0.0.0.0:")
        assert printed.endswith("/twinstream/")
        service = printed.replace("0.0.0.0", "127.0.0.1")
        ask = ("status", "--service", service)
        code, out, err = run(*ask, "--ca-file", cert, "--token-file", mine)
        assert (code, err) == (3, "")
        assert "ads" in out
        assert run(*ask, "--ca-file", cert, TWINSTREAM_TOKEN=READER)[0] == 3
        assert run(*ask, TWINSTREAM_CA_FILE=str(cert), TWINSTREAM_TOKEN=READER)[0] == 3
        code, out, err = run("gate", "ads", "--service", service, "--ca-file", cert)
        assert (code, out) == (2, "")
        assert "A token is needed" in err
        code, _, err = run(*ask, "--ca-file", cert, TWINSTREAM_TOKEN="x" * 30)
        assert (code, "The token is not valid" in err) == (2, True)
        code, _, err = run(*ask, TWINSTREAM_TOKEN=READER)
        assert code == 4
        assert "certificate verify failed" in err
        assert "name who signed its certificate with --ca-file" in err
        other, _ = certify(tmp_path, "other")
        code, _, err = run(*ask, "--ca-file", other, TWINSTREAM_TOKEN=READER)
        assert (code, f"{other} does not name who signed its certificate" in err) == (4, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_is_stopped_while_it_starts_ends_with_0(tmp_path: Path, number: int) -> None:
    spec = tmp_path / "ads.yaml"
    os.mkfifo(spec)
    with subprocess.Popen([COMMAND, "serve", spec], stderr=subprocess.PIPE) as process:
        with spec.open("wb"):  # It waits for the rest of its comparison file.

            def is_stopped() -> bool:
                process.send_signal(number)  # Again: Python misses one that comes just before it reads.
                return process.poll() is not None

            eventually(is_stopped, seconds=ENDED, what="the end of the service")
        assert process.communicate() == (None, b"")
    assert process.returncode == 0
