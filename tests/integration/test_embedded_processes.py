"""No program outlives the process that started it, however that ends; a failure says where to look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import Process
from tests.support.processes import marked, new_mark
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]

STACK_PARENT = """
import sys, time
from pathlib import Path
from deploy.embedded.stack import Stack

with Stack(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(600)
"""

# A program like Spark's: its child starts a child in a session of its own, and goes.
FAMILY = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print("ready", flush=True)
time.sleep(600)
"""

FAMILY_PARENT = f"""
import sys, time
from pathlib import Path
from deploy.embedded.processes import Process

log = Path(sys.argv[1]) / "family.log"
with Process("family", [sys.executable, "-c", {FAMILY!r}], log=log, grace_seconds=2) as family:
    family.wait_until_ready(lambda: "ready" in log.read_text(), seconds=20)
    print("ready", flush=True)
    time.sleep(600)
"""


def run_until_ready(program: str, folder: Path, mark: dict[str, str]) -> subprocess.Popen[str]:
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        cwd=ROOT,
        env={**os.environ, **mark},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    return parent


def end(parent: subprocess.Popen[str], number: signal.Signals) -> None:
    with parent:
        parent.send_signal(number)
        parent.wait(60)


def none_left(mark: dict[str, str]) -> None:
    eventually(lambda: not marked(mark), seconds=30, what=f"no process is left of {marked(mark)}")


@pytest.mark.nightly
@pytest.mark.requires_kafka
@pytest.mark.requires_redis
@pytest.mark.timeout(180)
def test_kafka_and_redis_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    mark = new_mark()
    parent = run_until_ready(STACK_PARENT, tmp_path, mark)
    assert any("kafka.Kafka" in command for command in marked(mark).values())
    end(parent, signal.SIGKILL)
    none_left(mark)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_a_grandchild_in_its_own_session_ends_with_the_parent(tmp_path: Path, number: signal.Signals) -> None:
    mark = new_mark()
    parent = run_until_ready(FAMILY_PARENT, tmp_path, mark)
    family = "the parent, the guard, the program, and its orphaned grandchild"
    eventually(lambda: len(marked(mark)) == 4, what=family)
    end(parent, number)
    none_left(mark)


def test_a_program_ends_when_its_guard_is_killed(tmp_path: Path) -> None:
    mark = new_mark()
    with Process("sleep", ["sleep", "600"], log=tmp_path / "log", environment=mark) as process:
        guard = int(Path(f"/proc/{process.process_id}/stat").read_text().split()[3])
        os.kill(guard, signal.SIGKILL)
        none_left(mark)
        eventually(lambda: not process.running, what="the loss is noticed")


def test_a_program_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    mark = new_mark()
    log = tmp_path / "log"
    deaf = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]
    with Process("deaf", deaf, log=log, environment=mark, grace_seconds=0.5) as process:
        process.wait_until_ready(lambda: "ready" in log.read_text(), seconds=20)
    assert marked(mark) == {}
    assert process.exit_code == 128 + signal.SIGKILL


def test_a_paused_program_can_be_stopped_also_twice_and_started_again(tmp_path: Path) -> None:
    process = Process("sleep", ["sleep", "600"], log=tmp_path / "log")
    process.start()
    process.pause()
    process.stop()
    process.stop()
    assert process.exit_code == 128 + signal.SIGTERM
    process.restart()
    assert process.running
    process.stop()


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    process = Process("thing", ["/no/such/program"], log=tmp_path / "log")
    with pytest.raises(EmbeddedError, match=r"thing cannot be started: .*No such file.*: /no/such/program"):
        process.start()


def test_a_program_that_ends_before_it_is_ready_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    ended = Process("thing", ["sh", "-c", "echo no disk >&2; exit 3"], log=tmp_path / "thing.log")
    told = r"(?s)thing ended with exit code 3; its log is .*thing\.log .*\| no disk"
    with pytest.raises(EmbeddedError, match=told), ended:
        ended.wait_until_ready(lambda: False, seconds=20)
