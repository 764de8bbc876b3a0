"""Makes Kafka records of the rows of a DataFrame, as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from twinstream.errors import SinkError


def records(rows: DataFrame, *, key: Sequence[str] = (), keep: Sequence[str] = ()) -> DataFrame:
    """Kafka records of any rows: `key` and `value`, and the columns to `keep` beside them.

    The value is a JSON object of all columns but those kept; null fields are written. The key is the text of
    its column, or of several columns a JSON object; without any there is no key.

    Raises:
        SinkError: a column is not there.
    """
    for name in (*key, *keep):
        if name not in rows.columns:
            raise SinkError(f"the rows have no column {name!r}; they have {', '.join(rows.columns)}")
    fields = [name for name in rows.columns if name not in keep]
    made = [_json(fields).alias("value"), *(fn.col(quoted(name)) for name in keep)]
    return rows.select(*([_key(key).alias("key")] if key else []), *made)


def _key(names: Sequence[str]) -> Column:
    return fn.col(quoted(names[0])).cast("string") if len(names) == 1 else _json(names)


def _json(names: Sequence[str]) -> Column:
    return fn.to_json(fn.struct(*(fn.col(quoted(name)) for name in names)), {"ignoreNullFields": "false"})


def quoted(name: str) -> str:
    """The name of a column as SQL has it."""
    return f"`{name.replace('`', '``')}`"
