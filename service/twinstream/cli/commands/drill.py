"""`twinstream drill`: test whether the alarm works, before relying on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from twinstream.cli.shared.mistakes import PREFIX
from twinstream.cli.shared.output import Unreachable, print_json, print_rich
from twinstream.cli.shared.polling import span
from twinstream.cli.shared.writing import force_option, may_write
from twinstream.drill.planting import KINDS
from twinstream.errors import NoTopic, SettingsError, SourceError, StoreError
from twinstream.settings import Settings
from twinstream.settings import load as load_settings
from twinstream.spec.file.model import Spec
from twinstream.spec.file.values import is_http_address
from twinstream.spec.load import load

EXIT_OF_RESULT = {"alarm": 0, "no alarm": 1, "undecided": 3}
COLOUR = {"alarm": "green", "no alarm": "red", "undecided": "yellow"}
RECORDS = 10_000
PRIVATE = {"bind": "127.0.0.1:0", "token_file": None, "tls_cert": None, "tls_key": None, "base_path": ""}
"""The settings of a service that only this host can reach."""
_SUFFIXES = {".json", ".yml", ".yaml"}


@click.command()
@click.argument("spec", type=click.Path(), required=False)
@click.option("--kind", type=click.Choice(KINDS), help="The difference; stall: the candidate falls silent.")
@click.option("--field", metavar="FIELD", help="With --kind field: which one is changed.")
@click.option("--brokers", help="Kafka, HOST:PORT[,HOST:PORT…].")
@click.option("--redis", help="Redis or Valkey, redis://HOST:PORT/DB.")
@click.option("--config", type=click.Path(), help="Settings file (YAML) of the service.")
@click.option(
    "--shadow-config",
    type=click.Path(),
    help="Settings file of the copies, if other brokers are to have them.",
)
@click.option(
    "--records", type=click.IntRange(40), default=RECORDS, show_default=True, help="Copy the last N records."
)
@click.option("--timeout", metavar="DURATION", callback=span, help="The alarm must come within; 1m, or more.")
@click.option("--prometheus", metavar="URL", help="Wait for the alert to fire in this Prometheus.")
@click.option(
    "--scrape-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Name the drill to Prometheus here.",
)
@force_option
@click.option("--bind", help="Where the drill's service is, HOST:PORT; by default only this host reaches it.")
@click.option("--alertmanager", metavar="URL", help="Show whom the alert would tell, held back by a silence.")
@click.option("--page", is_flag=True, help="Let the alert through to whoever is on call.")
@click.option("--sweep", is_flag=True, help="Remove what killed drills have left.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def drill(
    spec: str | None,
    sweep: bool,
    as_json: bool,
    brokers: str | None,
    redis: str | None,
    config: str | None,
    shadow_config: str | None,
    bind: str | None,
    force: bool,
    **asked: Any,
) -> int:
    """Show that the alarm works, before you rely on it.

    \b
      twinstream drill ads.yaml --kind field --brokers localhost:9092 --redis redis://localhost
      twinstream drill ads.yaml --kind drop --prometheus http://localhost:9090 \\
          --scrape-file /etc/prometheus/drill/ads.json --alertmanager http://localhost:9093
      twinstream drill --sweep --brokers localhost:9092 --redis redis://localhost

    SPEC is the file of a comparison that is served. The last records of both its topics are copied into two
    topics of the drill's own, with one difference planted into the copy of the candidate, and compared by the
    same rules in a service of the drill's own. It shows when the difference was read, found, failed the gate
    and was in the metrics; with --prometheus, when Prometheus had it and the alert fired; with
    --alertmanager, whom that would tell. Topics, state and verdict of the live comparison stay as they are,
    and all that the drill has made is removed again.

    Nobody is woken: without --prometheus nothing outside sees the drill, and with --alertmanager a silence
    holds its alerts back, unless --page is given. The file of --scrape-file is removed at the end; one that
    is there already is overwritten only if a terminal says so, or with --force.

    Exit codes: 0 the alarm came · 1 it did not · 2 usage, bad comparison file, nothing of this kind can be
    planted · 3 the copies were not well before anything was planted · 4 Kafka, Redis, Prometheus or
    Alertmanager cannot be reached.
    """
    given, place = {"brokers": brokers, "redis": redis}, {"bind": bind}
    settings = load_settings(given, config)
    own = load_settings(place if shadow_config else {**given, **place}, shadow_config or config)
    own = own.model_copy(update={"read_from": "earliest", **(PRIVATE if bind is None else {})})
    try:
        if sweep:
            if spec is not None or asked["kind"] is not None:
                raise click.UsageError("--sweep takes no comparison file and no --kind: it is for all drills")
            return _sweep(own, as_json)
        if spec is None or asked["kind"] is None:
            raise click.UsageError("give a comparison file, and --kind for the difference")
        comparison = load(spec)
        _check(asked, bind, own)
        may_write(filter(None, [asked["scrape_file"]]), force=force)
        return _hold(comparison, settings, own, asked, as_json)
    except NoTopic as error:
        raise SettingsError(str(error)) from None
    except (SourceError, StoreError) as error:
        raise Unreachable(str(error)) from None


def _hold(spec: Spec, settings: Settings, own: Settings, asked: dict[str, Any], as_json: bool) -> int:
    from twinstream.drill.run import Drill, Options

    report = Drill(spec, settings, own, Options(**asked), _quiet if as_json else _tell).run()
    if as_json:
        print_json(report)
    else:
        for one in report["not_exercised"]:
            _tell("not shown", one)
        result = (report["result"].upper(), f"bold {COLOUR[report['result']]}")
        print_rich(Text.assemble(result, f" {report['reason']}"))
    return EXIT_OF_RESULT[report["result"]]


def _check(asked: dict[str, Any], bind: str | None, own: Settings) -> None:
    """Check combinations of options."""
    if asked["field"] is not None and asked["kind"] != "field":
        raise SettingsError("--field is for --kind field")
    for name in ("prometheus", "alertmanager"):  # They are not repeated: they may have a password.
        if asked[name] is not None and not is_http_address(asked[name]):
            raise SettingsError(f"--{name} must be an address like http://HOST:PORT")
    file: Path | None = asked["scrape_file"]
    if asked["prometheus"] is None:
        for name in ("scrape_file", "bind", "alertmanager", "page"):  # Otherwise others might see it.
            if {**asked, "bind": bind}[name]:
                raise SettingsError(f"--{name.replace('_', '-')} has no meaning without --prometheus")
    elif file is None and bind is None:
        raise SettingsError(
            "Prometheus has to scrape the drill: give --scrape-file, a file of its file_sd_configs, or "
            "--bind, an address that it scrapes"
        )
    if own.token_file is not None and not os.environ.get("TWINSTREAM_TOKEN"):
        raise SettingsError(
            "the drill's service asks for tokens: give it one of its token file in TWINSTREAM_TOKEN"
        )
    if file is not None and file.suffix not in _SUFFIXES:
        raise SettingsError(
            f"--scrape-file {file} must end with .json or .yml, or Prometheus does not read it"
        )


def _tell(word: str, text: str) -> None:
    print_rich(Text.assemble((f"{word:<10} ", "dim"), text))


def _quiet(_word: str, _text: str) -> None:
    pass


def _sweep(own: Settings, as_json: bool) -> int:
    from twinstream.drill.run import leftovers, sweep

    found = leftovers(own)
    gone = [one for one in found if not one.runs]
    problems = sweep(own, gone)
    if as_json:
        running = [one.comparison for one in found if one.runs]
        print_json({"removed": [one.comparison for one in gone], "running": running, "left_over": problems})
    else:
        for one in found:
            _tell("running" if one.runs else "removed", one.comparison)
        if not found:
            _tell("nothing", "no drill has left anything behind")
    for problem in problems:
        click.echo(f"{PREFIX}left over: {problem}", err=True)
    return 3 if problems else 0
