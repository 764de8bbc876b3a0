"""`twinstream explain`: show one divergence, with both sides' events and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import click
import orjson
from pydantic import ValidationError

from twinstream.adapters.files.lines import InputFile
from twinstream.answers import Example
from twinstream.cli.shared.client import Service, ask, path_of, service_option
from twinstream.cli.shared.output import Refused, print_divergences, print_json
from twinstream.errors import InputError

ReportBody = Mapping[str, Any]


@click.command()
@click.argument("identifier", metavar="[ID]", required=False)
@click.option("--comparison", help="Its comparison; without it, all are searched.")
@click.option(
    "--from", "file", type=click.Path(), help="Read an answer of `check --json` instead of the service."
)
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print each divergence as one JSON object on a line.")
def explain(
    identifier: str | None, comparison: str | None, file: str | None, service: Service, as_json: bool
) -> int:
    """Show one divergence: both sides' events, the reason, and the events that prove it.

    \b
      twinstream explain 5f0c2e1a9b7d4433
      twinstream explain 5f0c2e1a9b7d4433 --comparison ads-views --service http://twinstream:8080
      twinstream explain 5f0c --from answer.json
      twinstream explain --from answer.json

    ID is that of a divergence of a running service, or with --from that of an answer which `twinstream check
    --json` has written (`-` is standard input): there its first characters are enough, and without an ID all
    are shown. Of a service, values of fields that `show` does not name are masked.

    Exit codes: 0 shown · 2 usage, no such divergence, bad input · 4 the service cannot be reached.
    """
    if file is not None:
        if comparison is not None:
            raise click.UsageError("--comparison is for a service, and a file has only one")
        found = _of_file(file, identifier)
    elif identifier is None:
        raise click.UsageError("name a divergence by its ID, or give --from FILE")
    else:
        found = [_of_service(service, comparison, identifier)]
    if as_json:
        for report in found:
            print_json(report)
    else:
        print_divergences(found)
    return 0


# -- a service ---------------------------------------------------------------------------------------------


def _of_service(service: Service, comparison: str | None, identifier: str) -> ReportBody:
    """The divergence, from the comparison that has it."""
    names = (
        [item["name"] for item in ask(service, "/comparisons", "items")["items"]]
        if comparison is None
        else [comparison]
    )
    for name in names:
        try:
            report: ReportBody = ask(service, path_of(name, "divergences", identifier), "kind")
            return report
        except Refused:
            if comparison is not None:
                raise
    listed = ", ".join(names) or "none"
    raise Refused(f"no comparison has a divergence {identifier!r}; comparisons: {listed}")


# -- a file ------------------------------------------------------------------------------------------------


def _of_file(file: str, identifier: str | None) -> list[ReportBody]:
    reports = _examples(file)
    if identifier is None:
        if not reports:
            raise InputError(file, None, "has no divergences")
        return reports
    found = [report for report in reports if str(report["id"]).startswith(identifier)]
    if len(found) > 1:
        raise click.UsageError(f"{identifier!r} is ambiguous: {_ids(found)}")
    if not found:
        raise click.UsageError(f"{file} has no divergence {identifier!r}; it has {_ids(reports)}")
    return found


def _ids(reports: Iterable[ReportBody]) -> str:
    return ", ".join(str(report["id"]) for report in reports) or "none"


def _examples(file: str) -> list[ReportBody]:
    """The divergences of an answer. Raises InputError if the file holds none."""
    text = b"\n".join(line for _, line in InputFile(file).lines())
    with suppress(orjson.JSONDecodeError, KeyError, TypeError, ValidationError):
        examples: list[ReportBody] = orjson.loads(text)["examples"]
        for report in examples:
            Example.model_validate(report)
        return examples
    raise InputError(file, None, "is not an answer of `twinstream check --json`")
