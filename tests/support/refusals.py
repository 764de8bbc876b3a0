"""Comparison files in tables, with what is said about each: why it is refused, or what it cautions of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

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


def recorded(tables: Iterable[Path]) -> dict[str, tuple[str, str]]:
    """The cases of some tables, by claim: a comparison file each, and what is said about it.

    A table has sections: `== CLAIM`, the first lines of all files of the section, and `--`. Behind it stand
    the rest of each file, and a line with `=> ` for each sentence of the answer.
    """
    found = {}
    for table in tables:
        for section in re.split(r"^== ", table.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, rest = section.partition("\n--\n")
            claim, *first = head.splitlines()
            cases = re.findall(r"(.*?)((?:^=> [^\n]*\n)+)", rest, re.DOTALL | re.MULTILINE)
            for number, (file, said) in enumerate(cases):
                text = "\n".join((*first, file.strip("\n")))
                found[f"{claim} {number}"] = text, said.replace("=> ", "").rstrip("\n")
    return found
