"""The `twinstream` command: its group, and how errors become exit codes.

Exit codes: 0 equivalent or pass, 1 diverged or fail, 2 usage, bad comparison file or bad input, 3
inconclusive, pending or undecided, 4 the service or Kafka cannot be reached, 70 a fault of the program.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from importlib.metadata import version as installed_version

import click

from twinstream.cli.shared.mistakes import complain, no_command
from twinstream.cli.shared.output import Unreachable, print_json, print_text
from twinstream.errors import TwinstreamError
from twinstream.streams import spare_streams

COMMANDS = {
    "calibrate": "Propose what to declare as noise, from two runs of one version.",
    "check": "Compare two recorded outputs, a trace of both, or what two topics hold.",
    "divergences": "List the divergences that the service has found.",
    "drill": "Show that the alarm works, before you rely on it.",
    "explain": "Explain one divergence: its events, the proof, a picture.",
    "gate": "Ask the service whether a release may go on.",
    "lint": "Check a comparison file, and show how it will be compared.",
    "move": "Move a comparison to a Spark job, or back to the service.",
    "replay": "Show which divergences a changed comparison file would hide.",
    "report": "Write the receipt of a verdict, for a change ticket.",
    "reset": "Reset a comparison: start it again, and record why.",
    "serve": "Run the service: matchers, HTTP API and page.",
    "spark-submit-args": "Print the arguments that start a comparison as a Spark job.",
    "status": "Show verdict and health of the comparisons.",
    "version": "Print the version.",
}
ASKING = {"divergences", "explain", "gate", "report", "reset", "status"}
"""The commands that ask a running service."""


class Commands(click.Group):
    """Imports each command only when it is run, so that `check` does not wait for Kafka's client."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands in alphabetical order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name == "version":
            return version
        name = cmd_name.replace("-", "_")
        room = "asking" if cmd_name in ASKING else "commands"
        command = getattr(import_module(f"twinstream.cli.{room}.{name}"), name)
        assert isinstance(command, click.Command), "each module of a command defines it under its name"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with. Raises UsageError for an unknown name."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(no_command(args[0], COMMANDS), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def cli() -> None:
    """Tell whether a new version of a streaming pipeline does the same as the old one.

    \b
      twinstream check spec.yaml --reference old.jsonl --candidate new.jsonl
      twinstream calibrate --reference run1.jsonl --candidate run2.jsonl --output spec.yaml
      twinstream lint spec.yaml
      twinstream serve spec.yaml --brokers localhost:9092 --redis redis://localhost
      twinstream status
      twinstream gate ads-views

    `spec.yaml` is a comparison file. `twinstream COMMAND --help` tells more.

    Exit codes: 0 equivalent or pass · 1 diverged or fail · 2 usage, bad comparison file or bad input · 3
    inconclusive, pending or undecided · 4 the service or Kafka cannot be reached · 70 a fault of twinstream.
    """


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
def version(as_json: bool) -> None:
    """Print the version.

    \b
      twinstream version
      twinstream version --json

    Exit code: 0.
    """
    installed = installed_version("twinstream")
    if as_json:
        print_json({"version": installed})
    else:
        print_text(f"{installed}\n")


FAULT = os.EX_SOFTWARE
"""The exit code after a fault of the program: none of those that tell something of the outputs."""


def main() -> None:
    """Run the command line; a user's mistake is one sentence on standard error, never a stack trace."""
    spare_streams()
    try:
        for argument in sys.argv:
            if not argument.isascii() and argument.encode(errors="replace").decode() != argument:
                raise click.UsageError(f"the argument {argument!r} is not written in UTF-8")
        sys.exit(cli.main(standalone_mode=False) or 0)
    except click.Abort:
        sys.exit(130)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except (click.ClickException, TwinstreamError) as error:
        complain(error)
        sys.exit(4 if isinstance(error, Unreachable) else 2)
    except Exception as error:  # noqa: BLE001 - any other is a fault of the program
        traceback.print_exc()
        said = f"this is a fault of twinstream, and says nothing of the outputs: {type(error).__name__}"
        complain(click.ClickException(said))
        sys.exit(FAULT)


if __name__ == "__main__":
    main()
