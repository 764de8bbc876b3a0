"""The laws of checks: each has a name of its own, reads what can be read, and is about something."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq

from twinstream.core.events import Side
from twinstream.spec.file.checks import Check
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import first_clash
from twinstream.spec.file.values import Breach, Location, nearest


def check_laws(spec: Spec) -> Iterator[Breach]:
    """The breaches in the order of the file."""
    seen = {check.id for check in spec.all_checks[len(spec.checks) :]}
    for n, check in enumerate(spec.checks):
        at: Location = ("checks", n)
        if check.id in seen:
            yield Breach((*at, "id"), f"`{check.id}` names two checks; give each a name of its own")
        seen.add(check.id)
        yield from _control(spec, check, at)
        yield from _kinds(spec, check, at)
        yield from _fields(spec, check, at)
        yield from _kept(spec, check, at)


def _control(spec: Spec, check: Check, at: Location) -> Iterator[Breach]:
    if check.hears and spec.control is None:
        problem = "needs `control`, the topic on which both versions report their watermarks"
        yield Breach((*at, check.what), problem)


def _kinds(spec: Spec, check: Check, at: Location) -> Iterator[Breach]:
    for n, kind in enumerate(check.kinds or ()):
        if kind not in spec.kind_names:
            near = nearest(kind, spec.kinds)
            problem = f"`{kind}` is not a declared kind{f'; did you mean `{near}`?' if near else ''}"
            yield Breach((*at, "kinds", n), problem)
        elif kind not in spec.compared_kinds:
            problem = f"`{kind}` is left out of the comparison by `kinds.{kind}.ignore`; keep one of them"
            yield Breach((*at, "kinds", n), problem)


def _fields(spec: Spec, check: Check, at: Location) -> Iterator[Breach]:
    """A check reads fields of the value, each once, and on its sides there must be some."""
    plain = {spec.decode_of(side).format for side in Side} & {"utf8", "bytes"}
    for place, field in check.fields:
        if field.startswith("$"):
            problem = f"`{field}` is not in the value, and only a field of the value can be named here"
            yield Breach((*at, *place), f"{problem}; a field of the value with this name is `\\{field}`")
        elif plain:
            problem = f"`{field}` cannot be there: a value in the format {min(plain)} has no fields"
            yield Breach((*at, *place), f"{problem}; leave this check out")
    for name in ("once", "key_partition", "per", "not_null"):
        fields = getattr(check, name) or []
        if found := first_clash(fields, eq):
            yield Breach((*at, name, found[0]), f"names `{fields[found[0]]}` twice; leave one out")
    if check.windows is not None and check.windows.start == check.windows.end:
        yield Breach((*at, "windows", "end"), f"is `{check.windows.end}`, as `start` is; name two fields")


def _kept(spec: Spec, check: Check, at: Location) -> Iterator[Breach]:
    """Of a key a digest is enough; what is ordered, or waits for a control record, is held as it is."""
    if spec.keep == "hashes" and check.what in ("ascending", "closed_windows"):
        problem = "needs the values, and with `keep: hashes` none is held: take it out, or leave `keep` out"
        yield Breach((*at, check.what), problem)
