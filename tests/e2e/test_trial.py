"""Rules on trial beside a running comparison, on real Kafka and Redis; and what is kept, replayed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import uuid
from pathlib import Path
from typing import Any

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product()

LOOSER = "start: earliest\nidentity: [k]\n"


def command(service: ServiceProcess, *arguments: str) -> tuple[int, str]:
    code, out, err = twinstream(*arguments, "--service", service.address)
    return code, out + err


def test_a_trial_runs_beside_the_comparison_and_says_what_it_would_hide(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    topics = topic(), topic()
    name = f"trial-{uuid.uuid4().hex[:8]}"
    (tmp_path / "trial").mkdir()
    live = spec_file(tmp_path, name, *topics, "identity: [k]\n")
    writer = Writer(kafka.brokers, *topics)
    with ServiceProcess(live, kafka.brokers, redis_url) as service:
        writer.both(range(200))
        writer.reference(3, 1000)
        writer.candidate(3, 2000)
        writer.both(range(200, 400))
        service.answers("fail")
        assert command(service, "gate", f"{name}~trial")[0] == 2, "there is none yet"
        (group,) = service.get("")["groups"]
        ignore, known = service.get(f"/groups/{group['id']}/drafts")["items"]
        assert (ignore["count"], known["count"]) == (1, 1)
    tried = spec_file(tmp_path / "trial", name, *topics, LOOSER + ignore["yaml"])
    with service.another("--trial", str(tried)) as service:
        found = eventually(lambda: _hides_one(service, 401), seconds=60, what="the trial has settled all")
        assert found["changes"] == ["equality"]
        assert found["alone"]["count"] == 0
        service.answers("fail")  # by its own rules
        code, told = command(service, "gate", f"{name}~trial")
        assert (code, f"ask the gate of {name}" in told) == (2, True)
        code, told = command(service, "status")
        assert (code, f"{name}~trial: trial of {name}" in told) == (1, True)
        assert "of 1 divergences it hides 1 (1 changed); it alone reports 0" in told
        code, told = command(service, "divergences", f"{name}~trial", "--json")
        assert (code, json.loads(told)["items"]) == (0, [])
        for matcher in service.matchers():
            os.kill(matcher, signal.SIGKILL)
        writer.both(range(400, 500))
        again = eventually(lambda: _hides_one(service, 501), seconds=60, what="both go on")
        assert again["hidden"]["examples"] == found["hidden"]["examples"]
        _, *given = shlex.split(ignore["command"].replace("changed.yaml", str(tried)))
        code, told = command(service, *given, "--json")
        (item,) = json.loads(told)["items"]
        assert (code, item["outcome"]) == (1, "equal")


def _hides_one(service: ServiceProcess, pairs: int) -> dict[str, Any] | None:
    """The contrast, once the trial has so many pairs and hides the one divergence of the comparison."""
    found: dict[str, Any] = service.get("/trial")
    complete = found["fresh"] and found["matched"] == pairs and found["verdict"] == "EQUIVALENT"
    return found if complete and found["hidden"]["by_kind"] == {"changed": 1} else None
