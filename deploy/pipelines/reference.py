"""The advertising job, trusted version: plain DataFrames.

Reads the events of the Yahoo streaming benchmark and writes two topics: every view with its campaign, and the
number of views per campaign and ten seconds. Run it with spark-submit; README.md beside this file says how.
"""

import argparse
from threading import Event as Flag

import ads_job
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from twinstream.spark import KafkaSink

EVENT = (
    "user_id STRING, page_id STRING, ad_id STRING, ad_type STRING, event_type STRING, "
    "event_time BIGINT, ip_address STRING"
)

WINDOW = "10 seconds"

WATERMARK = "10 seconds"
"""How far behind the newest event an event may be and still count for certain. A longer one holds results
back and keeps more state; a shorter one drops more. What lies beyond it is dropped or not depending on where
the micro-batches happened to be cut: two versions agree only on input whose disorder stays within it."""


def views(events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """Views with their campaign and their place in the input. Events of unknown ads are left out.

    The broadcast join moves no event: each stays in the task of its input partition, so the events of an ad,
    which share a partition, stay in order.
    """
    event = F.from_json(F.col("value").cast("string"), EVENT).alias("event")
    parsed = events.select(event, *ads_job.ORIGIN).select("event.*", *ads_job.ORIGIN)
    seen = parsed.where(F.col("event_type") == "view").select("ad_id", "event_time", *ads_job.ORIGIN)
    return seen.join(F.broadcast(campaigns), "ad_id")


def view_records(events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """The views as Kafka records, keyed by ad, so that an ad keeps to one partition of the topic."""
    value = F.to_json(F.struct("campaign_id", "ad_id", "event_time"))
    key = F.col("ad_id").alias("key")
    return views(events, campaigns).select(key, value.alias("value"), *ads_job.ORIGIN)


def counts(events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """Views per campaign and window, with the times of the window in ms since 1970."""
    timed = views(events, campaigns).withColumn("at", F.timestamp_millis("event_time"))
    window = F.window("at", WINDOW)
    counted = timed.withWatermark("at", WATERMARK).groupBy("campaign_id", window.alias("window")).count()
    start, end = (F.unix_millis(f"window.{side}").alias(f"window_{side}") for side in ("start", "end"))
    return counted.select("campaign_id", start, end, F.col("count").alias("views"))


def count_records(events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """The counts as Kafka records, keyed by campaign."""
    value = F.to_json(F.struct("campaign_id", "window_start", "window_end", "views"))
    return counts(events, campaigns).select(F.col("campaign_id").alias("key"), value.alias("value"))


def start(spark: SparkSession, options: argparse.Namespace) -> list[StreamingQuery]:
    """Start the queries whose topics are named."""
    campaigns = ads_job.campaign_table(spark, options.campaigns)
    queries = []
    if options.views_topic is not None:
        rows = view_records(ads_job.kafka_source(spark, options), campaigns)
        writer = written(rows, ads_job.sink(options, "views", options.views_topic, ads_job.ORIGIN))
        queries.append(ads_job.start("views", writer, options, options.trigger_seconds))
    if options.counts_topic is not None:
        rows = count_records(ads_job.kafka_source(spark, options), campaigns)
        writer = written(rows, ads_job.sink(options, "counts", options.counts_topic))
        queries.append(ads_job.start("counts", writer, options, options.counts_trigger_seconds))
    return queries


def written(records: DataFrame, sink: KafkaSink) -> DataStreamWriter:
    """Append: a window is written once, when the watermark has passed it, and never revised."""
    return records.writeStream.outputMode("append").foreachBatch(sink)


def main() -> None:
    """Run the job until it is told to stop."""
    options = ads_job.arguments(__doc__.split("\n\n")[0]).parse_args()
    spark = ads_job.session("ads-reference")
    ads_job.run(spark, start(spark, options), stopping=Flag())


if __name__ == "__main__":
    main()
