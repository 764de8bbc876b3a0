"""``python -m tests.simulation SEED [--log]``, or ``--soak HOURS`` for as many seeds as there is time.

``--record`` writes down which seed finds each planted bug.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.finding import record
from tests.simulation.many import Runners
from tests.simulation.run import logged

A_LINE = 1_000


def main() -> int:
    """Replay one seed, or run seeds for hours; 1 when something broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int, nargs="?")
    parser.add_argument("--log", action="store_true", help="print every decision")
    parser.add_argument("--soak", type=float, metavar="HOURS", help="run seeds for so long")
    parser.add_argument("--first", type=int, default=None, help="the first seed of a soak")
    parser.add_argument("--processes", type=int, default=None, help="how many run them; else one a core")
    parser.add_argument("--record", action="store_true", help="find a seed for each planted bug without one")
    options = parser.parse_args()
    if options.record:
        with Runners(options.processes) as runners:
            record(runners)
        return 0
    if options.soak is not None:
        try:
            with Runners(options.processes) as runners:
                return _soak(runners, options.soak, options.first)
        except KeyboardInterrupt:
            return 130
    if options.seed is None:
        parser.error("give a seed, or --soak HOURS")
    return _replay(options.seed, log=options.log)


def _replay(seed: int, *, log: bool) -> int:
    lines, failure = logged(seed)
    if log:
        print("\n".join(lines))
    print(failure.what if failure else f"seed {seed}: nothing broke")
    return int(failure is not None)


def _soak(runners: Runners, hours: float, first: int | None) -> int:
    """Seeds that no other soak had, a line for each thousand, until one breaks something."""
    seed = int(time.time()) * 1000 if first is None else first
    begun = time.monotonic()
    while time.monotonic() - begun < hours * 3600:
        failure = runners.first_failure(range(seed, seed + A_LINE))
        seed += A_LINE
        print(f"seeds to {seed - 1} after {(time.monotonic() - begun) / 60:.1f} min", flush=True)
        if failure is not None:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
