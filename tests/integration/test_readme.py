"""What the README shows of the command and the Python functions is what a reader gets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import twinstream
from twinstream import Answer, check

README = Path(__file__).parents[2] / "README.md"
BIN = Path(sys.executable).parent


def blocks(heading: str, language: str) -> list[str]:
    """The code blocks of one section."""
    section = README.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def words(text: str) -> list[str]:
    """The text without its line breaks."""
    return text.split()


def test_the_commands_print_what_is_shown(tmp_path: Path) -> None:
    (script,) = blocks("Compare two files", "sh")
    (shown,) = blocks("Compare two files", "text")
    path = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=path, capture_output=True, check=False)
    assert done.stderr == b""
    assert words(done.stdout.decode()) == words(shown)
    assert done.returncode == 1


def test_the_test_fails_with_what_is_shown() -> None:
    program, _ = blocks("Compare in a test", "python")
    (shown,) = blocks("Compare in a test", "text")
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
    _, program = blocks("Compare in a test", "python")
    names: dict[str, object] = {}
    exec(program, names)
    answer = names["answer"]
    assert isinstance(answer, Answer)
    assert [example.kind for example in answer.examples] == ["missing"]


def test_every_option_and_member_that_is_named_is_there() -> None:
    text = README.read_text(encoding="utf-8").split("\n## Compare in a test\n")[1].split("\n## ")[0]
    options = check.__kwdefaults__ or {}
    for name in ("interleave", "open_ended", "allow_empty", "require_evidence", "trace"):
        assert f"`{name}`" in text
        assert name in options
    for name in ("SpecError", "InputError"):
        assert f"`{name}`" in text
        assert hasattr(twinstream, name)
