"""Programs that are had as Go modules alone: helm, and the reader of compose files.

Go builds them once, from a version that is named here and that Go checks against its own sums, and they
are kept in the clone. A program lives in a folder with its version, which is filled under another name and
renamed at the end: one that exists is complete.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded import prerequisites
from deploy.embedded.errors import EmbeddedError

CACHE = Path(__file__).parents[2] / ".cache" / "go"
"""Inside the clone and outside of any run's data; git ignores it."""

BUILD_SECONDS = 900
"""helm took two minutes on two cores, its modules fetched; a build that takes much longer hangs."""


@dataclass(frozen=True)
class GoTool:
    """A program of a Go module; `program` is what Go calls it, `values` are texts that its own build sets."""

    name: str
    package: str
    version: str
    program: str
    values: tuple[str, ...] = ()


HELM = GoTool(
    "helm",
    "helm.sh/helm/v3/cmd/helm",
    "v3.22.0",
    "helm",
    # The Kubernetes that it stands for where none is named; without them one of 2020.
    tuple(
        f"helm.sh/helm/v3/pkg/{package}.k8sVersion{part}"
        for package in ("chartutil", "lint/rules")
        for part in ("Major=1", "Minor=37")
    ),
)
COMPOSE = GoTool("compose-go", "github.com/compose-spec/compose-go/v2/cmd", "v2.16.2", "cmd")
"""The reference reader of the compose specification: schema, interpolation and consistency."""


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def ensure(tool: GoTool, *, cache: Path = CACHE, tell: Callable[[str], None] = _tell) -> Path:
    """Return the path of a program, building it first if this clone does not have it.

    Two processes that ask at once are fine: the second waits for the first.

    Raises:
        EmbeddedError: Go is missing, or could not build it.
    """
    folder = cache / f"{tool.name}-{tool.version}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{tool.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                tell(f"{tool.name} {tool.version}: Go builds it (minutes the first time) …")
                _build(tool, folder)
    return folder / tool.program


def _build(tool: GoTool, folder: Path) -> None:
    go = prerequisites.ensure(prerequisites.GO)
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    values = " ".join(f"-X {value}" for value in tool.values)
    command = [go, "install", f"-ldflags={values}", f"{tool.package}@{tool.version}"]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "GOBIN": str(unfinished)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EmbeddedError(f"Go has not built {tool.name} {tool.version} in {BUILD_SECONDS} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EmbeddedError(f"Go could not build {tool.name} {tool.version}: {last}")
    unfinished.rename(folder)
