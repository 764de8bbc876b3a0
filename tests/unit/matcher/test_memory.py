"""The memory of a process is known, also where no file can be opened, and is given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtest.drain import measured
from loadtest.measuring import apart
from tests.support.marks import one_a_change
from twinstream.matcher import memory


def test_memory_is_known_where_no_file_can_be_opened_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", Path("/nowhere"))
    assert memory.resident_bytes() > 1 << 20


@pytest.mark.parametrize("order", one_a_change(["unordered", "per_key"]))
def test_memory_of_many_events_that_have_left_is_given_back(order: str) -> None:
    found = apart(measured, order, 400_000)
    assert found["mib_after"] < found["mib_with_all"] / 3, found
