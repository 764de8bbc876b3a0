"""Writes a verdict receipt as Markdown, for a ticket and for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from math import floor

from twinstream.explain.checks import check_lines
from twinstream.explain.coverage import LOOKED_AT
from twinstream.explain.picture import printable
from twinstream.explain.reason import found_text
from twinstream.explain.receipts.exclusions import Exclusion
from twinstream.explain.receipts.receipt import Compared, KnownUse, Receipt, Stretch
from twinstream.status.common import Accounts
from twinstream.status.comparison import KindCoverage
from twinstream.status.groups import Group

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
PARTITIONS_SHOWN = 16


def markdown(receipt: Receipt) -> str:
    """The receipt as Markdown text, with tables that GitHub, GitLab and Jira's importers can read.

    What a terminal might act upon is shown as an escape, whoever wrote it.
    """
    parts = ["\n".join(_head(receipt))]
    parts += ["\n".join((f"## {title}", "", *lines(receipt))) for title, lines in _PARTS.items()]
    return "\n".join(map(printable, "\n\n".join(parts).split("\n"))) + "\n"


def _head(receipt: Receipt) -> Iterator[str]:
    yield f"# Verdict receipt: {_plain(receipt.comparison)}"
    yield ""
    yield f"**{receipt.verdict}**: {_sentence(receipt.reason)}"
    yield ""
    gate, health, asked = receipt.gate, receipt.health, receipt.range
    rows = [
        ("created", f"{_time(receipt.made_at)} by {receipt.made_by}"),
        ("comparison file", f"digest `{receipt.spec_digest}`"),
        ("compared", _plain(receipt.order)),
        ("gate", "" if gate is None else f"**{gate.answer}**: {_sentence(gate.reason)}"),
        ("health", "" if health is None else " ".join((health.status, *map(_sentence, health.reasons)))),
        ("running since", _time(receipt.started_at)),
        ("verdict since", _time(receipt.since)),
        ("verified through", _time(receipt.verified_through, by=", by Kafka's time")),
    ]
    if asked is not None:
        rows.append(("range", f"from {asked.begin} to {asked.end}, slack {asked.slack_seconds:g} s"))
    yield from _table(("", ""), (row for row in rows if row[1]))


def _compared(receipt: Receipt) -> Iterator[str]:
    sides = receipt.sides.reference, receipt.sides.candidate
    rows = [
        ("topic", *(_code(side.topic) for side in sides)),
        ("version", *(_plain(side.version or "not named") for side in sides)),
    ]
    if any(side.partitions for side in sides):
        rows.append(("offsets", *map(_offsets, sides)))
    if any(side.beside for side in sides):
        rows.append(("also read, for partners", *(f"{side.beside:,}" for side in sides)))
    rows += [
        (name.replace("_", " "), *(f"{getattr(side.accounts, name):,}" for side in sides))
        for name in Accounts.model_fields
        if name != "superseded" or any(side.accounts.superseded for side in sides)
    ]
    yield from _table(("", "reference", "candidate"), rows)


def _differences(receipt: Receipt) -> Iterator[str]:
    found = receipt.divergences
    named = found_text(found.by_kind, receipt.closed_divergences.total)
    explained = receipt.sides.reference.accounts.explained + receipt.sides.candidate.accounts.explained
    known = f"Known differences explain {explained:,} events."
    yield f"{found.total:,} found{f': {named}' if named else ''}. {known}"
    if receipt.suspicions:
        one = receipt.suspicions == 1
        overdue = "1 event is overdue" if one else f"{receipt.suspicions:,} events are overdue"
        yield f"{overdue}, and may still have {'its partner' if one else 'their partners'}."
    if receipt.range is not None and receipt.range.undecided:
        yield f"{receipt.range.undecided:,} more are undecided: their partners may be outside the range."
    if receipt.groups:
        yield ""
        yield from map(_group, receipt.groups)
    if receipt.known_differences:
        yield ""
        head = ("known difference", "explains", "share of pairs", "ceiling", "owner", "until")
        yield from _table(head, map(_known, receipt.known_differences))
    if receipt.checks:
        yield ""
        yield from (f"- {_plain(line)}" for line in check_lines(receipt.checks))


def _group(group: Group) -> str:
    examples = f"For example {', '.join(map(_code, group.examples))}." if group.examples else ""
    return f"- {' '.join(filter(None, (_sentence(group.text), _sentence(group.cause or ''), examples)))}"


def _known(rule: KnownUse) -> tuple[str, ...]:
    hits = f"{rule.hits:,}" if rule.hits else "nothing"
    share = "-" if rule.share is None else f"{rule.share:.4g}"
    owner = _plain(_joined(rule.owner, rule.ticket))
    return _plain(rule.id), hits, share, rule.ceiling, owner, f"{rule.expires}"


def _coverage(receipt: Receipt) -> Iterator[str]:
    coverage = receipt.coverage
    asked = f" of {coverage.matched_required:,} required" if receipt.source == "service" else ""
    yield f"- {coverage.matched:,} {'pair' if coverage.matched == 1 else 'pairs'} matched{asked}"
    if receipt.source == "service":
        yield f"- {floor(coverage.seconds):,} s of Kafka time, of {coverage.seconds_required:,.6g} s required"
    yield from (f"- lacking: {_sentence(text)}" for text in coverage.missing)
    sampled = sum(kind.sampled for kind in coverage.kinds.values())
    if coverage.keys is not None:
        some = "at least " if sampled < coverage.events else ""
        yield f"- keys: {'more than ' if coverage.more_keys else some}{coverage.keys:,}"
    yield f"- {LOOKED_AT} {sampled:,} of {coverage.events:,} events of both sides"
    untested = (note for note in coverage.notes if not note.startswith(LOOKED_AT))
    yield from (f"- not tested: {_sentence(note)}" for note in untested)
    yield ""
    rows = [_kind(name, kind, coverage.matched_by_kind.get(name, 0)) for name, kind in coverage.kinds.items()]
    yield from _table(("kind", "matched", "varied", "constant", "always null"), rows)


def _kind(name: str, kind: KindCoverage, matched: int) -> tuple[str, ...]:
    return (_code(name), f"{matched:,}", *map(_codes, (kind.varied, kind.constant, kind.always_null)))


def _left_out(receipt: Receipt) -> Iterator[str]:
    yield from _table(("by", "what", "hides", "owner", "until"), map(_exclusion, receipt.exclusions))


def _exclusion(one: Exclusion) -> tuple[str, ...]:
    until = _joined(one.expires, one.ceiling and f"ceiling {one.ceiling}")
    owner = _plain(_joined(one.owner, one.ticket))
    return _code(one.key), _plain(one.name), _plain(one.hides), owner or "not named", until or "-"


def _unchecked(receipt: Receipt) -> Iterator[str]:
    if not receipt.hole_count and not receipt.reset_count:
        anew = ", and the comparison was never reset" if receipt.source == "service" else ""
        doubt = (
            ": the reason at the top says why it is INCONCLUSIVE" if receipt.verdict == "INCONCLUSIVE" else ""
        )
        yield f"No hole is known{anew or doubt}."
    for hole in receipt.holes:
        at = hole.position
        where = "" if at is None else f" ({_plain(at.topic)}, partition {at.partition}, offset {at.offset})"
        seen = "" if hole.seen_at is None else f", seen {_time(hole.seen_at)}"
        yield f"- hole{seen}: {_sentence(hole.reason)}{where}"
    if receipt.hole_count > len(receipt.holes):
        yield f"- and {receipt.hole_count - len(receipt.holes):,} more holes"
    for reset in receipt.resets:
        yield (
            f"- reset {_time(reset.at)} by {_plain(reset.by)}, when it was {reset.before.verdict}: "
            f"{_plain(reset.reason)}"
        )
    if receipt.reset_count > len(receipt.resets):
        yield f"- and {receipt.reset_count - len(receipt.resets):,} earlier resets"


def _unproven(receipt: Receipt) -> Iterator[str]:
    yield from (f"- {_plain(text)}" for text in receipt.unproven)


_PARTS: Mapping[str, Callable[[Receipt], Iterator[str]]] = {
    "What was compared": _compared,
    "Differences": _differences,
    "Evidence and coverage": _coverage,
    "What is not compared": _left_out,
    "What was not checked": _unchecked,
    "What this verdict does not prove": _unproven,
}
"""The parts of a receipt, each under its heading."""


# -- parts -------------------------------------------------------------------------------------------------


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _offsets(side: Compared) -> str:
    parts = [_stretch(number, part) for number, part in side.partitions.items()]
    more = len(parts) - PARTITIONS_SHOWN
    return "; ".join(parts[:PARTITIONS_SHOWN]) + (f"; and {more} more partitions" if more > 0 else "")


def _stretch(number: str, part: Stretch) -> str:
    """The offsets of a partition; the last one is `end` - 1."""
    begin = "" if part.first is None else f"from {part.first:,} "
    verified = "" if part.verified_up_to is None else f" (verified up to {part.verified_up_to:,})"
    return f"{number}: {begin}up to {part.end:,}{verified}"


def _joined(*parts: object) -> str:
    """The parts that there are, as one text."""
    return ", ".join(f"{part}" for part in parts if part)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(map(_code, names)) or "-"


def _code(text: str) -> str:
    r"""A name as code. A pipe would end the cell, and a backtick the code, so such names are plain text.

    >>> print(_code("meta.host"), _code("a|b"))
    `meta.host` a\|b
    """
    return _plain(text) if set(text) & set("`|\n\r") else f"`{text}`"


def _plain(text: str) -> str:
    r"""A text shown literally, whatever it holds: the author of the file chose the names.

    >>> print(_plain("a|b <script> *c*\nd"))
    a\|b \<script\> \*c\* d
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _sentence(text: str) -> str:
    r"""One of our own sentences, with names as code, and everything else shown literally.

    >>> print(_sentence("`a_b` never varied, *never*"))
    `a_b` never varied, \*never\*
    """
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0 or any("|" in part for part in parts[1::2]):
        return _plain(text)
    return "`".join(part if place % 2 else _SPECIAL.sub(r"\\\1", part) for place, part in enumerate(parts))


def _time(moment: datetime | None, by: str = "") -> str:
    """A time, and by which clock it is told; an empty text for none."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC{by}"
