"""Rules on trial: which changes of a comparison file can be tried beside the comparison that runs.

Both are fed with the same records, from the same start. So whatever decides which records are read, how they
are decoded and where the comparison begins has to be the same; what is made of the records may differ.
"""

from __future__ import annotations

from typing import Any

from twinstream.spec.model import Spec

MAY_DIFFER = (
    "kinds",
    "order",
    "equality",
    "identity",
    "known_differences",
    "overdue",
    "evidence",
    "undecodable",
    "on_divergence",
    "limits",
    "gate",
)
_MAY = ", ".join(f"`{key}`" for key in MAY_DIFFER)


def changes(live: Spec, trial: Spec) -> tuple[str, ...]:
    """The keys in which two comparison files differ, in the order in which a file has them."""
    one, other = live.model_dump(mode="json"), trial.model_dump(mode="json")
    return tuple(key for key in one if _said(one, key) != _said(other, key))


def finer(live: Spec, trial: Spec) -> tuple[str, ...]:
    """The keys by which `trial` may tell apart, or compare, what `live` pairs or leaves out, if any.

    It may ignore more fields, in the equality of all kinds. What is equal within a tolerance need not be so
    in another order, where it may have another partner.
    """
    one, other = live.model_dump(mode="json"), trial.model_dump(mode="json")
    ignored, also = set(one["equality"].pop("ignore")), set(other["equality"].pop("ignore"))
    equalities = (live.equality, *live.equality.per_kind.values())
    tolerant = any(equality.tolerance for equality in equalities)
    no_finer = {
        "kinds": _said(one, "kinds") == _said(other, "kinds"),
        "equality": one["equality"] == other["equality"] and ignored <= also,
        "order": not tolerant or one["order"] == other["order"],
        "identity": not tolerant or one["identity"] == other["identity"],
    }
    return tuple(key for key, holds in no_finer.items() if not holds)


def _said(file: dict[str, Any], key: str) -> Any:
    """What a file says of a key; of kinds the first that fits wins, so that their order counts."""
    return list(file[key].items()) if key == "kinds" else file[key]


def refusal(live: Spec, trial: Spec) -> str | None:
    """Why the rules of `trial` cannot be tried beside `live`, as a sentence; None where they can."""
    changed = changes(live, trial)
    if not changed:
        return f"it says the same as the comparison file of {live.name}: change a rule, or leave --trial out"
    fixed = [key for key in changed if key not in MAY_DIFFER]
    if fixed:
        what = " and ".join(f"`{key}`" for key in fixed)
        return (
            f"{what} must be as in the comparison file of {live.name}, since a trial is fed with the records "
            f"that the comparison reads, from the same start; what may differ is {_MAY}"
        )
    if live.keep == "hashes":
        return (
            f"{live.name} has `keep: hashes`, so its records are gone once they are read: try the file with "
            "`twinstream check --brokers`, or leave --trial out"
        )
    if trial.whole != live.whole:
        one, other = ("does not read", "reads") if trial.whole else ("reads", "does not read")
        return (
            f"it {other} more of a record than its value ($key, $timestamp, …), and the comparison {one} "
            "it: both have to"
        )
    if trial.reads_marks and not live.reads_marks:
        return (
            "`overdue: {clock: input}` needs the control topic and headers of records, which the comparison "
            "does not read: declare that clock in both files"
        )
    return None
