"""The advertising job, new version: the same results by SQL, other joins and a batch writer.

What the rewrite is for: the topic is written campaign by campaign, which suits a consumer that works through
one campaign at a time. So the order of the records differs from the trusted version's, except among the views
of one ad, where it must not. Run it with spark-submit; README.md beside this file says how.
"""

import argparse
from collections.abc import Callable
from threading import Event as Flag

import ads_faults
import ads_job
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

VIEWS = """
    SELECT /*+ SHUFFLE_HASH(campaigns) */ campaigns.campaign_id, event.ad_id, event.event_time, partition, offset
    FROM (
        SELECT from_json(CAST(value AS STRING), 'ad_id STRING, event_type STRING, event_time BIGINT') AS event,
               partition, offset
        FROM {events}
    ) AS parsed
    JOIN {campaigns} AS campaigns ON campaigns.ad_id = parsed.event.ad_id
    WHERE parsed.event.event_type = 'view'
"""

BUCKET_MS = 10_000

WATERMARK = "20 seconds"
"""On the *start* of a bucket of ten seconds, so an event may be ten to twenty seconds behind the newest one: at
least what the trusted version allows. A bucket is written when the newest event is twenty seconds past its
start, which is also when the trusted version writes it: ten seconds of window and ten of watermark."""

COUNTS = """
    SELECT campaign_id, unix_millis(bucket) AS window_start, count(*) AS views
    FROM {buckets}
    GROUP BY campaign_id, bucket
"""

VIEW_RECORD = (
    "to_json(named_struct('ad_id', ad_id, 'campaign_id', campaign_id, 'event_time', event_time)) AS value"
)
COUNT_RECORD = (
    "to_json(named_struct('campaign_id', campaign_id, 'window_start', window_start, 'views', views)) AS value"
)

WRITERS = 2
"""Tasks that write a batch of views."""

Rewrite = Callable[[DataFrame, int], DataFrame]
"""Takes the rows of a batch and its number, and gives the rows to write."""


def views(spark: SparkSession, events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """Views with their campaign and their place in the input. Events of unknown ads are left out."""
    return spark.sql(VIEWS, events=events, campaigns=campaigns)


def counts(spark: SparkSession, events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """Views per campaign and ten seconds: (campaign_id, window_start, views), window_start in ms since 1970."""
    buckets = views(spark, events, campaigns).selectExpr(
        "campaign_id", f"timestamp_millis(event_time - pmod(event_time, {BUCKET_MS})) AS bucket"
    )
    return spark.sql(COUNTS, buckets=buckets.withWatermark("bucket", WATERMARK))


def by_campaign(batch: DataFrame, batch_id: int) -> DataFrame:
    """Arrange a batch by campaign, and keep the views of an ad in their order.

    An ad has one campaign, so the repartition brings all its views into one task; there the sort by the place
    in the input restores the order that two shuffles have lost. (Spark refuses to sort a streaming DataFrame,
    which is why this happens batch by batch.) One task writes its rows in order, through one producer.
    """
    return batch.repartition(WRITERS, "campaign_id").sortWithinPartitions("partition", "offset")


def by_window(batch: DataFrame, batch_id: int) -> DataFrame:
    """Arrange the closed windows of a batch by time; no reader may rely on it."""
    return batch.coalesce(1).sortWithinPartitions("window_start", "campaign_id")


def write(
    rewrites: list[Rewrite], record: str, key: str, sink: dict[str, str]
) -> Callable[[DataFrame, int], None]:
    """The batch writer: apply the rewrites, make Kafka records, write them."""

    def batch_writer(batch: DataFrame, batch_id: int) -> None:
        for rewrite in rewrites:
            batch = rewrite(batch, batch_id)
        batch.selectExpr(f"{key} AS key", record).write.format("kafka").options(**sink).save()

    return batch_writer


def start(spark: SparkSession, options: argparse.Namespace, stopping: Flag) -> list[StreamingQuery]:
    """Start the queries whose topics are named."""
    campaigns = ads_job.campaign_table(spark, options.campaigns)
    fault = ads_faults.named(options.fault, options.fault_seed, stopping)
    asked = {
        "views": (views, [by_campaign, *fault.views], VIEW_RECORD, "ad_id", options.views_topic),
        "counts": (counts, [by_window, *fault.counts], COUNT_RECORD, "campaign_id", options.counts_topic),
    }
    queries = []
    for name, (query, rewrites, record, key, topic) in asked.items():
        if topic is not None:
            rows = query(spark, ads_job.kafka_source(spark, options), campaigns)
            batch_writer = write(rewrites, record, key, ads_job.kafka_options(options, topic))
            # Append: a bucket is written once, when the watermark has passed it, and never revised.
            writer = rows.writeStream.outputMode("append").foreachBatch(batch_writer)
            queries.append(ads_job.start(name, writer, options))
    return queries


def arguments() -> argparse.ArgumentParser:
    """The arguments of both versions and, of this one alone, the bug to run with."""
    parser = ads_job.arguments(__doc__.split("\n\n")[0])
    parser.add_argument("--fault", choices=ads_faults.NAMES, help="run with this bug, for a drill")
    parser.add_argument("--fault-seed", type=int, default=0, help="which events it hits (%(default)s)")
    return parser


def main() -> None:
    """Run the job until it is told to stop."""
    options = arguments().parse_args()
    spark = ads_job.session("ads-candidate")
    stopping = Flag()
    ads_job.run(spark, start(spark, options, stopping), stopping)


if __name__ == "__main__":
    main()
