"""The Helm chart: rendered by helm for several sets of values, and held to the schemas of Kubernetes."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deploy.embedded import gotools, prerequisites
from tests.support.helm import (
    CHART,
    NEEDED,
    NEWEST,
    OLDEST,
    WORKLOADS,
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
    role_s,
)
from tests.support.tools import run

ROOT = CHART.parents[1]
OPERATOR = "monitoring.coreos.com/v1"
"""Objects of the Prometheus operator, which Kubernetes itself does not know."""


def with_(**more: Any) -> Values:
    """The least values, and these."""
    return {**NEEDED, **more}


FULL: Values = yaml.safe_load(
    """
image: {repository: twinstream, digest: "sha256:DIGEST", pullPolicy: Always, pullSecrets: [pull]}
comparisons: {ads-views: "version: 1\\nname: ads-views # {{ not a template }}\\n"}
kafka:
  brokers: one:9093,two:9093
  properties: {security.protocol: SASL_SSL, ssl.ca.location: /etc/twinstream/kafka/ca.pem}
  recordUrl: "https://ui/{topic}/{partition}/{offset}"
  existingSecret: {name: kafka-login, key: settings.yaml}
  filesSecret: kafka-files
redis: {existingSecret: {name: redis-login, key: redis-url}}
access: {tokenSecret: {name: access, key: tokens}, tlsSecret: tls, basePath: /twinstream}
service: {port: 443, annotations: {example.org/scope: internal}}
memoryLimit: 3GiB
masking: {existingSecret: {name: masking, key: key}}
readFrom: latest
api:
  replicas: 3
  resources: {requests: {cpu: 100m}}
  autoscaling: {enabled: true, minReplicas: 2, maxReplicas: 4, cpuPercent: 60}
matcher: {replicas: 2, resources: {requests: {cpu: "1", memory: 1Gi}, limits: {memory: 4Gi}}}
podDisruptionBudget: {enabled: true}
networkPolicy:
  enabled: true
  allowFrom: [{namespaceSelector: {matchLabels: {team: release}}}]
  kafkaPorts: [9093]
  redisPorts: [6380]
  otherPorts: [8081]
serviceMonitor:
  enabled: true
  labels: {release: monitoring}
  interval: 5s
  tokenSecret: {name: scrape, key: token}
