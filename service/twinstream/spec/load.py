"""Loads a comparison file: every violation becomes one sentence with file, line, key and what to write.

The text becomes data with a line for each place (`file.source`), the data becomes a `Spec`, which checks each
mapping by itself (`file.model`), and the spec is checked against the laws that relate one key to another
(`laws`). All violations of the shape, or else of the laws, are raised together, as the most urgent one.
"""

from __future__ import annotations

import json
import os
from functools import reduce
from hashlib import blake2b
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from twinstream.errors import SpecError
from twinstream.spec.codec.callables import find
from twinstream.spec.file.model import DUPLICATE_HORIZON, Spec
from twinstream.spec.file.orders import TAG, CallableOrder, nodes
from twinstream.spec.file.source import CONTENT, SourceText, dump, file_bytes, read_leniently
from twinstream.spec.file.start import Start
from twinstream.spec.file.values import Location, given
from twinstream.spec.laws.laws import breaches


class ComparisonFile(NamedTuple):
    """A comparison file: its meaning, and its text as its owner wrote it."""

    spec: Spec
    text: str


def load(file: str | FilePath) -> Spec:
    """The meaning of a comparison file; see `read`."""
    return read(file).spec


def read(file: str | FilePath) -> ComparisonFile:
    """Read and check a comparison file. The paths in it become absolute: they are relative to the file.

    A function that the order names must be there, so its module is imported.

    Raises SpecError with file, line, key, the rule broken and what to write instead.
    """
    try:
        text = file_bytes(file).decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError(str(file), None, "", "is not a UTF-8 text; save it as UTF-8") from None
    source = read_leniently(text, str(file))
    spec = _resolved(_checked(source), source, FilePath(file).parent)
    _call(spec, source)
    return ComparisonFile(spec, text)


def loads(text: str, file: str = "<spec>") -> Spec:
    """Like `load`, for the text of a file; its paths stay as they are. `file` is the name in messages."""
    return _checked(read_leniently(text, file))


def begun_at(spec: Spec, start: Start) -> Spec:
    """The same comparison with this start. Raises SpecError where the file does not allow it."""
    begun = with_members(spec, start=start)
    for breach in breaches(begun):
        raise SpecError("the start", None, breach.key, breach.problem)
    if begun.whole != spec.whole or begun.reads_marks != spec.reads_marks:
        problem = "needs more of each record than is read for the comparison file: name this start there"
        raise SpecError("the start", None, "start", problem)
    return begun


def with_members(spec: Spec, **members: Any) -> Spec:
    """The same comparison with other members, not checked against the laws. Raises ValidationError.

    It keeps its name, be it one that no file can have (`trial`).
    """
    declared = {name: getattr(spec, name) for name in Spec.model_fields}
    changed = Spec.model_validate({**declared, "name": "unnamed", **members})
    return changed.model_copy(update={"name": spec.name})


def members_of(spec: Spec) -> dict[str, Any]:
    """The keys of a file with their values, as JSON. Kinds are a list, since the first that fits wins."""
    members = spec.model_dump(mode="json")
    return members | {"kinds": list(members["kinds"].items())}


def digest(spec: Spec) -> str:
    """A short name of the spec's meaning: the same for two files with the same meaning.

    A schema counts by its content, wherever it is kept. Raises SpecError if it cannot be read.
    """
    meaning = members_of(spec)
    if spec.duplicates.policy == "strict":
        del meaning["duplicates"]["horizon"]
    for key in _OF_A_CLOCK - _USED.get(spec.overdue.clock, set()):
        del meaning["overdue"][key]
    if not spec.tells_copies or spec.limits.duplicate_horizon == DUPLICATE_HORIZON:
        del meaning["limits"]["duplicate_horizon"]
    _drop_later_keys(spec, meaning)
    for place in (meaning, meaning["reference"], meaning["candidate"]):
        if place["decode"] and place["decode"]["schema_file"]:
            content = file_bytes(place["decode"]["schema_file"])
            place["decode"]["schema_file"] = blake2b(content, digest_size=8).hexdigest()
    return blake2b(json.dumps(meaning, sort_keys=True).encode(), digest_size=8).hexdigest()


def with_schemas(spec: Spec) -> Spec:
    """The same spec for another host: with the schemas themselves where it has the paths of their files.

    Raises SpecError if one cannot be read.
    """
    found: dict[str, Any] = {}
    for at, decode in spec.decodes:
        if decode.schema_file is not None:
            content = CONTENT + file_bytes(decode.schema_file).hex()
            carried, first = decode.model_copy(update={"schema_file": content}), str(at[0])
            whole = at == ("decode",)
            found[first] = carried if whole else getattr(spec, first).model_copy(update={"decode": carried})
    return spec.model_copy(update=found)


def _drop_later_keys(spec: Spec, meaning: dict[str, Any]) -> None:
    """Drop the keys that came later than the first digests, where they say nothing."""
    for key in ("control", "co_partitioned", "maps", "keep", "checks"):
        if meaning[key] == Spec.model_fields[key].default:
            del meaning[key]
    for equality in (meaning["equality"], *meaning["equality"]["per_kind"].values()):
        if not equality["any_of"]:
            del equality["any_of"]
    if spec.folding is not None and spec.folding.intermediate is None:
        meaning["emits"][spec.folding.name].pop("intermediate", None)


