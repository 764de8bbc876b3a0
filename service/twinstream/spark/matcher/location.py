"""The checkpoint location of a job: how it began, whose its state is, what the query has committed.

    LOCATION/twinstream/beginning  what was decided once (`Beginning`); only its user may read it
    LOCATION/twinstream/owner      who goes on with the state (JSON); without it, the job
    LOCATION/twinstream/ID/SHARD   what was moved there, a file for each shard
    LOCATION/…                     Spark's own: offsets, commits, state

Files are written as Spark writes its own (`CheckpointFileManager`): a file is there whole, or not at all, on
every file system on which Spark keeps checkpoints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession

from twinstream.checkpoints import format as checkpoint
from twinstream.core.events import Side
from twinstream.errors import CheckpointError, SettingsError
from twinstream.ports import Positions, Stored
from twinstream.processes.moving import Mark
from twinstream.spark.matcher.state import ANEW, HEAD, refusal_of, stored_of, whole_parts
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.starting.input_start import Found

CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings of the session that the query needs."""
OWN = "twinstream"
_PRIVATE = "077"
PIECE = 4_000_000
"""Bytes that go to Spark's process in one call."""

OTHER_FILE = f"the comparison file is not the one of the checkpoint: {ANEW}"
OTHER_NUMBER = f"the checkpoint is one of {{}} shards, not {{}}: {ANEW}"
BACK = (
    "the state at {} has moved to the service, which goes on with it: give --checkpoint a new location, and "
    "`twinstream move --to spark` brings it there"
)
NO_BEGINNING = (
    "the state at {} is not of this version, or its folder `twinstream` was removed: give --checkpoint a new "
    "location"
)
UNENDED = "a move to {} has not ended: make it again, or give --checkpoint a new location"


class Beginning(NamedTuple):
    """What a comparison goes on with after each restart.

    Its query has dealt out records as the comparison file with this `digest` says, over so many `shards`; so
    nothing else can use its state. `mask_secret` is empty if it is in a file of the operator; `found` is the
    start at the input, if the comparison has one that no shard has yet.
    """

    digest: str
    shards: int
    mask_secret: bytes
    found: Found | None = None


