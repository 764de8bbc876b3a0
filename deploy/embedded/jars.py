"""The jars of Kafka and of Spark's Kafka connector, fetched by Maven once and kept in the clone.

A set of jars lives in a folder named after the content of its pom, so that a changed pom is fetched anew.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TextIO

from deploy.embedded import once, prerequisites
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import Process

_HERE = Path(__file__).parent
CACHE = once.CACHE / "jars"

KAFKA = _HERE / "kafka.pom.xml"
SPARK = _HERE / "spark.pom.xml"


def ensure(pom: Path, *, cache: Path = CACHE, tell: Callable[[str], None] = once.tell) -> list[Path]:
    """Return the jars that a pom asks for, fetching them first if this clone does not have them.

    Raises:
        EmbeddedError: Maven is missing or failed.
    """
    name = pom.name.removesuffix(".pom.xml")
    folder = cache / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    once.filled(folder, partial(_fetch, pom, lambda text: tell(f"jars of {name}: {text}")))
    return sorted(folder.glob("*.jar"))


def _fetch(pom: Path, tell: Callable[[str], None], folder: Path) -> None:
    maven = prerequisites.ensure(prerequisites.MAVEN)
    prerequisites.ensure(prerequisites.JAVA)
    tell("asking Maven …")
    output = f"-DoutputDirectory={folder}"
    command = [maven, "-B", "-f", str(pom), "dependency:copy-dependencies", output]
    _run_maven(command, folder.with_suffix(".log"), tell)
    tell(f"{len(list(folder.glob('*.jar')))} ready")


def _run_maven(command: list[str], log: Path, tell: Callable[[str], None]) -> None:
    """Run Maven; tell each file that it downloads by its name alone."""
    log.unlink(missing_ok=True)
    with Process("Maven", command, log=log) as maven, log.open(encoding="utf-8", errors="replace") as said:
        while maven.running:
            time.sleep(0.1)
            _tell_downloads(said, tell)
    if maven.exit_code != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line.removeprefix("[ERROR] ") for line in lines if line.startswith("[ERROR]")] or lines[-1:]
        raise EmbeddedError(f"Maven could not fetch the jars of {command[3]}: {' '.join(errors[:2])}")


def _tell_downloads(said: TextIO, tell: Callable[[str], None]) -> None:
    for line in said:
        if "Downloaded from" in line and ".jar" in line:
            tell(f"fetched {line.split('.jar')[0].rsplit('/', 1)[-1]}.jar")
