"""The jars of Kafka and of Spark's Kafka connector, fetched by Maven once and kept in the clone.

A set of jars lives in a folder named after the content of its pom, so that a changed pom is fetched anew and
a folder that exists is complete: it is filled under another name and renamed at the end.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from deploy.embedded import prerequisites
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import Process

_HERE = Path(__file__).parent
CACHE = _HERE.parent.parent / ".cache" / "jars"
"""Inside the clone and outside of any run's data; git ignores it."""

KAFKA = _HERE / "kafka.pom.xml"
SPARK = _HERE / "spark.pom.xml"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def ensure(pom: Path, *, cache: Path = CACHE, tell: Callable[[str], None] = _tell) -> list[Path]:
    """Return the jars that a pom asks for, fetching them first if this clone does not have them.

    Two processes that ask at once are fine: the second waits for the first.

    Raises:
        EmbeddedError: Maven is missing or failed.
    """
    name = pom.name.removesuffix(".pom.xml")
    folder = cache / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        with _locked(cache / f"{name}.lock"):
            if not folder.is_dir():
                _fetch(pom, folder, lambda text: tell(f"jars of {name}: {text}"))
    return sorted(folder.glob("*.jar"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(pom: Path, folder: Path, tell: Callable[[str], None]) -> None:
    maven = prerequisites.ensure(prerequisites.MAVEN)
    prerequisites.ensure(prerequisites.JAVA)
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    tell("asking Maven …")
    output = f"-DoutputDirectory={unfinished}"
    command = [maven, "-B", "-f", str(pom), "dependency:copy-dependencies", output]
    _run_maven(command, folder.with_name(f"{folder.name}.log"), tell)
    unfinished.rename(folder)
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