prometheusRule: {enabled: true, labels: {release: monitoring}}
podAnnotations: {example.org/team: data}
podLabels: {team: data}
nodeSelector: {disk: fast}
tolerations: [{key: stream, operator: Exists}]
priorityClassName: high
""".replace("DIGEST", "0a" * 32)
)
SEVERAL = with_(comparisons={"a": "name: a", "b": "name: b"}, shards=4)
TRIED = with_(comparisons={"a": "name: a", "b": "name: b"}, trials={"b": "name: b # {{ not a template }}"})
BARE = with_(
    **{name: {"enabled": False} for name in ("networkPolicy", "podDisruptionBudget")},
    **{role: {"replicas": 1, "resources": {}} for role in WORKLOADS},
    affinity={"nodeAffinity": {}},
)
OPEN = with_(access={"tokenSecret": {"name": "access", "key": "tokens"}})
SETS = {"least": NEEDED, "open": OPEN, "full": FULL, "several": SEVERAL, "tried": TRIED, "bare": BARE}

ROLES = tuple(WORKLOADS)
each_role = pytest.mark.parametrize("role", ROLES)
each_set = pytest.mark.parametrize("values", SETS.values(), ids=SETS)


@each_set
def test_helm_lint_finds_nothing(values: Values) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), values=values)


@each_set
@pytest.mark.parametrize("kubernetes", [OLDEST, "1.31", "1.37"])
def test_all_that_is_rendered_is_known_to_kubernetes(values: Values, kubernetes: str) -> None:
    manifests = render(values, kubernetes=kubernetes)
    assert manifests
    for manifest in manifests:
        if manifest["apiVersion"] != OPERATOR:
            kubernetes_validate.validate(manifest, kubernetes, strict=True)


def test_the_oldest_kubernetes_is_the_one_that_the_chart_names() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={OLDEST}.0-0"
    with pytest.raises(RefusedError, match=r"chart requires kubeVersion: >=1\.27\.0-0"):
        render(NEEDED, kubernetes="1.26")


def test_a_member_that_kubernetes_does_not_know_would_be_found() -> None:
    wrong = one(render(NEEDED), "Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == project["version"]
    assert container(render(NEEDED))["image"] == f"twinstream:{project['version']}"


def test_a_packed_chart_renders_the_same(tmp_path: Path) -> None:
    program = gotools.ensure(gotools.HELM)
    subprocess.run([program, "package", CHART, "-d", tmp_path], check=True, capture_output=True, timeout=60)
    (packed,) = tmp_path.glob("*.tgz")
    assert render(FULL, chart=packed) == render(FULL)


NO_RIGHTS = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@each_set
@each_role
def test_a_container_has_no_rights_nothing_of_the_cluster_and_only_what_is_mounted(
    values: Values, role: str
) -> None:
    manifests = render(values)
    own, spec = container(manifests, role), pod(manifests, role)["spec"]
    whole = spec["securityContext"]
    assert own["securityContext"] == NO_RIGHTS
    assert (whole["runAsNonRoot"], whole["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    user = f"{whole['runAsUser']}:{whole['runAsGroup']}"
    assert user == "10001:10001"
    assert f"USER {user}" in (ROOT / "deploy" / "docker" / "service.Dockerfile").read_text()

    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False  # or a Service called twinstream sets variables of the service
    assert one(manifests, "ServiceAccount")["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    kinds = {next(iter(set(volume) - {"name"})) for volume in spec["volumes"]}
    assert kinds <= {"configMap", "secret", "emptyDir"}

    mounts = own["volumeMounts"]
    assert {mount["name"] for mount in mounts} == {volume["name"] for volume in spec["volumes"]}
    assert [mount["name"] for mount in mounts if not mount.get("readOnly")] == ["tmp"]


@each_role
def test_a_comparison_file_and_one_on_trial_reach_the_pod_as_they_are(role: str) -> None:
    folder = "/etc/twinstream/comparisons"
    manifests = render(FULL)
    assert one(manifests, "ConfigMap")["data"] == {"ads-views.yaml": FULL["comparisons"]["ads-views"]}
    assert container(manifests, role)["args"][:3] == ["serve", f"--role={role}", f"{folder}/ads-views.yaml"]
    manifests = render(TRIED)
    assert one(manifests, "ConfigMap")["data"]["b.trial.yaml"] == "name: b # {{ not a template }}"
    files = [f"{folder}/a.yaml", f"{folder}/b.yaml", f"--trial={folder}/b.trial.yaml"]
    assert container(manifests, role)["args"] == ["serve", f"--role={role}", *files]


@each_role
@pytest.mark.parametrize("what", ["comparisons", "trials"])
def test_another_comparison_file_and_another_one_on_trial_are_another_pod(role: str, what: str) -> None:
    given = {"comparisons": {"b": "name: b"}, "trials": {"b": "name: b # tried"}}
    sums = {
        pod(render(with_(**{**given, what: {"b": text}})), role)["metadata"]["annotations"][
            f"checksum/{what}"
        ]
        for text in ("name: b # one", "name: b # two")
    }
    assert len(sums) == 2


def environment(manifests: list[Manifest], role: str = "matcher") -> dict[str, Manifest]:
    """The variables of a role's container, by name."""
    return {entry["name"]: entry for entry in container(manifests, role)["env"]}


def secrets_of(manifests: list[Manifest], role: str = "matcher") -> list[str]:
    """The Secrets that a role's pods mount."""
    volumes = pod(manifests, role)["spec"]["volumes"]
    return [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]


def test_secrets_are_named_and_never_contained_and_pods_of_the_api_only_name_kafka() -> None:
    manifests = render(FULL)
    assert "Secret" not in {manifest["kind"] for manifest in manifests}
    key = {"secretKeyRef": {"name": "redis-login", "key": "redis-url"}}
    assert environment(manifests)["TWINSTREAM_REDIS"]["valueFrom"] == key
    assert secrets_of(manifests) == ["kafka-login", "masking", "kafka-files", "access", "tls"]
    assert secrets_of(manifests, "api") == ["access", "tls"]
    told = environment(manifests, "api")
    assert "TWINSTREAM_KAFKA" not in told
    assert told["TWINSTREAM_BROKERS"]["value"] == "one:9093,two:9093", "for the commands on the page"
    assert told["TWINSTREAM_RECORD_URL"]["value"] == "https://ui/{topic}/{partition}/{offset}"
    assert not [word for word in container(manifests, "api")["args"] if "--config" in word]


