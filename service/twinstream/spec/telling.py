"""An answer of `check`, or one divergence, told to people: plain text of a given width.

The same text is printed by the command line, which adds colour, and stands in the message of a failing test.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from twinstream.spec.diagram import UNICODE, Marks, diagram, printable, value_text

SHOWN = 5
"""Divergences told one by one: whoever wants more wants them as data."""


def tell_answer(
    answer: Mapping[str, Any], width: int = 100, marks: Marks = UNICODE, *, wrapped: bool = True
) -> str:
    """Verdict, reason, counts, and the first divergences with their pictures.

    `answer` is the object of ``check --json``. Without `wrapped` a sentence stays on one line, however long.
    """
    return "\n".join(_answer(answer, width, marks, wrapped))


def tell_divergence(
    report: Mapping[str, Any], width: int = 100, marks: Marks = UNICODE, *, wrapped: bool = True
) -> str:
    """One divergence: what it is, what it proves, and the picture."""
    return "\n".join((heading(report, width, marks), *_body(report, width, marks, wrapped)))


def heading(report: Mapping[str, Any], width: int, marks: Marks = UNICODE) -> str:
    """The kind of a divergence, where it lies, and its id.

    >>> heading({"kind": "missing", "scope": {"taxi": 7}, "id": "5f0c"}, 80)
    'missing · taxi 7 · id 5f0c'
    """
    dot = " · " if marks is UNICODE else " - "
    scope = ", ".join(
        f"{printable(field)} {value_text(value, width // 3, (), marks.more)}"
        for field, value in report["scope"].items()
    )
    return dot.join(part for part in (report["kind"], scope, f"id {report['id']}") if part)


def _answer(answer: Mapping[str, Any], width: int, marks: Marks, wrapped: bool) -> Iterator[str]:
    events, unmatched, divergences = answer["events"], answer["unmatched"], answer["divergences"]
    yield from _sentences(f"{answer['verdict']} {answer['reason']}", width, "", wrapped)
    yield (
        f"events: reference {events['reference']:,}, candidate {events['candidate']:,}; "
        f"matched {answer['matched']:,} {_plural('pair', answer['matched'])}; "
        f"unmatched: reference {unmatched['reference']:,}, candidate {unmatched['candidate']:,}"
    )
    if not divergences["total"]:
        return
    named = ", ".join(f"{count:,} {kind}" for kind, count in divergences["by_kind"].items() if count)
    yield f"divergences: {named}"
    shown = answer["examples"][:SHOWN]
    for number, report in enumerate(shown, 1):
        yield ""
        yield f"{number}. {heading(report, width, marks)}"
        yield from _body(report, width, marks, wrapped)
    if divergences["total"] > len(shown):
        yield ""
        more = divergences["total"] - len(shown)
        yield f"and {more:,} more; the data (--json) have the first {len(answer['examples'])}"


def _body(report: Mapping[str, Any], width: int, marks: Marks, wrapped: bool) -> Iterator[str]:
    yield from _sentences(report["text"], width, "   ", wrapped)
    yield ""
    yield from (f"   {line}".rstrip() for line in diagram(report, width - 3, marks))


def _sentences(text: str, width: int, indent: str, wrapped: bool) -> list[str]:
    line = printable(text)
    if not wrapped:
        return [indent + line]
    return textwrap.wrap(line, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
