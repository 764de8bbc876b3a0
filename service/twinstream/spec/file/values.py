r"""The types of values in a comparison file: field paths, exact numbers, durations, names.

Each type checks itself and says in one sentence what must be written instead. `Strict` is the base of all
mappings. If pydantic's own report would be about the inside of a union, a check comes first and raises a
`problem`, whose text is the whole message; its `key`, if any, is the member of the mapping at fault.

A field path that begins with ``$`` reaches outside the value: ``$key``, ``$timestamp``, ``$partition``,
``$headers.NAME``. A member of the value whose name begins with it is written with a backslash: ``\$oid``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from decimal import Context, Decimal
from difflib import get_close_matches
from math import inf, isfinite
from typing import Annotated, Any, ClassVar, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from typing_extensions import TypeAliasType

Location = tuple[str | int, ...]
"""The place of a value in a file: the keys and indexes that lead to it."""

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_SECONDS = 100 * 365 * 86400
_NAME = r"(?:[^.\\]|\\.)+"
SPAN = r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)"
DECIMAL = r"^[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?$"


def problem(text: str, key: Any = None) -> PydanticCustomError:
    """An error of validation whose message is `text`; `key` is the member of the mapping that is wrong."""
    return PydanticCustomError("problem", "{problem}", {"problem": text, "key": key})


def dotted(at: Location) -> str:
    """A place as messages name it."""
    return ".".join(map(str, at))


_BY_FIELD = {"where", "quantum", "tolerance", "types", "any_of"}
"""The mappings whose keys are fields of events."""


def key_of(at: Location) -> str:
    """The key of the file that names a place: that of the whole for an element of a list or a field's member.

    >>> key_of(("order", "dependent", 0, "pair", 1)), key_of(("equality", "quantum", "fare"))
    ('order.dependent.0.pair', 'equality.quantum')
    """
    return dotted(at[:-1] if isinstance(at[-1], int) or (at[-2:-1] and at[-2] in _BY_FIELD) else at)


class Breach(NamedTuple):
    """A law that a file breaks: the place of the fault, and the sentence about it."""

    at: Location
    problem: str

    @property
    def key(self) -> str:
        """The key that names the fault."""
        return key_of(self.at)


def given(value: Any) -> str:
    """A value of the file, as messages show it."""
    return json.dumps(value, default=str, ensure_ascii=False)


def nearest(name: Any, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    near = get_close_matches(str(name), list(known), n=1)
    return near[0] if near else None


class Strict(BaseModel):
    """A mapping of the file: frozen, and unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", serialize_by_alias=True, use_attribute_docstrings=True
    )

    misplaced: ClassVar[Mapping[str, str]] = {}
    """What is wrong with keys that belong to another mapping."""

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys(cls, data: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse unknown keys, together with what is wrong with the known ones."""
        known = [field.alias or name for name, field in cls.model_fields.items()]
        unknown = [key for key in data if key not in known] if isinstance(data, dict) else []
        if not unknown:
            return check(data)
        meant = {key: nearest(key, known) for key in unknown}
        hints = {key: _hint(near, known) for key, near in meant.items()}
        faults = [_fault(problem(cls.misplaced.get(key, hint), key)) for key, hint in hints.items()]
        try:
            check({key: value for key, value in data.items() if key in known})
        except ValidationError as error:
            faults += [_again(one) for one in error.errors() if not _explained(one, [*meant.values()])]
        raise ValidationError.from_exception_data(cls.__name__, faults)


def _hint(near: str | None, known: Iterable[str]) -> str:
    hint = f"did you mean `{near}`?" if near else f"known are {', '.join(sorted(known))}"
    return f"unknown key; {hint}"


def _fault(wrong: PydanticCustomError) -> InitErrorDetails:
    return {"type": wrong, "loc": (), "input": None}


def _explained(error: ErrorDetails, meant: Collection[str | None]) -> bool:
    """Whether a key is only missing because it is misspelt."""
    return error["type"] == "missing" and len(error["loc"]) == 1 and str(error["loc"][0]) in meant


def _again(error: ErrorDetails) -> InitErrorDetails:
    """An error of validation, to be raised with others."""
    context = error.get("ctx", {})
    kind = problem(context["problem"], context["key"]) if error["type"] == "problem" else error["type"]
    return {"type": kind, "loc": error["loc"], "input": error["input"], "ctx": context}


def field_path(text: str) -> str:
    """A field path as it is written. Raises ValueError."""
    if not re.fullmatch(rf"{_NAME}(?:\.{_NAME})*", text, re.DOTALL):
        raise ValueError(
            f"{text!r} is not a field path: join names by single dots, and write `\\.` for a dot in a name"
        )
    return text


def _function(name: str) -> str:
    module, colon, attribute = name.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))):
        raise ValueError(f"{given(name)} names no function; write it like `package.module:function`")
    return name


def duration(value: Any) -> timedelta:
    """A duration as a number of seconds, or with a unit: 500ms, 60s, 5m, 2h, 1d."""
    if isinstance(value, timedelta):
        return value
    text = f"{value}s" if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) else value
    match = re.fullmatch(SPAN, text) if isinstance(text, str) else None
    seconds = float(match[1]) * _UNITS[match[2]] if match else inf
    if seconds > _LONGEST_SECONDS:
        shown = value if isinstance(value, Decimal) else repr(value)
        raise ValueError(f"{shown} is not a duration; write it like 500ms, 60s, 5m, 2h or 1d")
    return timedelta(seconds=seconds)


def exact(value: Any) -> Any:
    """The decimal as it is written (0.01 is a hundredth), with one spelling for each number."""
    text = "" if isinstance(value, bool) else str(value)
    if not re.fullmatch(DECIMAL, text):
        raise ValueError(f"{given(value)} is not a number; write it like 0.01 or 1e-6")
    number = Decimal(text)
    number = number.normalize(Context(prec=len(number.as_tuple().digits)))
    return Decimal(f"{number:f}")


def _date(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    elif type(value) is date:
        return value
    raise ValueError(f"{given(value)} is not a date; write it like 2026-12-31")


def _wanted(value: Any) -> Any:
    """One value, or a list of values, to compare a field with."""
    if value == []:
        raise problem("is an empty list, which no value is in; name one or more")
    if all(map(_is_scalar, listed(value))):
        return value
    wanted = "must be a text, a number, true, false, null, or a list of these"
    raise problem(f"{wanted}, but {given(value)} was given")


def listed(value: Any) -> list[Any]:
    """A list of values, or one value as a list."""
    return value if isinstance(value, list) else [value]


def _no_flag(value: Any) -> Any:
    """Refuse a boolean where a number is expected: True is not 1, as in a record."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number, but {given(value)} was given")
    return value