@each_role
def test_both_roles_divide_the_work_alike_and_two_pods_of_a_role_keep_apart(role: str) -> None:
    assert environment(render(SEVERAL), role)["TWINSTREAM_SHARDS"]["value"] == "4"
    manifests = render(NEEDED)
    assert of_role(manifests, WORKLOADS[role], role)["spec"]["replicas"] == 2
    (term,) = pod(manifests, role)["spec"]["affinity"]["podAntiAffinity"].popitem()[1]
    own = pod(manifests, role)["metadata"]["labels"]
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= own.items()


def test_of_two_matchers_one_is_replaced_at_a_time_both_start_at_once_and_are_found_while_not_ready() -> None:
    manifests = render(OPEN)
    spec, service = one(manifests, "StatefulSet")["spec"], of_role(manifests, "Service", "matcher")
    assert (spec["podManagementPolicy"], spec["updateStrategy"]) == ("Parallel", {"type": "RollingUpdate"})
    assert spec["serviceName"] == service["metadata"]["name"]
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)


def test_the_api_is_scaled_instead_of_having_a_number_of_pods() -> None:
    manifests = render(FULL)
    scaler, deployment = one(manifests, "HorizontalPodAutoscaler"), one(manifests, "Deployment")
    assert "replicas" not in deployment["spec"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 4)
    assert "HorizontalPodAutoscaler" not in {manifest["kind"] for manifest in render(NEEDED)}


@each_role
def test_a_drain_takes_one_pod_at_a_time_which_has_longer_to_stop_than_the_service_takes(role: str) -> None:
    budget = of_role(render(NEEDED), "PodDisruptionBudget", role)["spec"]
    assert (budget["maxUnavailable"], "minAvailable" in budget) == (1, False)
    assert pod(render(NEEDED), role)["spec"]["terminationGracePeriodSeconds"] == 30


@each_set
def test_what_selects_the_pods_fits_their_labels(values: Values) -> None:
    manifests = render(values)
    for role, workload in WORKLOADS.items():
        labels = pod(manifests, role)["metadata"]["labels"].items()
        others = pod(manifests, *(other for other in ROLES if other != role))["metadata"]["labels"].items()
        own = role_s(manifests, role)
        selectors = [m["spec"]["selector"] for m in own if m["kind"] in (workload, "PodDisruptionBudget")]
        selectors += [{"matchLabels": m["spec"]["selector"]} for m in own if m["kind"] == "Service"]
        selectors += [m["spec"]["podSelector"] for m in own if m["kind"] == "NetworkPolicy"]
        assert selectors
        assert all(selector["matchLabels"].items() <= labels for selector in selectors)
        assert not any(selector["matchLabels"].items() <= others for selector in selectors)


def test_without_tokens_nobody_reaches_a_pod() -> None:
    manifests = render(NEEDED)
    for role in ROLES:
        assert environment(manifests, role)["TWINSTREAM_BIND"]["value"] == "127.0.0.1:8080"
        assert of_role(manifests, "NetworkPolicy", role)["spec"]["ingress"] == []
    assert "ports" not in of_role(manifests, "Service", "matcher")["spec"]
    kinds = [manifest["kind"] for manifest in manifests]
    assert (kinds.count("Service"), {"ServiceMonitor", "PrometheusRule"} & set(kinds)) == (1, set())


