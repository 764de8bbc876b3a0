"""What Debian has to provide, from Java to Prometheus' tools: found, installed when we may, or asked for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded import once
from deploy.embedded.errors import EmbeddedError

OLDEST_JAVA = 17
_INSTALL_SECONDS = 900


@dataclass(frozen=True)
class Prerequisite:
    """A program that the machine has to have, and the Debian package that brings it."""

    name: str
    package: str
    find: Callable[[], str | None]


def _java_version(java: str) -> int:
    """Read the major version of a `java`; 0 if it does not say."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found.group(1)) if found else 0


def find_java() -> str | None:
    """Find a Java that is new enough: that of JAVA_HOME if it is set, else the first on the path.

    Raises:
        EmbeddedError: JAVA_HOME has none. Kafka could take another, but Spark takes that of JAVA_HOME.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java and _java_version(java) >= OLDEST_JAVA:
        return java
    if home:
        raise EmbeddedError(
            f"JAVA_HOME is {home}, which has no Java {OLDEST_JAVA} or newer: "
            "correct it, or unset it so that the Java of the path is taken"
        )
    return None


def find_chromium() -> str | None:
    """Find a Chromium that Playwright can drive."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


JAVA = Prerequisite(f"Java {OLDEST_JAVA} or newer", "openjdk-17-jre-headless", find_java)
MAVEN = Prerequisite("Maven", "maven", lambda: shutil.which("mvn"))
CHROMIUM = Prerequisite("Chromium", "chromium", find_chromium)
PROMTOOL = Prerequisite("promtool", "prometheus", lambda: shutil.which("promtool"))
PROMETHEUS = Prerequisite("Prometheus", "prometheus", lambda: shutil.which("prometheus"))
ALERTMANAGER = Prerequisite(
    "Alertmanager",
    "prometheus-alertmanager",
    lambda: shutil.which("prometheus-alertmanager") or shutil.which("alertmanager"),
)
AMTOOL = Prerequisite("amtool", "prometheus-alertmanager", lambda: shutil.which("amtool"))
COMPILER = Prerequisite("a C compiler", "build-essential", lambda: shutil.which("cc"))
GO = Prerequisite("Go", "golang-go", lambda: shutil.which("go"))
MONITORING = (PROMTOOL, PROMETHEUS, AMTOOL, ALERTMANAGER)


def ensure(wanted: Prerequisite) -> str:
    """Return the path of a program; as root on Debian, install its package first if it is missing.

    Raises:
        EmbeddedError: it is missing and cannot be installed from here.
    """
    found = wanted.find()
    if found:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise EmbeddedError(
            f"{wanted.name} is missing: install the Debian package {wanted.package} "
            f"(apt-get install {wanted.package}) and run this again"
        )
    _install(wanted)
    found = wanted.find()
    if not found:
        raise EmbeddedError(
            f"{wanted.name} is still missing with the Debian package {wanted.package} installed"
        )
    return found


def _install(wanted: Prerequisite) -> None:
    once.tell(f"{wanted.name} is missing: installing the Debian package {wanted.package} …")
    # A second run waits here instead of failing at dpkg's own lock.
    with once.locked(once.CACHE / "apt.lock"):
        if not wanted.find():
            _apt("update")
            _apt("install", "--yes", "--no-install-recommends", wanted.package)


def _apt(*arguments: str) -> None:
    command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        said = once.last_line(done.stderr)
        raise EmbeddedError(f"`{' '.join(command)}` failed with exit code {done.returncode}: {said}")
