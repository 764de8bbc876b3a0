"""What the stack needs is found, fetched once, or asked for in one sentence that names the Debian package."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploy.embedded import jars, prerequisites
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.prerequisites import (
    AMTOOL,
    CHROMIUM,
    COMPILER,
    JAVA,
    MAVEN,
    PROMETHEUS,
    PROMTOOL,
    Prerequisite,
)
from tests.support.tools import program

JAVA_17 = "#!/bin/sh\necho 'openjdk version \"17.0.1\" 2021-10-19' >&2\n"
JAVA_11 = "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n"

# Says what Maven says, and leaves a line of its own for each time that it was run.
MAVEN_THAT_WORKS = """#!/bin/sh
for word in "$@"; do case "$word" in -DoutputDirectory=*) folder="${word#*=}";; esac; done
echo run >>"$(dirname "$0")/runs"
sleep 0.3
mkdir -p "$folder" && echo jar >"$folder/thing-1.0.jar"
echo "[INFO] Downloaded from central: somewhere/thing/1.0/thing-1.0.jar (3 kB at 9 kB/s)"
"""
MAVEN_THAT_FAILS = "#!/bin/sh\necho '[ERROR] thing:1.0 was not found'\nexit 1\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that programs are looked for in, but for the shell's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "sleep", "mkdir"):
        (folder / name).symlink_to(
            next(Path(one, name) for one in ("/bin", "/usr/bin") if Path(one, name).exists())
        )
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.mark.parametrize(
    ("wanted", "package"),
    [
        (JAVA, "openjdk-17-jre-headless"),
        (MAVEN, "maven"),
        (CHROMIUM, "chromium"),
        (PROMTOOL, "prometheus"),
        (PROMETHEUS, "prometheus"),
        (AMTOOL, "prometheus-alertmanager"),
        (COMPILER, "build-essential"),
    ],
)
@pytest.mark.usefixtures("path")
def test_what_is_missing_is_asked_for_by_its_debian_package(wanted: Prerequisite, package: str) -> None:
    # Also where the tests run as root: without apt-get on the path nothing can be installed.
    with pytest.raises(
        EmbeddedError, match=f"is missing: install the Debian package {package} .*and run this again"
    ):
        prerequisites.ensure(wanted)


def test_a_java_that_is_too_old_counts_as_missing_and_that_of_java_home_goes_first(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "java", JAVA_11)
    with pytest.raises(EmbeddedError, match="Java 17 or newer is missing"):
        prerequisites.ensure(JAVA)
    home = path.parent / "jdk"
    (home / "bin").mkdir(parents=True)
    program(home / "bin", "java", JAVA_17)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert prerequisites.ensure(JAVA) == str(home / "bin" / "java")


@pytest.mark.parametrize("has", [None, JAVA_11])
def test_a_java_home_without_a_java_is_named_also_beside_a_java_on_the_path(
    path: Path, monkeypatch: pytest.MonkeyPatch, has: str | None
) -> None:
    program(path, "java", JAVA_17)
    home = path.parent / "jdk"
    (home / "bin").mkdir(parents=True)
    if has:
        program(home / "bin", "java", has)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(
        EmbeddedError, match=f"JAVA_HOME is {home}, which has no Java 17 or newer: correct it"
    ):
        prerequisites.ensure(JAVA)


def test_as_root_on_debian_the_package_is_installed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(path, "mvn.of-debian", MAVEN_THAT_WORKS)
    program(
        path,
        "apt-get",
        f'#!/bin/sh\ncase "$*" in *update) exit;; esac; /bin/mv {path}/mvn.of-debian {path}/mvn\n',
    )
    assert prerequisites.ensure(MAVEN) == str(path / "mvn")


@pytest.fixture
def pom(path: Path, tmp_path: Path) -> Path:
    """A pom, and the programs that fetch what it asks for."""
    program(path, "java", JAVA_17)
    program(path, "mvn", MAVEN_THAT_WORKS)
    file = tmp_path / "thing.pom.xml"
    file.write_text("<project/>")
    return file


def test_jars_are_fetched_once_also_by_two_at_the_same_time(path: Path, pom: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: jars.ensure(pom, cache=tmp_path / "jars", tell=str), range(2)))
    assert [file.name for file in found[0]] == ["thing-1.0.jar"]
    assert found[0] == found[1]
    assert (path / "runs").read_text() == "run\n"


def test_progress_names_files_and_no_address_and_a_changed_pom_is_fetched_anew(
    pom: Path, tmp_path: Path
) -> None:
    told: list[str] = []
    before = jars.ensure(pom, cache=tmp_path / "jars", tell=told.append)
    assert told == [
        "jars of thing: asking Maven …",
        "jars of thing: fetched thing-1.0.jar",
        "jars of thing: 1 ready",
    ]
    pom.write_text("<project><!-- changed --></project>")
    assert jars.ensure(pom, cache=tmp_path / "jars", tell=str) != before


def test_a_failure_of_maven_says_what_maven_said(path: Path, pom: Path, tmp_path: Path) -> None:
    program(path, "mvn", MAVEN_THAT_FAILS)
    with pytest.raises(
        EmbeddedError, match=r"Maven could not fetch the jars of .*thing\.pom\.xml: thing:1\.0 was not"
    ):
        jars.ensure(pom, cache=tmp_path / "jars", tell=str)
