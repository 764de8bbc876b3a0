"""`twinstream spark-submit-args`: the arguments that start the job of a comparison."""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

import twinstream
from twinstream.cli.shared.output import print_text
from twinstream.errors import SettingsError
from twinstream.spec.lint.sharding import refusal_by_key
from twinstream.spec.load import load

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


@click.command("spark-submit-args")
@click.argument("spec", type=click.Path())
@click.option("--brokers", required=True, help="Kafka, HOST:PORT[,HOST:PORT…].")
@click.option("--results", required=True, help="The topic in which the job says what it finds.")
@click.option("--checkpoint", required=True, help="The checkpoint location of the query.")
@click.option("--shards", type=click.IntRange(1, 4096), default=8, help="How many shards; 4 for each core.")
@click.option("--config", type=click.Path(), help="Settings file (YAML): kafka, spark, mask_key_file.")
@click.option(
    "--jars", help="The jars of the Kafka connector, A.jar,B.jar…: where Spark reaches no registry."
)
def spark_submit_args(
    spec: str,
    brokers: str,
    results: str,
    checkpoint: str,
    shards: int,
    config: str | None,
    jars: str | None,
) -> int:
    """Print the arguments of `spark-submit` for the job of a comparison.

    \b
      eval "spark-submit $(twinstream spark-submit-args orders.yaml --brokers kafka:9092 \\
          --results twinstream.results --checkpoint s3a://state/orders --shards 32)"

    The words are printed as a shell reads them; without `eval` one with a space would be two.

    Show what the job finds with `twinstream serve orders.yaml --results twinstream.results --shards 32`.

    Exit codes: 0 printed · 2 usage, bad comparison file, or one that cannot be divided by key.
    """
    if reason := refusal_by_key(load(spec), shards):
        raise SettingsError(reason)
    own = {"--brokers": brokers, "--results": results, "--checkpoint": checkpoint, "--shards": str(shards)}
    if config is not None:
        own["--config"] = config
    connector = ["--jars", jars] if jars else ["--packages", f"{CONNECTOR}:{_spark()}"]
    words = [*connector, str(_program()), spec]
    words += [word for option in own.items() for word in option]
    print_text(f"{shlex.join(words)}\n")
    return 0


def _spark() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise SettingsError(
            "PySpark is not installed here: install 'twinstream[spark-matcher]' where the job is submitted"
        ) from None


def _program() -> Path:
    return Path(twinstream.__file__).parent / "spark" / "matcher" / "__main__.py"
