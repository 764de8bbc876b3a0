"""Programs of Go modules are built once, at their version, and a build that fails says what Go said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploy.embedded import gotools
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.gotools import GoTool
from tests.support.tools import program

THING = GoTool("thing", "example.org/thing/cmd", "v1.2.3", "cmd", ("main.a=1", "main.b=2"))

# Says what Go says, and leaves a line for each time that it was run, with what it was asked for.
GO_THAT_WORKS = """#!/bin/sh
echo "$*" >>"$(dirname "$0")/runs"
sleep 0.3
mkdir -p "$GOBIN" && echo program >"$GOBIN/cmd"
"""
GO_THAT_FAILS = """#!/bin/sh
mkdir -p "$GOBIN" && echo half >"$GOBIN/cmd"
echo 'go: example.org/thing@v1.2.3: requires go >= 9.9' >&2
exit 1
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that programs are looked for in first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def test_a_version_of_a_program_is_built_once_also_by_two_at_the_same_time(
    path: Path, tmp_path: Path
) -> None:
    program(path, "go", GO_THAT_WORKS)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: gotools.ensure(THING, cache=tmp_path / "go", tell=str), range(2)))
    assert found == [tmp_path / "go" / "thing-v1.2.3" / "cmd"] * 2
    assert found[0].read_text() == "program\n"
    assert (path / "runs").read_text() == (
        "install -ldflags=-X main.a=1 -X main.b=2 example.org/thing/cmd@v1.2.3\n"
    )
    newer = GoTool("thing", THING.package, "v1.2.4", "cmd")
    assert gotools.ensure(newer, cache=tmp_path / "go", tell=str) != found[0]


def test_a_failure_says_what_go_said_and_leaves_nothing_to_be_found(path: Path, tmp_path: Path) -> None:
    program(path, "go", GO_THAT_FAILS)
    for _ in range(2):
        with pytest.raises(
            EmbeddedError, match=r"Go could not build thing v1\.2\.3: go: .* requires go >= 9\.9"
        ):
            gotools.ensure(THING, cache=tmp_path / "go", tell=str)


def test_a_missing_go_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedError, match="Go is missing: install the Debian package golang-go"):
        gotools.ensure(THING, cache=tmp_path / "go", tell=str)
