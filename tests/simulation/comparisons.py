"""The comparison files of the simulation: orders, clocks, known differences, and how the work is divided."""

from __future__ import annotations

from typing import Any

from tests.simulation.saying import RETRIES, SAYS
from tests.simulation.scheduler import Scheduler
from tests.support.orders import KINDS, Order, spec_of
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.sharding import refusal

KEYED: tuple[Order, ...] = (
    {"per_key": ["k"]},
    {"by_key": ["k"], "inner": {"dependent": [["e", "a"], ["a", "a"]]}},
    {"by_key": ["k"], "inner": {"barrier": "e", "inner": "unordered"}},
)
"""Only events of one key are dependent, so that keys may stand in partitions of their own."""
COPIED: tuple[Order, ...] = (
    {"barrier": "e", "copies": "per_partition", "inner": {"per_key": ["k"]}},
    {"barrier": "e", "copies": "per_partition", "inner": "unordered"},
)
"""A barrier stands in every partition."""
SPREAD: tuple[Order, ...] = (*KEYED, *COPIED, "unordered")
"""Orders whose events may stand in several partitions."""
ORDERS: tuple[Order, ...] = (
    *SPREAD,
    "total",
    {"barrier": "e", "inner": {"per_key": ["k"]}},
    {"barrier": "e", "inner": "unordered"},
    {"dependent": [["e", "*"]]},
    {"dependent": [["a", "b"]]},
    {
        "dependent": [
            {"pair": ["a", "a"], "same": ["k"]},
            {"pair": ["e", "a"], "within": {"field": "ts", "less_than": 5}},
        ]
    },
    {"dependent": [{"pair": ["e", "a"], "before": {"field": "ts"}}, ["e", "e"]]},
    {
        "parallel": {
            "one": {"kinds": ["a", "b"], "order": {"per_key": ["k"]}},
            "two": {"kinds": ["c", "e"], "order": "total"},
        }
    },
)

KNOWN: dict[str, Any] = {"known_differences": []}
"""Where some differences are known; which these are is drawn (`differences`)."""
PROVES = {"overdue": {"after": "20s", "proves": True}}
EVENT_TIME = {"overdue": {"clock": "event_time", "field": "ts", "unit": "s", "after": "20s"}}
EVENT_TIME_PROVES = {"overdue": {**EVENT_TIME["overdue"], "proves": True}}
BY_EVENT_TIME = (EVENT_TIME, EVENT_TIME_PROVES)
SPEAKING = (SAYS, RETRIES)
BY_CLOCK = (PROVES, EVENT_TIME_PROVES, *SPEAKING)
"""Where a clock alone proves a difference."""


LIMIT = 15
"""Of unmatched events, where there is one: more come with one reading."""


def comparison(order: Order, more: dict[str, Any], *, limited: bool = False) -> Spec:
    limit = {"unmatched_events": LIMIT} if limited else {}
    return spec_of(
        order,
        show=["type", "k", "n", "v"],
        limits={"lead": "1d", **limit},
        evidence={"matched": 1, "seconds": 0, "may_be_absent": list(KINDS)},
        undecodable={"budget": 5},
        **more,
    )


def shards_of(scheduler: Scheduler, order: Order, more: dict[str, Any], partitions: int) -> int:
    """How many matchers share the partitions of a comparison, where they may."""
    if not scheduler.chance(0.35):
        return 1
    spec = comparison(order, {**more, "co_partitioned": True})
    fit = [number for number in (2, 3) if number <= partitions and refusal(spec, number) is None]
    return scheduler.one_of(fit) if fit else 1