_OF_A_CLOCK = {"field", "window_end", "unit", "max_jump", "idle_after"}
"""The keys of `overdue` that have an effect with some clocks only."""
_USED = {"event_time": {"field", "unit", "max_jump", "idle_after"}, "input": {"window_end", "unit"}}


def _checked(source: SourceText) -> Spec:
    try:
        spec = Spec.model_validate(source.data)
    except ValidationError as error:
        found = [_violation(one, source) for one in sorted(error.errors(), key=_urgency)]
        raise SpecError.of([*source.repeated, *found]) from None
    broken = [source.error(breach.at, breach.problem, breach.key) for breach in breaches(spec)]
    _refuse([*source.repeated, *broken])
    return spec


def _refuse(faults: list[SpecError]) -> None:
    if faults:
        raise SpecError.of(faults)


# -- what lies beside the file -----------------------------------------------------------------------------


def _resolved(spec: Spec, source: SourceText, folder: FilePath) -> Spec:
    """The spec with absolute paths to its schema files, all of which are there."""
    lacking = []
    for at, decode in spec.decodes:
        if decode.schema_file is not None:
            path = (folder / decode.schema_file).absolute()
            if not os.path.isfile(path):  # noqa: PTH113 - a name that no file can have is none
                problem = (
                    f"there is no file `{decode.schema_file}`; the path is relative to the comparison file"
                )
                lacking.append(source.error((*at, "schema_file"), problem))
            reduce(dict.__getitem__, at, source.data)["schema_file"] = str(path)
    _refuse(lacking)
    return Spec.model_validate(source.data)


def _call(spec: Spec, source: SourceText) -> None:
    """Find the functions of the user now, while the places that name them are known."""
    named: list[tuple[Location, str]] = [
        ((*node.at, "callable"), node.order.callable)
        for node in nodes(spec.order, spec.compared_kinds)
        if isinstance(node.order, CallableOrder)
    ]
    for at, equality in spec.equalities:
        named += (((*at, "any_of", field), name) for field, name in equality.any_of.items())
    lacking = []
    for place, name in named:
        try:
            find(name, spec.name)
        except SpecError as error:
            lacking.append(source.error(place, error.problem))
    _refuse(lacking)


# -- violations of the shape -------------------------------------------------------------------------------


def _urgency(error: ErrorDetails) -> tuple[bool, bool]:
    """A misspelt key explains a missing one, so it comes first; then the order, which has no default."""
    return error.get("ctx", {}).get("key") is None, error["loc"][:1] != ("order",)


def _violation(error: ErrorDetails, source: SourceText) -> SpecError:
    context, kind = error.get("ctx", {}), error["type"]
    member = () if context.get("key") is None else (context["key"],)
    at = _location((*error["loc"], *member))
    if kind == "problem":
        text = context["problem"]
    elif kind == "missing":
        text = _NO_ORDER if at == ("order",) else "is required and missing"
    elif kind == "value_error":
        text = error["msg"].removeprefix("Value error, ")
    elif kind == "list_type" and isinstance(error["input"], (str, int, float)):
        text = f"must be a list: write `{dump(_parts(error['input']))}`"
    else:
        text = f"{_wanted(error, at)}, but {given(error['input'])} was given"
    return source.error(at, text)


def _parts(value: Any) -> list[Any]:
    """The list that was probably meant by a value without brackets."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else [value]


def _location(found: Location) -> Location:
    """The place in the file: pydantic adds the chosen form, and `[key]` for a wrong key."""
    return tuple(part for part in found if part != "[key]" and not str(part).startswith(TAG))


_NO_ORDER = (
    "is required and missing: there is no safe default; write `order: unordered`, `order: total` or "
    "`order: {per_key: [FIELD]}`"
)

_WANTED = {
    "string_type": "must be a text",
    "int": "must be a whole number",
    "float": "must be a number",
    "finite_number": "must be a finite number",
    "bool": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be {ge:g} or more",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be {le:,.15g} or less",
    "too_short": "must name {min_length} or more",
    "string_too_short": "must not be empty",
    "byte": "must be a number of bytes, such as 500MB or 2GiB",
}
"""By the type of pydantic's error, or its first word."""

_TOPIC = "must be the name of a Kafka topic (letters, digits, `.`, `_` and `-`, 1 to 249)"
_PATTERNS = {
    "name": "must be a DNS label (lower-case letters, digits and inner hyphens, 1 to 63)",
    "topic": _TOPIC,
    "control": _TOPIC,
    "id": "must be letters, digits and inner `-`, `_` and `.`, 1 to 63",
}


def _wanted(error: ErrorDetails, at: Location) -> str:
    """What should be written there instead."""
    if error["type"] == "string_pattern_mismatch":
        return _PATTERNS[str(at[-1])]
    wanted = _WANTED.get(error["type"]) or _WANTED.get(error["type"].partition("_")[0])
    return wanted.format(**error.get("ctx", {})) if wanted else error["msg"][:1].lower() + error["msg"][1:]
