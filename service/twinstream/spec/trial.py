"""A trial: a changed comparison file that runs as a second comparison beside the live one."""

from __future__ import annotations

from collections.abc import Sequence

from twinstream.spec.file.model import Spec
from twinstream.spec.load import members_of

MARK = "~trial"
"""No file can have a name that ends so."""


def tried_beside(name: str) -> str | None:
    """The comparison beside which the one with this name is a trial; None if it is no trial.

    >>> tried_beside("orders~trial"), tried_beside("orders")
    ('orders', None)
    """
    return name.removesuffix(MARK) if name.endswith(MARK) else None


def as_trial(spec: Spec) -> Spec:
    """A changed file as the comparison that runs."""
    return spec.model_copy(update={"name": f"{spec.name}{MARK}"})


def changes(live: Spec, trial: Spec) -> tuple[str, ...]:
    """The keys in which two comparison files differ, except the name, in the order of a file."""
    one, other = map(members_of, (live, trial))
    return tuple(key for key in one if key != "name" and one[key] != other[key])


def refusal(trial: Spec, specs: Sequence[Spec]) -> str | None:
    """Why a changed file cannot be tried beside these comparisons, as a sentence; None if it can."""
    names = [spec.name for spec in specs]
    live = next((spec for spec in specs if spec.name == trial.name), None)
    if live is None:
        return (
            f"its name is {trial.name!r}, and served is {' and '.join(names)}: give it the name of the "
            "comparison beside which it is tried"
        )
    if "start" not in trial.model_fields_set:
        return (
            "it does not say where it begins: a trial has a start of its own, so write `start: earliest`, or "
            "a cut such as `start: {at: event_time, field: time, from: 2026-01-01T00:00:00Z}`"
        )
    for (side, tried), (_, version) in zip(trial.sides, live.sides, strict=True):
        if tried.topic != version.topic:
            return (
                f"`{side}.topic` is {tried.topic}, and the comparison {live.name} reads {version.topic}: a "
                "trial is of the same topics, so write that"
            )
    return None
