"""Rules on trial beside a running comparison, on real Kafka and Redis; and what is kept, replayed."""

from __future__ import annotations

import json
import os
import signal
import uuid
from pathlib import Path
from typing import Any

from deploy.embedded.kafka import Kafka
from tests.support.cases import running
from tests.support.commands import twinstream
from tests.support.marks import whole_product
from tests.support.poisonous import POISON
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product()

LOOSER = "identity: [k]\nequality: {ignore: [n]}\n"


def command(*arguments: str) -> tuple[int, str]:
    code, out, err = twinstream(*arguments)
    return code, out + err


def looser_rules(folder: Path, reference: str, candidate: str) -> tuple[str, Path, Path]:
    """A comparison of two topics: its name, its file, and one that ignores more."""
    name = f"trial-{uuid.uuid4().hex[:8]}"
    (folder / "trial").mkdir()
    live = spec_file(folder, name, reference, candidate, "identity: [k]\n")
    return name, live, spec_file(folder / "trial", name, reference, candidate, LOOSER)


def test_a_trial_goes_on_over_kill_9_and_the_comparison_stays_what_it_is(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    topics = topic(), topic()
    name, live, tried = looser_rules(tmp_path, *topics)
    service = ServiceProcess(live, kafka.brokers, redis_url, "--trial", str(tried))
    writer = Writer(kafka.brokers, *topics)
    service.start()
    try:
        writer.both(range(200))
        writer.reference(3, 1000)
        writer.candidate(3, 2000)
        writer.both(range(200, 400))
        trial = eventually(lambda: _settled(service, 400), seconds=60, what="both have settled")
        assert trial["contrast"]["hidden_by_kind"] == {"changed": 1}
        eventually(
            lambda: service.gate() == "fail", seconds=60, what="the difference is saved, and the gate fails"
        )
        assert service.get("/trial/divergences")["items"] == []
        os.kill(service.matchers()[0], signal.SIGKILL)
        writer.both(range(400, 500))
        again = eventually(lambda: _settled(service, 500), seconds=60, what="the trial goes on")
        assert (again["state"], again["since"]) == ("running", trial["since"])
        assert again["matched"] == 501
        assert again["contrast"]["hidden"] == trial["contrast"]["hidden"]
        code, told = command("status", name, "--service", service.address)
        assert (code, "it hides 1 (1 changed)" in told) == (1, True)
        given = ("--spec", str(tried), "--name", name, "--service", service.address, "--json")
        code, told = command("replay", *given, "--brokers", kafka.brokers)
        (item,) = json.loads(told)["items"]
        assert (code, item["outcome"]) == (1, "equal")
    finally:
        service.stop()


def test_a_trial_begins_beside_a_comparison_that_runs_and_one_sided_events_find_their_partners(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    topics = topic(), topic()
    _, live, tried = looser_rules(tmp_path, *topics)
    writer = Writer(kafka.brokers, *topics)
    with running(ServiceProcess(live, kafka.brokers, redis_url)) as service:
        writer.both(range(300))
        for key in (5, 6):
            writer.reference(key, 1000)
        writer.flush()
        eventually(lambda: service.get("")["unmatched"]["reference"] == 2, seconds=60, what="two wait")
    with running(ServiceProcess(live, kafka.brokers, redis_url, "--trial", str(tried))) as service:
        eventually(lambda: _state(service) == "running", seconds=60, what="it begins")
        writer.candidate(5, 1000)
        writer.candidate(6, 2000)
        writer.both(range(300, 500))
        trial = eventually(lambda: _hides_one(service, 202), seconds=60, what="both have settled")
        assert trial["divergences"]["total"] == 0
        eventually(
            lambda: service.gate() == "fail", seconds=60, what="the comparison is held to its own rules"
        )
        os.kill(service.matchers()[0], signal.SIGKILL)
        writer.both(range(500, 600))
        again = eventually(lambda: _hides_one(service, 302), seconds=60, what="the trial goes on")
        assert (again["state"], again["since"]) == ("running", trial["since"])


def _state(service: ServiceProcess) -> str | None:
    """That of the trial, once it is heard of."""
    trial: dict[str, Any] | None = service.get("")["trial"]
    return None if trial is None else str(trial["state"])


def _hides_one(service: ServiceProcess, pairs: int) -> dict[str, Any] | None:
    """The trial, once it has so many pairs and hides the one divergence of the comparison."""
    trial: dict[str, Any] | None = service.get("")["trial"]
    if trial is None or trial["contrast"] is None or trial["matched"] != pairs:
        return None
    return trial if trial["contrast"]["hidden_by_kind"] == {"changed": 1} else None


def _settled(service: ServiceProcess, pairs: int) -> dict[str, Any] | None:
    """The trial, once it has as many pairs, both have settled what differs, and nothing does for it."""
    status = service.get("")
    trial: dict[str, Any] | None = status["trial"]
    if trial is None or trial["contrast"] is None:
        return None
    complete = status["matched"] >= pairs and trial["matched"] > pairs and trial["verdict"] == "EQUIVALENT"
    return trial if complete and trial["contrast"]["of_live"]["hidden"] == 1 else None


def test_the_api_alone_shows_what_a_trial_finds(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    reference, candidate = topic(), topic()
    name = f"trial-{uuid.uuid4().hex[:8]}"
    for part in ("api", "trial"):
        (tmp_path / part).mkdir()
    live = spec_file(tmp_path, name, reference, candidate)
    tried = spec_file(tmp_path / "trial", name, reference, candidate, order="total")
    matcher = ServiceProcess(live, kafka.brokers, redis_url, "--role", "matcher", "--trial", str(tried))
    same = spec_file(tmp_path / "api", name, reference, candidate)
    api = ServiceProcess(same, kafka.brokers, redis_url, "--role", "api")
    writer = Writer(kafka.brokers, reference, candidate)
    with running(matcher), running(api):
        for key in (1, 2):
            writer.reference(key, key)
            writer.candidate(3 - key, 3 - key)
        writer.both(range(100, 200))
        found = eventually(lambda: _of_the_trial(api), seconds=60, what="its divergence is shown")
        assert [one["kind"] for one in found] == ["reordered"]
        eventually(lambda: api.gate() == "pass", seconds=60, what="the comparison has none")
        assert api.get("/divergences")["items"] == []


def _of_the_trial(service: ServiceProcess) -> list[dict[str, Any]]:
    """The divergences of the trial, once it is heard of."""
    items = [] if service.get("")["trial"] is None else service.get("/trial/divergences")["items"]
    return list(items)


def test_a_trial_that_kills_the_matcher_is_ended_and_nothing_is_held_against_the_record(
    kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path
) -> None:
    reference, candidate = topic(), topic()
    name = f"trial-{uuid.uuid4().hex[:8]}"
    (tmp_path / "trial").mkdir()
    live = spec_file(tmp_path, name, reference, candidate)
    order = '{callable: "tests.support.poisonous:related"}'
    tried = spec_file(tmp_path / "trial", name, reference, candidate, order=order)
    service = ServiceProcess(live, kafka.brokers, redis_url, "--trial", str(tried))
    writer = Writer(kafka.brokers, reference, candidate)
    service.start()
    try:
        writer.both(range(POISON - 3, POISON + 30))
        ended = eventually(lambda: _ended(service, 33), seconds=60, what="the trial is over")
        assert ended["reason"].startswith("the matcher fell while the trial took offsets ")
        eventually(lambda: service.gate() == "pass", what="nothing stands against a pass")
        status = service.get("")
        assert (status["holes"], status["undecodable"]) == ([], [])
    finally:
        service.stop()


def _ended(service: ServiceProcess, pairs: int) -> dict[str, Any] | None:
    """The trial, once it has ended and the comparison has all pairs."""
    status = service.get("")
    trial: dict[str, Any] | None = status["trial"]
    if trial is None or trial["state"] != "ended" or status["matched"] < pairs:
        return None
    return trial
