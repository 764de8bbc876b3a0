"""The command `twinstream` as a user runs it: a process of its own, and nothing seen but its answer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import forking

COMMAND = Path(sys.executable).with_name("twinstream")
SECONDS = 150
"""No command of a test takes longer, however busy the machine is."""
STARTED = os.environ.get("TWINSTREAM_COMMANDS") == "started"
"""Whether each command is a program that is started, as it is each night, and none is forked."""
AT_START = ("PYTHON", "LANG", "LC_", "LD_")
FORKED = {"PYTHONIOENCODING", "PYTHONPATH"}
"""What Python looks at when it starts, and not later; and what of it one that is forked looks at, too."""


def twinstream(
    *arguments: str | Path,
    folder: Path | None = None,
    stdin: bytes = b"",
    encoding: str = "utf-8",
    **environment: str,
) -> tuple[int, str, str]:
    """Its exit code, and what it says on standard output (in that encoding) and on standard error.

    What goes wrong is said in a sentence, so no trace of a stack is in it.
    """
    words = [str(argument) for argument in arguments]
    run = run_started if is_started(environment) else run_forked
    code, told, complained = run(words, folder or Path.cwd(), {**os.environ, **environment}, stdin)
    out, err = told.decode(encoding), complained.decode()
    assert "Traceback" not in out + err
    return code, out, err


def said(*arguments: str | Path, code: int = 0, **given: Any) -> str:
    """What the command says on standard output; it ends with this exit code, and complains of nothing."""
    found, out, err = twinstream(*arguments, **given)
    assert (found, err) == (code, "")
    return out


def is_started(environment: Mapping[str, str]) -> bool:
    """Whether a command with these variables, besides those of the tests, is started and not forked."""
    return STARTED or any(name.startswith(AT_START) for name in environment.keys() - FORKED)


def run_started(
    arguments: list[str], folder: Path, environment: dict[str, str], stdin: bytes
) -> tuple[int, bytes, bytes]:
    """Start the program."""
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def run_forked(
    arguments: list[str], folder: Path, environment: dict[str, str], stdin: bytes
) -> tuple[int, bytes, bytes]:
    """Have a process forked that is the program from there on."""
    return forking.run([str(COMMAND), *arguments], str(folder), environment, stdin, SECONDS)
