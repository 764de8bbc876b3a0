"""`twinstream check --brokers`: compare the contents of two topics once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any

from confluent_kafka import Message

from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.kafka.source import KafkaSource, whole_record
from twinstream.cli.shared.output import Unreachable
from twinstream.cli.shared.progress import progress_of_records
from twinstream.core.events import Side
from twinstream.errors import NoTopic, SettingsError, SourceError
from twinstream.offline.bounded import BoundedCheck
from twinstream.offline.offset_range import Edge, edge_of
from twinstream.settings import load as load_settings
from twinstream.spec.file.model import Spec
from twinstream.spec.file.values import duration


def check_topics(spec: Spec, options: Mapping[str, Any], asked: Mapping[str, bool]) -> dict[str, Any]:
    """The answer for a stretch of the topics of a comparison.

    Raises SettingsError, InputError, and Unreachable if Kafka cannot be read.
    """
    settings = load_settings({"brokers": options["brokers"]}, options["config"])
    begin, end = _begin(spec, options["begin"]), edge_of("--to", options["end"], "latest")
    slack = spec.overdue.after if options["slack"] is None else _duration(options["slack"])
    names = {side: spec.version_of(side).topic for side in Side}
    read = whole_record if spec.whole else Message.value
    source = KafkaSource(settings.brokers, spec.name, names, settings.kafka, read, headers=spec.reads_marks)
    try:
        with closing(source):
            bounded = BoundedCheck(spec, source, begin, end, slack, SystemClock())
            with progress_of_records(bounded.size) as watched:
                return bounded.run(watched, **asked)
    except NoTopic as error:
        raise SettingsError(str(error)) from None
    except SourceError as error:
        raise Unreachable(str(error)) from None


def _begin(spec: Spec, given: tuple[str, ...]) -> Edge:
    """The first edge: if not given, the `start` of the file, if that names offsets or a time."""
    if given or spec.start.at == "earliest":
        return edge_of("--from", given, "earliest")
    if spec.start.at == "offsets":
        return {Side.LEFT: spec.start.reference or {}, Side.RIGHT: spec.start.candidate or {}}
    raise SettingsError(
        f"`start: {spec.start.at}` is found by `serve`, while events come: say where to begin with --from"
    )


def _duration(text: str) -> timedelta:
    try:
        found: timedelta = duration(text)
    except ValueError as error:
        raise SettingsError(f"--slack {error}") from None
    return found