def _is_scalar(value: Any) -> bool:
    plain = value is None or isinstance(value, (str, int, Decimal))
    return plain or (isinstance(value, float) and isfinite(value))


def duration_text(value: timedelta) -> str:
    """A duration as a file says it.

    >>> duration_text(timedelta(minutes=5)), duration_text(timedelta(seconds=90.5))
    ('5m', '90500ms')
    """
    if not value:
        return "0s"
    for unit, seconds in sorted(_UNITS.items(), key=lambda unit: -unit[1]):
        if not value % timedelta(seconds=seconds):
            return f"{value // timedelta(seconds=seconds)}{unit}"
    return f"{value / timedelta(milliseconds=1):.3f}ms"


def number_or_text(pattern: str, kind: str = "number", **bound: int) -> WithJsonSchema:
    """The schema of a number within a bound, or of a text with a pattern."""
    return WithJsonSchema({"anyOf": [{"type": kind, **bound}, {"type": "string", "pattern": pattern}]})


Duration = Annotated[
    timedelta,
    BeforeValidator(duration),
    PlainSerializer(duration_text, when_used="json"),
    number_or_text(f"^{SPAN}$", minimum=0),
]
_BYTES = r"\s*[0-9]+(\.[0-9]+)?\s*([KMGTPE]i?)?[Bb]?\s*"
_MOST_BYTES = 2**63 - 1


def _size(value: Any) -> Any:
    """A number of bytes; pydantic reads only the beginning of a text."""
    wrong = isinstance(value, str) and re.fullmatch(_BYTES, value, re.IGNORECASE) is None
    if wrong or (isinstance(value, int | Decimal) and value > _MOST_BYTES):
        raise PydanticCustomError("byte_size", "must be a number of bytes")
    return _no_flag(value)


def is_http_address(text: str) -> bool:
    """Whether a text can be the address of a server of HTTP, to which a path is added."""
    try:
        parts = urlsplit(text)
        whole = text.isprintable() and not {*text} & {*" ?#"}
        return whole and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port, or an unclosed bracket
        return False


def _address(address: str) -> str:
    if not is_http_address(address) or "," in address or not address.startswith("http"):
        raise ValueError("must be the address of a schema registry, such as https://registry:8081")
    login = urlsplit(address)
    if (login.username is None) != (login.password is None):
        raise ValueError("needs a user and a password: https://user:password@registry:8081")
    return address


Address = Annotated[
    str, AfterValidator(_address), WithJsonSchema({"type": "string", "pattern": r"^https?://\S+$"})
]
"""The address of a schema registry. What it is not is not repeated: it may hold a password."""
Bytes = Annotated[
    ByteSize,
    BeforeValidator(_size),
    number_or_text(f"^{_BYTES}$", "integer", minimum=0),
]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
FieldPath = TypeAliasType(
    "FieldPath",
    Annotated[
        str,
        Field(min_length=1),
        AfterValidator(field_path),
        WithJsonSchema(
            {
                "type": "string",
                "pattern": rf"^{_NAME}(\.{_NAME})*$",
                "description": "A field: names joined by dots, with `\\.` for a dot inside a name. `$key`, "
                "`$timestamp`, `$partition` and `$headers.NAME` may stand in kinds, order and identity.",
            }
        ),
    ],
)
KindName = Annotated[str, Field(min_length=1)]
FunctionName = Annotated[str, AfterValidator(_function)]
"""`package.module:function`"""
Flag = Annotated[bool, Field(strict=True)]
"""True or false as in YAML and JSON: `NO` is a text, and 1 a number."""
NO_FLAG = BeforeValidator(_no_flag)
"""Comes after the bounds of a number, which the schema would not contain otherwise."""
Finite = Annotated[Annotated[float, Field(allow_inf_nan=False)] | Decimal, WithJsonSchema({"type": "number"})]
"""A finite number: a decimal where a float would change its value."""
Above0 = Annotated[Decimal, BeforeValidator(exact), Field(gt=0), number_or_text(DECIMAL, exclusiveMinimum=0)]
AtLeast0 = Annotated[Decimal, BeforeValidator(exact), Field(ge=0), number_or_text(DECIMAL, minimum=0)]
Date = Annotated[date, BeforeValidator(_date)]
Scalar = str | int | Finite | bool | None
WantedValues = Annotated[Scalar | list[Scalar], BeforeValidator(_wanted)]
