"""The advertising job, new version, which loses the views that it is told to lose.

Spark runs it, with the modules of `deploy/pipelines` beside it (`spark.submit.pyFiles`).
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event as Flag

import ads_job  # type: ignore[import-not-found]
import candidate  # type: ignore[import-not-found]
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn


def main() -> None:
    """Run the query of the views until it is told to stop."""
    parser = candidate.arguments()
    parser.add_argument("--lost", type=Path, required=True, help="JSON: [[ad_id, event_time], …]")
    options = parser.parse_args()
    names = [f"{ad}@{at}" for ad, at in json.loads(options.lost.read_text(encoding="utf-8"))]

    def lose(batch: DataFrame, _number: int) -> DataFrame:
        return batch.where(~fn.concat_ws("@", "ad_id", "event_time").isin(names))

    spark = ads_job.session("ads-lossy")
    campaigns = ads_job.campaign_table(spark, options.campaigns)
    rows = candidate.views(spark, ads_job.kafka_source(spark, options), campaigns)
    sink = ads_job.sink(options, "views", options.views_topic, ads_job.ORIGIN)
    rewrites = [candidate.by_campaign, lose]
    write = candidate.write(rewrites, "ad_id", candidate.VIEW_RECORD, sink, ads_job.ORIGIN)
    writer = rows.writeStream.foreachBatch(write)
    query = ads_job.start("views", writer, options, options.trigger_seconds)
    ads_job.run(spark, [query], stopping=Flag())


if __name__ == "__main__":
    main()
