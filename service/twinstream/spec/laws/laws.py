"""The laws that relate one key of a comparison file to another.

Equal events must have equal dependences. This holds by construction if kind, order and identity are read from
what the canonical form preserves. So a field that decides one of them must be compared unchanged, and so must
the fields around and inside it. The laws of the order alone are in `twinstream.spec.laws.order`, those of the
equality in `twinstream.spec.laws.equality`.

Rules of this file: a law is a generator of breaches, pure and independent of the others; `breaches` yields
them in order of importance. A law may rely on the model, never on another law.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from operator import eq

from twinstream.core.events import Side
from twinstream.spec.drills import is_of_a_drill
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import EVERY, Barrier, CallableOrder, Dependent, nodes
from twinstream.spec.file.paths import first_clash, overlap, parse_path
from twinstream.spec.file.values import Breach, Location, dotted, nearest
from twinstream.spec.laws.checks import check_laws
from twinstream.spec.laws.emits import emits_laws
from twinstream.spec.laws.equality import EqualityPath, equality_laws, equality_paths, within
from twinstream.spec.laws.order import order_laws

_PARTS = "$key, $timestamp, $partition and $headers.NAME"


def breaches(spec: Spec) -> Iterator[Breach]:
    """Every breach of a law, the most important first."""
    laws = (
        _name,
        _topics,
        _control,
        _kinds,
        order_laws,
        _start,
        _parts,
        _fields_of_values,
        _lists,
        equality_laws,
        _known_differences,
        check_laws,
        _keeping,
        emits_laws,
    )
    return chain.from_iterable(law(spec) for law in laws)


def _name(spec: Spec) -> Iterator[Breach]:
    if is_of_a_drill(spec.name):
        problem = (
            f"`{spec.name}` is a name of a drill, and `drill --sweep` would remove its state: take another"
        )
        yield Breach(("name",), problem)


def _topics(spec: Spec) -> Iterator[Breach]:
    if spec.reference.topic == spec.candidate.topic:
        problem = f"both sides read `{spec.candidate.topic}`: each version needs a topic of its own"
        yield Breach(("candidate", "topic"), problem)


def _control(spec: Spec) -> Iterator[Breach]:
    """Control records are told apart by version; the clock and the start of the input are made from them."""
    if spec.control is None:
        problem = "`input` needs `control`, the topic on which both versions say how far they have come"
        for at, named in ((("overdue", "clock"), spec.overdue.clock), (("start", "at"), spec.start.at)):
            if named == "input":
                yield Breach(at, problem)
        return
    if spec.control in {spec.reference.topic, spec.candidate.topic}:
        yield Breach(("control",), f"`{spec.control}` is read for events; control records need a topic")
    for name, version in spec.sides:
        if version.version is None:
            problem = f"`{name}.version` is missing: control records of `{spec.control}` are told by it"
            yield Breach(("control",), problem)
    if spec.reference.version is not None and spec.reference.version == spec.candidate.version:
        problem = f"is that of the reference, too: control records of `{spec.control}` are told by it"
        yield Breach(("candidate", "version"), problem)


def _kinds(spec: Spec) -> Iterator[Breach]:
    """Kinds named outside the order must be declared, and compared if they decide something."""
    if EVERY in spec.kinds:
        yield Breach(
            ("kinds", EVERY), f"`{EVERY}` stands for every kind in rules, so no kind may have this name"
        )
    named: list[tuple[str, Location]] = [
        *((name, ("evidence", "may_be_absent", n)) for n, name in enumerate(spec.evidence.may_be_absent)),
        *((name, ("equality", "per_kind", name)) for name in spec.equality.per_kind),
    ]
    for name, at in named:
        if name not in spec.kind_names:
            near = nearest(name, spec.kinds)
            yield Breach(at, f"`{name}` is not a declared kind{f'; did you mean `{near}`?' if near else ''}")
    for name in spec.equality.per_kind:
        if name in spec.kinds and spec.kinds[name].ignore:
            problem = f"`{name}` is left out of the comparison by `kinds.{name}.ignore`; keep one of them"
            yield Breach(("equality", "per_kind", name), problem)


def _start(spec: Spec) -> Iterator[Breach]:
    """A barrier is a cut only if everything depends on it."""
    if spec.start.at == "barrier" and not isinstance(spec.order, Barrier):
        problem = (
            "`barrier` is a start only where the outermost form of `order` is a barrier: elsewhere events "
            "may move over one, and would be before it on one side only"
        )
        yield Breach(("start", "at"), problem)


def _parts(spec: Spec) -> Iterator[Breach]:
    """A path that begins with `$` must name a part of a record, and only fields that decide may have one."""
    for decision in spec.decisions:
        if decision.field.startswith("$") and not _is_part(decision.field):
            problem = (
                f"`{decision.field}` is not part of a record; besides fields of the value there are {_PARTS}"
            )
            yield Breach(decision.at, f"{problem}; {_escape(decision.field)}")
    for at, fields in _value_fields(spec).items():
        for n, field in enumerate(fields):
            if field.startswith("$"):
                problem = f"`{field}` is not in the value, and only a field of the value can be named here"
                yield Breach((*at, n), f"{problem}; {_escape(field)}")


def _is_part(field: str) -> bool:
    if field in {"$key", "$timestamp", "$partition"}:
        return True
    path = parse_path(field)
    return path[0] == "$headers" and len(path) == 2


def _escape(field: str) -> str:
    if field.startswith("$headers."):
        return "a dot in the name of a header is written `\\.`"
    return f"a field of the value with this name is written `\\{field}`"


def _value_fields(spec: Spec) -> dict[Location, list[str]]:
    """The fields that must be in the value (all that decide nothing), by the list that names them."""
    fields: dict[Location, list[str]] = {}
    for path in equality_paths(spec):
        fields.setdefault(path.at[:-1], []).append(path.field)
    clock = {"field": spec.overdue.field, "window_end": spec.overdue.window_end}
    fields |= {("overdue", name): [field] for name, field in clock.items() if field is not None}
    fields["show",] = spec.show
    fields["maps",] = spec.maps
    for n, known in enumerate(spec.known_differences):
        at = ("known_differences", n, "when")
        fields |= {(*at, "where"): list(known.when.where), (*at, "fields"): known.when.fields}
    if spec.folding is not None and spec.folding.intermediate is not None:
        fields["emits", spec.folding.name, "intermediate", "monotone"] = (
            spec.folding.intermediate.monotone or []
        )
    return fields


def _fields_of_values(spec: Spec) -> Iterator[Breach]:
    """Only the values of some formats have fields, on both sides."""
    plain = {spec.decode_of(side).format for side in Side} & {"utf8", "bytes"}
    if not plain:
        return
    lacking = f"cannot be there: a value in the format {min(plain)} has no fields"
    for decision in spec.decisions:
        if not decision.field.startswith("$"):
            problem = f"`{decision.field}` {lacking}; name one of {_PARTS}"
            yield Breach(decision.at, problem)
    for at, fields in _value_fields(spec).items():
        if at[0] == "overdue":
            yield Breach(at, f"`{fields[0]}` {lacking}")


def _lists(spec: Spec) -> Iterator[Breach]:
    """No list names a field twice, or a field inside another, except arrays in the elements of arrays."""
    lists = _value_fields(spec)
    for decision in spec.decisions:
        if isinstance(decision.at[-1], int):
            lists.setdefault(decision.at[:-1], []).append(decision.field)
    for at, fields in lists.items():
        clash = eq if at[-1] in {"where", "unordered", "sets", "maps"} else overlap
        if found := first_clash(fields, clash):
            n, earlier = found
            same = parse_path(fields[n]) == parse_path(earlier)
            problem = f"names `{fields[n]}` twice" if same else f"names `{fields[n]}` beside `{earlier}`"
            more = "" if same else ", and one of them holds the other; keep one"
            yield Breach((*at, n), problem + more)


def _known_differences(spec: Spec) -> Iterator[Breach]:
    seen: set[str] = set()
    for n, known in enumerate(spec.known_differences):
        if known.id in seen:
            yield Breach(("known_differences", n, "id"), f"`{known.id}` names two known differences")
        seen.add(known.id)
        if "duplicate" in known.when.divergences and _tolerant(spec):
            problem = (
                "may not name `duplicate` beside a `tolerance`: a copy is told by equality, and numbers "
                "within a tolerance need not be equal; use `quantum`"
            )
            yield Breach(("known_differences", n, "when", "divergences"), problem)
        for field in known.when.fields:
            if (array := _array_around(spec, field)) is not None:
                problem = (
                    f"`{field}` is in the elements of `{array.field}` (`{dotted(array.at[:-1])}`), and what "
                    f"differs there is the array; name `{array.field}`"
                )
                yield Breach(("known_differences", n, "when", "fields"), problem)


def _array_around(spec: Spec, field: str) -> EqualityPath | None:
    """What says that a field is in the elements of an array, where the file knows that."""
    arrays = (path for path in equality_paths(spec) if path.does in ("unordered", "sets"))
    return next((one for one in arrays if within(parse_path(one.field), parse_path(field))), None)


def _tolerant(spec: Spec) -> bool:
    return any(equality.tolerance for _, equality in spec.equalities)


# -- `keep: hashes` ----------------------------------------------------------------------------------------


def _keeping(spec: Spec) -> Iterator[Breach]:
    """No declaration may need more than digests, if they are all that is held (see `codec.digests`)."""
    if spec.keep == "records":
        return
    why = "with `keep: hashes` only digests of values are held, which tell whether two are equal and no more"
    for at, what in chain(_of_order(spec), _of_values(spec), _of_fields(spec)):
        yield Breach(("keep",), f"{why}, and `{dotted(at)}` {what}: take it out, or leave `keep` out")


def _of_order(spec: Spec) -> Iterator[tuple[Location, str]]:
    for node in nodes(spec.order, spec.compared_kinds):
        match node.order:
            case CallableOrder():
                yield (*node.at, "callable"), "needs the values"
            case Dependent(rules=rules):
                timed = (n for n, rule in enumerate(rules) if rule.within or rule.before)
                yield from (((*node.at, "dependent", n), "needs the times") for n in timed)


def _of_values(spec: Spec) -> Iterator[tuple[Location, str]]:
    for at, equality in spec.equalities:
        if equality.tolerance:
            yield (*at, "tolerance"), "needs the numbers"
    for n, rule in enumerate(spec.known_differences):
        if rule.when.where or rule.when.fields:
            name = "where" if rule.when.where else "fields"
            yield ("known_differences", n, "when", name), "needs the values"
    if spec.start.field is not None:
        yield ("start", "field"), "needs the time"
    for name in ("field", "window_end"):
        if getattr(spec.overdue, name) is not None:
            yield ("overdue", name), "needs the time"


def _of_fields(spec: Spec) -> Iterator[tuple[Location, str]]:
    """Fields must not hold one another: such a field would be known twice."""
    deciding = [decision for decision in spec.decisions if decision.what in ("order", "identity")]
    for one, other in combinations(deciding, 2):
        paths = spec.path_of(one.field), spec.path_of(other.field)
        if paths[0] != paths[1] and overlap(*paths):
            yield other.at, f"names `{other.field}`, beside `{one.field}` that it lies in or holds"
