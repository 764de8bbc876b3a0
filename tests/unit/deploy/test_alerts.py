"""Rules, their runbook, and the example for Alertmanager hold together, and pass Prometheus' own tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.embedded import prerequisites
from tests.support.pages import sections
from tests.support.tools import run

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "deploy" / "prometheus"
ALERTMANAGER = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
DOCS = ROOT / "docs"
SEVERITIES = {"critical", "warning", "info"}


def rules() -> list[dict[str, Any]]:
    return [
        rule
        for file in sorted((PROMETHEUS / "rules").glob("*.yml"))
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    ]


ALERTS = [rule for rule in rules() if "alert" in rule]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_an_alert_says_how_bad_it_is_what_happened_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in SEVERITIES
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["summary"].endswith(".")
    assert len(alert["annotations"]["description"]) > len(alert["annotations"]["summary"])


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_the_runbook_of_an_alert_is_a_section_that_says_what_it_means_and_what_to_do(
    alert: dict[str, Any],
) -> None:
    page, anchor = alert["annotations"]["runbook_url"].split("#")
    assert page == "docs/alerts.md"
    assert anchor == alert["alert"].lower()
    section = sections(ROOT / page)[anchor]
    for part in ("*Means*", "*Look at*", "*Do*"):
        assert part in section


def test_the_runbook_lists_the_alerts_that_there_are_with_their_severity() -> None:
    listed = re.findall(
        r"^\| \[(\w+)\]\(#(\w+)\) \| (\w+) \|", (DOCS / "alerts.md").read_text(), re.MULTILINE
    )
    assert listed == [
        (alert["alert"], alert["alert"].lower(), alert["labels"]["severity"]) for alert in ALERTS
    ]


def test_every_alert_is_shown_firing_and_not_firing() -> None:
    cases = [
        case
        for test in yaml.safe_load((PROMETHEUS / "tests" / "alerts.yml").read_text())["tests"]
        for case in test.get("alert_rule_test", [])
    ]
    firing = {case["alertname"] for case in cases if case.get("exp_alerts")}
    silent = {case["alertname"] for case in cases if not case.get("exp_alerts")}
    assert firing == silent == {alert["alert"] for alert in ALERTS}


def test_the_rules_do_what_their_tests_say() -> None:
    assert "SUCCESS" in run(prerequisites.PROMTOOL, "test", "rules", str(PROMETHEUS / "tests" / "alerts.yml"))


def test_a_rule_without_its_threshold_is_told_by_its_test(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "tests").mkdir()
    for file in (PROMETHEUS / "rules").glob("*.yml"):
        text = file.read_text().replace("comparison:twinstream_holes:max[5m]) > 0", "vector(0)[5m:1m]) > 0")
        (tmp_path / "rules" / file.name).write_text(text)
    test = tmp_path / "tests" / "alerts.yml"
    test.write_text((PROMETHEUS / "tests" / "alerts.yml").read_text())
    with pytest.raises(AssertionError, match="alertname: TwinstreamHole"):
        run(prerequisites.PROMTOOL, "test", "rules", str(test))


def test_prometheus_takes_its_configuration_with_the_rules() -> None:
    said = run(prerequisites.PROMTOOL, "check", "config", str(PROMETHEUS / "prometheus.yml"))
    assert "2 rule files found" in said


def test_alertmanager_takes_its_configuration() -> None:
    assert "SUCCESS" in run(prerequisites.AMTOOL, "check-config", str(ALERTMANAGER))


@pytest.mark.parametrize(
    ("severity", "receiver"), [("critical", "on-call"), ("warning", "tickets"), ("info", "log")]
)
def test_alertmanager_sends_each_severity_where_it_belongs(severity: str, receiver: str) -> None:
    arguments = ("config", "routes", "test", f"--config.file={ALERTMANAGER}", f"severity={severity}")
    assert run(prerequisites.AMTOOL, *arguments).strip() == receiver


def test_what_alertmanager_holds_back_are_alerts_that_there_are() -> None:
    text = "\n".join(
        matcher
        for rule in yaml.safe_load(ALERTMANAGER.read_text())["inhibit_rules"]
        for matcher in (*rule["source_matchers"], *rule["target_matchers"])
    )
    named = set(re.findall(r"Twinstream\w+", text))
    assert len(named) > 5
    assert named <= {alert["alert"] for alert in ALERTS}
