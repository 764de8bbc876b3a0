"""Comparison files in tables, with what is said about each: why it is refused, or what it cautions of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from twinstream.errors import SpecError
from twinstream.spec.load import loads

HEAD = """\
version: 1
name: ads
reference: {topic: ads.reference}
candidate: {topic: ads.candidate}
"""
"""The first four lines of a comparison file."""


def refusal(text: str) -> str:
    """The sentence that is said about a file named ``ads.yaml``."""
    with pytest.raises(SpecError) as caught:
        loads(text, "ads.yaml")
    return str(caught.value)


def answer(text: str) -> str:
    """What is said about a file named ``ads.yaml``: `taken`, or the sentence that refuses it."""
    try:
        loads(text, "ads.yaml")
    except SpecError as error:
        return str(error)
    return "taken"


class Recorded(NamedTuple):
    """A comparison file, what is said about it, and whether the schema takes it."""

    text: str
    said: str
    fits: bool


def recorded(tables: Iterable[Path]) -> dict[str, Recorded]:
    """The cases of some tables, by claim.

    A table has sections: `== CLAIM`, the first lines of all files of the section, and `--`. Behind it stand
    the rest of each file, and a line for each sentence of the answer. It begins with `=> `, or with `~> `
    where the schema takes a file that is refused.
    """
    found = {}
    for table in tables:
        for section in re.split(r"^== ", table.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, rest = section.partition("\n--\n")
            claim, *first = head.splitlines()
            cases = re.findall(r"(.*?)((?:^[=~]> [^\n]*\n)+)", rest, re.DOTALL | re.MULTILINE)
            for number, (file, answer) in enumerate(cases):
                text = "\n".join((*first, file.strip("\n")))
                said = re.sub(r"^[=~]> ", "", answer.rstrip("\n"), flags=re.MULTILINE)
                found[f"{claim} {number}"] = Recorded(text, said, said == "taken" or answer.startswith("~"))
    return found
