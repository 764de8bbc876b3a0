"""The signals on the way of an alarm, from a record in Kafka to the person it alerts, in their order.

A signal examines the state that service, Prometheus and Alertmanager report at one moment, and describes what
it sees, or sees nothing. The reaction of the comparison's rules determines the signals: a proven difference
fails the gate, a suspicion and a silent side leave it undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from twinstream.core.events import Side
from twinstream.drill.shadow import ExpectedSign
from twinstream.explain.divergence import NAMES

MetricSamples = Mapping[tuple[str, str], float]
"""The metrics of the comparison: by name without prefix, and the value of the other label (else empty)."""

ALERTS: Mapping[ExpectedSign, str] = {
    "fail": "TwinstreamDiverged",
    "suspicion": "TwinstreamSuspicions",
    "stall": "TwinstreamSideStalled",
}
METRICS: Mapping[ExpectedSign, tuple[str, Mapping[str, str]]] = {
    "fail": ("verdict", {"verdict": "DIVERGED"}),
    "suspicion": ("suspicions", {}),
    "stall": ("side_stalled", {"side": "candidate"}),
}
"""The metric of each alert, with its label."""
_VERDICTS: Mapping[ExpectedSign, str] = {"fail": "DIVERGED", "suspicion": "INCONCLUSIVE"}


def series(expectation: ExpectedSign, **about: str) -> str:
    """The metric of the alert, as Prometheus writes it; `about` are more labels."""
    name, label = METRICS[expectation]
    labels = ", ".join(f'{key}="{value}"' for key, value in {**about, **label}.items())
    return f"twinstream_{name}{{{labels}}}" if labels else f"twinstream_{name}"


class SignalState(NamedTuple):
    """The reported state at one moment; the last four are None if their server is not asked.

    `found` are the reports of differences. From Prometheus: whether it has the metrics of the `live`
    comparison, whether it has `scraped` the metric of the alert, and the `alerts` by name with their state.
    `routed` is how Alertmanager handles each of these.
    """

    status: Mapping[str, Any]
    gate: Mapping[str, Any]
    found: Sequence[Mapping[str, Any]]
    samples: MetricSamples
    live: bool | None = None
    scraped: bool | None = None
    alerts: Mapping[str, str] | None = None
    routed: Mapping[str, str] | None = None


class WantedSignal(NamedTuple):
    """The awaited signals: the events of each side, the positions for a report, and the servers to ask.

    `closed`: the difference is classified for good, and then counted.
    """

    expectation: ExpectedSign
    events: tuple[int, int]
    about: frozenset[tuple[Side, int, int]]
    closed: bool = False
    prometheus: bool = False
    alertmanager: bool = False


Signal = Callable[[SignalState], str | None]
"""A step of the way: describes what it sees in a state; None if nothing."""


def signals(wanted: WantedSignal) -> dict[str, Signal]:
    """All signals that have to be seen, by name, in order."""
    expectation = wanted.expectation
    told: dict[str, Signal] = {"read": partial(read, events=wanted.events)}
    if expectation == "fail":
        told["found"] = partial(_found, about=wanted.about)
    if expectation == "stall":
        told["health"] = _stalled
    else:
        told["verdict"] = partial(_verdict, expectation=expectation)
    told["gate"] = partial(_gate, expectation=expectation)
    told["metric"] = partial(_metric, expectation=expectation)
    if wanted.closed:
        told["counted"] = _counted
    if wanted.prometheus:
        told["live"] = lambda look: "Prometheus scrapes the live comparison" if look.live else None
        told["scraped"] = lambda look: "Prometheus has the metric" if look.scraped else None
        told["alert"] = partial(_alert, name=ALERTS[expectation])
    if wanted.alertmanager:
        told["routed"] = lambda look: (look.routed or {}).get(ALERTS[expectation])
    return told


def read(look: SignalState, events: tuple[int, int]) -> str | None:
    """Whether both copies were read up to so many events, as text."""
    counts = look.status["events"]
    if all(counts[NAMES[side]] >= events[side] for side in Side):
        return f"{counts['reference']:,} and {counts['candidate']:,} events read"
    return None


def unexpected(look: SignalState, wanted: WantedSignal) -> str | None:
    """Why the drill has already failed: a report that must not exist. None if there is none."""
    if wanted.expectation != "fail" and look.status["verdict"] == "DIVERGED":
        what = "silence of the candidate" if wanted.expectation == "stall" else "suspicion"
        return f"the verdict is DIVERGED, though a {what} proves nothing: {look.status['reason']}"
    hole = next(iter(look.status["holes"]), None)
    return None if hole is None else f"a part of the copies was not checked: {hole['reason']}"


def _found(look: SignalState, about: frozenset[tuple[Side, int, int]]) -> str | None:
    for report in look.found:
        for side in Side:
            at = report["positions"][NAMES[side]]
            if at is not None and (side, at["partition"], at["offset"]) in about:
                sure = ", provisional" if report["provisional"] else ""
                place = f"partition {at['partition']} offset {at['offset']}"
                return f"{report['kind']}, at {place} of the {NAMES[side]}'s copy{sure}"
    return None


def _verdict(look: SignalState, expectation: ExpectedSign) -> str | None:
    verdict, suspicions = look.status["verdict"], look.status["suspicions"]
    if verdict != _VERDICTS[expectation] or (expectation == "suspicion" and not suspicions):
        return None
    return str(verdict) if expectation == "fail" else f"{verdict}, suspicions: {suspicions}"


def _stalled(look: SignalState) -> str | None:
    health = look.status["health"]
    return "; ".join(health["reasons"]) if "candidate" in health["stalled"] else None


def _gate(look: SignalState, expectation: ExpectedSign) -> str | None:
    """The answer of the gate, if it is the expected one for the expected reason."""
    awaited = {
        "fail": "fail",
        "suspicion": "undecided" if look.status["suspicions"] else None,
        "stall": "undecided" if _stalled(look) is not None else None,
    }
    return awaited[expectation] if look.gate["answer"] == awaited[expectation] else None


def _metric(look: SignalState, expectation: ExpectedSign) -> str | None:
    name, label = METRICS[expectation]
    value = look.samples.get((name, "".join(label.values())), 0)
    return f"{series(expectation)} is {value:g}" if value >= 1 else None


def _counted(look: SignalState) -> str | None:
    kinds = (
        f'twinstream_divergences_total{{kind="{kind}"}} is {count:g}'
        for (name, kind), count in look.samples.items()
        if name == "divergences_total" and count
    )
    return ", ".join(kinds) or None


def _alert(look: SignalState, name: str) -> str | None:
    return f"{name} fires" if (look.alerts or {}).get(name) == "firing" else None


class SeenSignal(NamedTuple):
    """A signal seen for the first time, so many seconds after the difference was written."""

    name: str
    seconds: float
    text: str


_MOMENTS = {"verdict", "health", "gate", "alert"}


def moments(seen: Sequence[SeenSignal]) -> str:
    """When the signals came on which a release depends, and the last one, which completes the alarm.

    >>> moments([SeenSignal("read", 0.2, ""), SeenSignal("gate", 0.38, ""), SeenSignal("metric", 1, "")])
    'gate 0.38 s, metric 1.00 s'
    """
    told = (one for one in seen if one.name in _MOMENTS or one is seen[-1])
    return ", ".join(f"{one.name} {one.seconds:.2f} s" for one in told)


class AlarmPath:
    """The signals of a drill as they come in; `awaited` are the names of those that were not seen."""

    def __init__(self, signals: Mapping[str, Signal]) -> None:
        self._signals = signals
        self.awaited = list(signals)
        self.seen: list[SeenSignal] = []

    def look(self, seconds: float, look: SignalState) -> list[SeenSignal]:
        """Record the state at this time; returns the signals seen for the first time."""
        found = {name: self._signals[name](look) for name in self.awaited}
        new = [SeenSignal(name, seconds, text) for name, text in found.items() if text is not None]
        self.awaited = [name for name, text in found.items() if text is None]
        self.seen += new
        return new
