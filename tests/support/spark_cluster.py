"""A cluster of Spark with two hosts: on one host Spark starts no second attempt beside a slow task.

Linux answers on all addresses of 127.0.0.0/8, so two workers of one machine can be two hosts.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deploy.embedded.processes import LOOPBACK, Process, free_port
from deploy.embedded.spark import spark_home

HOSTS = ("127.0.0.2", "127.0.0.3")
START_SECONDS = 60.0
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "3s",
}
"""An application on this cluster: a task that takes longer than others is tried beside them."""


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start a master and a worker for each host; gives the URL of the master."""
    port, page = free_port(), free_port()
    master = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:
        of_master = ("--host", LOOPBACK, "--port", f"{port}", "--webui-port", f"{page}")
        first = stack.enter_context(_daemon(folder, "master", LOOPBACK, "master.Master", *of_master))
        first.wait_until_ready(lambda: _workers(page) == 0, seconds=START_SECONDS)
        for host in HOSTS:
            work = ("--work-dir", str(folder / host), "--cores", "1", "--memory", "512M")
            own = ("--host", host, "--webui-port", "0", *work, master)
            stack.enter_context(_daemon(folder, host, host, "worker.Worker", *own))
        first.wait_until_ready(lambda: _workers(page) == len(HOSTS), seconds=START_SECONDS)
        yield master


def _daemon(folder: Path, name: str, host: str, main: str, *arguments: str) -> Process:
    environment = {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(folder / f"{name}-scratch"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    program = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}"]
    return Process(name, [*program, *arguments], log=folder / f"{name}.log", environment=environment)


def _workers(page: int) -> int | None:
    """How many workers the master knows; None while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{page}/json/", timeout=5) as answer:
            told: dict[str, int] = json.load(answer)
    except OSError:
        return None
    return told["aliveworkers"]
