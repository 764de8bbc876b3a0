"""The rooms of the package, and the page that lists them."""

from __future__ import annotations

from pathlib import Path

from tests.modules import first_line, page, rooms


def test_the_page_of_modules_is_what_the_modules_say() -> None:
    assert Path("docs/modules.md").read_text() == page(), "run `make pages`"


def test_every_module_says_in_one_line_what_it_is() -> None:
    said = {module: first_line(module) for _, modules in rooms() for module in modules}
    assert not {module: line for module, line in said.items() if not line.endswith((".", "?"))}


def test_no_room_has_more_than_twelve_modules() -> None:
    sizes = {
        room: len([module for module in modules if module.stem != "__init__"]) for room, modules in rooms()
    }
    assert not {room: size for room, size in sizes.items() if size > 12}
