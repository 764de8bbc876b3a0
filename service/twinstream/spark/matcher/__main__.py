"""The job of a comparison, for `spark-submit`: `twinstream spark-submit-args` prints the whole command.

Exit codes are those of the command line: 2 for a mistake, which stays until somebody corrects it, 4 where
Kafka cannot be reached.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from uuid import uuid4

import click
from pyspark import SparkConf, SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from twinstream.adapters.credentials import read_secret
from twinstream.errors import (
    NoResults,
    QueryFailed,
    SettingsError,
    SourceError,
    StoreError,
    TwinstreamError,
)
from twinstream.settings import load as settings_of
from twinstream.spark.matcher.claim import LOOK_SECONDS, Claim, make_topics
from twinstream.spark.matcher.job import Pace, job_of, start
from twinstream.spark.matcher.location import Location, stays
from twinstream.spark.matcher.processor import Job
from twinstream.spec.load import load

MISTAKE, UNREACHABLE = 2, 4
_AWAY = re.compile(
    r"twinstream\.errors\.SourceError: |org\.apache\.kafka\.common\.errors\.\w*(?:Timeout|Disconnect|Network)"
    r"|Cannot fetch record for offset"
)
"""What a failed query says where Kafka does not answer."""
_LOST = re.compile(r"Could not read records in offset (\[[^)]*\)) for topic partition (\S+)")
"""What it says where retention was shorter than a stop."""
ATTEMPTS = 4
"""How often a task is tried before the query fails: as on a cluster."""
TRIES = 5
"""How often a query is started that completes no batch."""


@click.command()
@click.argument("spec", type=click.Path())
@click.option("--brokers", required=True, help="Kafka, HOST:PORT[,HOST:PORT…].")
@click.option("--results", required=True, help="The topic in which the job says what it finds.")
@click.option("--checkpoint", required=True, help="The checkpoint location of the query.")
@click.option("--shards", type=click.IntRange(1, 4096), default=8, help="How many shards; 4 for each core.")
@click.option("--seconds", type=float, default=2.0, help="The time between two batches.")
@click.option("--records", type=int, default=500_000, help="The most records of a batch.")
@click.option("--config", type=click.Path(), help="Settings file (YAML): kafka, spark, mask_key_file.")
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
    """Compare the topics of a comparison file, until told to stop.

    Exit codes: 2 usage, bad comparison file or setting, or what only a person can correct: a checkpoint of
    another file or number of shards, a later job of this comparison, records that Kafka has lost · 4 Kafka
    cannot be reached: start it again.
    """
    try:
        run(spec, brokers, results, checkpoint, shards, Pace(seconds, records), config)
    except TwinstreamError as error:
        _say(str(error))
        raise SystemExit(code_of(error)) from None


def run(
    spec: str, brokers: str, results: str, checkpoint: str, shards: int, pace: Pace, config: str | None
) -> None:
    """Run the job. Raises a TwinstreamError that says why it ends."""
    settings = settings_of({"brokers": brokers}, config)
    secret = b"" if settings.mask_key_file is None else read_secret(settings.mask_key_file)
    job = job_of(load(spec), brokers, results, shards, settings.kafka, settings.spark, secret)

    def session() -> SparkSession:
        builder = SparkSession.builder.appName(f"twinstream {job.spec.name}")
        SparkContext._ensure_initialized()  # Only a JVM knows what spark-submit was given.
        master = SparkConf().get("spark.master")
        return (builder.master(retrying(master)) if master else builder).getOrCreate()

    with closing(Driver(session, job, checkpoint, pace, _say)) as driver:
        driver.run()


class Driver:
    """The claim and the query of a job. `run` it once; `session` is asked for once the job has its claim."""

    def __init__(
        self,
        session: Callable[[], SparkSession],
        job: Job,
        checkpoint: str | Path,
        pace: Pace,
        say: Callable[[str], object],
    ) -> None:
        self._session, self._job, self._checkpoint, self._pace = session, job, checkpoint, pace
        self._say = say
        self._claim: Claim | None = None
        self._waits_for = set[str]()

    def run(self) -> None:
        """Run the query until it ends; one that fails goes on from its checkpoint.

        Raises an error (`failed_by`) after `TRIES` failures without a batch in between, and at once where
        trying again cannot help; Fenced where another job has a later claim. Kafka may be away where a query
        begins again: that is a failure like that of a query.
        """
        failures, query = 0, None
        while True:
            try:
                query = self._begun()
            except TwinstreamError as error:
                failures += 1
                passes = isinstance(error, NoResults) or code_of(error) == UNREACHABLE
                if query is None or failures == TRIES or not passes:
                    raise
                self._say(f"{error}; it is tried again")
                time.sleep(LOOK_SECONDS)
                continue
            try:
                location = Location(self._session(), self._checkpoint)
                while not query.awaitTermination(LOOK_SECONDS):
                    self._look()
                    with suppress(SettingsError):  # The file system may be away for a while.
                        stays(location.mark(), location)
                return
            except NoResults:
                failures = 0
                self._say(f"somebody has deleted the results topics {self._job.results}: they are made again")
                self.close()
            except StreamingQueryException as error:
                failed = failed_by(str(error))
                failures = failures + 1 if query.lastProgress is None else 1
                stays_so = own_reason(str(error)) and code_of(failed) != UNREACHABLE
                if stays_so or failures == TRIES:
                    raise failed from None
                self._say(f"{failed}; it goes on from its checkpoint")
            finally:
                query.stop()

    def _look(self) -> None:
        if self._claim is not None:
            self._claim.check()

    def _begun(self) -> StreamingQuery:
        """The query, by a job that has a claim in results topics that are there."""
        job = self._job
        if make_topics(job.brokers, job.results, job.kafka) or self._claim is None:
            # In new topics the offsets begin anew, by which those who show a job tell its statuses apart.
            job = self._job = job._replace(run=uuid4().hex)
            self.close()
            claim = Claim(job.brokers, job.results, job.kafka, job.spec.name, job.run)
            try:
                claim.make(self._say)
            except BaseException:
                claim.close()
                raise
            self._claim = claim
        with suppress(NoResults):
            self._look()
        return start(self._session(), job, self._checkpoint, self._pace, self._wait)

    def _wait(self, reason: str) -> None:
        """Say each reason to wait for a start once, and end if another job claims the comparison."""
        if reason not in self._waits_for:
            self._waits_for.add(reason)
            self._say(reason)
        with suppress(NoResults):
            self._look()

    def close(self) -> None:
        """Close the connections of the claim, which counts no more."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None


