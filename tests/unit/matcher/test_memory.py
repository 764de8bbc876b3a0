"""The memory of a process is known, also where no file can be opened any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.matcher import memory


def test_memory_is_known_where_no_file_can_be_opened_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", Path("/nowhere"))
    assert memory.resident_bytes() > 1 << 20
