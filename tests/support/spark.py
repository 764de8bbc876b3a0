"""One Spark session for all tests of a process: it takes longer to start than most of them run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from deploy.embedded import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOCKETS = pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
"""PySpark leaves the sockets open through which it collects rows."""
ATTEMPTS = 3
"""How often Spark tries a task."""


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession  # here, since every process of the tests reads this module

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": ",".join(map(str, jars.ensure(jars.SPARK))),
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # which has Twinstream
        builder = SparkSession.builder.master(f"local[2,{ATTEMPTS}]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        yield spark
        end(spark)


def end(spark: SparkSession) -> None:
    """Stop Spark and its JVM, which would otherwise stay in memory until the last test has run."""
    from pyspark import SparkContext

    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # what the JVM takes as the end of its parent
    gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None
