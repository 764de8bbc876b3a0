"""The command `twinstream` as a user runs it: a process of its own, and nothing seen but its answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).with_name("twinstream")
SECONDS = 150
"""No command of a test takes longer, however busy the machine is."""


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
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    out, err = done.stdout.decode(encoding), done.stderr.decode()
    assert "Traceback" not in out + err
    return done.returncode, out, err
