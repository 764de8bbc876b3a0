"""A real Alertmanager with the example: causes hold back what follows, and the runbook's silences work."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded import prerequisites
from tests.support.prometheus import alertmanager as running_alertmanager
from tests.support.tools import run
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[str]:
    with running_alertmanager(tmp_path) as address:
        yield address


def amtool(address: str, *arguments: str) -> str:
    return run(prerequisites.AMTOOL, "--alertmanager.url", address, *arguments)


def add(address: str, name: str, comparison: str) -> None:
    amtool(address, "alert", "add", name, f"comparison={comparison}")


def held_back(address: str) -> dict[tuple[str, str], str]:
    """What is held back, by alert and comparison, and how."""
    every: list[dict[str, Any]] = json.loads(
        amtool(address, "alert", "query", "--inhibited", "--silenced", "--output", "json")
    )
    return {
        (alert["labels"]["alertname"], alert["labels"]["comparison"]): (
            "inhibited" if alert["status"]["inhibitedBy"] else "silenced"
        )
        for alert in every
        if alert["status"]["inhibitedBy"] or alert["status"]["silencedBy"]
    }


def test_what_follows_from_a_cause_is_held_back_in_that_comparison_only(alertmanager: str) -> None:
    for name, comparison in (
        ("TwinstreamHole", "ads"),
        ("TwinstreamUndecided", "ads"),
        ("TwinstreamUndecided", "rides"),
        ("TwinstreamCrashLoop", "rides"),
        ("TwinstreamMatcherFell", "rides"),
        ("TwinstreamDiverged", "rides"),
    ):
        add(alertmanager, name, comparison)
    expected = {
        ("TwinstreamUndecided", "ads"): "inhibited",
        ("TwinstreamUndecided", "rides"): "inhibited",
        ("TwinstreamMatcherFell", "rides"): "inhibited",
    }
    eventually(lambda: held_back(alertmanager) == expected, what="causes hold back what follows from them")


def test_the_runbook_s_silence_is_for_one_alert_of_one_comparison_and_can_be_ended(alertmanager: str) -> None:
    for comparison in ("ads", "rides"):
        add(alertmanager, "TwinstreamDiverged", comparison)
    runbook = (ROOT / "docs" / "alerts.md").read_text().replace("\\\n", " ")
    commands = re.findall(r"^amtool (silence .*)$", runbook, re.MULTILINE)
    new, query, expire = (
        [word for word in shlex.split(text) if not word.startswith(("--alertmanager", "http"))]
        for text in commands
    )
    number = amtool(alertmanager, *new).strip()
    silenced = {("TwinstreamDiverged", "ads"): "silenced"}
    eventually(lambda: held_back(alertmanager) == silenced, what="the alert is silenced")
    assert number in amtool(alertmanager, *query)
    amtool(alertmanager, *(number if word == "ID" else word for word in expire))
    eventually(lambda: held_back(alertmanager) == {}, what="the silence is ended")
