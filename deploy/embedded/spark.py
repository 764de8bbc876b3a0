"""Spark applications as a user submits them: PySpark's `spark-submit`, with the Kafka connector."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.embedded import jars, prerequisites
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import LOOPBACK, Process

_CONF = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def spark_home() -> Path:
    """The folder of the PySpark that belongs to this Python.

    Raises:
        EmbeddedError: PySpark is not installed.
    """
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise EmbeddedError("PySpark is not installed: run `make setup`, or install twinstream[spark]")
    return Path(package.origin).parent


def submit(
    name: str,
    script: Path,
    arguments: Sequence[str],
    *,
    folder: Path,
    master: str = "local[1]",
    conf: Mapping[str, str] | None = None,
    conf_folder: Path | None = None,
    grace_seconds: float = 10.0,
) -> Process:
    """Prepare one Spark application, which `start` of the returned process then submits.

    Args:
        name: what messages call it; its log is `folder/NAME.log`.
        script: the PySpark program.
        arguments: the program's own arguments; paths among them must be absolute.
        folder: where its log and Spark's scratch files go; created if missing.
        master: Spark's master URL.
        conf: Spark settings on top of those that keep it on the loopback interface.
        conf_folder: a folder with `spark-defaults.conf` and `log4j2.properties`.
        grace_seconds: how long it may take to end by itself.
    """
    prerequisites.ensure(prerequisites.JAVA)
    connector = ",".join(map(str, jars.ensure(jars.SPARK)))
    scratch = folder / f"{name}-scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    settings = {**_CONF, "spark.sql.warehouse.dir": str(scratch), **(conf or {})}
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    program = str(spark_home() / "bin" / "spark-submit")
    command = [program, "--master", master, "--name", name, "--jars", connector]
    environment = {
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(scratch),
        "PYTHONUNBUFFERED": "1",
        **({"SPARK_CONF_DIR": str(conf_folder)} if conf_folder else {}),
    }
    return Process(
        name,
        [*command, *options, str(script.absolute()), *arguments],
        log=folder / f"{name}.log",
        environment=environment,
        directory=scratch,  # Spark leaves folders where it runs
        grace_seconds=grace_seconds,
    )
