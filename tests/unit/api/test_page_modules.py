"""The modules of the page stand in rooms, and import one way: each room only rooms named before it."""

from __future__ import annotations

import re
from pathlib import Path

from twinstream import errors

SCRIPTS = Path(errors.__file__).parent / "api" / "static" / "js"
ROOMS = ("base", "state", "differences", "panels", "frame", "")
"""From the lowest to the highest; the last one has the scripts of the three pages, and the views."""
MOST = 12
_IMPORTED = re.compile(r'\bfrom "(\.[^"]+)"')


def room_of(module: Path) -> str:
    return module.relative_to(SCRIPTS).parent.as_posix().strip(".")


def test_the_page_imports_one_way() -> None:
    upwards = [
        f"{module.relative_to(SCRIPTS)} imports {name}"
        for module in SCRIPTS.rglob("*.js")
        for name in _IMPORTED.findall(module.read_text(encoding="utf-8"))
        if ROOMS.index(room_of((module.parent / name).resolve())) > ROOMS.index(room_of(module))
    ]
    assert not upwards


def test_a_room_of_the_page_is_seen_at_one_look() -> None:
    sizes = {room: len(list((SCRIPTS / room).glob("*.js"))) for room in ROOMS}
    assert min(sizes.values()) > 1
    assert max(sizes.values()) <= MOST
