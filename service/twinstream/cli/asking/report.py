"""`twinstream report`: write the receipt of a verdict."""

from __future__ import annotations

from pathlib import Path

import click
from pydantic import ValidationError

from twinstream.cli.shared.client import Service, ask, path_of, service_option
from twinstream.cli.shared.output import Unreachable, print_json, print_text
from twinstream.cli.shared.writing import files_callback, force_option, may_write, write_receipt
from twinstream.explain.receipts.markdown import markdown
from twinstream.explain.receipts.receipt import Receipt


@click.command()
@click.argument("name")
@click.option(
    "--output",
    multiple=True,
    metavar="FILE",
    callback=files_callback,
    help="Write it here: FILE.md is Markdown, FILE.json JSON; repeat it for both.",
)
@force_option
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
def report(name: str, service: Service, output: tuple[Path, ...], force: bool, as_json: bool) -> int:
    """Write the receipt of a verdict, for a change ticket.

    \b
      twinstream report ads-views
      twinstream report ads-views --output receipt.md --output receipt.json
      twinstream check spec.yaml --brokers localhost:9092 --report receipt.md

    NAME is that of a comparison of a running service. The receipt says what was compared, up to which
    offsets, with which result, on which evidence, what is left out of the comparison and who answers for
    that, what was not checked, and what the verdict does not prove. It holds no value of any event. It goes
    to standard output as Markdown, or to the files that --output names. A terminal is asked before such a
    file is overwritten, else --force is needed. It is no permission: ask the gate for that.

    Exit codes: 0 written, whatever the verdict · 2 usage, no such comparison · 4 the service cannot be
    reached.
    """
    may_write(output, force=force)
    answer = ask(service, path_of(name, "receipt"))
    try:
        receipt = Receipt.model_validate(answer)
    except ValidationError:
        raise Unreachable(
            f"the service at {service} writes receipts of another version: use its own `twinstream`"
        ) from None
    write_receipt(receipt, output)
    if as_json:
        print_json(answer)
    elif not output:
        print_text(markdown(receipt))
    return 0
