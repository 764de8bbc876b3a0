"""docker-compose.yml, as far as can be seen without a container engine.

The reference reader of the compose specification reads it and checks it by the schema. What it starts is held
to the programs that are started: their arguments, their settings, their topics.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.demo.parts import CONTROL, INPUT
from deploy.embedded import gotools
from deploy.embedded import kafka as embedded
from loadtest import generator
from twinstream.cli.commands.serve import serve as serve_command
from twinstream.settings import Settings, load
from twinstream.spec.load import load as load_spec

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
LOOPBACK = "127.0.0.1"

Service = dict[str, Any]
Services = dict[str, Service]


class RefusedError(Exception):
    """The reader refused the file; the text is its own."""


def read(file: Path = FILE) -> dict[str, Any]:
    """The file as a container engine would understand it."""
    command = [gotools.ensure(gotools.COMPOSE), "--format", "json", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RefusedError(done.stderr + done.stdout)
    model: dict[str, Any] = json.loads(done.stdout)
    return model


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:
    return read()


@pytest.fixture(scope="module")
def services(model: dict[str, Any]) -> Services:
    found: Services = model["services"]
    return found


SET = {"CANDIDATE": "--fault drop", "TRIAL": "--trial /etc/twinstream/looser.yaml", "RATE": "20"}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Services:
    """The services where these are set. Only their places are looked at: the reader has no environment."""
    text = FILE.read_text()
    for name, value in SET.items():
        text, count = re.subn(rf"\$\{{{name}:-[^}}]*\}}", value, text)
        assert count == 1, f"{name} has one place"
    file = tmp_path_factory.mktemp("set") / FILE.name
    file.write_text(text)
    found: Services = read(file)["services"]
    return found


def words(service: Service) -> list[str]:
    """The command of a service, word by word."""
    command = service["command"]
    return shlex.split(command) if isinstance(command, str) else list(command)


def mounts(services: Services, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, service in services.items():
        for mount in service.get("volumes", []):
            if mount["type"] == kind:
                yield name, mount


def test_it_has_everything_that_a_comparison_needs(services: Services) -> None:
    compared = {"kafka", "topics", "redis", "twinstream", "reference", "candidate", "generator"}
    assert set(services) == compared | {"prometheus", "alertmanager", "grafana"}


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("restart: unless-stopped", "restrat: unless-stopped", "restrat"),
        ("kafka: {condition: service_healthy}", "kafka: {condition: service_well}", "condition"),
        ("cap_drop: [ALL]", "cap_drop: ALL", "cap_drop"),
        ("image: redis:7.4.2-bookworm", "image: [redis]", "image"),
    ],
)
def test_a_mistake_in_it_would_be_found(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    text = FILE.read_text()
    assert right in text
    (tmp_path / "docker-compose.yml").write_text(text.replace(right, wrong, 1))
    with pytest.raises(RefusedError, match=message):
        read(tmp_path / "docker-compose.yml")


def test_every_image_is_pinned_to_an_exact_version_or_built_here(services: Services) -> None:
    for image in (service["image"] for service in services.values()):
        assert re.fullmatch(r"[a-z-]+(/[a-z-]+)?:v?\d+\.\d+\.\d+(-[a-z]+)?", image), image
    built = {service["image"]: service["build"] for service in services.values() if "build" in service}
    assert len(built) == 2
    for build in built.values():
        assert Path(build["context"], build["dockerfile"]).is_file()
        assert Path(build["context"]) == ROOT


def test_every_mounted_path_is_in_the_repository_and_cannot_be_written(services: Services) -> None:
    found = list(mounts(services, "bind"))
    assert found
    for name, mount in found:
        known = subprocess.check_output(["git", "ls-files", mount["source"]], cwd=ROOT)
        assert known, f"{name} mounts {mount['source']}, which is not in the repository"
        assert mount["read_only"], f"{name} could write to {mount['source']}"


def test_data_are_in_named_volumes_and_each_is_used(model: dict[str, Any], services: Services) -> None:
    assert {mount["source"] for _, mount in mounts(services, "volume")} == set(model["volumes"])


def test_what_runs_for_long_has_a_health_check_and_a_service_waits_for_what_is_well(
    services: Services,
) -> None:
    unwatched = {name for name, service in services.items() if not watched(service)}
    assert unwatched == {"topics", "generator"}
    for service in services.values():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] in {"service_healthy", "service_completed_successfully"}
            if how["condition"] == "service_healthy":
                assert watched(services[other]), f"{other} has no health check"


def watched(service: Service) -> bool:
    """Whether a service has a health check: its own, or that of the image which is built here."""
    if "healthcheck" in service:
        return not service["healthcheck"].get("disable", False)
    build = service.get("build")
    return build is not None and "HEALTHCHECK" in Path(build["context"], build["dockerfile"]).read_text()


def test_a_container_gets_no_rights_and_nothing_of_it_is_secret_or_listens_beyond_the_machine(
    services: Services,
) -> None:
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged"), name
        assert service.get("user") != "0", name
        assert service["network_mode"] == "host", name  # so that loopback is the machine's
        assert "ports" not in service, name
        text = json.dumps([service.get("command"), service.get("environment")])
        assert "0.0.0.0" not in text, name
        assert not re.search(r"//:\d|\[::\]|[\" =]:\d{4}", text), name

    assert not re.search(r"(?i)password|secret|token|api_?key", FILE.read_text())


def test_redis_keeps_what_it_is_given(services: Services) -> None:
    command = " ".join(words(services["redis"]))
    assert "--maxmemory-policy noeviction" in command
    assert "--appendonly yes" in command


def test_kafka_is_configured_as_the_broker_that_the_tests_run(services: Services) -> None:
    given = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): str(value)
        for name, value in services["kafka"]["environment"].items()
    }
    lines = embedded._PROPERTIES.splitlines()
    tested = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    own = {name for name, value in tested.items() if "{" in value}
    assert set(given) <= set(tested) | {"heap.opts"}
    assert {name: given[name] for name in given if name not in own | {"heap.opts"}}.items() <= tested.items()
    assert given["heap.opts"] in embedded.Kafka.java_options
    assert given["advertised.listeners"] in given["listeners"]


def test_the_service_accepts_its_settings_and_comparison_files(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = services["twinstream"]
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    redis = f"redis://{LOOPBACK}:6379/0"
    assert load({}, None) == Settings(brokers=f"{LOOPBACK}:9092", redis=redis, bind=f"{LOOPBACK}:8080")
    assert sorted(spec.name for spec in comparisons(service)) == ["ads-counts", "ads-views"]


def test_the_override_with_tokens_fits_the_file_and_is_accepted(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    (block,) = re.findall(r"```yaml\n(services:.*?)```", text, re.DOTALL)
    override = yaml.safe_load(block)["services"]["twinstream"]
    assert set(override) <= set(services["twinstream"])
    (mount,) = override["volumes"]
    for name, value in {**services["twinstream"]["environment"], **override["environment"]}.items():
        monkeypatch.setenv(name, value)
    settings = load({}, None)
    assert (settings.bind, settings.token_file) == ("0.0.0.0:8080", mount.split(":")[1])


def comparisons(service: Service) -> list[Any]:
    """The comparison files of the service, read from where they are mounted from."""
    (mount,) = (mount for mount in service["volumes"] if mount["type"] == "bind")
    serve, *paths = words(service)
    assert serve == "serve"
    return [load_spec(path.replace(mount["target"], mount["source"])) for path in paths]


VERSIONS = ("reference", "candidate")
Job = Callable[[Service], argparse.Namespace]


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    """The arguments of a job, as it reads them."""
    monkeypatch.syspath_prepend(ROOT / "deploy" / "pipelines")

    def read_by(service: Service) -> argparse.Namespace:
        script, *arguments = words(service)
        if Path(script).stem == "candidate":
            return importlib.import_module("candidate").arguments().parse_args(arguments)
        return importlib.import_module("ads_job").arguments("").parse_args(arguments)

    return read_by


def test_the_topics_are_those_that_are_written_and_compared(services: Services, job: Job) -> None:
    jobs = [job(services[version]) for version in VERSIONS]
    written = {topic for options in jobs for topic in (options.views_topic, options.counts_topic)}
    specs = comparisons(services["twinstream"])
    compared = {version.topic for spec in specs for version in (spec.reference, spec.candidate)}
    (script,) = words(services["topics"])
    listed = script.split(" in ", 1)[1].split(";")[0].split()
    created = dict(topic.split(":") for topic in listed)
    assert written == compared
    assert created.keys() == written | {INPUT, CONTROL}
    assert created[CONTROL] == "1"
    assert {options.input for options in jobs} == {INPUT}
    assert {options.control_topic for options in jobs} | {spec.control for spec in specs} == {CONTROL}
    versions = {version.version for spec in specs for version in (spec.reference, spec.candidate)}
    assert {options.job_version for options in jobs} == versions


def test_a_version_has_a_checkpoint_of_its_own_and_may_finish_its_batch_before_it_is_killed(
    services: Services, job: Job
) -> None:
    volumes = {name: mount["source"] for name, mount in mounts(services, "volume")}
    assert volumes["reference"] != volumes["candidate"]
    for version in VERSIONS:
        (mount,) = services[version]["volumes"]
        assert job(services[version]).checkpoint == mount["target"]
        longest = importlib.import_module("ads_job").HOOK_SECONDS
        assert float(services[version]["stop_grace_period"].removesuffix("s")) > longest


def test_a_bug_can_be_given_to_the_candidate(services: Services, changed: Services, job: Job) -> None:
    assert job(changed["candidate"]).fault == "drop"
    assert job(services["candidate"]).fault is None


def test_a_changed_comparison_file_can_be_tried(services: Services, changed: Services) -> None:
    given, served = words(changed["twinstream"]), words(services["twinstream"])
    assert given == [*served, "--trial", "/etc/twinstream/looser.yaml"]
    text = (ROOT / "docs" / "trial.md").read_text()
    assert 'TRIAL="--trial /etc/twinstream/ads-views-looser.yaml" docker compose up' in text
    context = serve_command.make_context("serve", given[1:])
    assert context.params["trials"] == ("/etc/twinstream/looser.yaml",)
    assert context.params["specs"] == tuple(served[1:])


def test_a_drill_names_itself_where_prometheus_looks(services: Services) -> None:
    volumes = mounts(services, "volume")
    places = {name: mount["target"] for name, mount in volumes if mount["source"] == "drill"}
    assert set(places) == {"twinstream", "prometheus"}
    (folder,) = (mount["source"] for name, mount in mounts(services, "bind") if name == "prometheus")
    config = yaml.safe_load(Path(folder, "prometheus.yml").read_text())
    (scraped,) = config["scrape_configs"]
    ((found,),) = (named["files"] for named in scraped["file_sd_configs"])
    place = Path("/etc/prometheus", found)
    assert places["prometheus"] == str(place.parent)
    assert Path(folder, found).parent.is_dir(), "it is mounted into a folder that cannot be written"
    owner = f"install --directory --owner=10001 --group=10001 {places['twinstream']}"
    assert owner in (ROOT / "deploy" / "docker" / "service.Dockerfile").read_text()
    (file, *_) = re.findall(r"--scrape-file (/drill\S*)", (ROOT / "docs" / "drill.md").read_text())
    assert Path(file).match(f"{places['twinstream']}/{place.name}")


def test_the_generator_writes_the_input(services: Services, changed: Services) -> None:
    options = generator.arguments(words(services["generator"]))
    assert (options.brokers, options.topic, options.rate) == (f"{LOOPBACK}:9092", INPUT, 500)
    assert generator.arguments(words(changed["generator"])).rate == 20


def test_prometheus_reaches_what_it_scrapes_and_alerts_by_its_rules(
    services: Services,
) -> None:
    (mount,) = (mount for name, mount in mounts(services, "bind") if name == "prometheus")
    config = yaml.safe_load(Path(mount["source"], "prometheus.yml").read_text())
    assert all(list(Path(mount["source"]).glob(pattern)) for pattern in config["rule_files"])
    assert targets(config["scrape_configs"]) == {services["twinstream"]["environment"]["TWINSTREAM_BIND"]}
    listens = option(services["alertmanager"], "--web.listen-address")
    assert targets(config["alerting"]["alertmanagers"]) == {listens}


def test_grafana_finds_prometheus_and_the_dashboard(services: Services) -> None:
    grafana = services["grafana"]
    mounted = {
        mount["target"]: Path(mount["source"]) for mount in grafana["volumes"] if mount["type"] == "bind"
    }
    provisioning = mounted["/etc/grafana/provisioning"]
    (source,) = provisioned(provisioning / "datasources")["datasources"]
    (provider,) = provisioned(provisioning / "dashboards")["providers"]
    host, port = source["url"].removeprefix("http://").split(":")
    assert f"{host}:{LOOPBACK}" in grafana["extra_hosts"]
    assert option(services["prometheus"], "--web.listen-address") == f"{LOOPBACK}:{port}"
    assert list(mounted[provider["options"]["path"]].glob("*.json"))


def provisioned(folder: Path) -> dict[str, Any]:
    """The only file of a folder of Grafana's provisioning."""
    (file,) = folder.glob("*.yml")
    content: dict[str, Any] = yaml.safe_load(file.read_text())
    return content


