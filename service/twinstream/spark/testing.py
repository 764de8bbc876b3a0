"""The comparison as a test of PySpark code: two versions on one input, or one version against itself.

    answer = check("orders.yaml", old_job, new_job, input=rows, batches=5)
    assert answer.equivalent, answer

No service, broker or store is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from twinstream import testing
from twinstream.answers import Answer
from twinstream.core.events import Side
from twinstream.errors import OutputError
from twinstream.explain.divergence import NAMES
from twinstream.spark.outputs import Input, Job, Output, written_by
from twinstream.spec.file.model import Spec

SHUFFLE = "spark.sql.shuffle.partitions"
PARTITIONINGS = (1, 3)
"""Numbers of tasks in which a version is run against itself."""
MOST_BATCHES = 10
"""Micro-batches of the finest cut: each takes a while."""


def check(
    spec: testing.AnySpec,
    reference: Output,
    candidate: Output,
    *,
    input: DataFrame | Iterable[Any] | None = None,  # noqa: A002 - the field's word
    schema: StructType | str | None = None,
    batches: int | Sequence[int] | None = None,
    mode: str = "append",
    **options: Any,
) -> Answer:
    """Compare two outputs of PySpark, as `twinstream.check` compares recorded ones.

    Args:
        spec: The comparison: a path, a `Spec`, or a mapping with the keys of a comparison file.
        reference: The output of the reference: a batch DataFrame, a streaming one, which is run to its end,
            or a function from the input to either.
        candidate: The output of the candidate, likewise.
        input: The rows that functions are called with: a DataFrame, or what `createDataFrame` takes.
        schema: The schema of the input, where its rows do not tell it.
        batches: In how many micro-batches the input comes, or the number of rows in each.
        mode: The output mode of streaming outputs.
        **options: Further arguments of `twinstream.check`.

    Returns:
        The answer. Rows that are no records of Kafka already are compared as JSON objects.

    Raises:
        SpecError: The comparison breaks a rule.
        InputError: A row is no event of the comparison.
        OutputError: An output is none, a function has no input, or a row has no value.
    """
    comparison = testing.spec_of(spec)
    given = None if input is None else Input(input, schema, batches)
    left, right = (written_by(output, given, mode) for output in (reference, candidate))
    return _compared(comparison, left, right, options)


def _compared(
    spec: Spec, left: list[bytes | None], right: list[bytes | None], options: Mapping[str, Any]
) -> Answer:
    """The answer for the records of two outputs, without the tombstones that the comparison ignores."""
    kept = []
    for side, values in zip(Side, (left, right), strict=True):
        if None in values and spec.decode_of(side).tombstones != "ignore":
            raise OutputError(
                f"row {values.index(None) + 1} of the {NAMES[side]} has no value: a tombstone is no event; "
                "`decode: {tombstones: ignore}` leaves it out"
            )
        kept.append([value for value in values if value is not None])
    return testing.check(spec, *kept, **options)


class Variant(NamedTuple):
    """One way to run a version: the micro-batches of its input, and the tasks of a shuffle."""

    batches: int
    partitions: int

    def __str__(self) -> str:
        batches = "1 micro-batch" if self.batches == 1 else f"{self.batches} micro-batches"
        return f"{batches}, {self.partitions} {'task' if self.partitions == 1 else 'tasks'} a shuffle"


class SelfCheck(NamedTuple):
    """The answers of a version against itself, by variant; the first one is what the others are held to."""

    answers: dict[Variant, Answer]

    @property
    def equivalent(self) -> bool:
        """Whether all variants are equivalent."""
        return all(answer.equivalent for answer in self.answers.values())

    def __str__(self) -> str:
        found = [f"{variant}: {answer}" for variant, answer in self.answers.items() if not answer.equivalent]
        return "\n\n".join(found) or "equivalent in all variants"


def self_check(
    spec: testing.AnySpec,
    job: Job,
    input: DataFrame | Iterable[Any],  # noqa: A002 - the field's word
    *,
    schema: StructType | str | None = None,
    mode: str = "append",
    **options: Any,
) -> SelfCheck:
    """Run one version in several ways, each of which must give an equivalent output.

    The input comes in one micro-batch, in a few, and row by row, and shuffles have one task or several. A
    version whose output depends on any of this has a bug that no second version is needed to find.

    Args:
        spec: The comparison, as for `check`.
        job: The version: a function from the input to its output.
        input: The rows, as for `check`.
        schema: The schema of the input, where its rows do not tell it.
        mode: The output mode of streaming outputs.
        **options: Further arguments of `twinstream.check`.

    Returns:
        The answers by variant.
    """
    comparison = testing.spec_of(spec)
    whole = Input(input, schema)
    base: list[bytes | None] | None = None
    answers = {}
    for variant in _variants(len(whole.rows)):
        with _shuffling(variant.partitions):
            cut = Input(whole.frame(), batches=variant.batches)
            written = written_by(job, cut, mode)
        if base is None:
            base = written
        else:
            answers[variant] = _compared(comparison, base, written, options)
    return SelfCheck(answers)


def _variants(rows: int) -> Iterator[Variant]:
    for batches in sorted({1, min(3, rows), min(rows, MOST_BATCHES)} - {0}):
        for partitions in PARTITIONINGS:
            yield Variant(batches, partitions)


@contextmanager
def _shuffling(partitions: int) -> Iterator[None]:
    session = SparkSession.active()
    before = session.conf.get(SHUFFLE)
    session.conf.set(SHUFFLE, partitions)
    try:
        yield
    finally:
        session.conf.set(SHUFFLE, before or "200")
