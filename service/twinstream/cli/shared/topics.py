"""Opens the topics of a comparison for commands that read Kafka, and adds the options for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from twinstream.cli.shared.output import Unreachable
from twinstream.core.events import Side
from twinstream.errors import NoTopic, SettingsError, SourceError
from twinstream.settings import Settings
from twinstream.settings import load as load_settings
from twinstream.spec.file.model import Spec

if TYPE_CHECKING:  # Kafka's client takes long to import, and most commands do without it.
    from twinstream.adapters.kafka.source import KafkaSource

Command = Callable[..., Any]


def kafka_options(what: str) -> Callable[[Command], Command]:
    """Adds `--brokers`, whose help ends with `what`, and `--config`.

    Together they become the parameter `kafka`: the settings, None if neither is given.
    """
    config_help = "Settings file (YAML) of the service, for its brokers and kafka: {…}."

    def add(command: Command) -> Command:
        @click.option("--brokers", help=f"Kafka, HOST:PORT[,HOST:PORT…]{what}")
        @click.option("--config", type=click.Path(), help=config_help)
        @wraps(command)
        def reading(*, brokers: str | None, config: str | None, **given: Any) -> Any:
            asked = brokers is not None or config is not None
            kafka = load_settings({"brokers": brokers}, config) if asked else None
            return command(kafka=kafka, **given)

        return reading

    return add


@contextmanager
def reaching_kafka() -> Iterator[None]:
    """Raises Unreachable if Kafka cannot be read within the block; SettingsError if a topic is missing."""
    try:
        yield
    except NoTopic as error:
        raise SettingsError(str(error)) from None
    except SourceError as error:
        raise Unreachable(str(error)) from None


@contextmanager
def topics_of(spec: Spec, kafka: Settings, *, headers: bool) -> Iterator[KafkaSource]:
    """Both topics, with records as the comparison reads them. Raises as `reaching_kafka` does."""
    from twinstream.adapters.kafka.source import KafkaSource, record_reader

    names = {side: spec.version_of(side).topic for side in Side}
    read = record_reader(spec)
    source = KafkaSource(
        kafka.brokers, spec.name, names, kafka.kafka, read, headers=headers, keys=spec.reads_keys
    )
    with reaching_kafka(), closing(source):
        yield source
