"""Programs of Debian that judge files of ours, and programs that stand in for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from deploy.embedded import prerequisites
from deploy.embedded.prerequisites import Prerequisite


def run(tool: Prerequisite, *arguments: str, text: str | None = None) -> str:
    """What a tool says, given `text` on standard input; it must end well and complain of nothing."""
    done = subprocess.run(
        [prerequisites.ensure(tool), *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def program(folder: Path, name: str, text: str) -> None:
    """Write a program into a folder."""
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)
