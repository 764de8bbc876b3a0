"""`serve` beyond loopback, and the commands that ask it: tokens, TLS, and what is refused at the start."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.certificates import certify
from tests.support.commands import COMMAND, twinstream
from tests.support.processes import marked, new_mark
from tests.support.service import spec_file
from tests.support.waiting import eventually

READER, OPERATOR = "reader-0123456789-0123456789", "operator-0123456789-0123456789"
NOWHERE = ("--brokers", "127.0.0.1:1", "--redis", "redis://127.0.0.1:1/0")
ENDED = 30


def run(*arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    code, out, err = twinstream(*arguments, **environment)
    assert READER not in out + err
    return code, out, err


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return spec_file(tmp_path, "ads", "ads.v1", "ads.v2")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text(f"read viewer {READER}\noperate anna {OPERATOR}\n")
    return file


def listens(port: int | None) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--bind", "0.0.0.0:0"), "flag --bind: '0.0.0.0:0' is not a loopback address"),
        (("--token-file", "{folder}/none"), "none cannot be read: No such file or directory"),
        (("--token-file", "{folder}/ads.yaml"), "ads.yaml:2: a line is ROLE NAME TOKEN, and this one"),
        (("--tls-cert", "{folder}/a"), "flag --tls-cert: TLS needs --tls-key, too"),
        (("--tls-cert", "{folder}/a", "--tls-key", "{folder}/b"), "a cannot be read: No such file"),
        (("--tls-cert", "{folder}/ads.yaml", "--tls-key", "{folder}/ads.yaml"), "ads.yaml cannot be used: "),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_one_sentence_at_the_start(
    spec: Path, options: tuple[str, ...], said: str
) -> None:
    given = [option.format(folder=spec.parent) for option in options]
    code, out, err = run("serve", spec, *NOWHERE, "--bind", "127.0.0.1:0", *given)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--token-file", "{folder}/none"), "cannot be read: No such file"),
        (("--token-file", "{folder}/ads.yaml"), "must hold one token, and nothing else"),
        (("--ca-file", "{folder}/none"), "cannot be used: No such file"),
        (("--ca-file", "{folder}/ads.yaml"), "cannot be used: "),
    ],
)
def test_what_cannot_be_asked_with_is_named(spec: Path, options: tuple[str, ...], said: str) -> None:
    code, out, err = run("status", *[option.format(folder=spec.parent) for option in options])
    assert (code, out) == (2, "")
    assert said in err
