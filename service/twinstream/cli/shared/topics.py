"""Opens the topics of a comparison for commands that read Kafka, and adds the options for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from twinstream.cli.shared.output import Unreachable
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.settings import load as load_settings
from twinstream.spec.file.model import Spec

if TYPE_CHECKING:  # Kafka's client takes long to import, and most commands do without it.
    from twinstream.adapters.kafka.source import KafkaSource


def kafka_options(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds `--brokers`, whose help ends with `what`, and `--config`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        config = "Settings file (YAML) of the service, for its brokers and kafka: {…}."
        command = click.option("--config", type=click.Path(), help=config)(command)
        return click.option("--brokers", help=f"Kafka, HOST:PORT[,HOST:PORT…]{what}")(command)

    return add


@contextmanager
def reaching_kafka() -> Iterator[None]:
    """Raises Unreachable if Kafka cannot be read within the block."""
    try:
        yield
    except SourceError as error:
        raise Unreachable(str(error)) from None


@contextmanager
def topics_of(spec: Spec, brokers: str | None, config: str | None, *, headers: bool) -> Iterator[KafkaSource]:
    """Both topics, with records as the comparison reads them. Raises as `reaching_kafka` does."""
    from confluent_kafka import Message

    from twinstream.adapters.kafka.source import KafkaSource, whole_record

    settings = load_settings({"brokers": brokers}, config)
    names = {side: spec.version_of(side).topic for side in Side}
    read = whole_record if spec.whole else Message.value
    source = KafkaSource(settings.brokers, spec.name, names, settings.kafka, read, headers=headers)
    with reaching_kafka(), closing(source):
        yield source
