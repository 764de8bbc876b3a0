"""The chart rendered by helm, for one set of values."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from deploy.embedded import gotools

CHART = Path(__file__).parents[2] / "helm" / "twinstream"
OLDEST, NEWEST = "1.27", "1.37"
"""The oldest Kubernetes, which the chart names, and the newest whose schemas the tests have."""

WORKLOADS = {"api": "Deployment", "matcher": "StatefulSet"}
"""What runs the pods of each role."""

Values = Mapping[str, Any]
Manifest = dict[str, Any]

NEEDED: Values = {
    "comparisons": {"ads": "version: 1\nname: ads\n"},
    "kafka": {"brokers": "kafka:9092"},
    "redis": {"url": "redis://redis:6379/0"},
}
"""The least that the chart asks for."""


class RefusedError(Exception):
    """helm refused the values; the text is its own."""


def helm(*arguments: str, values: Values = {}) -> str:  # noqa: B006 - it is read only
    """Run helm on values, once for all that ask for the same; its standard output.

    Raises:
        RefusedError: it ended with an error.
    """
    return _helm(arguments, yaml.safe_dump(dict(values)))


@cache
def _helm(arguments: tuple[str, ...], values: str) -> str:
    done = subprocess.run(
        [gotools.ensure(gotools.HELM), *arguments, "--values", "-"],
        input=values,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise RefusedError(done.stderr + done.stdout)
    return done.stdout


def render(
    values: Values, *, kubernetes: str = NEWEST, name: str = "canary", chart: Path = CHART
) -> list[Manifest]:
    """All objects of a release."""
    text = helm("template", name, str(chart), "--kube-version", kubernetes, values=values)
    return [manifest for manifest in deepcopy(_parsed(text)) if manifest is not None]


@cache
def _parsed(text: str) -> list[Manifest]:
    return list(yaml.safe_load_all(text))


def one(manifests: list[Manifest], kind: str) -> Manifest:
    """The only object of a kind."""
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def role_s(manifests: list[Manifest], role: str) -> list[Manifest]:
    """The objects that belong to a role: api or matcher."""
    return [m for m in manifests if m["metadata"]["labels"].get("app.kubernetes.io/component") == role]


def of_role(manifests: list[Manifest], kind: str, role: str) -> Manifest:
    """The object of a kind that belongs to a role."""
    return one(role_s(manifests, role), kind)


def pod(manifests: list[Manifest], role: str = "matcher") -> Manifest:
    """What the Deployment of the API, or the StatefulSet of the matchers, says of its pods."""
    template: Manifest = of_role(manifests, WORKLOADS[role], role)["spec"]["template"]
    return template


def container(manifests: list[Manifest], role: str = "matcher") -> Manifest:
    """The only container of the pods of a role."""
    (found,) = pod(manifests, role)["spec"]["containers"]
    return dict(found)


def options_in(text: str, command: str) -> list[str]:
    """The options of a command in a text, which ends at a line without a backslash."""
    found = re.search(rf"{re.escape(command)}((?:.*\\\n)*.*)", text)
    assert found is not None
    return shlex.split(found[1].replace("\\\n", " "), comments=True)