@each_role
def test_with_tokens_a_service_leads_to_the_port_that_probes_and_policy_name(role: str) -> None:
    manifests = render(OPEN)
    (port,) = container(manifests, role)["ports"]
    (entry,) = of_role(manifests, "Service", role)["spec"]["ports"]
    (rule,) = of_role(manifests, "NetworkPolicy", role)["spec"]["ingress"]
    assert entry["targetPort"] == port["name"]
    assert rule == {"ports": [{"port": port["containerPort"], "protocol": "TCP"}]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container(manifests, role)[probe]["httpGet"]["port"] == port["name"]
        assert container(manifests, role)[probe]["httpGet"]["scheme"] == "HTTP"


def test_prometheus_scrapes_the_service_with_a_token_of_its_own_and_by_tls_where_there_is_a_certificate() -> (
    None
):
    manifests = render(FULL)
    assert container(manifests)["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    monitor = one(manifests, "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    for role in ROLES:
        service = of_role(manifests, "Service", role)
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["authorization"] == {"credentials": {"name": "scrape", "key": "token"}}
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"]["serverName"] == "canary-twinstream.default.svc"


def test_a_pod_reaches_what_it_reads_and_is_reached_by_whom_it_is_said() -> None:
    for role, reached in (("matcher", {53, 9093, 6380, 8081}), ("api", {53, 6380})):
        policy = of_role(render(FULL), "NetworkPolicy", role)["spec"]
        assert policy["ingress"][0]["from"] == [{"namespaceSelector": {"matchLabels": {"team": "release"}}}]
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == reached


def test_a_long_name_of_a_release_stays_within_the_bounds() -> None:
    for manifest in render(FULL, name="n" * 53):
        bound = (
            52 if manifest["kind"] == "StatefulSet" else 63
        )  # Its pods have a label with 11 characters more.
        assert len(manifest["metadata"]["name"]) <= bound


def test_the_rules_are_the_tested_files_which_prometheus_takes_and_nobody_has_who_did_not_ask(
    tmp_path: Path,
) -> None:
    assert OPERATOR not in {manifest["apiVersion"] for manifest in render(NEEDED)}
    rule = one(render(FULL), "PrometheusRule")
    files = sorted((ROOT / "deploy" / "prometheus" / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    assert groups
    assert rule["apiVersion"] == OPERATOR
    assert rule["spec"] == {"groups": groups}
    assert rule["metadata"]["labels"]["release"] == "monitoring"
    rendered = tmp_path / "rules.yml"
    rendered.write_text(yaml.safe_dump(rule["spec"]))
    run(prerequisites.PROMTOOL, "check", "rules", str(rendered))


@pytest.mark.parametrize("end", ["", "/"])
def test_alerts_link_to_where_the_runbooks_are_said_to_stand(end: str) -> None:
    base = "https://wiki.example/twinstream"
    asked = {**FULL, "prometheusRule": {"enabled": True, "runbookBase": base + end}}
    rules = [
        rule for group in one(render(asked), "PrometheusRule")["spec"]["groups"] for rule in group["rules"]
    ]
    links = [rule["annotations"]["runbook_url"] for rule in rules if "alert" in rule]
    assert f"{base}/alerts.md#twinstreamdiverged" in links
    assert all(link.startswith(f"{base}/alerts.md#") for link in links)


WRONG = {
    "{comparisons: {}}": r"at '/comparisons': minProperties: got 0, want 1",
    "{comparisons: {Ads_1: x}}": r"at '/comparisons': additional properties 'Ads_1' not allowed",
    "{kafka: {}}": r"at '/kafka/brokers': .* does not match pattern",
    "{kafka: {brokers: kafka}}": r"at '/kafka/brokers': 'kafka' does not match pattern",
    "{kafka: {brokers: 'k:1', properties: {sasl.password: x}}}": r"at '/kafka/properties/sasl\.password': ",
    "{redis: {}}": "redis: give url, or existingSecret.name if it holds a password",
    "{redis: {url: 'redis://:secret@redis:6379'}}": r"at '/redis/url': .* does not match pattern",
    "{redis: {url: 'redis://r:1', existingSecret: {name: r, key: url}}}":
        "redis: give url or existingSecret.name, not both",
    "{replicaCount: 3}": r"additional properties 'replicaCount' not allowed",
    "{image: {repository: t, tags: '1'}}": r"at '/image': additional properties 'tags' not allowed",
    "{image: {repository: t, tag: latest}}": r"at '/image/tag': 'not' failed",
    "{trials: {b: ''}}": r"at '/trials/b': minLength: got 0, want 1",
    "{trials: {b: x}}": "trials: b is tried beside a comparison of that name, and comparisons has none",
    "{shards: 0}": r"at '/shards': minimum: got 0, want 1",
    "{shards: 65}": "shards: matchers share a comparison in at most 64; beyond that let Spark carry it",
    "{memoryLimit: much}": r"at '/memoryLimit': 'much' does not match pattern",
    "{readFrom: latests}": r"at '/readFrom': 'latests' does not match pattern",
    "{readFrom: '2026-01-01'}": r"at '/readFrom': '2026-01-01' does not match pattern",
    "{prometheusRule: {enabled: true, runbookBase: docs}}":
        r"at '/prometheusRule/runbookBase': 'docs' does not match pattern",
    "{standby: true}": r"additional properties 'standby' not allowed",
    "{api: {replicas: 0}}": r"at '/api/replicas': minimum: got 0, want 1",
    "{api: {replicas: 50}}": r"at '/api/replicas': maximum: got 50, want 20",
    "{api: {replica: 2}}": r"at '/api': additional properties 'replica' not allowed",
    "{matcher: {replicas: 0}}": r"at '/matcher/replicas': minimum: got 0, want 1",
    "{matcher: {resources: {limit: {}}}}": r"at '/matcher/resources': additional properties 'limit'",
    "{api: {autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 4}}}":
        r"api\.autoscaling: minReplicas is more than maxReplicas",
    "{api: {autoscaling: {enabled: true}, resources: {requests: {cpu: null}}}}":
        r"api\.autoscaling: needs api\.resources\.requests\.cpu",
    "{access: {tlsSecret: tls}}": "access: tlsSecret and basePath need tokenSecret",
    "{access: {basePath: twin}}": "at '/access/basePath': 'twin' does not match pattern",
    "{serviceMonitor: {enabled: true}}": "serviceMonitor, prometheusRule: need access.tokenSecret",
    "{prometheusRule: {enabled: true}}": "serviceMonitor, prometheusRule: need access.tokenSecret",
    "{access: {tokenSecret: {name: a, key: b}}, serviceMonitor: {enabled: true}}":
        "serviceMonitor: needs tokenSecret",
    "{podLabels: {app.kubernetes.io/name: x}}": r"at '/podLabels/app\.kubernetes\.io~1name': ",
    "{networkPolicy: {enabled: true, kafkaPorts: []}}": r"kafkaPorts': minItems: got 0, want 1",
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_values_are_refused_by_name(wrong: str) -> None:
    with pytest.raises(RefusedError, match=WRONG[wrong]):
        render(with_(**yaml.safe_load(wrong)))


def test_the_defaults_alone_do_not_render() -> None:
    with pytest.raises(RefusedError, match="at '/comparisons': minProperties"):
        render({})


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart that may be changed."""
    return Path(shutil.copytree(CHART, tmp_path / "twinstream"))


def test_a_value_without_a_schema_would_be_found(chart: Path) -> None:
    """Each value of values.yaml stands in the schema: else a default could never be overridden."""
    with (chart / "values.yaml").open("a") as file:
        file.write("forgotten: 1\n")
    with pytest.raises(RefusedError, match="additional properties 'forgotten' not allowed"):
        helm("lint", "--strict", str(chart), values=NEEDED)


def test_the_commands_in_the_docs_render(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    spec = tmp_path / "ads.yaml"
    spec.write_text("version: 1\n")
    options = [
        word.replace("=ads.yaml", f"={spec}")
        for command in ("helm install", "helm upgrade")
        for word in options_in(text, f"{command} ads helm/twinstream")
        if word != "--reuse-values"
    ]
    rendered = helm("template", "ads", str(CHART), "--kube-version", NEWEST, *options)
    assert "name: ads-twinstream\n" in rendered
    assert 'value: "kafka-0:9092,kafka-1:9092"' in rendered
    assert {"ServiceMonitor", "PrometheusRule", "Service"} <= set(re.findall(r"^kind: (\w+)", rendered, re.M))


NOTES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data: {notes: {{ tpl (.Files.Get "notes") . | toJson }}}
"""
"""helm prints notes at an installation alone, which needs a cluster: so they are rendered as an object."""


def test_the_notes_say_how_to_reach_it(chart: Path) -> None:
    (chart / "templates" / "NOTES.txt").rename(chart / "notes")
    (chart / "templates" / "notes.yaml").write_text(NOTES)
    (notes,) = (found for found in render(FULL, chart=chart) if found["metadata"]["name"] == "notes")
    assert "compares: ads-views." in notes["data"]["notes"]
    assert "port-forward deployment/canary-twinstream-api 8080" in notes["data"]["notes"]
    assert one(render(FULL), "Deployment")["metadata"]["name"] == "canary-twinstream-api"
