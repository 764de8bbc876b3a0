"""The advertising job, trusted version: plain DataFrames and Spark's own Kafka sink.

Reads the events of the Yahoo streaming benchmark and writes two topics: every view with its campaign, and the
number of views per campaign and ten seconds. Run it with spark-submit; README.md beside this file says how.
"""

import argparse
from threading import Event as Flag

import ads_job
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

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
    """Views with their campaign: (ad_id, event_time, campaign_id). Events of unknown ads are left out.

    The broadcast join moves no event: each stays in the task of its input partition, so the events of an ad,
    which share a partition, stay in order.
    """
    parsed = events.select(F.from_json(F.col("value").cast("string"), EVENT).alias("event")).select("event.*")
    seen = parsed.where(F.col("event_type") == "view").select("ad_id", "event_time")
    return seen.join(F.broadcast(campaigns), "ad_id")


def view_records(events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """The views as Kafka records, keyed by ad, so that an ad keeps to one partition of the topic."""
    value = F.to_json(F.struct("campaign_id", "ad_id", "event_time"))
    return views(events, campaigns).select(F.col("ad_id").alias("key"), value.alias("value"))


def counts(events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """Views per campaign and window: (campaign_id, window_start, views), window_start in ms since 1970."""
    timed = views(events, campaigns).withColumn("at", F.timestamp_millis("event_time"))
    window = F.window("at", WINDOW)
    counted = timed.withWatermark("at", WATERMARK).groupBy("campaign_id", window.alias("window")).count()
    start = F.unix_millis("window.start").alias("window_start")
    return counted.select("campaign_id", start, F.col("count").alias("views"))


def count_records(events: DataFrame, campaigns: DataFrame) -> DataFrame:
    """The counts as Kafka records, keyed by campaign."""
    value = F.to_json(F.struct("campaign_id", "window_start", "views"))
    return counts(events, campaigns).select(F.col("campaign_id").alias("key"), value.alias("value"))


def start(spark: SparkSession, options: argparse.Namespace) -> list[StreamingQuery]:
    """Start the queries whose topics are named."""
    campaigns = ads_job.campaign_table(spark, options.campaigns)
    queries = []
    if options.views_topic is not None:
        rows = view_records(ads_job.kafka_source(spark, options), campaigns)
        writer = to_kafka(rows, options, options.views_topic)
        queries.append(ads_job.start("views", writer, options, options.trigger_seconds))
    if options.counts_topic is not None:
        rows = count_records(ads_job.kafka_source(spark, options), campaigns)
        writer = to_kafka(rows, options, options.counts_topic)
        queries.append(ads_job.start("counts", writer, options, options.counts_trigger_seconds))
    return queries


def to_kafka(records: DataFrame, options: argparse.Namespace, topic: str) -> DataStreamWriter:
    """Spark's own sink. Append: a window is written once, when the watermark has passed it, never revised."""
    writer = records.writeStream.outputMode("append").format("kafka")
    return writer.options(**ads_job.kafka_options(options, topic))


def main() -> None:
    """Run the job until it is told to stop."""
    options = ads_job.arguments(__doc__.split("\n\n")[0]).parse_args()
    spark = ads_job.session("ads-reference")
    ads_job.run(spark, start(spark, options), stopping=Flag())


if __name__ == "__main__":
    main()
