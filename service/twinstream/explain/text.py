"""Formats an answer of `check`, or one divergence, as plain text of a given width.

The command line prints this text, in colour; the message of a failing test contains it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from twinstream.explain.checks import check_lines
from twinstream.explain.picture import UNICODE, Strokes, diagram, printable, value_text
from twinstream.explain.reason import kinds_text
from twinstream.status.comparison import CheckStatus

SHOWN = 5
"""Divergences described one by one: those who want more want them as data."""
PARTS_SHOWN = 8


def tell_answer(
    answer: Mapping[str, Any], width: int = 100, marks: Strokes = UNICODE, *, wrapped: bool = True
) -> str:
    """Verdict, reason, counts, and the first divergences with their pictures.

    `answer` is the object of ``check --json``. Without `wrapped` a sentence stays on one line, however long.
    """
    return "\n".join(_answer(answer, width, marks, wrapped))


def tell_divergence(
    report: Mapping[str, Any], width: int = 100, marks: Strokes = UNICODE, *, wrapped: bool = True
) -> str:
    """One divergence: its kind, its proof, and the picture."""
    picture = (f"   {line}".rstrip() for line in diagram(report, width - 3, marks))
    sentences = _sentences(report["text"], width, "   ", wrapped)
    return "\n".join((heading(report, width, marks), *sentences, "", *picture))


def heading(report: Mapping[str, Any], width: int, marks: Strokes = UNICODE) -> str:
    """The kind of a divergence, its title or else its scope, and its id.

    >>> heading({"kind": "missing", "title": "ride a · taxi 7", "scope": {"taxi": 7}, "id": "5f0c"}, 80)
    'missing · ride a · taxi 7 · id 5f0c'

    A divergence covered by a known difference says so.
    """
    dot = " · " if marks is UNICODE else " - "
    scope = ", ".join(
        f"{printable(field)} {value_text(value, width // 3, (), marks.more)}"
        for field, value in report["scope"].items()
    )
    title = printable(report.get("title", ""))  # That of an older version has none.
    known = report.get("explained")  # A recorded answer holds only those that count.
    told = title.replace(" · ", dot).replace("→", marks.arrow).replace("…", marks.more) or scope
    parts = (report["kind"], told, f"id {report['id']}", known and f"explained by {printable(known)}")
    return dot.join(part for part in parts if part)


def _answer(answer: Mapping[str, Any], width: int, marks: Strokes, wrapped: bool) -> Iterator[str]:
    events, unmatched, divergences = answer["events"], answer["unmatched"], answer["divergences"]
    yield from _sentences(f"{answer['verdict']} {answer['reason']}", width, "", wrapped)
    yield (
        f"events: reference {events['reference']:,}, candidate {events['candidate']:,}; "
        f"matched {answer['matched']:,} {'pair' if answer['matched'] == 1 else 'pairs'}; "
        f"unmatched: reference {unmatched['reference']:,}, candidate {unmatched['candidate']:,}"
        f"{superseded_text(answer)}"
    )
    ranges = ranges_text(answer["ranges"]) if "ranges" in answer else ""
    for text in (ranges, explained_text(answer), untested_text(answer)):
        if text:
            yield from _sentences(text, width, "", wrapped)
    for text in checks_lines(answer):
        yield from _sentences(text, width, "", wrapped)
    if not divergences["total"]:
        return
    yield f"divergences: {kinds_text(divergences['by_kind'])}"
    if divergences["total"] > SHOWN:
        for text in group_lines(answer):
            yield from _sentences(text, width, "", wrapped)
    shown = answer["examples"][:SHOWN]
    for number, report in enumerate(shown, 1):
        yield ""
        yield f"{number}. {tell_divergence(report, width, marks, wrapped=wrapped)}"
    if (more := divergences["total"] - len(shown)) > 0:
        yield ""
        yield f"and {more:,} more; --json has the first {len(answer['examples'])}"


def group_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The sentences on each group of the differences of an answer or a status; none of an older version.

    >>> list(group_lines({"groups": [{"text": "12 changed, all in `fare`.", "cause": None}]}))
    ['- 12 changed, all in `fare`.']
    """
    for member, name in (("groups", ""), ("provisional_groups", "provisional: ")):
        for group in answer.get(member, ()):
            yield f"- {name}{printable(' '.join(filter(None, (group['text'], group['cause']))))}"


def superseded_text(answer: Mapping[str, Any]) -> str:
    """How many rows of each side a later row of their key has replaced; empty where none replaces another.

    >>> superseded_text({"accounts": {"reference": {"superseded": 2}, "candidate": {"superseded": 0}}})
    '; superseded: reference 2, candidate 0'
    """
    accounts = answer.get("accounts", {})
    counts = [
        f"{side} {account['superseded']:,}" for side, account in accounts.items() if "superseded" in account
    ]
    return f"; superseded: {', '.join(counts)}" if counts else ""


def explained_text(answer: Mapping[str, Any]) -> str:
    """How many differences each rule has explained; an empty text if none.

    >>> explained_text({"explained_by_rule": {"PRICE-17": 1200, "LATE": 0}})
    'explained by known differences: 1,200 by PRICE-17'
    """
    by_rule = answer.get("explained_by_rule", {})  # That of an older version has none.
    named = ", ".join(f"{count:,} by {rule}" for rule, count in by_rule.items() if count)
    return f"explained by known differences: {named}" if named else ""


def untested_text(answer: Mapping[str, Any]) -> str:
    """What an answer or a status does not rest on; an empty text if there is nothing to say."""
    untested = answer.get("coverage", {}).get("notes")
    return f"not tested: {'; '.join(untested)}" if untested else ""


def checks_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """A line for each check and side of an answer or a status; none in that of an older version."""
    return check_lines([CheckStatus.model_validate(check) for check in answer.get("checks", ())])


def ranges_text(ranges: Mapping[str, Any]) -> str:
    """The ranges of two topics that were compared.

    >>> part = {"from": 3, "to": 5, "read_from": 3, "read_to": 5}
    >>> side = {"topic": "rides", "partitions": {"0": part}, "records": 2, "records_beside": 0}
    >>> ranges_text({"from": "earliest", "to": "latest", "reference": side, "candidate": side})
    'compared: from earliest to latest; reference rides 0:3-5, candidate rides 0:3-5'
    """
    sides = {name: ranges[name] for name in ("reference", "candidate")}
    named = ", ".join(f"{name} {side['topic']} {_parts(side)}" for name, side in sides.items())
    text = f"compared: from {ranges['from']} to {ranges['to']}; {named}"
    if any(side["records_beside"] for side in sides.values()):
        beside = " and ".join(f"{side['records_beside']:,}" for side in sides.values())
        text += (
            f"; {beside} records within {ranges['slack_seconds']:g} s around it were also read, for partners"
        )
    return text


def _parts(side: Mapping[str, Any]) -> str:
    parts = [f"{number}:{part['from']}-{part['to']}" for number, part in side["partitions"].items()]
    if len(parts) > PARTS_SHOWN:
        return f"{' '.join(parts[:PARTS_SHOWN])} and {len(parts) - PARTS_SHOWN} more"
    return " ".join(parts)


def _sentences(text: str, width: int, indent: str, wrapped: bool) -> list[str]:
    line = printable(text)
    if not wrapped:
        return [indent + line]
    return textwrap.wrap(line, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
