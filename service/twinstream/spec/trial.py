"""Rules on trial: which changes of a comparison file can be tried beside the comparison that runs.

Both are fed with the same records, from the same start. So whatever decides which records are read, how they
are decoded and where the comparison begins has to be the same; what is made of the records may differ.

A trial of a comparison that is under way can begin where that is (`midway`), with what waits there for a
partner fed to it first. It must not report a difference that is none in the whole streams. Let these be equal
by the rules on trial, and the comparison have found no difference so far. What it has paired by then is left
out of both streams; the rest has to be equal, too:

- *Pairs that are the same places.* If events of one route are dependent on each other (`_in_sequence`), and
  the comparison cannot change the route of what it takes for equal, then streams are equal if and only if the
  words of each two dependent routes are, place by place. With an order that asks for no more than the
  comparison's, what was paired are the first n places of such a word on both sides: what is left of it is
  equal, whatever equality means. Where that of the comparison is coarser, the words are equal by it, too; it
  has paired the first copies of each of its letters, so the same places of both.
- *One equality.* It has paired the first copies of each letter on both sides. Words of two letters that are
  equal stay equal without the first m of the one and the first n of the other: under any order.
- *Coarser, and no more in order.* What was paired is one trace, with which both streams begin, by the rules
  of the comparison; so by looser ones, too. Traces are cancellative: what is left is equal. Which event is
  whose partner may change, and with it how long one waits; so not where waiting is a proof.
- *Coarser, while nothing waits.* What came before is, as a bag, the same on both sides. So of each two
  dependent letters the words up to there are of one length; as they are equal whole, so are their ends.
- *A sequence, while nothing waits.* In the same way, of the words of two routes, whatever equality means.

Other rules can pair an event before such a place with one behind it: with `id` compared on trial alone and
nothing in order, 1 | 2 against 2 | 1 would be two false differences.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from twinstream.spec.laws import breaches
from twinstream.spec.model import Barrier, ByKey, Order, Parallel, PerKey, Spec
from twinstream.spec.orders import nodes

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


class Midway(NamedTuple):
    """Whether rules on trial can begin beside a comparison that is under way and has found no difference.

    `anytime`: also while events wait for a partner. `same_events`: to both the same records are events.
    `refusal` says why they cannot, as a part of a sentence.
    """

    anytime: bool = False
    same_events: bool = False
    refusal: str | None = None


def midway(live: Spec, trial: Spec) -> Midway:
    """When the rules of `trial` can begin beside a comparison by those of `live`; see the module."""
    if live.reads_marks:
        return Midway(
            refusal="what both versions have said of their batches by now was not said to these rules"
        )
    if any(_has_copies(spec) for spec in (live, trial)):
        return Midway(refusal="some partitions may have had their copy of a barrier by now, and others not")
    if more := beyond_rest(live, trial):
        keys = " and ".join(f"`{key}`" for key in more)
        return Midway(
            refusal=f"these rules may compare more ({keys}), and could pair what lies before with what comes"
        )
    anytime = _same_wait(live, trial) and _with_what_waits(live, trial)
    return Midway(anytime, same_events=live.order == trial.order)


def beyond_rest(live: Spec, trial: Spec) -> tuple[str, ...]:
    """The keys for which rules on trial cannot begin where nothing waits for a partner by those of `live`."""
    return () if _in_sequences(live, trial) else finer(live, trial)


def _with_what_waits(live: Spec, trial: Spec) -> bool:
    """Whether they can begin while events wait; at rest they can."""
    sequences = _in_sequences(live, trial)
    no_more_order = _asks_no_more(live.order, trial.order)
    if sequences and no_more_order:
        return True
    same = live.equality == trial.equality
    if _is_tolerant(live) or _is_tolerant(trial):
        return same and live.order == trial.order and live.identity == trial.identity
    if sequences and not finer(trial, live):
        return True
    return not finer(live, trial) and (same or (no_more_order and not trial.overdue.proves))


def _same_wait(live: Spec, trial: Spec) -> bool:
    """Whether no clock of `trial` proves what it has not watched from the beginning."""
    return not trial.overdue.proves or (trial.overdue == live.overdue and trial.overdue.clock == "arrival")


def _is_tolerant(spec: Spec) -> bool:
    return any(equality.tolerance for equality in (spec.equality, *spec.equality.per_kind.values()))


def _has_copies(spec: Spec) -> bool:
    orders = (node.order for node in nodes(spec.order, spec.compared_kinds))
    return any(isinstance(order, Barrier) and order.copies == "per_partition" for order in orders)


def _in_sequence(order: Order) -> bool:
    """Whether events of one route through an order are dependent, and routes are so as wholes."""
    match order:
        case ByKey() | Barrier():
            return _in_sequence(order.inner)
        case Parallel():
            return all(_in_sequence(branch.order) for branch in order.parallel.values())
    return order == "total" or isinstance(order, PerKey)


def _in_sequences(live: Spec, trial: Spec) -> bool:
    """Whether `trial` compares sequences, and what `live` takes for equal has one place in them, or none."""
    if not _in_sequence(trial.order) or list(live.kinds.items()) != list(trial.kinds.items()):
        return False
    nulls = [[spec.equality_of(kind).absent_is_null for kind in live.kind_names] for spec in (live, trial)]
    declared = {name: getattr(live, name) for name in Spec.model_fields}
    return nulls[0] == nulls[1] and not any(breaches(Spec.model_validate({**declared, "order": trial.order})))


def _asks_no_more(live: Order, trial: Order) -> bool:
    """Whether what the order of `trial` relates, that of `live` relates, too; False where it may not."""
    if isinstance(live, PerKey) and isinstance(trial, PerKey):
        return set(live.per_key) <= set(trial.per_key)
    return live == trial or live == "total" or trial == "unordered"


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
