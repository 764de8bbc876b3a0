"""Pages in Markdown: their sections by anchor, and where they link to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections(page: Path) -> dict[str, str]:
    """The text below each heading of a page, by anchor; blocks of code are left out."""
    parts = re.split(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    seen: Counter[str] = Counter()
    found = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        anchor = slug(heading)
        found[f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor] = text
        seen[anchor] += 1
    return found


def links(page: Path) -> list[tuple[str, str]]:
    """Where a page links to, but for other hosts: a path from its folder, empty for itself, and an anchor.

    >>> from tempfile import NamedTemporaryFile
    >>> lines = "# One", "[a](page.md#one) [b](#two) `[c](no.md)`", "```", "# Two", "[d](gone.md)", "```"
    >>> with NamedTemporaryFile(suffix=".md") as file:
    ...     page = Path(file.name)
    ...     _ = page.write_text("\\n".join(lines))
    ...     links(page), list(sections(page))
    ([('page.md', 'one'), ('', 'two')], ['one'])
    """
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [target for target in targets if not re.match(r"\w+:", target)]
    return [(target.partition("#")[0], target.partition("#")[2]) for target in local]
