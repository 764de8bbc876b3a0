"""The errors of Twinstream, split by who has to act.

    TwinstreamError
    ├── SettingsError      the operator: a flag, an environment variable, a settings file
    ├── SpecError          the owner of the comparison: the comparison file (file, line, key, rule)
    ├── InputError         the user of `check`: a file or a line of it
    ├── SinkError          the owner of a pipeline: its sink cannot start, or Kafka refuses it
    ├── OutputError        the user of the PySpark library: an output is none, or has no input
    ├── DecodeError        the producer of a record: it is not an event of this comparison
    ├── RelationError      the user's code: a function that decides dependence failed, or broke a law
    ├── SourceError        infrastructure: Kafka, a schema registry
    │   └── NoTopic        a topic is not there
    └── StoreError         infrastructure: Redis
        ├── Fenced         another owner holds the comparison
        │   └── Replaced   other stores are in effect
        ├── MovedAway      a Spark job goes on with the state
        ├── Divided        the state is that of another number of shards
        ├── NoResults      a results topic of a Spark job is not there
        ├── Unready        the state cannot be taken over yet
        ├── Outdated       the store holds another state than the one that a delta builds on
        └── CheckpointError  the stored state is newer, damaged, or of another spec

A divergence is a result, never an exception.

No text of an error holds a value of a record or a password: it may be logged, saved and shown.
"""

from __future__ import annotations

import re
import socket
import traceback
from collections.abc import Sequence
from pathlib import Path


class TwinstreamError(Exception):
    """Base of all errors that a user can meet; its text is one clear sentence."""


class SettingsError(TwinstreamError):
    """A setting of the service is wrong."""


class SpecError(TwinstreamError):
    """The comparison file breaks a rule."""

    def __init__(self, file: str, line: int | None, key: str, problem: str) -> None:
        self.file, self.line, self.key, self.problem = file, line, key, problem
        self.others: tuple[SpecError, ...] = ()
        place = f"{file}:{line}" if line is not None else file
        super().__init__(f"{place}: {f'`{key}`: ' if key else ''}{problem}")

    @classmethod
    def of(cls, faults: Sequence[SpecError]) -> SpecError:
        """All faults of a file as one error, which is the first of them; what is told twice counts once."""
        first, *others = {str(fault): fault for fault in faults}.values()
        first.others = tuple(others)
        return first

    @property
    def faults(self) -> list[SpecError]:
        """All faults of the file, by their lines."""
        return sorted((self, *self.others), key=lambda fault: fault.line or 0)


class InputError(TwinstreamError):
    """A line of an input file cannot be used."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        self.file, self.line, self.problem = file, line, problem
        super().__init__(f"{file}:{line}: {problem}" if line is not None else f"{file}: {problem}")


class SinkError(TwinstreamError):
    """The sink of a pipeline cannot start, or Kafka does not take what it says; the text says what to do."""


class OutputError(TwinstreamError):
    """The output of a pipeline cannot be had: it is none, or it has no input; the text says which."""


class DecodeError(TwinstreamError):
    """A record is not an event of this comparison; the text says why."""


class RelationError(TwinstreamError):
    """A function of the user failed or broke a law; the text names it, the two events and what happened."""


class SourceError(TwinstreamError):
    """Kafka cannot be read, a schema registry cannot be reached, or they do not have enough data yet."""


class NoTopic(SourceError):  # noqa: N818 - what Kafka says, and no failure of it
    """A topic is not there."""


class QueryFailed(TwinstreamError):  # noqa: N818 - what Spark says of it
    """The query of a Spark job has failed; the text is the reason."""


class StoreError(TwinstreamError):
    """Redis cannot be used."""


class Fenced(StoreError):  # noqa: N818 - the field's word for it
    """Another owner holds the comparison; this one must stop."""


class Replaced(Fenced):
    """Other stores are in effect: a process on these must begin again, on those."""


class Divided(StoreError):  # noqa: N818 - how the state is
    """The state belongs to another number of shards, `found`; each has saved one of `heads`, or none."""

    def __init__(self, found: int, wanted: int, heads: Sequence[bytes]) -> None:
        super().__init__(
            f"its state is that of --shards {found}, and this process runs with --shards {wanted}: start it "
            f"with --shards {found}, or begin the comparison anew with {wanted} (`twinstream reset`)"
        )
        self.found, self.heads = found, heads


class MovedAway(StoreError):  # noqa: N818 - where the state is
    """A Spark job goes on with the state: it was moved to the `place` of its checkpoint."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"a Spark job goes on with it, since it was moved to {place}: `twinstream move --to service` "
            "brings it back, once the job has ended"
        )
        self.place = place


class NoResults(StoreError):  # noqa: N818 - what Kafka says, and no failure of it
    """A results topic is not there."""


class Unready(StoreError):  # noqa: N818 - it passes
    """The state cannot be taken over, or looked at, yet."""


class Outdated(StoreError):  # noqa: N818 - a state of the store, which the owner mends by a whole base
    """The store does not hold the base that a delta builds on."""


class CheckpointError(StoreError):
    """The stored state cannot be read by this version."""


def place_of(error: BaseException) -> str:
    """The type of any error and the line that raised it; not its text, which may hold values."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if frames else ""
    return f"{type(error).__name__}{where}"


NO_HOST = "no host has this name: correct it"
NO_LISTENER = "nothing listens on this port: start the server, or correct the port"


def told_of_connection(error: BaseException) -> str:
    """Why a server cannot be connected to: an unknown host and a closed port are told apart.

    The clients hand on the numbers of the operating system, so the error that they wrap is looked for. Of any
    other error its own text is returned, without that number.

    >>> told_of_connection(ConnectionRefusedError(111, "Connection refused"))
    'nothing listens on this port: start the server, or correct the port'
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return NO_LISTENER
        if isinstance(cause, socket.gaierror) and cause.errno in _NO_NAME:
            return NO_HOST
        cause = cause.__cause__ or cause.__context__
    return _NUMBER.sub("", str(error))


_NO_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_NUMBER = re.compile(r"\[Errno -?\d+\] |Error -?\d+ (?=connecting)")


def without_secrets(address: str) -> str:
    """An address as messages show it, without any user, password or options, even if it is malformed.

    >>> without_secrets("rediss://user:a#b/c@redis:6380/0?password=d")
    'rediss://…@redis:6380/0'
    """
    secret, at, place = address.rpartition("@")
    scheme, separator, _ = secret.partition("://")
    hidden = f"{scheme}{separator}…@" if separator else at and "…@"
    return hidden + place.partition("?")[0]