class Location:
    """A checkpoint location on any file system that Spark reaches.

    Its methods raise SettingsError if the file system refuses.
    """

    def __init__(self, spark: SparkSession, place: str | Path) -> None:
        self._spark = spark
        self.place: str = str(place)
        jvm: Any = spark.sparkContext._jvm
        manager = jvm.org.apache.spark.sql.execution.streaming.CheckpointFileManager
        settings = spark.sparkContext._jsc.hadoopConfiguration()
        private = jvm.org.apache.hadoop.conf.Configuration(settings)
        private.set("fs.permissions.umask-mode", _PRIVATE)
        self._path = jvm.org.apache.hadoop.fs.Path
        self._read = jvm.org.apache.commons.io.IOUtils.toByteArray
        with self._told():
            root = self._path(self.place)
            self.place = root.getFileSystem(settings).makeQualified(root).toString().rstrip("/")
            self._files = manager.create(root, settings)
            self._private = manager.create(root, private)

    def __str__(self) -> str:
        return self.place

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell in one sentence what the file system says."""
        try:
            yield
        except Py4JJavaError as error:
            reason = error.java_exception.getMessage()
            raise SettingsError(f"the checkpoint location {self.place} cannot be used: {reason}") from None

    # -- how it began --------------------------------------------------------------------------------------

    def beginning(self) -> Beginning | None:
        """How a comparison began here. Raises CheckpointError."""
        if (data := self._get("beginning")) is None:
            return None
        state = checkpoint.decode(data, ANEW)
        return Beginning(**{**state, "found": state["found"] and Found.of(state["found"])})

    def begin(self, beginning: Beginning) -> None:
        """Write how a comparison begins here."""
        found = beginning.found and beginning.found.state()
        self._put("beginning", checkpoint.encode({**beginning._asdict(), "found": found}), self._private)

    def mask_secret(self) -> bytes:
        """The secret of the comparison; empty if a file of the operator has it. Raises CheckpointError."""
        beginning = self.beginning()
        return b"" if beginning is None else beginning.mask_secret

    # -- whose it is ---------------------------------------------------------------------------------------

    def mark(self) -> Mark | None:
        """Who owns the state, if that was written. Raises CheckpointError."""
        data = self._get("owner")
        try:
            return None if data is None else Mark.model_validate_json(data)
        except ValidationError:
            raise CheckpointError(f"{self.place}/{OWN}/owner is not of this version of Twinstream") from None

    def give(self, mark: Mark) -> None:
        """Put an owner into effect, in one step."""
        self._put("owner", mark.model_dump_json().encode(), self._files)

    def begun(self) -> bool:
        """Whether a query has begun here."""
        return bool(self._entries("offsets"))

    def handed(self) -> bool:
        """Whether something was moved here, or began to be."""
        return any(entry.isDirectory() for entry in self._entries(OWN))

    def _entries(self, name: str) -> list[Any]:
        """What a folder has; nothing if it is not there."""
        path = self._path(f"{self.place}/{name}")
        with self._told():
            return list(self._files.list(path)) if self._files.exists(path) else []

    def _get(self, name: str) -> bytes | None:
        path = self._path(f"{self.place}/{OWN}/{name}")
        with self._told():
            if not self._files.exists(path):
                return None
            with closing(self._files.open(path)) as stream:
                return bytes(self._read(stream))

    def _put(self, name: str, data: bytes, files: Any) -> None:
        path = self._path(f"{self.place}/{OWN}/{name}")
        with self._told():
            self._files.mkdirs(path.getParent())
            stream = files.createAtomic(path, True)
            try:
                for start in range(0, len(data), PIECE):
                    stream.write(bytearray(data[start : start + PIECE]))
                stream.close()
            except BaseException:
                stream.cancel()
                raise

    # -- what was moved here -------------------------------------------------------------------------------

    def hand_over(self, mark: Mark, shards: Sequence[Stored], mask_secret: bytes) -> None:
        """Write what the shards of the job begin with; nobody uses it before the job is the owner."""
        self.begin(Beginning(mark.digest, mark.shards, mask_secret))
        for number, stored in enumerate(shards):
            self._put(f"{mark.moved}/{number}", written(stored), self._files)

    def handed_over(self, mark: Mark) -> DataFrame:
        """What was moved here: the number of each shard, and what it begins with."""
        files = self._spark.read.format("binaryFile").load(f"{self.place}/{OWN}/{mark.moved}")
        number = "CAST(regexp_extract(path, '([0-9]+)$', 1) AS BIGINT) AS shard"
        return files.selectExpr(number, "content")

    # -- what the query has committed ----------------------------------------------------------------------

    def committed(self, mark: Mark | None) -> list[Stored]:
        """What the shards have saved with the last batch that the query has committed.

        Before the first one that is what was moved here. Raises CheckpointError.
        """
        if not self._has_committed():
            if mark is None or mark.moved is None:
                raise CheckpointError(f"no job has compared anything with {self.place} yet")
            rows = self.handed_over(mark).orderBy("shard").collect()
            return [read(bytes(content)) for _, content in rows]
        beginning = self.beginning()
        if beginning is None:
            raise CheckpointError(NO_BEGINNING.format(self))
        sequences = {row.key[0]: row.value.sequence for row in self._state("save")}
        return all_saved(self._parts(), sequences, beginning.shards, self.place)

    def _parts(self) -> dict[int, dict[str, bytes]]:
        """The parts of the save of each shard, by its number."""
        pieces: defaultdict[int, list[tuple[str, int, bytes]]] = defaultdict(list)
        for row in self._state("pieces"):
            pieces[row.key[0]].append((*row.user_map_key, bytes(row.user_map_value[0])))
        return {number: whole_parts(those) for number, those in pieces.items()}

    def _has_committed(self) -> bool:
        return any(entry.getPath().getName().isdigit() for entry in self._entries("commits"))

    def _state(self, variable: str) -> list[Any]:
        reader = self._spark.read.format("statestore").option("stateVarName", variable)
        return reader.load(self.place).collect()


def all_saved(
    parts: Mapping[int, Mapping[str, bytes]], sequences: Mapping[int, int], shards: int, place: str
) -> list[Stored]:
    """What so many shards have saved, from the parts of each. Raises CheckpointError if one saved nothing."""
    # A shard without a head has not found its start, or has refused it.
    lacking = [number for number in range(shards) if HEAD not in parts.get(number, {})]
    for number in lacking:
        if reason := refusal_of(parts.get(number, {})):
            raise CheckpointError(f"shard {number} at {place} has compared nothing: {reason}")
    if lacking:
        raise CheckpointError(
            f"{shards - len(lacking)} of {shards} shards have saved something at {place}: start the job "
            "until its next batch has ended, and stop it again"
        )
    return [stored_of(sequences[number], parts[number]) for number in range(shards)]


def reached(name: str, place: str) -> Location:
    """A location, by the session of this process or a new one on this host, for the move of a comparison."""
    builder = SparkSession.builder.appName(f"twinstream move {name}")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for key, value in CONF.items():
        session.conf.set(key, value)
    return Location(session, place)


class Owned(Protocol):
    """A location that has an owner."""

    def mark(self) -> Mark | None: ...  # noqa: D102

    def handed(self) -> bool: ...  # noqa: D102

    def begun(self) -> bool: ...  # noqa: D102

    def beginning(self) -> Beginning | None: ...  # noqa: D102


class Moved(NamedTuple):
    """What was moved to a location: where the query begins, and what each `shard` begins with."""

    positions: Positions
    shards: DataFrame


def begun_at(spec: Spec, shards: int, location: Owned) -> Beginning | None:
    """How a comparison began at a location; None if it begins now. Raises CheckpointError if another did."""
    if not (location.begun() or location.handed()):
        return None
    beginning = location.beginning()
    if beginning is None:
        raise CheckpointError(NO_BEGINNING.format(location))
    if beginning.digest != digest(spec):
        raise CheckpointError(OTHER_FILE)
    if beginning.shards != shards:
        raise CheckpointError(OTHER_NUMBER.format(beginning.shards, shards))
    return beginning


def moved_here(location: Location) -> Moved | None:
    """What was moved to the location of a job. Raises CheckpointError if the job is not its owner."""
    mark = owned(location)
    if mark is None:
        return None
    return Moved(dict(zip(Side, mark.positions, strict=True)), location.handed_over(mark))


def owned(location: Owned) -> Mark | None:
    """The mark of what was moved to a location. Raises CheckpointError if a job may not go on there."""
    mark = location.mark()
    if mark is None and location.handed():
        raise CheckpointError(UNENDED.format(location))
    stays(mark, location)
    return None if mark is None or mark.moved is None else mark


def stays(mark: Mark | None, location: object) -> None:
    """Raise CheckpointError if what a job has compared at a location has moved to the service."""
    if mark is not None and mark.owner != "job":
        raise CheckpointError(BACK.format(location))


def written(stored: Stored) -> bytes:
    """What a shard begins with, as a file holds it."""
    plain = {"bodies": list(stored.bodies), "divergences": dict(stored.divergences)}
    return checkpoint.encode(stored._asdict() | plain)


def read(data: bytes) -> Stored:
    """What was `written`. Raises CheckpointError."""
    return Stored(**checkpoint.decode(data))
