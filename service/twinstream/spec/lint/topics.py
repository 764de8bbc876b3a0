"""Checks the topics of a comparison: facts of Kafka that no comparison file can know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, nodes
from twinstream.spec.lint.cautions import Note, one_partition


class Topic(NamedTuple):
    """A topic as Kafka describes it."""

    partitions: int
    cleanup_policy: str | None


def control_refusal(name: str, topic: Topic) -> str | None:
    """Why the records of a control topic cannot be relied on; an unknown policy is no reason."""
    if topic.partitions > 1:
        return (
            f"{name} has {topic.partitions} partitions, and only one would be read: "
            "use a control topic of one"
        )
    if "compact" in (topic.cleanup_policy or ""):
        return (
            f"{name} has cleanup.policy {topic.cleanup_policy}: compaction removes control records that are "
            "to be read; use a control topic without it"
        )
    return None


def facts(spec: Spec, topics: Mapping[str, Topic | None]) -> Iterator[Note]:
    """What was found of each topic of a comparison, whether it is good or bad."""
    named = [(f"{side}.topic", version.topic) for side, version in spec.sides]
    for key, name in [*named, *([("control", spec.followed)] if spec.followed else [])]:
        topic = topics[name]
        if topic is None:
            yield Note(key, f"there is no topic {name}")
            continue
        count = "1 partition" if topic.partitions == 1 else f"{topic.partitions} partitions"
        yield Note(key, f"{name} has {count}, cleanup.policy {topic.cleanup_policy or 'unknown'}")


def refusals(spec: Spec, topics: Mapping[str, Topic | None]) -> Iterator[Note]:
    """Why a comparison cannot be right on these topics; None stands for a missing topic."""
    for side, version in spec.sides:
        topic = topics[version.topic]
        key = f"{side}.topic"
        if topic is None:
            yield Note(key, f"there is no topic {version.topic}")
            continue
        if "compact" in (topic.cleanup_policy or ""):
            yield Note(
                key,
                f"{version.topic} has cleanup.policy {topic.cleanup_policy}: compaction removes records that "
                "are to be compared; use a topic without it",
            )
        if topic.partitions > 1:
            for note in one_partition(spec):
                yield Note(note.key, f"{version.topic} has {topic.partitions} partitions: {note.text}")

    control = spec.followed and topics.get(spec.followed)
    if spec.followed and control and (refusal := control_refusal(spec.followed, control)):
        yield Note("control", refusal)


def hints(spec: Spec, topics: Mapping[str, Topic | None]) -> Iterator[Note]:
    """What topics allow or forbid without being a reason to refuse."""
    if spec.followed is not None and topics.get(spec.followed) is None:
        waits = "the last batch is not known to be whole"
        if spec.overdue.clock == "input":
            waits = "nothing is overdue"
        if spec.start.at == "input":
            waits = "nothing is compared"
        yield Note("control", f"there is no topic {spec.followed} yet; until there is, {waits}")
    reference, candidate = (topics[version.topic] for version in (spec.reference, spec.candidate))
    if reference is None or candidate is None or reference.partitions == candidate.partitions:
        return
    counts = f"the topics have {reference.partitions} and {candidate.partitions} partitions"
    copies = any(isinstance(node.order, Barrier) for node in nodes(spec.order, spec.compared_kinds))
    more = ", and each partition brings its own copy of a barrier" if copies else ""
    yield Note("candidate.topic", f"{counts}{more}: the work cannot be divided by partition")
