"""What the README and docs/testing.md show of the command and the Python functions is what a reader gets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import twinstream
from twinstream import Answer, check

ROOT = Path(__file__).parents[2]
README, TESTING = ROOT / "README.md", ROOT / "docs" / "testing.md"
BIN = Path(sys.executable).parent


def blocks(page: Path, heading: str, language: str) -> list[str]:
    """The code blocks of one section."""
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def words(text: str) -> list[str]:
    """The text without its line breaks."""
    return text.split()


def run_the_commands(folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the commands of the README that compare two files; their files are then in the folder."""
    (script,) = blocks(README, "Compare two files", "sh")
    path = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", script], cwd=folder, env=path, capture_output=True, check=False)


def test_the_commands_print_what_is_shown(tmp_path: Path) -> None:
    (shown,) = blocks(README, "Compare two files", "text")
    done = run_the_commands(tmp_path)
    assert done.stderr == b""
    assert words(done.stdout.decode()) == words(shown)
    assert done.returncode == 1


def test_the_test_of_the_readme_tells_the_versions_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_the_commands(tmp_path)
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(README, "Compare in a test", "python")
    names: dict[str, object] = {"run_the_new_version": lambda: "new.jsonl"}
    exec(program, names)
    test = names["test_the_new_version_does_the_same"]
    assert callable(test)
    test()
    names["run_the_new_version"] = lambda: "bad.jsonl"
    with pytest.raises(AssertionError, match="DIVERGED"):
        test()


def test_the_test_fails_with_what_is_shown() -> None:
    (program,) = blocks(TESTING, "Two recorded outputs", "python")
    (shown,) = blocks(TESTING, "Two recorded outputs", "text")
    names: dict[str, object] = {}
    exec(program, names)
    expected = names["EXPECTED"]
    assert isinstance(expected, list)
    names["run_the_new_version"] = lambda: [expected[1], expected[2], expected[0]]
    test = names["test_the_new_version_does_the_same"]
    assert callable(test)
    with pytest.raises(AssertionError) as caught:
        test()
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
