"""The templates of release tools, by those tools' own rules, on the answers of the running service.

The rules are those of the tools' sources: Argo Rollouts' `webmetric.go`, `evaluate.go` and `analysis.go`,
Flagger's `webhook.go` and `scheduler.go`. Paths and conditions are read by the grammar that the template uses
and no more: one that says more is refused here, and then wants its rule.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.server import READER as TOKEN
from tests.support.server import TOKENS, Served, served
from tests.support.service import WEB
from tests.support.statuses import coverage, diverged, expectation, now, status
from twinstream.access import read_tokens
from twinstream.api.state.board import Board
from twinstream.settings import time_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPARISON, VERSION = "orders", "1.9.0"
ENOUGH = 100_000
NOWHERE = "http://127.0.0.1:1"


def template(name: str) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load((DEPLOY / name).read_text())
    return read


@pytest.fixture
def service() -> Iterator[Served]:
    keys = read_tokens(TOKENS, "tokens")
    with served(Board(stale_after_seconds=60), keys=keys) as service:
        service.call(lambda: service.board.expect(expectation(COMPARISON)))
        yield service


def say(service: Served, answer: str) -> None:
    """Have the gate answer so; `scarce` is a pass with fewer pairs than the templates ask for."""
    at = now()
    if answer == "fail":
        service.publish(diverged(COMPARISON, at))
    elif answer == "undecided":
        service.publish(status(COMPARISON, at, verdict="PENDING", reason="only 3 of 1000 matches"))
    else:
        pairs = ENOUGH if answer == "pass" else ENOUGH - 10
        service.publish(status(COMPARISON, at, matched=pairs, coverage=coverage(pairs, at=at)))


def ago(seconds: float) -> str:
    return (now() - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


LIMITS = {"failureLimit": 0, "inconclusiveLimit": 0, "consecutiveErrorLimit": 4}
METRIC: dict[str, Any] = {
    "count": 1,
    "interval": "",
    "successCondition": "",
    "failureCondition": "",
    **LIMITS,
}
"""The fields of Argo's metric, besides `name` and `provider`, with their defaults."""


class Analysis:
    """An AnalysisRun of the template."""

    def __init__(self, **given: str) -> None:
        spec = template("argo/analysis-template.yaml")["spec"]
        self.args = {argument["name"]: argument.get("value") for argument in spec["args"]}
        self.args |= {"token": TOKEN, "comparison": COMPARISON, "candidate": VERSION, **given}
        (given_metric,) = spec["metrics"]
        assert set(given_metric) <= METRIC.keys() | {"name", "provider"}, "Argo knows each field"
        self.metric = {**METRIC, **given_metric}
        self.phases: list[str] = []

    def filled(self, text: str) -> str:
        return re.sub(r"\{\{args\.([\w-]+)\}\}", lambda name: str(self.args[name[1]]), text)

    def measure(self) -> str:
        """One measurement, and what the run comes to by it."""
        self.phases.append(self._phase())
        return self._assess()

    def _phase(self) -> str:
        web = self.metric["provider"]["web"]
        headers = {header["key"]: self.filled(header["value"]) for header in web["headers"]}
        try:
            found = WEB.get(self.filled(web["url"]), headers=headers, timeout=web["timeoutSeconds"])
            found.raise_for_status()
        except httpx.HTTPError:
            return "Error"
        path = re.fullmatch(r"\{\$\.(\w+)\}", web["jsonPath"])
        assert path
        return evaluated(self.metric, found.json()[path[1]])

    def _assess(self) -> str:
        metric, phases = self.metric, self.phases
        errors = next((n for n, phase in enumerate(reversed(phases)) if phase != "Error"), len(phases))
        if phases.count("Failed") > metric["failureLimit"]:
            return "Failed"
        if phases.count("Inconclusive") > metric["inconclusiveLimit"]:
            return "Inconclusive"
        if errors > metric["consecutiveErrorLimit"]:
            return "Error"
        return "Successful" if len(phases) - phases.count("Error") >= metric["count"] else "Running"


def evaluated(metric: dict[str, Any], result: str) -> str:
    """Argo's `EvaluateResult`: where one condition is missing, it is the other's opposite."""

    def holds(condition: str) -> bool:
        wanted = re.fullmatch(r'result == "(\w+)"', condition)
        assert wanted, condition
        return result == wanted[1]

    success, failure = (
        holds(condition) if condition else None
        for condition in (metric["successCondition"], metric["failureCondition"])
    )
    if failure or (failure is None and success is False):
        return "Failed"
    return "Inconclusive" if success is False else "Successful"


