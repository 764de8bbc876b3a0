from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.adapters.credentials import read_secret
from twinstream.errors import SettingsError


def test_a_secret_is_what_the_file_holds_without_white_space_and_one_that_can_be_guessed_is_refused(
    tmp_path: Path,
) -> None:
    file = tmp_path / "key"
    file.write_text("  0123456789-0123456789\n")
    assert read_secret(str(file)) == b"0123456789-0123456789"
    file.write_text("hunter2\n")
    with pytest.raises(
        SettingsError, match="holds 7 characters, which can be guessed: write at least 20"
    ) as told:
        read_secret(str(file))
    assert "hunter2" not in str(told.value)
    with pytest.raises(SettingsError, match="none cannot be read: No such file"):
        read_secret(str(tmp_path / "none"))