def test_nobody_can_change_anything_in_grafana(services: Services) -> None:
    environment = services["grafana"]["environment"]
    closed = {"BASIC_ENABLED": "false", "DISABLE_LOGIN_FORM": "true", "ANONYMOUS_ORG_ROLE": "Viewer"}
    wanted = {"GF_SERVER_HTTP_ADDR": LOOPBACK, **{f"GF_AUTH_{name}": value for name, value in closed.items()}}
    assert wanted.items() <= environment.items()


def targets(jobs: list[dict[str, Any]]) -> set[str]:
    """All addresses that a part of Prometheus' configuration names."""
    return {target for job in jobs for group in job["static_configs"] for target in group["targets"]}


def option(service: Service, name: str) -> str:
    (value,) = (word.removeprefix(f"{name}=") for word in words(service) if word.startswith(f"{name}="))
    return value


def test_a_program_that_is_started_is_in_its_image(services: Services) -> None:
    image = (ROOT / "deploy" / "docker" / "pipelines.Dockerfile").read_text()
    assert "deploy/pipelines/*.py /opt/pipelines/" in image
    for version in VERSIONS:
        script = words(services[version])[0]
        assert (ROOT / "deploy" / "pipelines" / Path(script).name).is_file()
        assert Path(script).parent == Path("/opt/pipelines")
