"""Tokens: what a line of their file may be, and that nothing ever tells one."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
import structlog

from twinstream.access import Holder, Tokens, read_tokens
from twinstream.adapters.credentials import TokenFile
from twinstream.errors import SettingsError

READER, OPERATOR = "r" * 24, "operate.this-one_0123456789=="
FILE = f"""
# who may ask
read    prometheus  {READER}
operate anna@shop.example  {OPERATOR}
"""


def tokens(text: str = FILE) -> Tokens:
    return read_tokens(text, "tokens")


def test_each_token_has_its_holder_and_no_other_text_has_one() -> None:
    assert tokens().holder(READER) == Holder("prometheus", "read")
    assert tokens().holder(OPERATOR) == Holder("anna@shop.example", "operate")
    for wrong in (
        "",
        "r",
        READER[:-1],
        READER + "r",
        READER.upper(),
        "\udc80",
        sha256(READER.encode()).hexdigest(),
    ):
        assert tokens().holder(wrong) is None


def test_who_may_operate_may_read_and_who_may_read_may_no_more() -> None:
    assert [Holder("a", "operate").may(role) for role in ("read", "operate")] == [True, True]
    assert [Holder("a", "read").may(role) for role in ("read", "operate")] == [True, False]


def test_in_the_place_of_a_token_may_stand_its_sha256_which_is_no_token_itself() -> None:
    digest = f"sha256:{sha256(READER.encode()).hexdigest()}"
    found = tokens(f"read prometheus {digest}")
    assert found.holder(READER) == Holder("prometheus", "read")
    assert found.holder(digest) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"read {READER}", "tokens:2: a line is ROLE NAME TOKEN, and this one has 2 words"),
        (f"write anna {READER}", "tokens:2: a line begins with a role, read or operate"),
        (f"read ünal {READER}", "tokens:2: the name is not 1 to 63 letters"),
        (f"read local {READER}", "tokens:2: the name local is that of who needs no token"),
        ("read anna hunter2", "tokens:2: the token has 7 characters, at least 20 are needed"),
        ("read anna sha256:123", "tokens:2: sha256: must be followed by 64 hexadecimal digits"),
        (f"read anna {READER}%", "tokens:2: the token has other characters than"),
        (f"read anna {READER}\nread ben {READER}", "tokens:3: this token is that of anna: give each its own"),
    ],
)
def test_a_wrong_line_is_named_without_its_token(line: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as raised:
        tokens(f"# a comment\n{line}\n")
    assert READER not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_no_token_can_be_seen_in_what_was_read() -> None:
    assert READER not in repr(vars(tokens()))


def write(file: Path, text: str) -> None:
    """Replace the file, as an editor or a mounted secret does: a new inode."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


def test_a_token_is_given_and_withdrawn_by_changing_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(FILE)
    keys = TokenFile(str(file))
    write(file, f"read ben {'b' * 20}")
    assert (keys.holder(READER), keys.holder("b" * 20)) == (None, Holder("ben", "read"))
    write(file, "")
    assert keys.holder("b" * 20) is None


@pytest.mark.parametrize("spoil", ["wrong", "gone", "bytes"])
def test_a_file_that_has_become_unusable_leaves_the_former_tokens_and_is_logged_once(
    tmp_path: Path, spoil: str
) -> None:
    file = tmp_path / "tokens"
    file.write_text(FILE)
    keys = TokenFile(str(file))
    if spoil == "gone":
        file.unlink()
    else:
        file.write_bytes({"wrong": b"read anna", "bytes": b"\xff"}[spoil])
    with structlog.testing.capture_logs() as logs:
        assert [keys.holder(READER) for _ in range(3)] == [Holder("prometheus", "read")] * 3
    assert [line["log_level"] for line in logs] == ["error"]
    assert READER not in str(logs)
    write(file, FILE.replace(READER, "s" * 20))
    assert (keys.holder(READER), keys.holder("s" * 20)) == (None, Holder("prometheus", "read"))


def test_a_file_that_cannot_be_read_at_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"token file .*none cannot be read: No such file"):
        TokenFile(str(tmp_path / "none"))
    empty = tmp_path / "empty"
    empty.write_text("# nobody\n")
    with pytest.raises(SettingsError, match=r"token file .*empty names no token: nobody could ask"):
        TokenFile(os.fspath(empty))
