from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.adapters.credentials import read_secret
from twinstream.errors import SettingsError


def test_the_secret_is_what_the_file_holds_without_white_space_around_it(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("  0123456789-0123456789\n")
    assert read_secret(str(file)) == b"0123456789-0123456789"


def test_a_secret_that_can_be_guessed_is_refused_and_not_told(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("hunter2\n")
    with pytest.raises(
        SettingsError, match="holds 7 characters, which can be guessed: write at least 20"
    ) as told:
        read_secret(str(file))
    assert "hunter2" not in str(told.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="none cannot be read: No such file"):
        read_secret(str(tmp_path / "none"))
