"""Decides where reading begins, or why it cannot begin yet, from the topics and the comparison file.

`earliest` is safe only if both topics still have their first records, and these are of one time: a record
that is gone on one side may be the partner of one that is left on the other. The other starts name a cut that
both sides share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.ports import BeginsMs, Positions, Topic
from twinstream.spec.file.model import Spec
from twinstream.status.timestamps import moment_of

Topics = Mapping[Side, Topic]


class Unsafe(Exception):  # noqa: N818 - it is an answer, caught where it is asked for
    """There is no safe start now; the text is the sentence that says why."""


def positions_of(
    spec: Spec, topics: Topics, begins_ms: Callable[[], BeginsMs], bound: Positions | None = None
) -> Positions:
    """The positions to begin to read at; `bound` are offsets below which nothing is to be read.

    Raises Unsafe, and SourceError from `begins_ms`.
    """
    if spec.start.at == "offsets":
        return _given(spec, topics, bound)
    if spec.start.at == "earliest":
        _whole(topics)
        if reason := apart(spec, begins_ms()):
            raise Unsafe(reason)
        return {side: dict(topic.first) for side, topic in topics.items()}
    return bounded(topics, bound)


def bounded(topics: Topics, bound: Positions | None) -> Positions:
    """The first offsets that can be read, and are not below `bound`."""
    return {
        side: {
            partition: max(first, bound[side].get(partition, first) if bound else first)
            for partition, first in topic.first.items()
        }
        for side, topic in topics.items()
    }


def _whole(topics: Topics) -> None:
    for side, topic in topics.items():
        for partition, offset in topic.first.items():
            if offset > 0:
                raise Unsafe(
                    f"no safe start: the {NAMES[side]} has no records below offset {offset} in partition "
                    f"{partition} any more, so `start: earliest` would compare unequal beginnings"
                )


def apart(spec: Spec, begins_ms: BeginsMs) -> str | None:
    """The reason why the first records of both topics are not of one time; None if they are, or none is."""
    if not all(begins_ms.values()):
        return None
    first = [min(begins_ms[side].values()) for side in Side]
    if abs(first[0] - first[1]) <= spec.limits.lead // timedelta(milliseconds=1):
        return None
    begins = ", ".join(f"the {NAMES[side]} begins at {_text(first[side])}" for side in Side)
    return (
        f"no safe start: {begins}, which is further apart than limits.lead "
        f"({spec.limits.lead.total_seconds():g} s), so `start: earliest` would compare unequal beginnings"
    )


def _given(spec: Spec, topics: Topics, bound: Positions | None) -> Positions:
    """The offsets of the file, if Kafka has them all."""
    positions: dict[Side, dict[int, int]] = {}
    for side, topic in topics.items():
        given = spec.start.offsets_of(side)
        name = f"start.{NAMES[side]}"
        for partition in topic.first.keys() ^ given.keys():
            missing = "is not named there" if partition in topic.first else "does not exist"
            raise Unsafe(
                f"no safe start: `{name}` must name every partition, and partition {partition} {missing}"
            )
        for partition, offset in given.items():
            low, end = topic.first[partition], topic.ends[partition]
            if bound is not None:
                low = max(low, bound[side].get(partition, low))
            if offset < low:
                raise Unsafe(
                    f"no safe start: `{name}` asks for offset {offset} of partition {partition}, but the "
                    f"first that can be read is {low}"
                )
            if offset > end:
                raise Unsafe(
                    f"no safe start yet: `{name}` asks for offset {offset} of partition {partition}, but the "
                    f"partition ends at {end}"
                )
        positions[side] = dict(given)
    return positions


def _text(milliseconds: int) -> str:
    return moment_of(milliseconds).isoformat(timespec="seconds")
