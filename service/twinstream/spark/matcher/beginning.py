"""What the driver decides once for a checkpoint location, and keeps in it: `LOCATION/twinstream`.

- The secret that masks values, unless the operator gives a file with one. With another secret the same value
  would be shown with another hash after a restart, and `keep: hashes` could tell nothing of its state.
- The start at the input. Every shard begins at the same, also one that has its first records after a restart.

Whoever reads a checkpoint location has the unmatched events as well, so the secret reveals nothing more; but
with `keep: hashes` it does. Then a file for the secret is the better place.

The location may be on any file system of Hadoop. The file appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from twinstream.checkpoints import format as checkpoint
from twinstream.errors import SettingsError
from twinstream.starting.input_start import Found

NAME = "twinstream"
_ONLY_OWNER = "600"


class Beginning(NamedTuple):
    """The secret, and the start at the input, if the comparison has one."""

    mask_secret: bytes
    found: Found | None = None


def kept(spark: SparkSession, location: str, new: Callable[[], Beginning]) -> Beginning:
    """What a checkpoint location has; else what is `new`, which it has from then on. Raises SettingsError."""
    try:
        file = _File(spark, location)
        if (data := file.read()) is None:
            made = new()
            found = made.found and made.found.state()
            file.write(checkpoint.encode({"mask_secret": made.mask_secret, "found": found}))
            return made
    except Py4JJavaError as error:
        reason = error.java_exception.getMessage()
        raise SettingsError(f"the checkpoint location {location} cannot be used: {reason}") from None
    state = checkpoint.decode(data)
    return Beginning(state["mask_secret"], state["found"] and Found.of(state["found"]))


class _File:
    """The file of a checkpoint location. Its methods raise Py4JJavaError."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        context: Any = spark.sparkContext
        self._hadoop = context._jvm.org.apache.hadoop.fs
        self._path = self._hadoop.Path(location, NAME)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def read(self) -> bytes | None:
        if not self._files.exists(self._path):
            return None
        stream = self._files.open(self._path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, data: bytes) -> None:
        draft = self._path.suffix(".new")
        stream = self._files.create(draft, True)
        self._files.setPermission(draft, self._hadoop.permission.FsPermission(_ONLY_OWNER))
        stream.write(bytearray(data))
        stream.close()
        self._files.rename(draft, self._path)
