"""Reads the text of a comparison file: its data, and the line of every place in it.

YAML is read as version 1.2, in which `NO`, `2026-01-01` and `12:30` are texts, as in a record. A key that
duplicate key is refused, since YAML would silently keep the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import islice
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from twinstream.errors import SpecError
from twinstream.spec.file.values import Location, dotted

MOST_PLACES = 100_000
"""The bound of a file: aliases may repeat a part of a part, and a short text becomes a huge file."""
_LARGEST_EXPONENT = 9_999


class SourceText(NamedTuple):
    """The text of a file as read: its name in messages, its data, and the line of each place in it.

    `repeated` are the faults of keys that stand twice; the data have the last one.
    """

    file: str
    data: Any
    lines: dict[Location, int]
    repeated: tuple[SpecError, ...] = ()

    def error(self, at: Location, problem: str, key: str | None = None) -> SpecError:
        """The error for a place in the file; the place names the key, unless one is given."""
        return SpecError(self.file, self._line(at), dotted(at) if key is None else key, problem)

    def _line(self, at: Location) -> int | None:
        """The line of a place, or of the nearest place around it that the file has."""
        while at:
            for place in (at, (*at[:-1], str(at[-1]))):
                if place in self.lines:
                    return self.lines[place]
            at = at[:-1]
        return self.lines.get(())


CONTENT = "content:"
"""What stands before the content of a file, in hexadecimal digits, where its path would stand."""


def file_bytes(file: str | Path, key: str = "") -> bytes:
    """The content of a file that `key` names. Raises SpecError if it cannot be read."""
    if str(file).startswith(CONTENT):
        return bytes.fromhex(str(file).removeprefix(CONTENT))
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise SpecError(str(file), None, key, f"cannot be read: {error.strerror}") from None


def read_source(text: str, file: str) -> SourceText:
    """Read the text of a comparison file. Raises SpecError if it is no YAML mapping, or repeats a key."""
    source = read_leniently(text, file)
    if source.repeated:
        raise SpecError.of(source.repeated)
    return source


def read_leniently(text: str, file: str) -> SourceText:
    """Like `read_source`, but repeated keys are left for the caller to report with what else is wrong."""
    repeated: list[SpecError] = []
    try:
        node = yaml.compose(text, Loader=_Loader)
        if not isinstance(node, yaml.MappingNode):
            raise SpecError(file, 1, "", "must be a mapping that begins with `version: 1`")
        places = list(islice(_lines(node, (), file, repeated), MOST_PLACES + 1))
        if len(places) > MOST_PLACES:
            told = f"has more than {MOST_PLACES:,} places, each counted as often as an alias repeats it"
            raise SpecError(file, None, "", told)
        return SourceText(file, yaml.load(text, Loader=_Loader), dict(places), tuple(repeated))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise SpecError(file, line, "", f"is not YAML: {error.problem}{_begun(error)}") from None
    except yaml.YAMLError as error:
        raise SpecError(file, None, "", f"is not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise SpecError(file, None, "", "is nested too deep, or refers to itself") from None
    except ValueError as error:
        raise SpecError(file, None, "", f"holds a value that cannot be read: {error}") from None
    except (IndexError, KeyError, AttributeError):  # PyYAML's, where a value does not fit its tag
        raise SpecError(file, None, "", "holds a value that does not fit its tag, like `!!int x`") from None


def _begun(error: yaml.MarkedYAMLError) -> str:
    """The earlier line in which the broken part begins, where the mistake often is; else empty."""
    begun, found = error.context_mark, error.problem_mark
    if not (begun and found and error.context and begun.line < found.line):
        return ""
    return f" ({error.context} that begins in line {begun.line + 1})"


class _Loader(yaml.SafeLoader):
    """Reads plain words as YAML 1.2 does."""


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


def _number(loader: _Loader, node: yaml.ScalarNode) -> float | Decimal:
    """A number as it is written: a decimal where a float would change its value."""
    number: float = loader.construct_yaml_float(node)
    if "inf" in node.value or "nan" in node.value:
        return number
    try:
        written = Decimal(node.value)
    except InvalidOperation:
        written = None
    if written is None or abs(written.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError("the exponent of a number is out of range")
    return number if isfinite(number) and Decimal(repr(number)) == written else written


_Loader.add_constructor("tag:yaml.org,2002:float", _number)


class _Dumper(yaml.SafeDumper):
    """Writes text that the loader reads back."""


_Dumper.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
_Dumper.add_representer(
    Decimal,
    lambda dumper, number: dumper.represent_scalar(
        f"tag:yaml.org,2002:{'float' if '.' in f'{number:f}' else 'int'}", f"{number:f}"
    ),
)


def dump(data: Any) -> str:
    """A text of one line that is read back as this data; decimals are exact."""
    text = yaml.dump(
        data, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=inf
    )
    return text.removesuffix("...\n").rstrip("\n")


def _lines(
    node: yaml.Node, at: Location, file: str, repeated: list[SpecError]
) -> Iterator[tuple[Location, int]]:
    """The line of every key. Keys that stand twice are added to `repeated`."""
    yield at, node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        _check_text(node, file)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise SpecError(file, key.start_mark.line + 1, "", "a key must be a text")
            _check_text(key, file)
            if key.value in seen:
                problem = "duplicate key"
                repeated.append(SpecError(file, key.start_mark.line + 1, key.value, problem))
            seen.add(key.value)
            yield from _lines(value, (*at, key.value), file, repeated)
            yield (*at, key.value), key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*at, index), file, repeated)


def _check_text(node: yaml.ScalarNode, file: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in node.value):
        problem = "a text holds half of a surrogate pair, which is no character"
        raise SpecError(file, node.start_mark.line + 1, "", problem)