@pytest.mark.parametrize(
    ("answers", "given", "phase"),
    [
        ("pass pass pass pass pass", {}, "Successful"),
        ("fail", {}, "Failed"),
        ("pass fail", {}, "Failed"),
        ("undecided", {}, "Inconclusive"),
        ("scarce", {}, "Inconclusive"),
        ("pass pass pass pass undecided", {}, "Inconclusive"),
        ("pass", {"candidate": "1.9.1"}, "Inconclusive"),
        ("fail", {"candidate": "1.9.1"}, "Inconclusive"),
        ("pass", {"since": 310}, "Running"),
        ("pass", {"since": 250}, "Inconclusive"),
    ],
    ids=str,
)
def test_argo_goes_on_with_pass_aborts_with_fail_and_pauses_else_also_about_another_candidate_or_time(
    service: Served, answers: str, given: dict[str, Any], phase: str
) -> None:
    given = {name: ago(value) if name == "since" else value for name, value in given.items()}
    analysis = Analysis(service=service.url, **given)
    *before, last = answers.split()
    for answer in before:
        say(service, answer)
        assert analysis.measure() == "Running"
    say(service, last)
    assert analysis.measure() == phase


@pytest.mark.parametrize("wrong", [{"service": NOWHERE}, {"token": "another-token-123456789"}])
def test_argo_neither_goes_on_nor_aborts_while_the_service_does_not_answer(
    service: Served, wrong: dict[str, str]
) -> None:
    say(service, "pass")
    analysis = Analysis(**{"service": service.url, **wrong})
    assert {analysis.measure() for _ in range(10)} == {"Running"}
    analysis.args |= {"service": service.url, "token": TOKEN}
    assert [analysis.measure() for _ in range(5)] == ["Running"] * 4 + ["Successful"]


class Flagger:
    """A Canary of the template, one tick of Flagger's scheduler at a time."""

    def __init__(self, url: str) -> None:
        self.analysis = template("flagger/canary.yaml")["spec"]["analysis"]
        self.address = url.removeprefix("http://")
        self.phase, self.weight, self.failed = "Waiting", 0, 0

    def succeeds(self, kind: str) -> bool:
        """Flagger's `CallWebhook`, on the one hook of this kind: whatever is above 202 is an error."""
        (hook,) = (hook for hook in self.analysis["webhooks"] if hook["type"] == kind)
        url = hook["url"].replace("twinstream.twinstream:8080", self.address).replace("TOKEN", TOKEN)
        try:
            payload = {"name": "orders", "namespace": "default", "phase": self.phase, "metadata": {}}
            return WEB.post(url, json=payload).status_code <= 202
        except httpx.HTTPError:
            return False

    def ticks(self, count: int) -> list[str]:
        """The phases that follow, each with how many ticks it lasts."""
        phases = [self.tick() for _ in range(count)]
        return [f"{phase} {len(list(same))}" for phase, same in groupby(phases)]

    def tick(self) -> str:
        if self.phase == "Waiting":
            self.phase = "Progressing" if self.succeeds("confirm-rollout") else "Waiting"
        elif self.phase == "Progressing":
            self._progress()
        return self.phase

    def _progress(self) -> None:
        if self.succeeds("rollback") or self.failed >= self.analysis["threshold"]:
            self.phase = "Failed"
        elif not self.succeeds("rollout" if self.weight else "pre-rollout"):
            self.failed += 1
        elif self.weight >= self.analysis["maxWeight"]:
            self.phase = "Promoting"
        else:
            self.weight += self.analysis["stepWeight"]


@pytest.fixture
def begun(service: Served) -> Flagger:
    """A rollout that the gate has let begin."""
    say(service, "pass")
    flagger = Flagger(service.url)
    assert flagger.tick() == "Progressing"
    return flagger


@pytest.mark.parametrize("answer", ["fail", "undecided", "scarce"])
def test_flagger_does_not_begin_without_a_pass(service: Served, answer: str) -> None:
    say(service, answer)
    flagger = Flagger(service.url)
    assert flagger.ticks(40) == ["Waiting 40"]
    say(service, "pass")
    assert flagger.tick() == "Progressing"


