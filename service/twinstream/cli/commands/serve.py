"""`twinstream serve`: run the service."""

from __future__ import annotations

import os
import signal
from typing import Any

import click

from twinstream.errors import SettingsError
from twinstream.settings import load
from twinstream.spec.load import ComparisonFile, read
from twinstream.spec.trial import as_trial, refusal


@click.command()
@click.argument("specs", nargs=-1, required=True, type=click.Path())
@click.option("--brokers", help="Kafka, HOST:PORT[,HOST:PORT…].")
@click.option("--redis", help="Redis or Valkey, redis://HOST:PORT/DB.")
@click.option("--bind", help="Where to serve, HOST:PORT; port 0 takes a free one.")
@click.option("--token-file", help="Who may ask: lines of ROLE NAME TOKEN. Needed beyond loopback addresses.")
@click.option(
    "--mask-key-file",
    help="A secret of at least 20 characters, for the hashes of masked values; else one is kept in Redis.",
)
@click.option("--tls-cert", help="Serve by TLS with this certificate and its chain (PEM).")
@click.option("--tls-key", help="Its key (PEM, without a password).")
@click.option("--base-path", help="The part of a proxy's paths that is this service's, as /twinstream.")
@click.option(
    "--record-url",
    help="Links of the page to a record in a Kafka UI, with {topic}, {partition} and {offset} in it.",
)
@click.option(
    "--from",
    "read_from",
    help="Where a first start reads from: earliest; or, where `start` is a cut, latest or a time.",
)
@click.option("--memory-limit", help="The most memory of one matcher process, as 4GiB; beyond it, no pass.")
@click.option(
    "--shards",
    type=int,
    help="How many matcher processes share the partitions of a comparison that is `co_partitioned`; 1.",
)
@click.option(
    "--results",
    help="The topic in which a Spark job with as many --shards says what it finds: this process shows it, "
    "and has no matchers.",
)
@click.option(
    "--role",
    type=click.Choice(["all", "api", "matcher"]),
    help="What this process does: matchers and API; the API and the page alone, of what matchers elsewhere "
    "say through Redis; or matchers alone.",
)
@click.option(
    "--trial",
    "trials",
    multiple=True,
    type=click.Path(),
    help="A changed comparison file, tried beside the comparison of its name: one more comparison, "
    "NAME~trial, without a gate. Give it to every process, also to those of another --role.",
)
@click.option("--config", type=click.Path(), help="Settings file (YAML): brokers, redis, bind, kafka: {…}.")
def serve(specs: tuple[str, ...], trials: tuple[str, ...], config: str | None, **flags: Any) -> int:
    """Run the service: matchers, HTTP API and page.

    \b
      twinstream serve ads.yaml --brokers localhost:9092 --redis redis://localhost
      twinstream serve ads.yaml counts.yaml --bind 127.0.0.1:9000
      twinstream serve ads.yaml --role matcher --bind 127.0.0.1:8081    and    --role api
      twinstream serve ads.yaml --trial ads-looser.yaml
      twinstream serve ads.yaml --results twinstream.results --shards 8
      twinstream serve ads.yaml --bind 0.0.0.0:8080 --token-file tokens --tls-cert tls.crt --tls-key tls.key

    Flags win over variables (TWINSTREAM_BROKERS, TWINSTREAM_REDIS, TWINSTREAM_BIND), those over the file. It
    prints the page's address, logs JSON lines to standard error, and stops cleanly on SIGTERM. The default
    address is 127.0.0.1:8080, and nobody needs a token there. A line of a token file is `ROLE NAME TOKEN`,
    the role read or operate; it is read again when it changes.

    Exit codes: 0 told to stop · 2 usage, bad comparison file or bad setting. What cannot be reached does not
    end it: it tries again, is not ready, and names it.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        # Until the service itself listens for them. An import may hide an exception from its user.
        signal.signal(number, lambda *_: os._exit(0))
    settings = load(flags, config)
    served = with_trials([read(file) for file in specs], {file: read(file) for file in trials})
    from twinstream import bootstrap

    bootstrap.serve(settings, served, click.echo)
    return 0


def with_trials(files: list[ComparisonFile], trials: dict[str, ComparisonFile]) -> list[ComparisonFile]:
    """The comparisons, each followed by its trial. Raises SettingsError for a file that cannot be a trial."""
    beside: dict[str, ComparisonFile] = {}
    for file, (trial, text) in trials.items():
        reason = refusal(trial, [one.spec for one in files])
        if trial.name in beside:
            reason = f"another file is tried beside {trial.name} already: one at a time"
        if reason is not None:
            raise SettingsError(f"--trial {file}: {reason}")
        beside[trial.name] = ComparisonFile(as_trial(trial), text)
    return [one for live in files for one in (live, beside.get(live.spec.name)) if one is not None]
