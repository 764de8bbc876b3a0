"""The demo as a user runs it: an honest candidate passes, a bug has its verdict, and nothing stays behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.marks import whole_product
from tests.support.processes import marked, new_mark
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
DEMO = [sys.executable, "-m", "deploy.demo"]
OTHERS = {"duplicate": "duplicate", "field": "changed", "reorder": "reordered"}
"""The kind of divergence that each fault makes."""

pytestmark = whole_product(pytest.mark.requires_spark, seconds=360)


@dataclass(frozen=True)
class Run:
    """A bounded run that is over."""

    exit_code: int
    result: dict[str, Any]
    told: str


def run(*command: str) -> Run:
    mark = new_mark()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, **mark},
        capture_output=True,
        text=True,
        timeout=330,
        check=False,
    )
    assert marked(mark) == {}, "a bounded run leaves no process behind"
    assert done.stdout, done.stderr
    return Run(done.returncode, json.loads(done.stdout), done.stderr)


def demo(*options: str) -> Run:
    return run(*DEMO, "--json", *options)


def accounts_add_up(comparison: dict[str, Any]) -> bool:
    return all(
        account["consumed"] == sum(count for name, count in account.items() if name != "consumed")
        for account in comparison["accounts"].values()
    )


def is_named(result: dict[str, Any], told: str, kind: str) -> None:
    views = result["comparisons"]["ads-views"]
    assert (result["answer"], views["verdict"]) == ("fail", "DIVERGED")
    assert views["divergences"]["by_kind"][kind] > 0
    assert kind in told
    assert accounts_add_up(views)


def passes(result: dict[str, Any], *names: str) -> None:
    """These comparisons have matched something, and nothing differs."""
    for name in names:
        comparison = result["comparisons"][name]
        assert comparison["verdict"] == "EQUIVALENT"
        assert comparison["matched"] > 0
        assert comparison["divergences"]["total"] == 0
        assert accounts_add_up(comparison)


@pytest.mark.nightly
def test_a_bug_that_make_is_asked_for_fails_and_is_named() -> None:
    """One of the others each night, by chance: `test_pipelines` shows what each does to the views."""
    fault = random.SystemRandom().choice(list(OTHERS))
    print(f"fault {fault}")
    failed = run("make", "demo", f"FAULT={fault}", "DURATION=20", "JSON=1")
    assert failed.exit_code == 2, failed.told
    is_named(failed.result, failed.told, OTHERS[fault])


@pytest.mark.nightly
def test_a_candidate_that_stalls_is_undecided_and_no_difference() -> None:
    stalled = demo("--fault", "stall", "--duration", "30")
    assert stalled.exit_code == 3, stalled.told
    assert stalled.result["answer"] == "undecided"
    for comparison in stalled.result["comparisons"].values():
        assert comparison["divergences"]["total"] == 0


@contextmanager
def running_demo(mark: dict[str, str], told: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A demo without an end that has printed the page's address."""
    command = [*DEMO, "--json", *options]
    with (
        told.open("wb") as file,
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **mark}, stdout=subprocess.PIPE, stderr=file
        ) as demo,
    ):
        try:
            eventually(
                lambda: "the page: http://" in told.read_text(), seconds=120, what="the page's address"
            )
            yield demo
        finally:
            demo.kill()


def interrupted(folder: Path, *options: str, said: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """The result of a demo that Ctrl-C ends once all this is said, with no process left; and what it said."""
    mark, told = new_mark(), folder / "told"
    with running_demo(mark, told, *options) as demo:
        for line in said:
            eventually(lambda line=line: line in told.read_text(), seconds=180, what=line)  # type: ignore[misc]
        demo.send_signal(signal.SIGINT)
        output, _ = demo.communicate(timeout=90)
    assert marked(mark) == {}
    assert demo.returncode == 0
    return json.loads(output), told.read_text()


def test_a_bug_is_named_where_it_is_what_is_equal_passes_and_ctrl_c_stops_everything_in_bounded_time(
    tmp_path: Path,
) -> None:
    said = ("ads-views is DIVERGED, fail", "ads-counts is EQUIVALENT, pass")
    result, told = interrupted(tmp_path, "--fault", "drop", said=said)
    is_named(result, told, "missing")
    passes(result, "ads-counts")


@pytest.mark.nightly
def test_an_honest_candidate_passes(tmp_path: Path) -> None:
    names = ("ads-views", "ads-counts")
    result, _ = interrupted(tmp_path, said=tuple(f"{name} is EQUIVALENT, pass" for name in names))
    assert (result["answer"], result["verdict"]) == ("pass", "EQUIVALENT")
    assert result["comparisons"].keys() == {*names}
    passes(result, *names)


@pytest.mark.nightly
def test_nothing_outlives_a_demo_that_is_killed(tmp_path: Path) -> None:
    mark = new_mark()
    with running_demo(mark, tmp_path / "told") as demo:
        eventually(
            lambda: sum("SparkSubmit" in command for command in marked(mark).values()) >= 2,
            what="both Spark applications run",
        )
        demo.kill()
    eventually(lambda: not marked(mark), seconds=60, what="no process is left")


@pytest.mark.nightly
def test_a_service_that_is_killed_is_started_again_and_said(tmp_path: Path) -> None:
    mark = new_mark()
    told = tmp_path / "told"
    with running_demo(mark, told) as demo:
        service = next(process for process, command in marked(mark).items() if "twinstream serve" in command)
        os.kill(service, signal.SIGKILL)
        eventually(lambda: "the service was killed: starting it again" in told.read_text(), what="it is said")
        eventually(
            lambda: any("twinstream serve" in command for command in marked(mark).values()),
            what="a new service runs",
        )
        assert demo.poll() is None
