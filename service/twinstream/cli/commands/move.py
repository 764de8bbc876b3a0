"""`twinstream move`: move a comparison between the service and a Spark job."""

from __future__ import annotations

from contextlib import closing
from typing import Literal
from uuid import uuid4

import click

from twinstream.cli.shared.output import Unreachable
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.core.events import Side
from twinstream.errors import CheckpointError, Fenced, SettingsError, SourceError, StoreError
from twinstream.settings import Settings
from twinstream.settings import load as load_settings
from twinstream.spec.file.model import Spec
from twinstream.spec.load import load
from twinstream.starting.offset_backup import moved_marks

SHARDS = 8
NO_CLAIM = (
    "no job of comparison {!r} has written to topic {}, so one that runs would not notice the move: give the "
    "--results of the job at {}; if its topics were deleted, start the job once more first"
)
NO_SPARK = "a move needs PySpark: pip install 'twinstream[spark-matcher]'"


@click.command()
@click.argument("spec", type=click.Path())
@click.option("--to", required=True, type=click.Choice(["spark", "service"]), help="Who is to go on with it.")
@click.option("--checkpoint", required=True, help="The checkpoint location of the job.")
@click.option(
    "--shards",
    type=click.IntRange(1, 4096),
    help=f"How many shards the job has, {SHARDS} if not given; only for --to spark.",
)
@click.option("--results", help="The results topic of the job; needed for --to service.")
@click.option("--brokers", help="Kafka, HOST:PORT[,HOST:PORT…]; with --to spark it is told of the move.")
@click.option("--redis", help="Redis or Valkey, redis://HOST:PORT/DB.")
@click.option("--config", type=click.Path(), help="Settings file (YAML) of the service.")
def move(
    spec: str,
    to: Literal["spark", "service"],
    checkpoint: str,
    shards: int | None,
    results: str | None,
    brokers: str | None,
    redis: str | None,
    config: str | None,
) -> int:
    """Move a comparison from the service to a Spark job, or back.

    \b
      twinstream move orders.yaml --to spark --checkpoint s3a://state/orders --shards 32 \\
          --redis redis://localhost
      twinstream move orders.yaml --to service --checkpoint s3a://state/orders \\
          --results orders.results --brokers kafka:9092 --redis redis://localhost

    What waits goes along, with open differences, counts, reports and positions: verdict and divergences end
    as those of a comparison that stayed. Stop the service first, or the job. A move that was interrupted is
    ended by the same command; until then the old owner goes on, or nobody.

    Exit codes: 0 moved · 2 usage, bad comparison file, or it cannot be moved · 4 Kafka or Redis cannot be
    reached.
    """
    settings = load_settings({"brokers": brokers, "redis": redis}, config)
    if to == "service" and results is None:
        raise click.UsageError("--to service needs --results, where the job claims the comparison")
    if to == "service" and shards is not None:
        raise click.UsageError("--shards is for --to spark: the service goes on with one matcher")
    try:
        click.echo(moved(load(spec), to, checkpoint, shards or SHARDS, results, settings))
    except (CheckpointError, Fenced) as error:
        raise SettingsError(str(error)) from None
    except (SourceError, StoreError) as error:
        raise Unreachable(str(error)) from None
    return 0


def moved(spec: Spec, to: str, checkpoint: str, shards: int, results: str | None, settings: Settings) -> str:
    """Move a comparison; returns what is to be done next."""
    try:
        from twinstream.spark.matcher.claim import Claim, make_topics
        from twinstream.spark.matcher.location import reached
    except ModuleNotFoundError as missing:
        raise SettingsError(NO_SPARK) from missing
    from twinstream.adapters.redis.shelf import RedisShelf
    from twinstream.processes.moving import to_service, to_spark
    from twinstream.processes.shards import ShardStore

    with closing(ShardStore(RedisShelf(settings.redis, spec.name, uuid4().hex), WHOLE)) as store:
        if results is None or to == "spark":
            secret = b"" if settings.mask_key_file is not None else store.mask_secret()
            place = reached(spec.name, checkpoint)
            said = to_spark(spec, store, place, shards, secret)
            note(spec, place.place, settings, store.glance().sequence)
            return said
        place = reached(spec.name, checkpoint)
        with closing(Claim(settings.brokers, results, settings.kafka, spec.name, uuid4().hex)) as claim:
            mark = place.mark()
            if place.begun() and (mark is None or mark.owner == "job") and not claim.known():
                raise SettingsError(NO_CLAIM.format(spec.name, results, place))
            make_topics(settings.brokers, results, settings.kafka)
            return to_service(spec, store, place, claim, _tell)


def note(spec: Spec, place: str, settings: Settings, sequence: int | None = None) -> None:
    """Have Kafka know of the move to a place, too, if it can be reached: Redis may lose it."""
    from twinstream.adapters.kafka.source import KafkaSource

    topics = {side: spec.version_of(side).topic for side in Side}
    with closing(KafkaSource(settings.brokers, spec.name, topics, settings.kafka)) as source:
        try:
            source.remember(moved_marks(source.remembered(), place, sequence))
        except SourceError as error:
            _tell(f"{error}; so only Redis knows of the move until a service finds it there")


def _tell(text: str) -> None:
    click.echo(f"twinstream: {text}", err=True)
