"""Every link of the documentation leads somewhere, and every page of it is found from the README."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import links, sections

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    *DOCS,
    ROOT / "deploy" / "pipelines" / "README.md",
    ROOT / "tests/README.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_to_a_file_and_to_a_section_of_it(page: Path) -> None:
    broken = []
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in sections(target)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {(README.parent / path).resolve() for path, _ in links(README) if path}
    assert [page.name for page in DOCS if page not in linked] == []


def test_a_link_that_leads_nowhere_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](page.md#one) [b](#two) `[c](no.md)`\n```\n# Two\n[d](gone.md)\n```\n")
    assert links(page) == [("page.md", "one"), ("", "two")]
    assert set(sections(page)) == {"one"}
