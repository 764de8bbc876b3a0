"""Writes a calibration as the proposed file, and as text for people.

The file is the starting file with the proposals in it, each under a comment that names its evidence and the
differences that it hides. Comments of the starting file are not kept.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from twinstream.calibration.fields import Left
from twinstream.calibration.proposals import Proposal, plain
from twinstream.calibration.search import Calibration
from twinstream.explain.picture import printable, value_text
from twinstream.spec.file.paths import Path, holds
from twinstream.spec.file.source import dump

WIDTH = 100
SHOWN = 3
"""At most so many places of an unexplained difference are named."""


def file_text(found: Calibration) -> str:
    """The proposed file: YAML with the same meaning as its draft."""
    head = ["Proposed by `twinstream calibrate` from two runs of one version.", found.reason]
    if found.named_by:
        head.append(f"Events were paired by {', '.join(found.named_by)}.")
    lines = [line for sentence in head for line in _comment(sentence, "")]
    return "\n".join([*lines, *_mapping(found.draft.data, (), found.draft.proposals)]) + "\n"


def _mapping(data: Mapping[str, Any], at: Path, proposals: Sequence[Proposal]) -> Iterator[str]:
    """The lines of a mapping; a value with a proposal inside is written out, others on one line each."""
    indent = "  " * len(at)
    for key, value in data.items():
        here = (*at, key)
        for proposal in proposals:
            if proposal.at == here:
                yield from _proposal(proposal, indent)
        if isinstance(value, Mapping) and (_inside(here, proposals) or any(map(_nested, value.values()))):
            yield f"{indent}{dump(key)}:"
            yield from _mapping(value, here, proposals)
        else:
            yield f"{indent}{dump(key)}: {dump(value)}"


def _inside(at: Path, proposals: Sequence[Proposal]) -> bool:
    return any(holds(at, proposal.at) and proposal.at != at for proposal in proposals)


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) > 1


def _proposal(proposal: Proposal, indent: str) -> Iterator[str]:
    name = f"{proposal.field}: " if proposal.field else ""
    yield from _comment(f"{name}{proposal.evidence}.", indent)
    yield from _comment(f"Hides: {proposal.hides}.", indent, "  ")


def _comment(text: str, indent: str, more: str = "") -> list[str]:
    start = f"{indent}# {more}"
    return textwrap.wrap(
        printable(text), WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def summary(found: Calibration) -> str:
    """The findings, for people: the proposals with reasons, and the differences that no rule explains."""
    return "\n".join(map(printable, _summary(found)))


def _summary(found: Calibration) -> Iterator[str]:
    yield f"{found.result.upper()} {found.reason}"
    if found.result == "undecided":
        return
    named = f", by {', '.join(found.named_by)}" if found.named_by else ""
    beyond = f"; {found.beyond:,} near the cut left out" if found.beyond else ""
    yield f"paired: {found.pairs:,} of each run{named}{beyond}"
    for proposal in found.draft.proposals:
        value = "" if proposal.value is None else f" {value_text(plain(proposal.value), 60)}"
        name = f" {proposal.field}" if proposal.field else ""
        yield ""
        yield f"{proposal.key}{name}{value}"
        yield f"   why:   {proposal.evidence}"
        yield f"   hides: {proposal.hides}"
    for one in found.unexplained:
        yield ""
        yield f"{one.field} differed in {one.differed:,} of {one.seen:,} pairs, and {_fate(one)}"
        yield f"   why:   {one.why}"
        if one.places:
            yield f"   where: {_where(one.places)}"


def _fate(left: Left) -> str:
    if not left.hidden:
        return "stays compared"
    if left.hidden == len(left.places):
        return "the proposed file hides it"
    return f"the proposed file hides {left.hidden:,} of these differences"


def _where(places: Sequence[tuple[int, int]]) -> str:
    """The first places, as numbers of events counted from 1."""
    shown = [f"event {i + 1:,} of the reference, {j + 1:,} of the candidate" for i, j in places[:SHOWN]]
    more = [f"{len(places) - SHOWN:,} more"] if len(places) > SHOWN else []
    return "; ".join([*shown, *more])
