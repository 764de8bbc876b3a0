"""The job of a comparison, for `spark-submit`: `twinstream spark-submit-args` prints the whole command."""

from __future__ import annotations

import re
import sys

import click
from pyspark import SparkConf
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from twinstream.adapters.credentials import read_secret
from twinstream.errors import QueryFailed, TwinstreamError
from twinstream.settings import load as settings_of
from twinstream.spark.matcher.claim import LOOK_SECONDS, Claim, make_topics
from twinstream.spark.matcher.job import Pace, job_of, start
from twinstream.spec.load import load

ATTEMPTS = 4
"""How often a task is tried before the query fails: as on a cluster."""


@click.command()
@click.argument("spec", type=click.Path())
@click.option("--brokers", required=True, help="Kafka, HOST:PORT[,HOST:PORT…].")
@click.option("--results", required=True, help="The topic in which the job says what it finds.")
@click.option("--checkpoint", required=True, help="The checkpoint location of the query.")
@click.option("--shards", type=click.IntRange(1, 4096), default=8, help="How many shards; 4 for each core.")
@click.option("--seconds", type=float, default=2.0, help="The time between two batches.")
@click.option("--records", type=int, default=500_000, help="The most records of a batch.")
@click.option("--config", type=click.Path(), help="Settings file (YAML): kafka: {…}.")
def main(
    spec: str,
    brokers: str,
    results: str,
    checkpoint: str,
    shards: int,
    seconds: float,
    records: int,
    config: str | None,
) -> None:
    """Compare the topics of a comparison file, until told to stop."""
    try:
        run(spec, brokers, results, checkpoint, shards, Pace(seconds, records), config)
    except TwinstreamError as error:
        raise SystemExit(_said(str(error))) from None


def run(
    spec: str, brokers: str, results: str, checkpoint: str, shards: int, pace: Pace, config: str | None
) -> None:
    """Run the job. Raises a TwinstreamError that says why it ends."""
    settings = settings_of({"brokers": brokers}, config)
    kafka = settings.kafka
    job = job_of(load(spec), brokers, results, shards, kafka)
    if settings.mask_key_file is not None:
        job = job._replace(mask_secret=read_secret(settings.mask_key_file))
    make_topics(brokers, results, kafka)
    claim = Claim(brokers, results, kafka, job.spec.name, job.run)
    claim.make(lambda text: click.echo(f"twinstream: {text}", err=True))
    builder = SparkSession.builder.appName(f"twinstream {job.spec.name}")
    master = SparkConf().get("spark.master")
    session = (builder.master(retrying(master)) if master else builder).getOrCreate()
    query = start(session, job, checkpoint, pace)
    try:
        _watch(query, claim)
    finally:
        query.stop()
        claim.close()


def retrying(master: str) -> str:
    """A master that runs tasks again: a local one does not, unless told to (see `rehearsal`).

    >>> retrying("local"), retrying("local[*]"), retrying("local[2,1]"), retrying("yarn")
    ('local[1,4]', 'local[*,4]', 'local[2,1]', 'yarn')
    """
    local = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return f"local[{local[1] or 1},{ATTEMPTS}]" if local else master


def _watch(query: StreamingQuery, claim: Claim) -> None:
    try:
        while not query.awaitTermination(LOOK_SECONDS):
            claim.check()
    except StreamingQueryException as error:
        raise QueryFailed(reason_of(str(error))) from None


def reason_of(failure: str) -> str:
    r"""The one sentence of a failed query: that of Twinstream, if there is one in it.

    >>> reason_of("Job aborted … twinstream.errors.CheckpointError: it is of 4 shards\\n at org.apache…")
    'it is of 4 shards'
    """
    own = re.search(r"twinstream\.errors\.\w+: ([^\n]+)", failure)
    return own[1] if own else f"the query has failed: {failure.strip().splitlines()[0]}"


def _said(text: str) -> int:
    click.echo(f"twinstream: {text}", err=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
