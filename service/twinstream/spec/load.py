"""Reading a comparison file: every violation becomes one sentence with file, line, key and what to write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path as FilePath
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from twinstream.errors import SpecError
from twinstream.spec.model import Spec
from twinstream.spec.orders import TAG
from twinstream.spec.paths import overlap, parse_path
from twinstream.spec.values import Location, given


def load(file: str | FilePath) -> Spec:
    """Read and check a comparison file.

    Raises SpecError with file, line, key, the rule broken and what to write instead.
    """
    try:
        text = FilePath(file).read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(str(file), None, "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(str(file), None, "", "is not a UTF-8 text; save it as UTF-8") from None
    return loads(text, str(file))


def loads(text: str, file: str = "<spec>") -> Spec:
    """Like `load`, for the text of a file. `file` is the name used in messages."""
    lines, data = _read(text, file)
    try:
        spec = Spec.model_validate(data)
    except ValidationError as error:
        worst = min(error.errors(), key=_urgency)
        raise _violation(worst, lines, file) from None
    _check_laws(spec, lines, file)
    return spec


def digest(spec: Spec) -> str:
    """A short name of the spec's meaning: the same for two files that say the same."""
    meaning = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return blake2b(meaning.encode(), digest_size=8).hexdigest()


# -- YAML --------------------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """YAML as its version 1.2 has it, where `NO` and `2026-01-01` and `12:30` are texts, as in a record."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag.rpartition(":")[2] in {"null", "merge"}]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _form, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.inf|\.nan",
        "-+.0123456789",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_form})\\Z"), list(_first))


def _read(text: str, file: str) -> tuple[dict[Location, int], Any]:
    """The data of a YAML text, and the line of every place in it."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        if not isinstance(node, yaml.MappingNode):
            raise SpecError(file, 1, "", "must be a mapping that begins with `version: 1`")
        return dict(_lines(node, (), file)), yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise SpecError(file, line, "", f"is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise SpecError(file, None, "", f"is not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise SpecError(file, None, "", "is nested too deep, or refers to itself") from None


# -- lines -------------------------------------------------------------------------------------------------


def _lines(node: yaml.Node, at: Location, file: str) -> Iterator[tuple[Location, int]]:
    """The line of every key; a key that stands twice is refused here, since YAML would keep the last."""
    yield at, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise SpecError(file, key.start_mark.line + 1, "", "a key must be a text")
            if key.value in seen:
                raise SpecError(file, key.start_mark.line + 1, key.value, "stands twice in one mapping")
            seen.add(key.value)
            yield from _lines(value, (*at, key.value), file)
            yield (*at, key.value), key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*at, index), file)


def _line(lines: dict[Location, int], at: Location) -> int | None:
    """The line of a location, or of the nearest place around it that the file has."""
    while at:
        for place in (at, (*at[:-1], str(at[-1]))):
            if place in lines:
                return lines[place]
        at = at[:-1]
    return lines.get(())


# -- violations of the shape -------------------------------------------------------------------------------


def _urgency(error: ErrorDetails) -> tuple[bool, bool]:
    """A misspelt key explains a missing one, so it is named first; then the order, which has no default."""
    return error.get("ctx", {}).get("key") is None, error["loc"][:1] != ("order",)


def _violation(error: ErrorDetails, lines: dict[Location, int], file: str) -> SpecError:
    context = error.get("ctx", {})
    at = _location((*error["loc"], context["key"]) if context.get("key") is not None else error["loc"])
    key = ".".join(map(str, at))
    line = _line(lines, at)
    kind = error["type"]
    if kind == "problem":
        return SpecError(file, line, key, context["problem"])
    if kind == "missing" and at == ("order",):
        return SpecError(file, line, key, _NO_ORDER)
    if kind == "missing":
        return SpecError(file, line, key, "is required and missing")
    if kind == "value_error":
        return SpecError(file, line, key, error["msg"].removeprefix("Value error, "))
    return SpecError(file, line, key, f"{_wanted(error, at)}, but {given(error['input'])} was given")


def _location(found: Location) -> Location:
    """The place in the file: pydantic adds the form that was chosen, and `[key]` where a key is wrong."""
    return tuple(part for part in found if part != "[key]" and not str(part).startswith(TAG))


_NO_ORDER = (
    "is required and missing: there is no safe default; write `order: unordered`, `order: total` or "
    "`order: {per_key: [FIELD]}`"
)
_WANTED = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "too_short": "must name {min_length} or more",
    "string_too_short": "must not be empty",
    "byte_size_unit": "must be a number of bytes, such as 500MB or 2GiB",
    "byte_size": "must be a number of bytes, such as 500MB or 2GiB",
}


def _wanted(error: ErrorDetails, at: Location) -> str:
    """What should stand there instead."""
    if at == ("name",) and error["type"] == "string_pattern_mismatch":
        return "must be a DNS label (lower-case letters, digits and inner hyphens, 1 to 63)"
    if at[1:] == ("topic",) and error["type"] == "string_pattern_mismatch":
        return "must be the name of a Kafka topic (letters, digits, `.`, `_` and `-`, 1 to 249)"
    wanted = _WANTED.get(error["type"])
    return wanted.format(**error.get("ctx", {})) if wanted else error["msg"][:1].lower() + error["msg"][1:]


# -- laws --------------------------------------------------------------------------------------------------


def _check_laws(spec: Spec, lines: dict[Location, int], file: str) -> None:
    """Equal events must have equal dependences: what decides kind, order or identity must be compared."""
    if spec.reference.topic == spec.candidate.topic:
        problem = f"both sides read `{spec.candidate.topic}`: each version needs a topic of its own"
        raise SpecError(file, _line(lines, ("candidate", "topic")), "candidate.topic", problem)
    for place, at, field in _other_fields(spec):
        if field.startswith("$"):
            problem = (
                f"`{field}` reaches outside the value, which is not supported: name a field of the value"
            )
            raise SpecError(file, _line(lines, at), place, problem)
    for place, _, field in spec.deciding_fields:
        path = parse_path(field)
        for ignored in spec.equality.ignore:
            if overlap(path, parse_path(ignored)):
                problem = f"`{field}` decides the {place}, so `equality.ignore` may not name `{ignored}`"
                raise SpecError(file, _line(lines, ("equality", "ignore")), place, problem)
        compared = spec.equality.compare_only
        if compared is not None and not any(path[: len(parse_path(c))] == parse_path(c) for c in compared):
            problem = f"`{field}` decides the {place}, so `equality.compare_only` must name it"
            raise SpecError(file, _line(lines, ("equality", "compare_only")), place, problem)
    _check_kinds(spec, lines, file)


def _other_fields(spec: Spec) -> Iterator[tuple[str, Location, str]]:
    equality = spec.equality
    for name, fields in (("ignore", equality.ignore), ("compare_only", equality.compare_only or ())):
        for field in fields:
            yield f"equality.{name}", ("equality", name), field
    for field in spec.show:
        yield "show", ("show",), field


def _check_kinds(spec: Spec, lines: dict[Location, int], file: str) -> None:
    for name in spec.evidence.may_be_absent:
        if name not in spec.kinds:
            near = get_close_matches(name, list(spec.kinds), n=1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            problem = f"`{name}` is not a declared kind{hint}"
            raise SpecError(
                file, _line(lines, ("evidence", "may_be_absent")), "evidence.may_be_absent", problem
            )
