"""The scripts that submit the job of a comparison: what they tell Spark, and what they ask for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from twinstream.spark.matcher.__main__ import main

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "deploy" / "spark-matcher"
SPEC = "{version: 1, name: orders, reference: {topic: v1}, candidate: {topic: v2}, order: {per_key: [k]}}"
GIVEN = [
    "--brokers",
    "kafka:9092",
    "--results",
    "results",
    "--checkpoint",
    "hdfs:///state/orders",
    "--shards",
    "32",
]
SETTINGS = {
    "standalone": {"MASTER": "spark://host:7077", "PYSPARK_PYTHON": sys.executable},
    "yarn": {"ARCHIVE": "/opt/python.tar.gz"},
}
SIZE = {"EXECUTORS": "2", "CORES": "4"}
each_script = pytest.mark.parametrize("script", SETTINGS)


def run(folder: Path, script: str, *arguments: str, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script where `spark-submit` writes its words, one a line."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "spark-submit").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    (programs / "twinstream").write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from twinstream.cli.main import main; main()" "$@"\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    environment = {
        **{name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ},
        **SETTINGS[script],
        **SIZE,
        "PATH": f"{programs}:/usr/bin:/bin",
    }
    environment.pop(without, None)
    return subprocess.run(
        [str(SCRIPTS / f"{script}.sh"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


Told = dict[str, tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """For each script the options that it gives Spark, and what the job takes its words for."""
    found = {}
    for script in SETTINGS:
        folder = tmp_path_factory.mktemp("here") / script
        folder.mkdir()
        for name, text in (("orders of today.yaml", SPEC), ("settings.yaml", "kafka: {}")):
            (folder / name).write_text(text)
        files = [f"{folder}/orders of today.yaml", *GIVEN, "--config", f"{folder}/settings.yaml"]
        done = run(folder, script, *files)
        assert done.returncode == 0, done.stderr
        words = done.stdout.splitlines()
        (program,) = (place for place, word in enumerate(words) if word.endswith("matcher/__main__.py"))
        found[script] = " ".join(words[:program]), main.make_context("job", words[program + 1 :]).params
    return found


def test_a_standalone_cluster_gives_its_cores_and_the_driver_reads_the_files_where_they_are(
    told: Told,
) -> None:
    options, job = told["standalone"]
    assert "--master spark://host:7077 --executor-cores 4 --total-executor-cores 8 " in options
    assert job["spec"].endswith("/standalone/orders of today.yaml")
    assert job["config"].endswith("/standalone/settings.yaml")


def test_yarn_gets_the_files_and_the_driver_reads_them_by_name(told: Told) -> None:
    options, job = told["yarn"]
    assert "--master yarn --deploy-mode cluster --num-executors 2 --executor-cores 4 " in options
    assert "--archives /opt/python.tar.gz#python " in options
    (sent,) = re.findall("--files (.*) --conf spark.pyspark.python=./python/bin/python ", options)
    assert [Path(file).name for file in sent.split(",")] == ["orders of today.yaml", "settings.yaml"]
    assert (job["spec"], job["config"]) == ("orders of today.yaml", "settings.yaml")


@each_script
def test_a_task_is_there_for_each_core_and_the_job_gets_what_was_given(told: Told, script: str) -> None:
    options, job = told[script]
    assert "--conf spark.sql.shuffle.partitions=8 " in options
    names = ("brokers", "results", "checkpoint", "shards")
    assert [job[name] for name in names] == ["kafka:9092", "results", "hdfs:///state/orders", 32]


@pytest.mark.parametrize(
    ("script", "name"), [(script, name) for script in SETTINGS for name in {**SETTINGS[script], **SIZE}]
)
def test_what_a_script_needs_it_asks_for(tmp_path: Path, script: str, name: str) -> None:
    done = run(tmp_path, script, "orders.yaml", *GIVEN, without=name)
    assert done.returncode == 1
    assert f"{name}: give the " in done.stderr


@each_script
def test_a_comparison_that_cannot_be_divided_is_not_submitted(tmp_path: Path, script: str) -> None:
    (tmp_path / "orders.yaml").write_text(SPEC.replace("{per_key: [k]}", "total"))
    done = run(tmp_path, script, f"{tmp_path}/orders.yaml", *GIVEN)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be divided by key" in done.stderr
