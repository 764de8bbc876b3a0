"""What docs/first-comparison.md shows of a recorded stretch is what a reader gets who follows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "first-comparison.md"
OFFLINE = "\n## 5."
"""Where the part ends that needs no servers."""


def blocks() -> list[tuple[str, str]]:
    """The blocks of code of that part, each with its language."""
    text = PAGE.read_text(encoding="utf-8").split(OFFLINE)[0]
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def letters(text: str) -> str:
    """A text without spaces and line breaks, which depend on the width of the page."""
    return "".join(text.split())


def test_who_follows_the_first_part_sees_what_is_shown(tmp_path: Path) -> None:
    bin_folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    told, compared = "", 0
    for language, block in blocks():
        if language == "python":
            subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)
        elif language == "sh":
            done = subprocess.run(
                ["bash", "-c", block],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            told = done.stdout + done.stderr
        elif told:
            assert letters(told) == letters(block)
            told, compared = "", compared + 1
    assert compared == 5


def test_every_command_that_is_shown_says_what_it_prints() -> None:
    languages = [language for language, _ in blocks()]
    assert [after for before, after in pairwise(languages) if before == "sh"] == ["text"] * 5
