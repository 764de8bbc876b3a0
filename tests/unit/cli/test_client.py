"""What the commands make of whatever answers at the address of a service."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from twinstream.cli.asking import gate
from twinstream.cli.shared.client import Service, ask, path_of
from twinstream.cli.shared.output import Refused, Unreachable
from twinstream.errors import SettingsError
from twinstream.spec.file.values import is_http_address

GATE = {"comparison": "rides", "answer": "pass", "undecided": False, "reason": "Equal.", "to_decide": ""}


@contextmanager
def answering(status: int, parts: Iterable[bytes], **headers: str) -> Iterator[Service]:
    """A server that answers so, whatever it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                for part in parts:
                    self.wfile.write(part)

        def log_message(self, *_: Any) -> None:
            pass

    with serving(Handler) as service:
        yield service


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[Service]:
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield Service(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "body", [b"<html>", b'"x"', b"[]", b"{}", b"null", b"[" * 9999, b'{"answer":"\\ud800"}']
)
@pytest.mark.parametrize("status", [200, 401, 404, 502])
def test_what_is_no_answer_of_the_service_is_asked_again(status: int, body: bytes) -> None:
    with answering(status, [body]) as service, pytest.raises(Unreachable) as told:
        ask(service, "/comparisons", "answer")
    assert told.value.message.endswith(f"answered {status}: what answers there is no Twinstream")


def test_a_redirect_is_told_without_its_secrets() -> None:
    with (
        answering(302, [b"{}"], Location="https://login.example/?token=sesame") as service,
        pytest.raises(Unreachable, match=r"answered 302: that is a redirect to https://login.example/$"),
    ):
        ask(service, "/comparisons")


@pytest.mark.parametrize(("status", "kind"), [(404, Refused), (502, Unreachable)])
def test_what_the_service_says_is_told_without_what_a_terminal_acts_upon(
    status: int, kind: type[Exception]
) -> None:
    with (
        answering(status, [json.dumps({"detail": "no\x1b[2J"}).encode()]) as service,
        pytest.raises(kind, match=r"no\\x1b\[2J$"),
    ):
        ask(service, "/comparisons")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 504 Gateway Timeout\r\n\r\n"])
def test_of_a_request_that_was_sent_and_not_answered_it_is_said_that_it_may_be_done(answer: bytes) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.wfile.write(answer)
            self.close_connection = True

    known = "not known whether it did what was asked: see `resets` in the status"
    with serving(Handler) as service, pytest.raises(Unreachable, match=known):
        ask(service, "/comparisons/rides/reset", body={"reason": "new"})
    with pytest.raises(Unreachable, match=r"correct the port$"):
        ask(service, "/comparisons/rides/reset", body={"reason": "new"})


def test_an_answer_that_does_not_end_is_not_waited_for() -> None:
    drops = (time.sleep(0.05) or b" " for _ in range(100))
    with (
        answering(200, drops) as service,
        pytest.raises(Unreachable, match="cannot be reached: its answer does not end"),
    ):
        ask(service, "/comparisons", timeout_seconds=0.2)


@pytest.mark.parametrize("other", [{"comparison": "other"}, {"answer": "perhaps"}])
def test_a_gate_passes_by_the_answer_for_its_comparison_alone(other: dict[str, str]) -> None:
    with (
        answering(200, [json.dumps(GATE | other).encode()]) as service,
        pytest.raises(Unreachable, match="has not answered for rides"),
    ):
        gate._answer(service, "/comparisons/rides/gate", "rides")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a/../b", "a?", "a#", "a\r", "a%2Fb", "\udcff"])
def test_what_is_no_name_reaches_no_other_path(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be the name of a comparison"):
        path_of(name, "gate")


def test_a_name_is_a_part_of_a_path() -> None:
    assert path_of("rides~trial", "divergences", "5f0c") == "/comparisons/rides~trial/divergences/5f0c"


@pytest.mark.parametrize("end", ["?", "#", "/v1/comparisons/rides/gate#", "\r", " ", "\0"])
def test_an_address_that_swallows_its_path_is_none(end: str) -> None:
    assert is_http_address("http://host:8080/base")
    assert not is_http_address(f"http://host:8080{end}")
