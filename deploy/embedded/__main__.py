"""`python -m deploy.embedded`: fetch what the stack needs, or run a broker and a store until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from deploy.embedded import gotools, jars, prerequisites
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.stack import Stack

_STARTED = """\
Kafka: {kafka}
Redis: {redis}
Ctrl-C stops both. For `twinstream` in another terminal:
export TWINSTREAM_BROKERS={kafka} TWINSTREAM_REDIS={redis}"""


def _setup(with_chromium: bool, with_helm: bool, with_prometheus: bool, with_compiler: bool) -> None:
    prerequisites.ensure(prerequisites.JAVA)
    jars.ensure(jars.KAFKA)
    jars.ensure(jars.SPARK)
    if with_chromium:
        prerequisites.ensure(prerequisites.CHROMIUM)
    if with_prometheus:
        for tool in prerequisites.MONITORING:
            prerequisites.ensure(tool)
    if with_compiler:
        prerequisites.ensure(prerequisites.COMPILER)
    if with_helm:
        gotools.ensure(gotools.HELM)
        gotools.ensure(gotools.COMPOSE)


def _run(folder: Path) -> None:
    with Stack(folder) as stack:
        print(_STARTED.format(kafka=stack.kafka.brokers, redis=stack.redis.url), flush=True)
        signal.pause()


def main() -> int:
    """Run the command; errors are one sentence on standard error."""
    parser = argparse.ArgumentParser(prog="python -m deploy.embedded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="fetch the jars and check for Java and Maven")
    setup.add_argument("--chromium", action="store_true", help="the browser for the page's tests as well")
    setup.add_argument(
        "--helm", action="store_true", help="what the tests of chart and compose file use as well"
    )
    setup.add_argument("--prometheus", action="store_true", help="what the tests of rules and dashboard use")
    setup.add_argument("--compiler", action="store_true", help="what the drill of clocks uses as well")
    run = commands.add_parser("run", help="run Kafka and Redis until Ctrl-C")
    run.add_argument("--data", type=Path, help="keep their data here (default: a temporary folder)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.command == "setup":
            _setup(arguments.chromium, arguments.helm, arguments.prometheus, arguments.compiler)
        elif arguments.data:
            _run(arguments.data)
        else:
            with tempfile.TemporaryDirectory(prefix="twinstream-") as folder:
                _run(Path(folder))
    except KeyboardInterrupt:
        return 0
    except EmbeddedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
