"""The images, as far as can be seen without a container engine: linted, and held to what they promise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy" / "docker").glob("*.Dockerfile"))
IGNORED = ROOT / ".dockerignore"
HADOLINT = Path(sys.executable).with_name("hadolint")

Instruction = tuple[str, str]


def instructions(file: Path) -> list[Instruction]:
    """Each instruction with its argument on one line."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(name, argument) for name, argument in (line.split(maxsplit=1) for line in joined.splitlines())]


def last_stage(file: Path) -> dict[str, str]:
    """The instructions that a container sees."""
    every = instructions(file)
    begin = max(number for number, (name, _) in enumerate(every) if name == "FROM")
    return dict(every[begin:])


def of(file: Path, wanted: str) -> list[str]:
    return [argument for name, argument in instructions(file) if name == wanted]


each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def test_there_is_an_image_of_the_service_one_of_its_spark_job_and_one_of_the_pipelines() -> None:
    assert [file.stem for file in FILES] == ["pipelines", "service", "spark-matcher"]


@each_file
def test_hadolint_finds_nothing(file: Path) -> None:
    done = subprocess.run([HADOLINT, file], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@each_file
def test_a_base_is_pinned_to_an_exact_version_and_no_address_of_a_registry_is_in_it(file: Path) -> None:
    bases = [argument.split()[0] for argument in of(file, "FROM")]
    assert bases
    for base in bases:
        assert re.fullmatch(r"[a-z-]+(/[a-z-]+)?:\d+\.\d+\.\d+[\w.-]*", base), base
    addresses = re.findall(r"https?://[^\s/'\"]+", file.read_text())
    assert set(addresses) <= {"http://127.0.0.1:8080"}
    assert "index-url" not in file.read_text()


@each_file
def test_a_container_is_not_root_says_whether_it_is_well_and_has_no_shell_before_its_program(
    file: Path,
) -> None:
    seen = last_stage(file)
    assert seen["USER"] == "10001:10001"
    health = seen["HEALTHCHECK"]
    if file.stem != "spark-matcher":  # whose pods the operator of Spark watches
        assert json.loads(health.split("CMD", 1)[1])[0] == "python"
        said = set(re.findall(r"--[a-z-]+", health))
        assert {"--interval", "--timeout", "--start-period", "--retries"} <= said
    for name in ("ENTRYPOINT", "CMD"):  # a shell would stand between signals and the program
        assert not {"sh", "bash", "/bin/sh", "/bin/bash", "-c"} & set(json.loads(seen[name]))


@each_file
def test_what_is_installed_is_locked_by_hashes_or_made_here(file: Path) -> None:
    steps = [
        step for run in of(file, "RUN") for step in run.split("&&") if "pip" in step.split(maxsplit=1)[0]
    ]
    assert steps
    for step in steps:
        assert "--require-hashes" in step or "--no-deps" in step, step


@each_file
def test_what_is_copied_exists_and_is_sent_to_the_builder(file: Path) -> None:
    first, *lines = (line for line in IGNORED.read_text().splitlines() if not line.startswith("#"))
    assert first == "*", "by default nothing is sent to the builder"
    admitted = {line.removeprefix("!").rstrip("/") for line in lines if line.startswith("!")}
    for copy in of(file, "COPY"):
        *sources, _ = copy.split()
        if sources[0].startswith("--from"):
            continue
        for source in sources:
            assert list(ROOT.glob(source)), f"{source} is not there"
            above = {source, *map(str, Path(source).parents)}
            below = {path for path in admitted if path.startswith(f"{source}/")}
            assert above & admitted or below, f"{source} is left out by .dockerignore"


@pytest.mark.parametrize("name", ["service", "wheel", "pipelines", "spark-matcher", "build"])
def test_an_image_has_the_versions_that_are_tested(name: str) -> None:
    tested = pins(ROOT / "requirements" / "dev.txt") | pins(ROOT / "requirements" / "build.txt")
    assert pins(ROOT / "requirements" / f"{name}.txt").items() <= tested.items()


def pins(file: Path) -> dict[tuple[str, str], str]:
    """Version of each package; some have one for each version of Python."""
    found = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==(\S+)([^\n]*?) \\$", file.read_text(), re.MULTILINE)
    return {(name, marker): version for name, version, marker in found}
