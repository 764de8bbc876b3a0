"""`twinstream divergences`: list the divergences that the service has found in one comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import click

from twinstream.cli.shared.client import Service, ask, path_of, service_option
from twinstream.cli.shared.mistakes import complain
from twinstream.cli.shared.output import Refused, print_divergences, print_groups, print_json
from twinstream.errors import SettingsError
from twinstream.status.common import DIVERGENCE_KINDS

PAGE = 500
"""The most that the service returns at once."""


@click.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(DIVERGENCE_KINDS), help="Only those of this kind.")
@click.option("--explained", is_flag=True, help="List examples of explained differences instead.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Show at most N.")
@click.option("--by", type=click.Choice(("field",)), help="Sum them up by the fields that differ.")
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print them as one JSON object, as the API does.")
def divergences(
    name: str, kind: str | None, explained: bool, limit: int, by: str | None, service: Service, as_json: bool
) -> int:
    """List the divergences of a comparison, newest first.

    \b
      twinstream divergences ads-views
      twinstream divergences ads-views --kind missing --limit 10
      twinstream divergences ads-views --by field
      twinstream divergences ads-views --explained
      twinstream divergences ads-views --json | jq -r '.items[].id'

    NAME is that of a comparison. Of a flood the service keeps the newest 1,000; --by field sums up all of
    them: exact counts, keys, times, how the values changed, ids of examples. Values of fields that `show`
    does not name are masked.

    Exit codes: 0 shown, also where there is none · 2 usage, no such comparison · 4 the service cannot be
    reached.
    """
    if by is not None:
        if explained:
            raise SettingsError("--by field sums up the divergences that count: leave --explained out")
        found = grouped(service, name, kind, limit)
        print_json(found) if as_json else print_groups(found)
        if not any(found.values()):
            _warn(service, name)
        return 0
    picked = {**({"kind": kind} if kind else {}), **({"explained": "true"} if explained else {})}
    found = listing(service, name, picked, limit)
    if as_json:
        print_json(found)
    else:
        print_divergences(found["items"])
    if not found["items"]:
        _warn(service, name)
    return 0


def _warn(service: Service, name: str) -> None:
    """Say on standard error why an empty list may lack some: no owner is heard, say."""
    reasons = ask(service, path_of(name), "health")["health"]["reasons"]
    if reasons:
        complain(Refused(f"none is listed, but health is degraded: {'; '.join(reasons)}"))


def grouped(service: Service, name: str, kind: str | None, limit: int) -> dict[str, list[dict[str, Any]]]:
    """The groups of the divergences of a comparison, final and provisional; of one kind if that is given."""
    status = ask(service, path_of(name), "name")
    return {
        member: [group for group in status.get(member, []) if kind in (None, group["kind"])][:limit]
        for member in ("groups", "provisional_groups")  # An older service has none.
    }


def listing(service: Service, name: str, picked: Mapping[str, str], limit: int) -> dict[str, Any]:
    """At most `limit` of the `picked` divergences, read page by page; `next` is the cursor of the rest."""
    query: dict[str, Any] = dict(picked)
    items: list[dict[str, Any]] = []
    while True:
        asked = urlencode({**query, "limit": min(limit - len(items), PAGE)})
        page = ask(service, f"{path_of(name, 'divergences')}?{asked}", "items", "next")
        items += page["items"]
        if page["next"] is None or len(items) >= limit:
            return {"items": items, "next": page["next"]}
        query["cursor"] = page["next"]
