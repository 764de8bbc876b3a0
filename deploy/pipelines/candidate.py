"""The advertising job, new version: the same results by SQL, other joins and a batch writer.

What the rewrite is for: the topic is written campaign by campaign, which suits a consumer that works through
one campaign at a time. So the order of the records differs from the trusted version's, except among the views
of one ad, where it must not. Run it with spark-submit; README.md beside this file says how.
"""

import argparse
from collections.abc import Callable, Sequence
from threading import Event as Flag

import ads_faults
import ads_job
from ads_faults import Rewrite
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from twinstream.spark import KafkaSink

BatchWriter = Callable[[DataFrame, int], None]

VIEWS = """
    SELECT /*+ SHUFFLE_HASH(campaigns) */ campaign_id, ad_id, event_time, topic, partition, offset
    FROM (
        SELECT topic, partition, offset, inline(array(from_json(
            CAST(value AS STRING), 'ad_id STRING, event_type STRING, event_time BIGINT'
        )))
        FROM {events}
    ) AS parsed
    JOIN {campaigns} AS campaigns USING (ad_id)
    WHERE event_type = 'view'
"""

BUCKET_MS = 10_000

WATERMARK = "20 seconds"
"""On the *start* of a bucket of ten seconds, so an event may be ten to twenty seconds behind the newest one:
at least what the trusted version allows. A bucket is written when the newest event is twenty seconds past its
start, which is also when the trusted version writes it: ten seconds of window and ten of watermark."""

COUNTS = f"""
    SELECT campaign_id, unix_millis(bucket) AS window_start, unix_millis(bucket) + {BUCKET_MS} AS window_end,
        count(*) AS views
    FROM {{buckets}}
    GROUP BY campaign_id, bucket
"""

VIEW_RECORD = """
    to_json(named_struct('ad_id', ad_id, 'campaign_id', campaign_id, 'event_time', event_time)) AS value
"""

COUNT_RECORD = """
    to_json(named_struct(
        'campaign_id', campaign_id, 'window_start', window_start, 'window_end', window_end, 'views', views
    )) AS value
"""

WRITERS = 2
"""Tasks that write a batch of views."""


def views(spark: SparkSession, events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """Views with their campaign and their place in the input. Events of unknown ads are left out."""
    return spark.sql(VIEWS, events=events, campaigns=campaigns)


def counts(spark: SparkSession, events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """Views per campaign and ten seconds, with the times of the window in ms since 1970."""
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


def write(
    rewrites: Sequence[Rewrite], key: str, record: str, sink: KafkaSink, kept: Sequence[str] = ()
) -> BatchWriter:
    """The batch writer: apply the rewrites, make Kafka records, write them. The sink reads what is `kept`."""

    def batch_writer(batch: DataFrame, batch_id: int) -> None:
        for rewrite in rewrites:
            batch = rewrite(batch, batch_id)
        sink(batch.selectExpr(f"{key} AS key", record, *kept), batch_id)

    return batch_writer


def start(spark: SparkSession, options: argparse.Namespace, stopping: Flag) -> list[StreamingQuery]:
    """Start the queries whose topics are named."""
    campaigns = ads_job.campaign_table(spark, options.campaigns)
    fault = ads_faults.named(options.fault, options.fault_seed, stopping)
    queries = []
    if options.views_topic is not None:
        sink = ads_job.sink(options, "views", options.views_topic, ads_job.ORIGIN)
        rows = views(spark, ads_job.kafka_source(spark, options), campaigns).writeStream
        write_views = write([by_campaign, *fault.views], "ad_id", VIEW_RECORD, sink, ads_job.ORIGIN)
        writer = rows.foreachBatch(write_views)
        queries.append(ads_job.start("views", writer, options, options.trigger_seconds))
    if options.counts_topic is not None:
        sink = ads_job.sink(options, "counts", options.counts_topic)
        # Append: a bucket is written once, when the watermark has passed it, and never revised.
        rows = counts(spark, ads_job.kafka_source(spark, options), campaigns).writeStream.outputMode("append")
        writer = rows.foreachBatch(write(fault.counts, "campaign_id", COUNT_RECORD, sink))
        queries.append(ads_job.start("counts", writer, options, options.counts_trigger_seconds))
    return queries


def arguments() -> argparse.ArgumentParser:
    """The arguments of both versions and, of this one alone, the bug to run with."""
    parser = ads_job.arguments(__doc__.split("\n\n")[0])
    parser.add_argument("--fault", choices=ads_faults.NAMES, help="run with this bug, for a drill")
    parser.add_argument("--fault-seed", type=int, default=0, help="which events it hits (%(default)s)")
    return parser


def main() -> None:
    """Run the job until it is told to stop."""
    parser = arguments()
    options = parser.parse_args()
    if options.fault and options.campaigns:
        parser.error("--fault knows the built-in campaigns only: leave out --campaigns")
    spark = ads_job.session("ads-candidate")
    stopping = Flag()
    ads_job.run(spark, start(spark, options, stopping), stopping)


if __name__ == "__main__":
    main()
