"""The dashboard explains itself, and asks for nothing that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from deploy.embedded import prerequisites
from tests.support.dashboard import DASHBOARD, FILE, filled, panels, queries
from tests.support.statuses import NAME, Clocks, status
from tests.support.tools import run
from twinstream.api.http.traffic import HttpMeter
from twinstream.api.metrics import MatcherCollector, StatusCollector, measure_process
from twinstream.status.comparison import CheckedSide, CheckStatus
from twinstream.status.groups import Group

GRAFANA = FILE.parents[1]
RULES = FILE.parents[2] / "prometheus" / "rules"
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def names_of_metrics() -> set[str]:
    """The names of all samples that the service exposes, and of what is recorded from them."""
    board, registry = Clocks().board(), CollectorRegistry()
    check = CheckStatus(id="a", property="once", text="", gate="fail", candidate=CheckedSide(state="holds"))
    groups = [Group(kind="missing", count=1)]
    board.accept(status(explained_by_rule={"PRICE-17": 1}, checks=[check], groups=groups))
    for collector in (MatcherCollector(board.views), StatusCollector(board.views)):
        registry.register(collector)
    measure_process(registry)
    HttpMeter(registry).expect("/", "GET", 200)
    exposed = {sample.name for family in registry.collect() for sample in family.samples}
    return exposed | {rule["record"] for rule in rules() if "record" in rule}


def rules() -> Iterator[dict[str, Any]]:
    for file in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            yield from group["rules"]


def named(expression: str) -> set[str]:
    """The metrics of ours that a query names; texts in quotes are no names."""
    return set(re.findall(r"(?:\w+:)?twinstream_\w+(?::\w+)?", re.sub(r'"[^"]*"', "", expression)))


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: str(panel["title"]))
def test_a_panel_has_a_title_a_description_a_unit_and_the_chosen_source(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == DATA_SOURCE
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == DATA_SOURCE
        assert target["legendFormat"]


def test_panels_have_numbers_and_titles_of_their_own_and_do_not_overlap() -> None:
    every = DASHBOARD["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    assert len({panel["title"] for panel in every}) == len(every)
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in every)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_source_and_comparison_are_chosen_on_the_page_and_changes_of_the_verdict_are_marked() -> None:
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    assert variables["comparison"]["datasource"] == DATA_SOURCE
    marks = {mark["name"]: mark for mark in DASHBOARD["annotations"]["list"]}
    assert "twinstream_verdict_timestamp_seconds" in marks["Verdict changes"]["expr"]
    assert marks["Verdict changes"]["useValueForTime"]


def test_queries_of_a_comparison_ask_for_the_chosen_one() -> None:
    for query in queries():
        of_all = ("twinstream_http_", "twinstream_process_")
        if not all(name.startswith(of_all) for name in named(query.expression)):
            assert query.expression.count("twinstream_") <= query.expression.count('comparison="$comparison"')


def test_dashboard_and_rules_name_only_metrics_that_there_are() -> None:
    asked = [query.expression for query in queries()] + [rule["expr"] for rule in rules()]
    assert len(asked) > 50
    for expression in asked:
        assert named(expression) <= names_of_metrics(), expression


def test_every_metric_of_the_reference_is_exposed_and_every_exposed_one_is_in_the_reference() -> None:
    page = (FILE.parents[3] / "docs" / "reference" / "metrics.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([a-z_*]+)`", row)}
    exposed = {
        re.sub(r"_(bucket|sum|count)$", "", name.removeprefix("twinstream_"))
        for name in names_of_metrics()
        if ":" not in name
    }
    families = {re.sub(r"^process_\w+", "process_*", name) for name in exposed}
    assert listed == families


def test_all_queries_parse(tmp_path: Path) -> None:
    expressions = [filled(query.expression, NAME) for query in queries()]
    file = tmp_path / "queries.yml"
    recorded = [{"record": f"query:{n}", "expr": text} for n, text in enumerate(expressions)]
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    assert f"{len(expressions)} rules found" in run(prerequisites.PROMTOOL, "check", "rules", str(file))


def test_grafana_is_told_where_source_and_dashboards_are() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/twinstream.yml").read_text())[
        "providers"
    ]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
