"""The Helm chart with Spark: a job for each comparison, and pods that show what the jobs say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.support.helm import (
    CHART,
    NEWEST,
    OLDEST,
    Manifest,
    RefusedError,
    Values,
    container,
    helm,
    of_role,
    one,
    options_in,
    pod,
    render,
)
from twinstream.cli.commands.spark_submit_args import spark_submit_args
from twinstream.settings import load
from twinstream.spark.matcher.__main__ import main

ROOT = CHART.parents[1]
OPERATOR = "sparkoperator.k8s.io/v1beta2"
SCHEMA = json.loads((ROOT / "tests" / "support" / "sparkapplication.schema.json").read_text())
IMAGE = (ROOT / "deploy" / "docker" / "spark-matcher.Dockerfile").read_text()

SPARK: Values = {"enabled": True, "results": "twinstream.results", "checkpoint": "s3a://state/twinstream"}
LEAST: Values = {
    "comparisons": {"orders": "name: orders", "rides": "name: rides"},
    "kafka": {"brokers": "kafka:9092"},
    "shards": 32,
    "spark": SPARK,
}
FULL: Values = yaml.safe_load(
    """
comparisons: {orders: "name: orders # {{ not a template }}", rides: "name: rides"}
image: {repository: twinstream, pullPolicy: Always, pullSecrets: [pull]}
kafka:
  brokers: one:9093,two:9093
  properties: {security.protocol: SASL_SSL, ssl.ca.location: /etc/twinstream/kafka/ca.pem}
  existingSecret: {name: kafka-login, key: settings.yaml}
  filesSecret: kafka-files
masking: {existingSecret: {name: masking, key: key}}
access: {tokenSecret: {name: access, key: tokens}}
shards: 24
spark:
  enabled: true
  results: team.results
  checkpoint: hdfs://state/twinstream/
  resets: {orders: 2}
  image: {repository: registry.example/twinstream-spark, digest: "sha256:DIGEST"}
  version: 4.0.1
  serviceAccount: spark-jobs
  driver: {cores: 2, memory: 3g}
  executor: {instances: 3, cores: 2, memory: 1g, memoryOverhead: 4g}
  conf: {spark.hadoop.fs.s3a.endpoint: "https://storage.example"}
  envSecret: storage-keys
