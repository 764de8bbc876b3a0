"""What the README and the docs show of commands and Python functions is what a reader gets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import twinstream
from deploy.embedded.kafka import Kafka
from deploy.embedded.redis_server import RedisServer
from tests.support.service import ServiceProcess
from tests.support.waiting import eventually
from twinstream import Answer, check

ROOT = Path(__file__).parents[2]
README, TESTING = ROOT / "README.md", ROOT / "docs" / "testing.md"
FIRST = ROOT / "docs" / "first-comparison.md"
OFFLINE, LIVE, RESET = "\n## 2.", "\n## 5.", "\n## 6."
"""Where the parts of `FIRST` begin: after the recording, without servers, with servers, and with a reset."""
BIN = Path(sys.executable).parent


def blocks(page: Path, heading: str, language: str) -> list[str]:
    """The code blocks of one section."""
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def words(text: str) -> list[str]:
    """The text without its line breaks."""
    return text.split()


def shell(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run commands as a reader does."""
    path = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment}
    command = ["bash", "-c", script]
    return subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False)


@pytest.fixture
def compared(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The commands of the README that compare two files, run; their files are then in the folder."""
    return shell("".join(blocks(README, "Compare two files", "sh")), tmp_path)


def test_the_commands_print_what_is_shown(compared: subprocess.CompletedProcess[str]) -> None:
    (shown,) = blocks(README, "Compare two files", "text")
    assert (compared.stderr, compared.returncode) == ("", 1)
    assert words(compared.stdout) == words(shown)


Block = tuple[str, str]
"""The language of a code block, and its text."""


def first_comparison(begin: str, end: str) -> list[Block]:
    """The code blocks of a part of the first comparison."""
    text = FIRST.read_text(encoding="utf-8").split(end)[0].split(begin)[-1]
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The folder with the recorded outputs of the first comparison."""
    ((_, program),) = (block for block in first_comparison("\n## 1.", OFFLINE) if block[0] == "python")
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    return tmp_path


def test_who_follows_the_first_comparison_sees_what_is_shown_behind_every_command(recorded: Path) -> None:
    told, shown = "", 0
    for language, block in first_comparison(OFFLINE, LIVE):
        if language == "sh":
            assert not told, "what a command prints is shown behind it"
            done = shell(block, recorded)
            told = done.stdout + done.stderr
        elif told:  # without spaces and line breaks, which depend on the width of the page
            assert "".join(words(told)) == "".join(words(block))
            told, shown = "", shown + 1
    assert shown == 5


def bare(told: str) -> str:
    """What is told, without line breaks, and without what differs from run to run: times and ids."""
    return "".join(words(re.sub(r"(at|from) \d{4}-[-\d: to]+ UTC|\b[0-9a-f]{16}\b", "", told)))


@pytest.mark.requires_kafka
@pytest.mark.requires_redis
@pytest.mark.timeout(300)
def test_who_follows_it_live_sees_what_is_shown(
    recorded: Path, kafka: Kafka, redis_server: RedisServer
) -> None:
    blocks = [block for block in first_comparison(LIVE, RESET) if block[0] != "console"]
    (_, program), (_, write), (_, topics), *asked = blocks
    (recorded / "write.py").write_text(program)
    for language, block in first_comparison(OFFLINE, LIVE):
        if language == "sh" and re.search("cat >|calibrate ", block):
            shell(block, recorded)
    written = shell(write, recorded, TWINSTREAM_BROKERS=kafka.brokers)
    assert bare(written.stdout + written.stderr) == bare(topics)
    spec = (recorded / "calibrated.yaml").rename(recorded / "orders.yaml")
    with ServiceProcess(spec, kafka.brokers, redis_server.url) as service:
        service.shows(matched=795, verdict="DIVERGED")
        for (_, command), (_, shown) in zip(asked[::2], asked[1::2], strict=True):

            def told(command: str = command) -> str:
                return bare(shell(command, recorded, TWINSTREAM_SERVICE=service.address).stdout)

            eventually(lambda told=told, shown=shown: told() == bare(shown), seconds=90, what=shown)


Test = Callable[[], None]


def run_the_test(program: str, output: object) -> Test:
    """The test that a program shows, with what the new version writes."""
    names: dict[str, object] = {}
    exec(program, names)
    names["run_the_new_version"] = lambda: output
    test = names["test_the_new_version_does_the_same"]
    assert callable(test)
    return test


@pytest.mark.usefixtures("compared")
def test_the_test_of_the_readme_tells_the_versions_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(README, "Compare in a test", "python")
    run_the_test(program, "old.jsonl")()
    with pytest.raises(AssertionError, match="DIVERGED"):
        run_the_test(program, "new.jsonl")()


def test_the_test_fails_with_what_is_shown() -> None:
    (program,) = blocks(TESTING, "Two recorded outputs", "python")
    (shown,) = blocks(TESTING, "Two recorded outputs", "text")
    names: dict[str, Any] = {}
    exec(program, names)
    first, *others = names["EXPECTED"]
    with pytest.raises(AssertionError) as caught:
        run_the_test(program, [*others, first])()
    told = "\n".join(line.removeprefix("E").strip() for line in shown.splitlines())
    assert words(str(caught.value)) == words(told.split("AssertionError: ")[1].split("assert False")[0])


def test_the_matcher_does_what_is_said_of_it() -> None:
    (program,) = blocks(TESTING, "One event at a time", "python")
    names: dict[str, object] = {}
    exec(program, names)
    answer = names["answer"]
    assert isinstance(answer, Answer)
    assert [example.kind for example in answer.examples] == ["missing"]


def test_every_option_and_member_that_is_named_is_there() -> None:
    text = TESTING.read_text(encoding="utf-8")
    options = check.__kwdefaults__ or {}
    for name in ("interleave", "open_ended", "allow_empty", "require_evidence", "trace"):
        assert f"`{name}`" in text
        assert name in options
    for name in ("SpecError", "InputError"):
        assert f"`{name}`" in text
        assert hasattr(twinstream, name)
