"""Checks request parameters: none may be repeated, and errors are explained in our own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError

REPEATABLE = {"scope", "field"}
"""Parameters that are all applied at once."""
_TIME = "must be a time with its zone, as 2026-03-01T14:02:00Z"
_TOLD = {
    "extra_forbidden": "is not known here",
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "json_invalid": "is no JSON: {error}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "string_too_short": "must have {min_length} characters or more",
    "string_too_long": "must have {max_length} characters or fewer",
    "literal_error": "must be {expected}",
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "timezone_aware": _TIME,
}
_PATTERNS = {
    "scope": "must be FIELD=VALUE",
    "cursor": "must be the `next` of the page before",
    "reason": "must not be blank",
    "by": "must not be blank",
    "idempotency-key": "must be 8 to 64 letters, digits, `-` or `_`",
}


async def said_once(request: Request) -> None:
    """Refuse a parameter that is given several times: it would be a guess which one is meant.

    Raises RequestValidationError.
    """
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if count > 1 and name not in REPEATABLE:
            told = f"stands {count} times; say it once"
            raise RequestValidationError([{"loc": ("query", name), "msg": told, "type": "value_error"}])


def told(error: dict[str, Any]) -> str:
    """The error of a parameter or a member, as the rest of a sentence."""
    kind, place = error["type"], error["loc"]
    if kind == "string_pattern_mismatch":
        return next((_PATTERNS[part] for part in place if part in _PATTERNS), str(error["msg"]))
    if kind == "string_too_short" and error["ctx"]["min_length"] == 1:
        return "must not be empty"
    if kind in _TOLD:
        return _TOLD[kind].format(**error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Value error, ")


def meant(errors: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The errors, without those of the other form, if a member may be a word or an object."""
    unlike = [error for error in errors if _another_form(error)]
    return errors if len(unlike) == len(errors) else [error for error in errors if error not in unlike]


def _another_form(error: dict[str, Any]) -> bool:
    """Whether an error comes from trying a form that the value was not meant to have."""
    form = "[" in str(error["loc"][-1])
    return form and (error["type"] == "literal_error") is isinstance(error["input"], dict)
