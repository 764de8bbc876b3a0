"""`twinstream gate`: may the release go on?"""

from __future__ import annotations

import click
from rich.console import Console
from rich.text import Text

from twinstream.cli.client import Service, ask, service_option
from twinstream.cli.output import COLOUR, EXIT_OF_ANSWER, print_json, print_rich


@click.command(
    help="""Ask the service whether a release may go on.

\b
  twinstream gate ads-views && kubectl rollout resume deployment/ads

NAME is that of a comparison. It prints pass, fail or undecided, and why. Undecided is no permission: it says
that something is not known.

Exit codes: 0 pass · 1 fail · 2 usage, no such comparison · 3 undecided · 4 the service cannot be reached.
"""
)
@click.argument("name")
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print the gate's answer as one JSON object.")
def gate(name: str, service: Service, as_json: bool) -> int:
    """Print the gate's answer; the exit code says it, too."""
    answer = ask(service, f"/comparisons/{name}/gate")
    if as_json:
        print_json(answer)
    else:
        told = Text.assemble((answer["answer"], f"bold {COLOUR[answer['answer']]}"), f" {answer['reason']}")
        print_rich(Console(soft_wrap=True), told)
    return EXIT_OF_ANSWER[answer["answer"]]
