"""Hold many random cases against the law of the answer, and show what breaks it, grouped and made small.

python -m tests.law --traces 2000 --seed 1               all features, two processes
python -m tests.law --traces 500 --only total,per_key    declarations with these features only
python -m tests.law --without known,tolerance            … with all but these
python -m tests.law --level verdict                      breaks of the verdict only
python -m tests.law --case 17 --only total               one case, with all of what it does
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.law.cases import Break, Level, held_against, smallest, told
from tests.law.declarations import FEATURES


def main() -> int:
    """Run cases; 1 when one broke the law."""
    options = _options()
    allowed = frozenset(options.only.split(",") if options.only else FEATURES) - set(
        options.without.split(",")
    )
    if unknown := allowed - FEATURES:
        sys.exit(f"no such feature: {', '.join(sorted(unknown))}; there are {', '.join(sorted(FEATURES))}")
    if options.case is not None:
        found = held_against(options.case, allowed)
        if found is not None:
            print(told(smallest(found)))
        return int(found is not None)
    return _many(options, allowed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.law", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=int, default=500)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first case")
    parser.add_argument("--only", default="", metavar="FEATURES", help="features that are drawn, by commas")
    parser.add_argument("--without", default="", metavar="FEATURES", help="features that are not")
    parser.add_argument("--level", default="all", choices=["all", "counts", "verdict"], help="what must hold")
    parser.add_argument("--case", type=int, help="the seed of one case")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def _many(options: argparse.Namespace, allowed: frozenset[str]) -> int:
    seeds = range(options.seed, options.seed + options.traces)
    begun = time.monotonic()
    with ProcessPoolExecutor(min(options.processes, 2)) as pool:
        found = pool.map(partial(_small, allowed=allowed, level=options.level), seeds, chunksize=10)
        groups: dict[str, list[tuple[int, Break]]] = defaultdict(list)
        for seed, one in zip(seeds, found, strict=True):
            if one is not None:
                groups[one.group].append((seed, one))
    for group in sorted(groups, key=lambda group: len(groups[group])):
        _show(group, groups[group])
    count = sum(map(len, groups.values()))
    print(f"\n{'breaks':>6}  {'rows':>4}  what: features")
    for group in sorted(groups, key=lambda group: -len(groups[group])):
        print(f"{len(groups[group]):6}  {_rows(_least(groups[group])[1]):4}  {group}")
    print(f"seeds {seeds[0]} to {seeds[-1]}: {count} of {len(seeds)} break, {time.monotonic() - begun:.0f} s")
    return int(count > 0)


def _small(seed: int, allowed: frozenset[str], level: Level) -> Break | None:
    found = held_against(seed, allowed)
    return None if found is None or not found.breaks(level) else smallest(found)


def _rows(found: Break) -> int:
    return sum(map(len, found.case.trace))


def _least(found: list[tuple[int, Break]]) -> tuple[int, Break]:
    return min(found, key=lambda one: _rows(one[1]))


def _show(group: str, found: list[tuple[int, Break]]) -> None:
    """The smallest break of a group."""
    seed, least = _least(found)
    print(f"\n{'=' * 100}\n{group}: {len(found)} breaks, this one of --case {seed}\n{told(least)}")


if __name__ == "__main__":
    sys.exit(main())