networkPolicy: {enabled: true, kafkaPorts: [9093]}
podAnnotations: {example.org/team: data}
podLabels: {team: data}
nodeSelector: {disk: fast}
tolerations: [{key: stream, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
""".replace("DIGEST", "0a" * 32)
)
SETS = {"least": LEAST, "full": FULL}
each_set = pytest.mark.parametrize("values", SETS.values(), ids=SETS)
PODS = ("driver", "executor")


def with_(**more: Any) -> Values:
    """The least values, with more in `spark`."""
    return {**LEAST, "spark": {**SPARK, **more}}


def jobs(values: Values, name: str = "canary") -> dict[str, Manifest]:
    """The job of each comparison."""
    found = [manifest for manifest in render(values, name=name) if manifest["kind"] == "SparkApplication"]
    return {Path(job["spec"]["arguments"][0]).stem: job for job in found}


def told(job: Manifest) -> dict[str, Any]:
    """What the program of a job takes its arguments for."""
    return main.make_context("job", list(job["spec"]["arguments"])).params


def template(job: Manifest, which: str) -> Manifest:
    """The template of a pod of the job: driver or executor."""
    found: Manifest = job["spec"][which]["template"]
    return found


def container_of(job: Manifest, which: str) -> Manifest:
    """The only container of a pod of the job."""
    (found,) = template(job, which)["spec"]["containers"]
    return dict(found)


@each_set
def test_helm_lint_finds_nothing(values: Values) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), values=values)


@each_set
def test_a_job_is_one_that_the_operator_knows_and_its_pods_and_all_else_that_kubernetes_knows(
    values: Values,
) -> None:
    for manifest in render(values):
        if manifest["apiVersion"] != OPERATOR:
            kubernetes_validate.validate(manifest, NEWEST, strict=True)
            continue
        jsonschema.validate(manifest, SCHEMA)
        for which in PODS:
            assert container_of(manifest, which)["name"] == f"spark-kubernetes-{which}"
            for version in (OLDEST, NEWEST):
                kubernetes_validate.validate(_as_pod(manifest, which), version, strict=True)


def _as_pod(job: Manifest, which: str) -> Manifest:
    """A pod of the template, as Spark makes one: it adds the image."""
    spec = {**template(job, which)["spec"], "containers": [{**container_of(job, which), "image": "spark"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job"}, "spec": spec}


def test_a_member_that_nobody_knows_would_be_found_in_a_job_and_in_its_pods() -> None:
    wrong = jobs(LEAST)["orders"]
    template(wrong, "driver")["spec"]["volume"] = []
    with pytest.raises(kubernetes_validate.ValidationError, match="volume"):
        kubernetes_validate.validate(_as_pod(wrong, "driver"), NEWEST, strict=True)
    wrong["spec"]["restartPolicy"]["retryInterval"] = 10
    with pytest.raises(jsonschema.ValidationError, match="retryInterval"):
        jsonschema.validate(wrong, SCHEMA)


def test_with_spark_there_are_neither_matchers_nor_redis_and_each_comparison_has_a_job() -> None:
    manifests = render(LEAST)
    kinds = {manifest["kind"] for manifest in manifests}
    assert "StatefulSet" not in kinds
    assert not [one for one in manifests if "matcher" in one["metadata"]["name"]]
    assert jobs(LEAST).keys() == {"orders", "rides"}
    names = {entry["name"] for entry in container(manifests, "api")["env"]}
    assert ("TWINSTREAM_RESULTS" in names, "TWINSTREAM_REDIS" in names) == (True, False)
    policy = of_role(manifests, "NetworkPolicy", "api")["spec"]
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 9092}


@each_set
def test_jobs_and_the_pods_that_show_them_agree(values: Values) -> None:
    shown = {entry["name"]: entry.get("value") for entry in container(render(values), "api")["env"]}
    for name, job in jobs(values).items():
        assert told(job)["spec"] == f"/etc/twinstream/comparisons/{name}.yaml"
        assert told(job)["shards"] == int(shown["TWINSTREAM_SHARDS"] or 0) == values["shards"]
        assert told(job)["results"] == shown["TWINSTREAM_RESULTS"] == values["spark"]["results"]
        assert told(job)["brokers"] == shown["TWINSTREAM_BROKERS"] == values["kafka"]["brokers"]
        tasks = job["spec"]["executor"]["instances"] * job["spec"]["executor"]["cores"]
        assert job["spec"]["sparkConf"]["spark.sql.shuffle.partitions"] == f"{tasks}"


def test_a_comparison_has_a_checkpoint_of_its_own_and_a_reset_is_another_one() -> None:
    assert {name: told(job)["checkpoint"] for name, job in jobs(FULL).items()} == {
        "orders": "hdfs://state/twinstream/orders/2",
        "rides": "hdfs://state/twinstream/rides/0",
    }


def test_a_job_is_started_again_however_it_ended() -> None:
    for job in jobs(LEAST).values():
        assert job["spec"]["restartPolicy"]["type"] == "Always"


def test_another_comparison_file_is_another_job_of_that_comparison_alone() -> None:
    before = jobs(LEAST)
    after = jobs({**LEAST, "comparisons": {**LEAST["comparisons"], "orders": "name: orders # changed"}})
    assert before["orders"] != after["orders"]
    assert before["rides"] == after["rides"]


def mounted(manifests: list[Manifest], spec: Manifest, secrets: dict[str, Any], folder: Path) -> Path:
    """The files that a pod's only container sees, in a folder."""
    files = one(manifests, "ConfigMap")
    texts = {files["metadata"]["name"]: files["data"], **secrets}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for mount in spec["containers"][0]["volumeMounts"]:
        volume = volumes[mount["name"]]
        source = volume.get("configMap") or volume["secret"]
        data = texts[source.get("name") or source["secretName"]]
        here = folder / mount["mountPath"].lstrip("/")
        here.mkdir(parents=True)
        chosen = {item["key"]: item["path"] for item in source.get("items", [])} or {key: key for key in data}
        for key, path in chosen.items():
            (here / path).write_text(data[key])
        assert mount["readOnly"] is True
    return folder


SECRETS = {
    "kafka-login": {"settings.yaml": "kafka: {sasl.password: quiet}"},
    "kafka-files": {"ca.pem": "CERTIFICATE"},
    "masking": {"key": "KEY OF MASKED VALUES"},
}


def test_a_driver_sees_its_comparison_and_the_settings_and_executors_only_files_of_kafka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests, job = render(FULL), jobs(FULL)["orders"]
    driver, executor = (
        mounted(manifests, template(job, which)["spec"], SECRETS, tmp_path / which) for which in PODS
    )
    assert Path(f"{driver}{told(job)['spec']}").read_text() == FULL["comparisons"]["orders"]
    for entry in container_of(job, "driver")["env"]:
        monkeypatch.setenv(entry["name"], entry["value"])
    settings = load({}, f"{driver}{told(job)['config']}")
    assert settings.kafka == {**FULL["kafka"]["properties"], "sasl.password": "quiet"}
    assert Path(f"{driver}{settings.mask_key_file}").read_text() == "KEY OF MASKED VALUES"
    for seen in (driver, executor):
        assert Path(f"{seen}{settings.kafka['ssl.ca.location']}").read_text() == "CERTIFICATE"
    assert sorted(file.name for file in executor.rglob("*") if file.is_file()) == ["ca.pem"]
    assert sorted(file.name for file in driver.rglob("*.yaml")) == ["orders.yaml", "settings.yaml"]
    for which in PODS:
        assert container_of(job, which)["envFrom"] == [{"secretRef": {"name": "storage-keys"}}]


def test_the_pods_that_show_the_jobs_have_the_settings_of_kafka_for_their_results() -> None:
    manifests = render(FULL)
    volumes = pod(manifests, "api")["spec"]["volumes"]
    assert {"kafka-login", "kafka-files"} <= {
        volume.get("secret", {}).get("secretName") for volume in volumes
    }
    assert "--config=/etc/twinstream/settings/settings.yaml" in container(manifests, "api")["args"]


@each_set
@pytest.mark.parametrize("which", PODS)
def test_a_pod_of_a_job_is_not_root_and_an_executor_has_no_token_of_the_cluster(
    values: Values, which: str
) -> None:
    for job in jobs(values).values():
        spec = template(job, which)["spec"]
        assert spec["securityContext"]["runAsUser"] == 10001
        own = container_of(job, which)["securityContext"]
        assert (own["allowPrivilegeEscalation"], own["capabilities"]) == (False, {"drop": ["ALL"]})
        assert spec.get("automountServiceAccountToken", True) is (which == "driver")
        assert spec.get("priorityClassName") == values.get("priorityClassName")
        assert spec.get("tolerations") == values.get("tolerations")


def test_a_job_is_none_of_the_pods_that_a_service_or_a_budget_selects() -> None:
    job = jobs(LEAST)["orders"]["metadata"]["labels"].items()
    for manifest in render(LEAST):
        selector = manifest.get("spec", {}).get("selector", {})
        labels = selector.get("matchLabels", selector)
        assert not labels or not labels.items() <= job


def test_long_names_leave_room_for_those_of_pods_and_stay_apart() -> None:
    long = {f"{'n' * 62}{digit}": "name: n" for digit in "12"}
    manifests = render({**LEAST, "comparisons": long}, name="r" * 53)
    names = [one["metadata"]["name"] for one in manifests if one["kind"] == "SparkApplication"]
    assert len(set(names)) == 2
    assert all(len(name) <= 50 for name in names)


def test_the_image_has_what_a_job_starts_and_the_spark_that_is_said() -> None:
    spec = jobs(LEAST)["orders"]["spec"]
    assert spec["mainApplicationFile"].removeprefix("local://") in IMAGE
    assert spec["sparkConf"]["spark.pyspark.python"] in IMAGE
    assert f"FROM spark:{spec['sparkVersion']}-" in IMAGE
    assert f"pyspark=={spec['sparkVersion']}\n" in (ROOT / "requirements" / "constraints.txt").read_text()


def test_the_manifest_without_helm_is_what_the_chart_renders() -> None:
    file = yaml.safe_load((ROOT / "deploy" / "spark-matcher" / "spark-application.yaml").read_text())
    job = jobs(with_(results="orders.results"), name="twinstream")["orders"]
    for which in PODS:
        del template(job, which)["metadata"]
    job["spec"]["image"] = file["spec"]["image"]
    assert (file["metadata"]["name"], file["spec"]) == (job["metadata"]["name"], job["spec"])


@pytest.mark.parametrize(("page", "name", "file"), [("install", "large", "orders"), ("scale", "ads", "ads")])
def test_the_commands_in_the_docs_render(page: str, name: str, file: str, tmp_path: Path) -> None:
    (tmp_path / f"{file}.yaml").write_text("version: 1\n")
    told = options_in((ROOT / "docs" / f"{page}.md").read_text(), f"helm install {name} helm/twinstream")
    options = [word.replace(f"={file}.yaml", f"={tmp_path}/{file}.yaml") for word in told]
    rendered = helm("template", name, str(CHART), "--kube-version", NEWEST, *options)
    assert f"kind: SparkApplication\nmetadata:\n  name: {name}-twinstream-{file}\n" in rendered


@pytest.mark.parametrize("script", ["yarn", "standalone"])
def test_the_arguments_of_the_scripts_in_the_docs_are_taken(script: str) -> None:
    text = (ROOT / "docs" / "scale.md").read_text()
    words = ["orders.yaml", *options_in(text, f"deploy/spark-matcher/{script}.sh orders.yaml")]
    assert spark_submit_args.make_context("spark-submit-args", words).params["shards"] == 32


WRONG = {
    "{spark: {enabled: true, checkpoint: 's3a://s'}}": "spark: needs results, of which values.yaml tells",
    "{spark: {enabled: true, results: r}}": "spark: needs checkpoint, of which values.yaml tells",
    "{spark: {enabled: true, results: r, checkpoint: /tmp/s}}": r"at '/spark/checkpoint': .*does not match",
    "{shards: 1}": r"shards: 1 leave some of the 8 cores of spark\.executor idle; give four for each core",
    "{redis: {url: 'redis://r:1'}}": r"spark: jobs keep their state in spark\.checkpoint; take redis out",
    "{trials: {orders: 'name: orders'}}": "spark: trials is for matchers, and a Spark job has none",
    "{readFrom: latest}": "spark: readFrom is for matchers, and a Spark job has none",
    "{memoryLimit: 3GiB}": "spark: memoryLimit is for matchers, and a Spark job has none",
    "{spark: {shards: 8}}": r"at '/spark': additional properties 'shards' not allowed",
    "{spark: {resets: {order: 1}}}": r"spark\.resets: comparisons has no order",
    "{spark: {executor: {cores: 0}}}": r"at '/spark/executor/cores': minimum: got 0, want 1",
    "{spark: {executor: {memory: 2Gi}}}": r"at '/spark/executor/memory': '2Gi' does not match pattern",
    "{spark: {conf: {spark.hadoop.fs.s3a.secret.key: x}}}": r"at '/spark/conf/spark\.hadoop\.fs\.s3a",
    "{spark: {version: '3.5.0'}}": r"at '/spark/version': '3\.5\.0' does not match pattern",
    "{spark: {serviceAccount: ''}}": r"at '/spark/serviceAccount'",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_values_are_refused_by_name(wrong: str) -> None:
    given = yaml.safe_load(wrong)
    spark = {**({} if "enabled" in given.get("spark", {}) else SPARK), **given.get("spark", {})}
    with pytest.raises(RefusedError, match=WRONG[wrong]):
        render({**LEAST, **given, "spark": spark})
