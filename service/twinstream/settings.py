"""The settings of the service: one frozen typed value from flags, environment and file, passed in."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import ByteSize, Field, ValidationError, ValidatorFunctionWrapHandler, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)

from twinstream import errors

DEFAULT_BIND = "127.0.0.1:8080"
LEAST_MEMORY = 128 << 20
"""A matcher takes half of it before its first event: with less, every event would exceed it."""

RECORD_PARTS = ("topic", "partition", "offset")
"""The parts of a position, as `record_url` names them."""

_POSITIONS = "positions are those of the checkpoint, and no other group may be disturbed"
_OWN = {
    "bootstrap.servers": "it is the setting `brokers`",
    "metadata.broker.list": "it is the setting `brokers`",
    "group.id": _POSITIONS,
    "enable.auto.commit": _POSITIONS,
    "enable.auto.offset.store": _POSITIONS,
    "auto.offset.reset": "a lost range must be heard of, and not be skipped",
    "enable.partition.eof": "it tells that everything is read",
    "statistics.interval.ms": "it tells whether Kafka answers",
}
"""Properties of librdkafka on which the service relies, each with the reason."""
_OF_SPARK = ("kafka.bootstrap.servers", "kafka.group.id", "kafka.isolation.level", "kafka.auto.offset.reset")
"""Options that a Spark job sets by itself."""

_SECRET = {
    "redis": "`redis` is a text, redis://[USER:PASSWORD@]HOST:PORT/DATABASE",
    "kafka": "`kafka` maps properties of librdkafka to texts, whole numbers, true or false",
    "spark": "`spark` maps options of Spark's Kafka source to texts, whole numbers, true or false",
}
"""Settings that may hold a password: error messages do not repeat their values."""


class Settings(BaseSettings):
    """The settings of the service, besides its comparison files.

    Each member is a flag of `serve`, a variable ``TWINSTREAM_NAME``, and a key of the settings file. `kafka`
    holds librdkafka properties; they reach the client unchanged. `spark` are options of Spark's own Kafka
    reader and writer in a job, beside those translated from `kafka`. `memory_limit` is for each matcher
    process, of which `shards` share the work of each comparison. Beyond loopback a `token_file` is needed.
    The secret in `mask_key_file` keys the hashes of masked values; without it each comparison has a secret
    in Redis. A process of the `role` api has no matchers, one of the role matcher no page and no API.
    `record_url` is the address of a record in a Kafka UI: the page fills in {topic}, {partition} and
    {offset}. `results` is the topic in which a Spark job says what it finds; a process with it has no
    matchers, and needs no Redis.
    """

    model_config = SettingsConfigDict(env_prefix="TWINSTREAM_", extra="forbid", frozen=True)

    brokers: str = "localhost:9092"
    redis: Annotated[str, Field(repr=False)] = "redis://localhost:6379/0"
    bind: str = DEFAULT_BIND
    token_file: str | None = None
    mask_key_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    base_path: str = ""
    record_url: str | None = None
    read_from: str = "earliest"
    kafka: Annotated[dict[str, str | int | bool], Field(repr=False)] = {}
    spark: Annotated[dict[str, str | int | bool], Field(repr=False)] = {}
    memory_limit: ByteSize | None = None
    role: Literal["all", "api", "matcher"] = "all"
    shards: Annotated[int, Field(ge=1, le=4096)] = 1
    results: str | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - a .env file is another tool's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags before environment before file."""
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls)

    @field_validator("read_from")
    @classmethod
    def _from(cls, read_from: str) -> str:
        if read_from not in {"earliest", "latest"} and time_of(read_from) is None:
            raise ValueError(
                f"{read_from!r} is not earliest, latest or a time with its zone, like 2026-01-01T00:00:00Z"
            )
        return read_from

    @field_validator("*", mode="before")
    @classmethod
    def _as_written(cls, given: Any) -> Any:
        """Take a time, as YAML reads it, as text."""
        return given.isoformat() if isinstance(given, date) else given

    @field_validator("brokers")
    @classmethod
    def _named(cls, brokers: str) -> str:
        if not brokers.strip():
            raise ValueError("no broker is named: give HOST:PORT[,HOST:PORT…]")
        if not all(broker.strip().isprintable() for broker in brokers.split(",")):
            raise ValueError(f"{brokers!r} names no broker: give HOST:PORT[,HOST:PORT…]")
        return brokers

    @field_validator("results")
    @classmethod
    def _topic(cls, results: str | None) -> str | None:
        if results is not None and not results.strip():
            raise ValueError("no topic is named: give that of the Spark job, or leave the setting out")
        if results is not None and not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", results):
            raise ValueError(f"{results!r} must be the name of a Kafka topic")
        return results

    @field_validator("kafka")
    @classmethod
    def _free(cls, kafka: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        for name in kafka:
            if name in _OWN:
                raise ValueError(f"{name} is not free: {_OWN[name]}")
        return kafka

    @field_validator("spark")
    @classmethod
    def _of_kafka(cls, spark: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        for name in spark:
            if name in _OF_SPARK:
                raise ValueError(f"{name} is not free: the job sets it")
            if not name.startswith("kafka."):
                raise ValueError(
                    f"{name} is no property of Kafka: they begin with `kafka.`; give any other to "
                    "spark-submit, with --conf"
                )
        return spark

    @field_validator("memory_limit", mode="wrap")
    @classmethod
    def _enough(cls, given: Any, parsed: ValidatorFunctionWrapHandler) -> ByteSize | None:
        try:
            limit: ByteSize | None = parsed(given)
        except ValidationError:
            raise ValueError(f"{given!r} is not a size; write one like 4GiB") from None
        if limit is not None and limit < LEAST_MEMORY:
            raise ValueError(f"{given!r} is less than the 128MiB that a matcher needs: give it more")
        return limit

    @field_validator("bind")
    @classmethod
    def _address(cls, bind: str) -> str:
        _, port = split_address(bind)
        if not 0 <= port <= 65535:
            raise ValueError(f"{bind!r} has no port between 0 and 65535")
        return bind

    @field_validator("base_path")
    @classmethod
    def _prefix(cls, base_path: str) -> str:
        if base_path in ("", "/"):
            return ""
        if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", base_path):
            raise ValueError(f"{base_path!r} is not a base path: it begins with /, as in /twinstream")
        return base_path.rstrip("/")

    @field_validator("record_url")
    @classmethod
    def _link(cls, record_url: str | None) -> str | None:
        """Refuse what leads to no record, and a password, since every reader gets this address."""
        if not record_url:
            return None
        rule = "write it like https://ui.example/topics/{topic}?partition={partition}&offset={offset}"
        if not re.match(r"https?://[^/?#@\s]+([/?#]\S*)?\Z", record_url):
            raise ValueError(
                f"{errors.without_secrets(record_url)!r} is no http address without a password: {rule}"
            )
        named = re.findall(r"\{([^{}]*)\}", record_url)
        for name in named:
            if name not in RECORD_PARTS:
                raise ValueError(f"{record_url!r} has {{{name}}}, which is no part of a position: {rule}")
        for name in RECORD_PARTS:
            if name not in named:
                raise ValueError(f"{record_url!r} names no record without {{{name}}}: {rule}")
        return record_url

    @property
    def loopback(self) -> bool:
        """Whether only this host can reach the service."""
        return is_own_name(split_address(self.bind)[0])


def load(flags: dict[str, Any], config: str | None) -> Settings:
    """Merge flags (None: not given), environment and settings file, in this order of precedence.

    Raises SettingsError, naming the setting and where it came from.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    if config is not None:
        _check_file(config)

    class Merged(Settings):
        model_config = SettingsConfigDict(yaml_file=config)

    try:
        settings = Settings(**Merged(**given).model_dump())
    except SettingsError as error:
        # Two settings are objects; pydantic does not tell how one is written.
        name, like = ("SPARK", "kafka.") if 'field "spark"' in str(error) else ("KAFKA", "")
        told = (
            f'variable TWINSTREAM_{name}: it must be a JSON object, like {{"{like}security.protocol": "SSL"}}'
        )
        raise errors.SettingsError(told) from None
    except ValidationError as error:
        raise _violation(error, given, config) from None
    _check_together(settings, given, config)
    return settings


def _check_together(settings: Settings, given: dict[str, Any], config: str | None) -> None:
    """Check the rules that involve several settings."""
    if not settings.loopback and settings.token_file is None:
        raise errors.SettingsError(
            f"{_origin('bind', given, config)}: {settings.bind!r} is not a loopback address, so others than "
            "this host can ask: give --token-file, too, or bind 127.0.0.1"
        )
    if (settings.tls_cert is None) != (settings.tls_key is None):
        there, lacks = ("tls_cert", "tls-key") if settings.tls_key is None else ("tls_key", "tls-cert")
        raise errors.SettingsError(f"{_origin(there, given, config)}: TLS needs --{lacks}, too")


def time_of(text: str) -> datetime | None:
    """The instant that a text names; None for one that names none, or has no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` or ``[IPV6]:PORT``. Raises ValueError."""
    match = re.fullmatch(r"\[?([^\[\]]+?)\]?:(\d+)", address)
    if match is None:
        raise ValueError(f"{address!r} is not HOST:PORT")
    return match[1], int(match[2])


def is_own_name(host: str) -> bool:
    """Whether this name of a host, or its address, always means the host itself."""
    name = host.lower().removesuffix(".")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _check_file(config: str) -> None:
    try:
        text = Path(config).read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except OSError as error:
        raise errors.SettingsError(f"settings file {config} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise errors.SettingsError(_no_yaml(config, error)) from None
    if not isinstance(content, dict):
        raise errors.SettingsError(f"settings file {config} must be a mapping of settings")
    for name in content:
        if not isinstance(name, str):
            raise errors.SettingsError(f"settings file {config}: {name!r} is not a setting; {_known()}")
    for key in _repeated(yaml.compose(text, Loader=yaml.SafeLoader)):
        place = f"{config}:{key.start_mark.line + 1}"
        raise errors.SettingsError(f"settings file {place}: `{key.value}` stands twice: leave one out")


def _repeated(settings: Any) -> Iterator[yaml.Node]:
    """The keys that stand twice, of which YAML would keep the last one in silence."""
    for node in (settings, *(value for _, value in settings.value)):
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if key.value in seen:
                yield key
            seen.add(key.value)


def _no_yaml(config: str, error: Exception) -> str:
    """Where and why a file cannot be read. The text at that place is not repeated: it may be a password."""
    mark = getattr(error, "problem_mark", None)
    place = config if mark is None else f"{config}:{mark.line + 1}"
    return f"settings file {place} is not YAML; a text with special characters needs quotes"


def _violation(error: ValidationError, given: dict[str, Any], config: str | None) -> errors.SettingsError:
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "settings"
    where = _origin(name, given, config)
    if first["type"] == "extra_forbidden":
        return errors.SettingsError(f"{where} is not a setting; {_known()}")
    message = first["msg"].removeprefix("Value error, ")
    if name in _SECRET and first["type"] != "value_error":
        message = f"{'.'.join(map(str, first['loc'][:2]))} cannot be used: {_SECRET[name]}"
    elif first["type"] != "value_error":
        message = f"{message[:1].lower()}{message[1:]}, but {first['input']!r} was given"
    return errors.SettingsError(f"{where}: {message}")


def _known() -> str:
    return f"known are {', '.join(Settings.model_fields)}"


def _origin(name: str, given: dict[str, Any], config: str | None) -> str:
    """The place that a setting's value came from."""
    if name in given:
        return f"flag --{name.removeprefix('read_').replace('_', '-')}"
    variable = next((one for one in os.environ if one.upper() == f"TWINSTREAM_{name.upper()}"), None)
    return f"settings file {config}: `{name}`" if variable is None else f"variable {variable}"