def retrying(master: str) -> str:
    """A master that runs tasks again: a local one does not, unless told to (see `rehearsal`).

    >>> retrying("local"), retrying("local[*]"), retrying("local[2,1]"), retrying("yarn")
    ('local[1,4]', 'local[*,4]', 'local[2,1]', 'yarn')
    """
    local = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return f"local[{local[1] or 1},{ATTEMPTS}]" if local else master


def failed_by(failure: str) -> TwinstreamError:
    """The failure of a query: a SourceError where Kafka does not answer, or has not said enough."""
    return (SourceError if _AWAY.search(failure) else QueryFailed)(reason_of(failure))


def reason_of(failure: str) -> str:
    r"""The one sentence of a failed query: that of Twinstream or of Kafka's client, if there is one in it.

    >>> reason_of("Job aborted … twinstream.errors.CheckpointError: it is of 4 shards\\n at org.apache…")
    'it is of 4 shards'
    """
    client = re.search(r"org\.apache\.kafka\.common\.errors\.\w+: ([^\n]+)", failure)
    told = client[1] if client else failure.strip().splitlines()[0]
    return own_reason(failure) or f"the query has failed: {told}"


def own_reason(failure: str) -> str | None:
    """The sentence of Twinstream in the failure of a query, or about lost records; None if there is none."""
    if lost := _LOST.search(failure):
        return (
            f"Kafka no longer has the records {lost[1]} of {lost[2]}, which the job has not read: correct "
            "the retention, and give the job a new checkpoint location"
        )
    own = re.search(r"twinstream\.errors\.\w+: ([^\n]+)", failure)
    return own[1] if own else None


def code_of(error: TwinstreamError) -> int:
    """The exit code for an error."""
    away = isinstance(error, SourceError) or type(error) is StoreError
    return UNREACHABLE if away else MISTAKE


def _say(text: str) -> None:
    click.echo(f"twinstream: {text}", err=True)


if __name__ == "__main__":
    sys.exit(main())
