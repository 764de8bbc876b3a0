"""`twinstream status` and `twinstream gate` as a user and a release tool run them, on a running service."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable

import httpx
import orjson
import pytest

from tests.support.commands import COMMAND, said, twinstream
from tests.support.server import Served
from tests.support.statuses import NAME, coverage, diverged, now, status
from tests.support.waiting import eventually
from twinstream.status.comparison import ComparisonStatus, Health


def run(service: Served, *arguments: str, code: int = 0, encoding: str = "utf-8") -> str:
    """What a command says of a service."""
    environment = {"TWINSTREAM_SERVICE": service.url, "PYTHONIOENCODING": encoding}
    return said(*arguments, code=code, encoding=encoding, **environment)


def test_the_gate_is_one_line_and_an_exit_code(service: Served) -> None:
    out = run(service, "gate", NAME)
    assert out.startswith("pass Equivalent: 5,000 events matched; verified through ")
    assert out.count("\n") == 1
    service.publish(diverged(at=now()))
    assert run(service, "gate", NAME, code=1).startswith("fail ")


def test_a_token_that_cannot_be_sent_is_a_usage_error(service: Served) -> None:
    environment = {"TWINSTREAM_SERVICE": service.url, "TWINSTREAM_TOKEN": "caf\u00e9"}
    code, _, err = twinstream("status", **environment)
    assert code == 2
    assert "TWINSTREAM_TOKEN must be one token, and nothing else" in err
    assert "caf" not in err


def test_a_status_says_what_known_differences_explain_and_what_it_does_not_rest_on(service: Served) -> None:
    untested = coverage().model_copy(update={"notes": ["all events are of one key"]})
    known = {"PRICE-17": 1200, "LATE": 0}
    service.publish(status(at=now(), coverage=untested, explained_by_rule=known))
    out = run(service, "status", NAME)
    assert f"{NAME}: not tested: all events are of one key\n" in out
    assert f"{NAME}: explained by known differences: 1,200 by PRICE-17\n" in out


def test_the_status_of_one_comparison_tells_its_gate(service: Served) -> None:
    assert f"\n{NAME}: gate pass: Equivalent: 5,000 events matched" in run(service, "status", NAME)
    service.publish(diverged(at=now()))
    assert f"\n{NAME}: gate fail\n" in run(service, "status", NAME, code=1)


@pytest.mark.parametrize("command", ["gate", "status"])
def test_no_reason_is_acted_upon_by_a_terminal(service: Served, command: str) -> None:
    service.publish(diverged(at=now(), reason="in `a\x1b[2J`."))
    assert r"n `a\x1b[2J`." in run(service, command, NAME, code=1)


def test_an_undecided_gate_says_what_would_decide_it(service: Served) -> None:
    service.publish(status(at=now(), verdict="INCONCLUSIVE", reason="Not decided.", suspicions=2))
    first, step = run(service, "gate", NAME, code=3).splitlines()
    assert first == "undecided Not decided."
    assert step.startswith("- 2 events are overdue. Their partners must arrive. ")


TOO_FEW = "undecided No difference so far, but only 5,000 of 5,001 required pairs are confirmed.\n"


@pytest.mark.parametrize(
    ("scope", "code", "told"),
    [
        (("--min-matched", "5000", "--candidate", "1.9.0"), 0, "pass Equivalent"),
        (("--candidate", "1.9.1 +x&y"), 3, "undecided You asked about candidate 1.9.1 +x&y, but "),
        (("--spec-digest", "5f0c9a", "--since", "2026-03-01T14:02:00+02:00"), 0, "pass Equivalent"),
    ],
)
def test_the_gate_is_asked_about_a_scope(
    service: Served, scope: tuple[str, ...], code: int, told: str
) -> None:
    assert run(service, "gate", NAME, *scope, code=code).startswith(told)


def test_a_gate_that_stays_undecided_is_waited_for_in_vain(service: Served) -> None:
    asked = ("gate", NAME, "--wait", "1s", "--poll", "100ms", "--min-matched", "5001")
    out = run(service, *asked, code=3)
    assert out.startswith(f"{TOO_FEW}- 1 more pair required (5,000 of 5,001)")
    assert out.count("undecided") == 1
    assert orjson.loads(run(service, *asked, "--json", code=3))["scope_min_matched"] == 5001


@pytest.mark.parametrize(("decided", "code"), [(status, 0), (diverged, 1)])
def test_a_person_sees_what_is_waited_for_until_the_gate_decides(
    service: Served, decided: Callable[..., ComparisonStatus], code: int
) -> None:
    service.publish(status(at=now(), verdict="PENDING", reason="only 3 of 1000 matches"))
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
    service.publish(decided(at=now()))
    out, _ = process.communicate(timeout=60)
    os.close(here)
    assert process.returncode == code
    assert out.count(b"\n") == 1


def test_the_state_is_a_table_with_the_reasons_below(service: Served) -> None:
    heading, row, reason = run(service, "status").splitlines()
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
    out = run(service, *command, "--json")
    told = orjson.loads(out)
    assert out.encode() == orjson.dumps(told) + b"\n"
    assert list(told) == list(httpx.get(f"{service.url}/v1/comparisons{path}").json())


@pytest.mark.parametrize(("command", "code"), [(("gate", NAME), 3), (("status", NAME), 0)])
def test_a_terminal_without_a_character_shows_its_number(
    service: Served, command: tuple[str, ...], code: int
) -> None:
    """An unhealthy comparison says why, in the words of whoever failed."""
    health = Health(status="degraded", reasons=["Verbindung zu „kafka“ verloren"])
    service.publish(status(at=now(), health=health))
    assert "\\u201ekafka\\u201c" in run(service, *command, code=code, encoding="ascii")