def test_flagger_promotes_what_passes_all_the_way(begun: Flagger) -> None:
    assert begun.ticks(6) == ["Progressing 5", "Promoting 1"]
    assert begun.failed == 0


def test_flagger_rolls_back_with_fail_at_once(service: Served, begun: Flagger) -> None:
    begun.tick()
    say(service, "fail")
    assert (begun.tick(), begun.failed) == ("Failed", 0)


def test_flagger_halts_while_the_gate_is_undecided_and_goes_on_after_it(
    service: Served, begun: Flagger
) -> None:
    begun.tick()
    say(service, "undecided")
    assert begun.ticks(29) == ["Progressing 29"]
    assert (begun.weight, begun.failed) == (10, 29)
    say(service, "pass")
    assert begun.ticks(5) == ["Progressing 4", "Promoting 1"]


def test_flagger_sends_no_traffic_to_what_becomes_undecided_and_rolls_back_what_stays_so_for_half_an_hour(
    service: Served, begun: Flagger
) -> None:
    say(service, "undecided")
    assert (begun.tick(), begun.weight, begun.failed) == ("Progressing", 0, 1)
    assert begun.ticks(30) == ["Progressing 29", "Failed 1"]
    assert begun.analysis["interval"] == "1m"


def test_flagger_is_not_told_to_roll_back_by_a_service_that_is_not_there(begun: Flagger) -> None:
    begun.address = NOWHERE.removeprefix("http://")
    assert (begun.tick(), begun.weight, begun.failed) == ("Progressing", 0, 1)


@pytest.mark.parametrize(
    ("answer", "version", "since", "code"),
    [
        ("pass", VERSION, 320, 0),
        ("fail", VERSION, 320, 1),
        ("undecided", VERSION, 320, 3),
        ("scarce", VERSION, 320, 3),
        ("pass", "1.9.1", 320, 3),
        ("pass", "", 320, 2),
        ("pass", VERSION, 10, 3),
        ("fail", VERSION, 10, 1),
        ("pass", VERSION, None, 2),
    ],
)
def test_github_actions_goes_on_with_pass_alone(
    service: Served, answer: str, version: str, since: int | None, code: int
) -> None:
    say(service, answer)
    (step,) = template("github-actions/gate.yml")["jobs"]["gate"]["steps"]
    assert "--wait 30m " in step["run"]
    script = step["run"].replace("--wait 30m ", "--wait 1s --poll 100ms ")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "VERSION": version,
        "SINCE": "" if since is None else ago(since),
        "TWINSTREAM_SERVICE": service.url,
        "TWINSTREAM_TOKEN": TOKEN,
    }
    command = ["bash", "-e", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr


def test_github_actions_releases_only_behind_the_gate() -> None:
    jobs = template("github-actions/gate.yml")["jobs"]
    assert (jobs["gate"]["needs"], jobs["release"]["needs"]) == ("shadow", "gate")
    for part in (*jobs.values(), *jobs["gate"]["steps"]):
        assert not {"if", "continue-on-error"} & part.keys()
    (step,) = jobs["gate"]["steps"]
    assert set(step["env"]) == {"VERSION", "SINCE", "TWINSTREAM_SERVICE", "TWINSTREAM_TOKEN"}


def test_github_actions_notes_when_the_new_version_was_started(tmp_path: Path) -> None:
    shadow = template("github-actions/gate.yml")["jobs"]["shadow"]
    output = tmp_path / "output"
    run = shadow["steps"][-1]["run"]
    subprocess.run(["bash", "-e", "-c", run], env={**os.environ, "GITHUB_OUTPUT": str(output)}, check=True)
    name, _, at = output.read_text().strip().partition("=")
    assert shadow["outputs"] == {"since": f"${{{{ steps.{shadow['steps'][-1]['id']}.outputs.{name} }}}}"}
    assert time_of(at) is not None


def test_as_a_score_undecided_is_neither_a_pass_nor_a_failure() -> None:
    """Kayenta's rule: a pass from one threshold on, a failure below the other, and marginal between them."""
    page = (ROOT / "docs" / "gates.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)
    score = {answer: int(number) for answer, number in rows}
    ((best, least),) = (map(int, found) for found in re.findall(r"`pass: (\d+)` and `marginal: (\d+)`", page))
    assert score.keys() == {"pass", "undecided", "fail"}
    assert score["fail"] < least < score["undecided"] < best <= score["pass"]
