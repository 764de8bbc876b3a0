"""The settings of the service: flags before environment before file, and what is wrong in one sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from twinstream.bootstrap import _read_from
from twinstream.cli.commands.serve import serve
from twinstream.errors import SettingsError
from twinstream.settings import load

GIB = 1 << 30


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("brokers: file:1\nredis: redis://file\nmemory_limit: 1GiB\n")
    monkeypatch.setenv("TWINSTREAM_REDIS", "redis://variable")
    monkeypatch.setenv("TWINSTREAM_MEMORY_LIMIT", "2GiB")
    settings = load({"memory_limit": "3GiB", "brokers": None}, str(file))
    assert (settings.brokers, settings.redis, settings.memory_limit) == (
        "file:1",
        "redis://variable",
        3 * GIB,
    )


def test_a_time_in_a_file_needs_no_quotes(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("read_from: 2026-01-01T00:00:00Z\n")
    assert load({}, str(file)).read_from == "2026-01-01T00:00:00+00:00"


def test_without_any_setting_nothing_is_limited_and_only_this_host_is_served() -> None:
    settings = load({}, None)
    assert (settings.memory_limit, settings.bind) == (None, "127.0.0.1:8080")
    assert f"address is {settings.bind}" in str(serve.help)


def test_a_time_before_all_of_kafkas_reads_everything() -> None:
    assert _read_from(load({"read_from": "1969-12-31T23:59:59.999Z"}, None)) == 0


def test_a_variable_in_small_letters_is_named_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("twinstream_bind", "0.0.0.0:80")
    with pytest.raises(SettingsError, match=r"^variable twinstream_bind: '0\.0\.0\.0:80' is not"):
        load({}, None)


def test_properties_in_a_variable_that_are_no_json_are_told_how_to_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TWINSTREAM_KAFKA", "sasl.password=secret")
    with pytest.raises(
        SettingsError, match="variable TWINSTREAM_KAFKA: it must be a JSON object, like "
    ) as caught:
        load({}, None)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"brokers": "a\nb"}, r"flag --brokers: 'a\\nb' names no broker: give HOST:PORT"),
        ({"brokers": "\udcff"}, r"flag --brokers: '\\udcff' names no broker"),
        ({"results": "["}, r"flag --results: '\[' must be the name of a Kafka topic"),
        ({"brokers": " "}, "flag --brokers: no broker is named: give HOST:PORT"),
        ({"results": ""}, "flag --results: no topic is named: give that of the Spark job, or leave"),
        ({"kafka": {"auto.offset.reset": "latest"}}, "flag --kafka: auto.offset.reset is not free: a lost"),
        (
            {"kafka": {"group.id": "ads"}},
            "flag --kafka: group.id is not free: positions are those of the checkpoint",
        ),
        (
            {"kafka": {"bootstrap.servers": "b:1"}},
            "bootstrap.servers is not free: it is the setting `brokers`",
        ),
        ({"memory_limit": "much"}, "flag --memory-limit: 'much' is not a size; write one like 4GiB"),
        ({"memory_limit": "5"}, "flag --memory-limit: '5' is less than the 128MiB that a matcher needs"),
        ({"bind": "0.0.0.0:80"}, "flag --bind: '0.0.0.0:80' is not a loopback address, so others than this"),
        ({"bind": "example.org:80"}, "'example.org:80' is not a loopback address.*: give --token-file, too"),
        ({"bind": "127.0.0.1:70000"}, "flag --bind: '127.0.0.1:70000' has no port between 0 and 65535"),
        ({"tls_cert": "tls.crt"}, "flag --tls-cert: TLS needs --tls-key, too"),
        ({"tls_key": "tls.key"}, "flag --tls-key: TLS needs --tls-cert, too"),
        ({"base_path": "twinstream"}, "flag --base-path: 'twinstream' is not a base path: it begins with /"),
        ({"base_path": "/a b"}, "flag --base-path: '/a b' is not a base path"),
        (
            {"record_url": "ui/{topic}"},
            "flag --record-url: 'ui/{topic}' is no http address without a password",
        ),
        ({"record_url": "https://u:p@ui/"}, "flag --record-url: 'https://…@ui/' is no http address without"),
        (
            {"record_url": "http://ui/{topic}/{partition}"},
            "names no record without {offset}: write it like h",
        ),
        ({"record_url": "http://ui/{key}"}, "has {key}, which is no part of a position: write it like http"),
        ({"bind": "localhost"}, "flag --bind: 'localhost' is not HOST:PORT"),
        ({"read_from": "yesterday"}, "flag --from: "),
        ({"role": "apis"}, "flag --role: input should be 'all', 'api' or 'matcher'"),
    ],
)
def test_a_wrong_flag_is_named(flags: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("(", r"\(")):
        load(flags, None)


@pytest.mark.parametrize("role", ["all", "api", "matcher"])
def test_what_a_process_does_may_be_a_variable(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load({}, None).role == "all"
    monkeypatch.setenv("TWINSTREAM_ROLE", role)
    assert load({}, None).role == role


def test_with_a_token_file_others_are_served_too() -> None:
    assert load({"bind": "0.0.0.0:8080", "token_file": "tokens"}, None).bind == "0.0.0.0:8080"


@pytest.mark.parametrize(("given", "base"), [("", ""), ("/", ""), ("/a/", "/a"), ("/a/b-c", "/a/b-c")])
def test_a_base_path_has_no_slash_at_its_end(given: str, base: str) -> None:
    assert load({"base_path": given}, None).base_path == base


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "must be a mapping"),
        ("a: [\n", "is not YAML"),
        ("[" * 5_000, "is not YAML"),
        ("broker: file:1\n", r"settings\.yaml: `broker` is not a setting; known are brokers, redis, bind"),
        ("on: 2\n", r"settings\.yaml: True is not a setting; known are brokers"),
        ("bind: 8080\n", r"settings\.yaml: `bind`: input should be a valid string, but 8080 was given"),
        ("kafka: {group.id: a}\n", r"settings\.yaml: `kafka`: group\.id is not free"),
        ("read_from: 2026-01-01\n", r"settings\.yaml: `read_from`: '2026-01-01' is not earliest, latest or"),
        ("role: api\nrole: all\n", r"settings\.yaml:2: `role` stands twice: leave one out"),
        ("kafka:\n  a: 1\n  a: 1\n", r"settings\.yaml:3: `a` stands twice: leave one out"),
    ],
)
def test_a_file_that_holds_no_settings_or_others_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=said):
        load({}, str(file))


@pytest.mark.parametrize(
    "secret", ['"sesame', "*sesame", "!sesame", "sesame: sesame", "'sesame' sesame", "\0sesame", "2026-13-45"]
)
def test_a_file_that_is_no_yaml_is_named_with_its_line_and_nothing_that_stands_there(
    tmp_path: Path, secret: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"brokers: localhost\nkafka:\n  sasl.password: {secret}\n")
    with pytest.raises(SettingsError, match=r"settings\.yaml:?[34]? is not YAML[^\n]*quotes$") as refused:
        load({}, str(file))
    assert "sesame" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load({}, str(tmp_path / "none.yaml"))


def test_what_is_printed_of_settings_has_no_password() -> None:
    kafka = {"sasl.password": "sesame"}
    settings = load({"redis": "redis://:sesame@localhost", "kafka": kafka}, None)
    assert (settings.redis, settings.kafka) == ("redis://:sesame@localhost", kafka)
    assert "sesame" not in f"{settings!r} {settings}"


def test_a_value_of_kafka_that_cannot_be_one_is_named_and_not_told() -> None:
    with pytest.raises(SettingsError, match=r"kafka\.sasl\.password cannot be used: `kafka` maps") as refused:
        load({"kafka": {"sasl.password": 12.5}}, None)
    assert "12.5" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kafka.group.id", "flag --spark: kafka.group.id is not free: the job sets it"),
        (
            "spark.executor.memory",
            "flag --spark: spark.executor.memory is no property of Kafka: they begin with",
        ),
    ],
)
def test_options_of_spark_are_those_of_kafka_that_a_job_does_not_set(name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(reason)):
        load({"spark": {name: "a"}}, None)
    assert load({"spark": {"kafka.ssl.protocol": "TLSv1.3"}}, None).spark == {"kafka.ssl.protocol": "TLSv1.3"}


def test_a_variable_for_spark_that_is_no_object_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSTREAM_SPARK", "kafka.security.protocol=SSL")
    with pytest.raises(SettingsError, match=r'variable TWINSTREAM_SPARK: .*\{"kafka\.security\.protocol"'):
        load({}, None)


@pytest.mark.parametrize("name", ["redis", "kafka", "spark"])
def test_of_a_setting_that_may_hold_a_password_is_told_what_it_has_to_be(name: str) -> None:
    with pytest.raises(SettingsError, match=f"flag --{name}: {name} cannot be used: `{name}` ") as refused:
        load({name: ["sesame"]}, None)
    assert "sesame" not in str(refused.value)
