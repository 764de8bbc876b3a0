"""Programs that are had as Go modules alone: helm, and the reader of compose files.

Go builds them once, from a version that is named here and that Go checks against its own sums, and they
are kept in the clone, each in a folder with its version.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deploy.embedded import once, prerequisites
from deploy.embedded.errors import EmbeddedError

CACHE = once.CACHE / "go"

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


def ensure(tool: GoTool, *, cache: Path = CACHE, tell: Callable[[str], None] = once.tell) -> Path:
    """Return the path of a program, building it first if this clone does not have it.

    Raises:
        EmbeddedError: Go is missing, or could not build it.
    """
    return once.filled(cache / f"{tool.name}-{tool.version}", partial(_build, tool, tell)) / tool.program


def _build(tool: GoTool, tell: Callable[[str], None], folder: Path) -> None:
    tell(f"{tool.name} {tool.version}: Go builds it (minutes the first time) …")
    go = prerequisites.ensure(prerequisites.GO)
    values = " ".join(f"-X {value}" for value in tool.values)
    command = [go, "install", f"-ldflags={values}", f"{tool.package}@{tool.version}"]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "GOBIN": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EmbeddedError(f"Go has not built {tool.name} {tool.version} in {BUILD_SECONDS} s") from None
    if done.returncode != 0:
        raise EmbeddedError(f"Go could not build {tool.name} {tool.version}: {once.last_line(done.stderr)}")
