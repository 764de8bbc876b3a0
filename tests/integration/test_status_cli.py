"""`twinstream status` and `twinstream gate` as a user and a release tool run them, on a running service."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import orjson
import pytest

from tests.support.commands import COMMAND, twinstream
from tests.support.server import Served, served
from tests.support.statuses import NAME, coverage, diverged, expectation, status
from tests.support.waiting import eventually
from twinstream.api.state.board import Board
from twinstream.status.comparison import ComparisonStatus, Health


def run(service: Served, *arguments: str, encoding: str = "utf-8") -> tuple[int, str, str]:
    environment = {"TWINSTREAM_SERVICE": service.url, "PYTHONIOENCODING": encoding}
    return twinstream(*arguments, encoding=encoding, **environment)


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


def test_an_equivalent_status_says_what_it_does_not_rest_on(service: Served) -> None:
    untested = coverage().model_copy(update={"notes": ["all events are of one key"]})
    service.publish(status(at=datetime.now(UTC), coverage=untested))
    code, out, _ = run(service, "status", NAME)
    assert code == 0
    assert f"{NAME}: not put to the test: all events are of one key\n" in out


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:8080", "ftp://host", "http://", "", "http://host:abc", "http://host:99999", "http://[::1"],
)
def test_what_is_no_address_of_a_service_is_a_usage_error_and_is_not_waited_for(address: str) -> None:
    code, _, err = twinstream("gate", NAME, "--wait", "1h", "--service", address)
    assert code == 2
    assert "that is no address of a service; write it like http://127.0.0.1:8080" in err


def test_a_token_that_cannot_be_sent_is_a_usage_error(service: Served) -> None:
    environment = {"TWINSTREAM_SERVICE": service.url, "TWINSTREAM_TOKEN": "caf\u00e9"}
    code, _, err = twinstream("status", **environment)
    assert code == 2
    assert "TWINSTREAM_TOKEN must be one token, and nothing else" in err
    assert "caf" not in err


def test_what_known_differences_have_explained_is_told_by_rule(service: Served) -> None:
    service.publish(status(at=datetime.now(UTC), explained_by_rule={"PRICE-17": 1200, "LATE": 0}))
    _, out, _ = run(service, "status", NAME)
    assert f"{NAME}: explained by known differences: 1,200 by PRICE-17\n" in out


def test_an_undecided_gate_says_what_would_decide_it(service: Served) -> None:
    service.publish(status(at=datetime.now(UTC), verdict="INCONCLUSIVE", reason="Not decided.", suspicions=2))
    code, out, err = run(service, "gate", NAME)
    assert (code, err) == (3, "")
    first, step = out.splitlines()
    assert first == "undecided Not decided."
    assert step.startswith("- 2 events are overdue. Their partners have to come; ")


@pytest.mark.parametrize(
    ("scope", "code", "told"),
    [
        (("--min-matched", "5000", "--candidate", "1.9.0"), 0, "pass Equivalent"),
        (
            ("--min-matched", "5001"),
            3,
            (
                "undecided No difference so far, but 5000 pairs match of 5001 asked for.\n"
                "- 1 more pair has to match (5,000 of 5,001)"
            ),
        ),
        (("--candidate", "1.9.1 +x&y"), 3, "undecided It was asked about the candidate 1.9.1 +x&y, and "),
        (("--spec-digest", "5f0c9a", "--since", "2026-03-01T14:02:00+02:00"), 0, "pass Equivalent"),
        (("--spec-digest", "5f0c9b"), 3, "undecided It was asked about the file 5f0c9b, and follows 5f0c9a"),
        (("--since", "2999-01-01T00:00:00Z"), 3, "undecided No difference so far, but only what is before "),
    ],
)
def test_the_gate_is_asked_about_a_scope(
    service: Served, scope: tuple[str, ...], code: int, told: str
) -> None:
    found, out, err = run(service, "gate", NAME, *scope)
    assert (found, err) == (code, "")
    assert out.startswith(told)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--candidate", ""), "it is empty; name VERSION, or leave the option out"),
        (("--spec-digest", ""), "it is empty; name DIGEST, or leave the option out"),
        (("--since", ""), "it is empty; name TIME, or leave the option out"),
        (("--since", "14:02"), "'14:02' is no time with its zone; write it like 2026-03-01T14:02:00Z"),
        (("--wait", "30"), "'30' is not a duration; write it like 500ms, 60s, 5m, 2h or 1d"),
        (("--wait", "1m", "--poll", "50ms"), "it must be at least 100ms"),
        (("--min-matched", "-1"), "-1 is not in the range x>=0"),
    ],
)
def test_options_that_say_nothing_are_refused(
    service: Served, options: tuple[str, ...], sentence: str
) -> None:
    code, out, err = run(service, "gate", NAME, *options)
    assert (code, out) == (2, "")
    assert sentence in err


def test_a_gate_that_stays_undecided_is_waited_for_in_vain(service: Served) -> None:
    asked = ("gate", NAME, "--wait", "1s", "--poll", "100ms", "--min-matched", "5001")
    code, out, err = run(service, *asked)
    assert (code, err) == (3, "")
    assert out.startswith("undecided No difference so far, but 5000 pairs match of 5001 asked for.\n- ")
    assert out.count("undecided") == 1
    code, out, _ = run(service, *asked, "--json")
    assert (code, orjson.loads(out)["scope_min_matched"]) == (3, 5001)


def test_waiting_for_no_such_comparison_ends_at_once(service: Served) -> None:
    code, out, err = run(service, "gate", "nobody", "--wait", "1h")
    assert (code, out) == (2, "")
    assert "nobody" in err


def test_a_service_that_is_not_there_all_the_time_cannot_be_reached() -> None:
    done = subprocess.run(
        [COMMAND, "gate", NAME, "--service", "http://127.0.0.1:1", "--wait", "1s", "--poll", "100ms"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, b"")
    assert b"cannot be reached" in done.stderr


@pytest.mark.parametrize(("decided", "code"), [(status, 0), (diverged, 1)])
def test_a_person_sees_what_is_waited_for_until_the_gate_decides(
    service: Served, decided: Callable[..., ComparisonStatus], code: int
) -> None:
    service.publish(status(at=datetime.now(UTC), verdict="PENDING", reason="only 3 of 1000 matches"))
    here, there = pty.openpty()
    asked = [COMMAND, "gate", NAME, "--service", service.url, "--wait", "10m", "--poll", "100ms"]
    process = subprocess.Popen(
        asked, stdout=subprocess.PIPE, stderr=there, env={**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    )
    os.close(there)
    shown = bytearray()

    def reason() -> bool:
        shown.extend(os.read(here, 1024))
        return b"left: Only 3 of 1000 matches." in shown

    eventually(reason, what="the line says why it waits")
    service.publish(decided(at=datetime.now(UTC)))
    out, _ = process.communicate(timeout=60)
    os.close(here)
    assert process.returncode == code
    assert out.count(b"\n") == 1


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
