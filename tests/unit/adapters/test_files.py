from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from twinstream.adapters.files import lines as files
from twinstream.adapters.files.lines import BLOCK_BYTES, InputFile
from twinstream.errors import InputError

LINES = b'{"a":1}\n' * 50_000


def content(path: Path) -> list[bytes]:
    return [line for _, line in InputFile(str(path)).lines()]


def refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        content(path)
    return str(caught.value).removeprefix(str(path))


def packed(data: bytes) -> dict[str, bytes]:
    return {"x.gz": gzip.compress(data), "x.zst": zstandard.ZstdCompressor().compress(data)}


@pytest.mark.parametrize("name", ["x.gz", "x.zst", "x"])
def test_what_was_packed_is_what_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes({"x": LINES, **packed(LINES)}[name])
    assert content(path) == LINES.split()


@pytest.mark.parametrize("name", ["x.gz", "x.zst"])
def test_packed_pieces_one_after_the_other_are_one_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(packed(b"1\n2")[name] + packed(b"3\n")[name])
    assert content(path) == [b"1", b"23"]


def test_what_a_zst_file_says_may_be_skipped_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.zst"
    note = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"a\nb\nc"
    path.write_bytes(note + packed(b"1\n")["x.zst"] + note)
    assert content(path) == [b"1"]


@pytest.mark.parametrize("name", ["x.gz", "x.zst"])
@pytest.mark.parametrize("part", [0.5, 0.99])
def test_a_packed_file_that_ends_too_early_is_refused(tmp_path: Path, name: str, part: float) -> None:
    whole = packed(os.urandom(300_000).hex().encode())[name]
    message = refusal(tmp_path / name, whole[: int(len(whole) * part)])
    assert message == ": ends in the middle of its packed data; was it copied before it was complete?"


@pytest.mark.parametrize("name", ["x.gz", "x.zst"])
def test_a_packed_file_without_a_byte_is_refused(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path / name, b"").startswith(": ends in the middle of its packed data")


def test_a_damaged_packed_file_is_refused(tmp_path: Path) -> None:
    whole = packed(LINES)
    for name, data, message in (
        ("plain.gz", LINES, "is damaged, or is no .gz file: Not a gzipped file"),
        ("plain.zst", LINES, "is damaged, or is no .zst file: zstd decompressor error: Unknown frame"),
        ("x.gz", whole["x.gz"][:10] + b"\xff" * 50, "is damaged, or is no .gz file: Error -3"),
        ("sum.gz", whole["x.gz"][:-8] + b"\0" * 8, "is damaged, or is no .gz file: CRC check failed"),
    ):
        assert refusal(tmp_path / name, data).startswith(f": {message}")


def test_lines_are_numbered_as_an_editor_does_and_blank_ones_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\n 1 \r\n\n\t\n2")
    assert list(InputFile(path).lines()) == [(2, b"1"), (5, b"2")]


def test_what_json_does_not_take_for_space_is_left_to_be_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1\x0b\n\x0c\n")
    assert list(InputFile(path).lines()) == [(1, b"1\x0b"), (2, b"\x0c")]


def test_lines_longer_than_a_block_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    lines = [b"a" * (2 * BLOCK_BYTES + 1), b"b", b"c" * BLOCK_BYTES]
    path.write_bytes(b"\n".join(lines))
    assert content(path) == lines


@pytest.mark.parametrize(
    ("name", "pack"), [("x", bytes), ("x.gz", gzip.compress), ("x.zst", zstandard.ZstdCompressor().compress)]
)
def test_a_line_that_is_too_long_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(files, "LINE_BYTES", 2 << 20)
    assert refusal(tmp_path / name, pack(b"1\n" + b"a" * (8 << 20) + b"\n2\n")) == ":2: is longer than 2 MiB"


@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-8-sig", "a byte order mark"), ("utf-16", "UTF-16"), ("utf-16-be", "UTF-16")]
)
def test_what_does_not_begin_like_utf_8_is_refused(tmp_path: Path, encoding: str, mark: str) -> None:
    text = '\ufeff{"a":1}\n' if encoding == "utf-16-be" else '{"a":1}\n'
    message = refusal(tmp_path / "x", text.encode(encoding))
    assert message == f":1: begins with {mark}; save the file as plain UTF-8"


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    for name, message in (
        (str(tmp_path), "cannot be read: Is a directory"),
        (str(tmp_path / "none"), "cannot be read: No such file or directory"),
        ("a\0b", "cannot be read: embedded null byte"),
    ):
        with pytest.raises(InputError) as caught:
            list(InputFile(name).lines())
        assert str(caught.value) == f"{name}: {message}"


def test_standard_input_that_is_closed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match=r"^-: standard input is closed$"):
        list(InputFile("-").lines())


@pytest.mark.parametrize("name", ["x", "x.gz", "x.zst"])
def test_how_much_was_read_is_told_in_bytes_of_the_file_as_it_lies_there(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = os.urandom(3 * BLOCK_BYTES).hex().encode()
    path.write_bytes({"x": data, **packed(data.replace(b"0", b"\n"))}[name])
    file = InputFile(path)
    assert (file.size, file.taken) == (path.stat().st_size, 0)
    taken = [file.taken for _ in file.lines()]
    assert taken == sorted(taken)
    assert file.taken == file.size


def test_one_file_under_two_names_is_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    a, b, link, none = (InputFile(tmp_path / name) for name in ("a", "b", "link", "none"))
    assert a.same_as(link)
    assert not a.same_as(b)
    assert not none.same_as(none)
    assert InputFile("-").same_as(InputFile("/dev/stdin"))
