"""The arguments of `spark-submit` for the job of a comparison."""

from __future__ import annotations

import re
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from twinstream.cli.commands.spark_submit_args import spark_submit_args
from twinstream.errors import SettingsError
from twinstream.spark.matcher import __main__ as program

SPEC = """
version: 1
name: orders
reference: {{topic: v1}}
candidate: {{topic: v2}}
order: {order}
"""
OWN = ["--brokers", "kafka:9092", "--results", "results", "--checkpoint", "s3a://state/orders"]


def words(tmp_path: Path, *more: str, order: str = "{per_key: [k]}") -> list[str]:
    """What the command prints, as the words of a shell."""
    spec = tmp_path / "orders of today.yaml"
    spec.write_text(SPEC.format(order=order))
    done = CliRunner().invoke(spark_submit_args, [str(spec), *OWN, *more], catch_exceptions=False)
    assert done.exit_code == 0
    return shlex.split(done.output)


def test_the_job_takes_what_is_printed_behind_its_program(tmp_path: Path) -> None:
    found = words(tmp_path, "--shards", "32", "--config", "settings.yaml")
    assert found[:2] == ["--packages", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version('pyspark')}"]
    assert Path(found[2]) == Path(program.__file__)
    told = program.main.make_context("job", found[3:]).params
    assert Path(told.pop("spec")).name == "orders of today.yaml"
    assert {name: told[name] for name in ("brokers", "results", "checkpoint", "shards", "config")} == {
        "brokers": "kafka:9092",
        "results": "results",
        "checkpoint": "s3a://state/orders",
        "shards": 32,
        "config": "settings.yaml",
    }


def test_jars_take_the_place_of_a_package_where_spark_reaches_no_registry(tmp_path: Path) -> None:
    assert words(tmp_path, "--jars", "a.jar,b.jar")[:2] == ["--jars", "a.jar,b.jar"]


def test_what_cannot_be_divided_is_refused_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be divided by key"):
        words(tmp_path, order="total")


def test_the_shown_command_keeps_words_together(tmp_path: Path) -> None:
    spec = tmp_path / "orders of today.yaml"
    spec.write_text(SPEC.format(order="{per_key: [k]}"))
    said = CliRunner().invoke(spark_submit_args, [str(spec), *OWN]).output
    shown = CliRunner().invoke(spark_submit_args, ["--help"]).output
    command = re.search(r'(?s)(?:eval ")?spark-submit \$\(twinstream .*?\)"?', shown)
    assert command is not None
    pretended = "spark-submit() { printf '%s\\n' \"$@\"; }; twinstream() { cat; }\n" + command[0]
    done = subprocess.run(["bash", "-c", pretended], input=said, capture_output=True, text=True, check=True)
    assert str(spec) in done.stdout.splitlines()
