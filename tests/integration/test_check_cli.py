"""`twinstream check` as a user runs it: exit codes, what goes to which stream, and never a stack trace."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import pty
import re
import struct
import subprocess
import termios
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from tests.support.commands import COMMAND, twinstream

SPEC = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\norder: total\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "a.jsonl").write_text('{"v":1}\n{"v":2}\n')
    (tmp_path / "b.jsonl").write_text('{"v":1}\n{"v":3}\n')
    return tmp_path


LONG = ("spec.yaml", "--reference", "long.jsonl", "--candidate", "other.jsonl")


def write_long(folder: Path) -> None:
    """Two outputs that are long enough to watch, and differ in their last event."""
    lines = '{"v":1}\n' * 15_000
    (folder / "long.jsonl").write_text(lines)
    (folder / "other.jsonl").write_text(lines + '{"v":2}\n')


def on_terminal(folder: Path, *arguments: str, **more: str) -> str:
    """What a person sees: output and progress on one terminal of 100 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", **more}
    environment.pop("COLUMNS", None)
    with subprocess.Popen(
        [COMMAND, "check", *arguments], cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        seen = b""
        with suppress(OSError):  # the terminal is gone when the command has ended
            while part := os.read(master, 65536):
                seen += part
        process.wait(60)
    os.close(master)
    return seen.decode()


def run(folder: Path, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    return twinstream("check", *arguments, folder=folder, stdin=stdin)


def test_equal_outputs_exit_with_0_and_different_ones_with_1(folder: Path) -> None:
    (folder / "copy.jsonl").write_bytes((folder / "a.jsonl").read_bytes())
    code, out, err = run(folder, "spec.yaml", "--reference", "a.jsonl", "--candidate", "copy.jsonl", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["verdict"] == "EQUIVALENT"
    code, out, err = run(folder, "spec.yaml", "--reference", "a.jsonl", "--candidate", "b.jsonl", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["decided_at"] == 4


def test_without_json_the_answer_is_for_people(folder: Path) -> None:
    code, out, err = run(folder, "spec.yaml", "--reference", "a.jsonl", "--candidate", "b.jsonl")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("DIVERGED The outputs differ, known at line 4")
    assert lines[1:5] == [
        "events: reference 2, candidate 2; matched 1 pair; unmatched: reference 1, candidate 1",
        "divergences: 1 missing, 1 extra",
        "",
        lines[4],
    ]
    assert lines[4].startswith("1. missing · id ")
    assert lines[5].startswith('   The reference wrote {"v":2} ')
    assert lines[8] == '   1  {"v":2} ───────────────────✕       (no equal event)'


def test_no_colour_and_no_progress_where_nobody_looks(folder: Path) -> None:
    write_long(folder)
    _, out, err = run(folder, *LONG)
    assert err == ""
    assert "\x1b" not in out


def test_standard_input_is_read_and_open_sides_exit_with_3(folder: Path) -> None:
    trace = b'{"side":"reference","value":1}\n'
    code, out, _ = run(folder, "spec.yaml", "--trace", "-", "--open", "--json", stdin=trace)
    assert code == 3
    assert json.loads(out)["verdict"] == "PENDING"


def test_two_empty_outputs_exit_with_3_unless_allowed(folder: Path) -> None:
    (folder / "empty.jsonl").write_text("\n")
    files = ("spec.yaml", "--reference", "empty.jsonl", "--candidate", "empty.jsonl")
    assert run(folder, *files)[0] == 3
    assert run(folder, *files, "--allow-empty")[0] == 0


def test_packed_input_is_read(folder: Path) -> None:
    (folder / "a.gz").write_bytes(gzip.compress((folder / "a.jsonl").read_bytes()))
    (folder / "b.zst").write_bytes(zstandard.ZstdCompressor().compress((folder / "b.jsonl").read_bytes()))
    code, out, _ = run(folder, "spec.yaml", "--reference", "a.gz", "--candidate", "b.zst", "--json")
    assert code == 1
    assert [example["kind"] for example in json.loads(out)["examples"]] == ["missing", "extra"]


def test_offsets_given_in_a_trace_are_those_of_the_positions(folder: Path) -> None:
    trace = b'{"side":"reference","value":1,"partition":3,"offset":4711}\n'
    _, out, _ = run(folder, "spec.yaml", "--trace", "-", "--json", stdin=trace)
    (example,) = json.loads(out)["examples"]
    assert example["positions"]["reference"] == {"topic": "r", "partition": 3, "offset": 4711}


def test_one_file_on_both_sides_is_compared_with_a_word_of_warning(folder: Path) -> None:
    (folder / "link.jsonl").symlink_to("a.jsonl")
    code, _, err = run(folder, "spec.yaml", "--reference", "a.jsonl", "--candidate", "link.jsonl")
    assert code == 0
    assert err.startswith("twinstream: both sides are the file link.jsonl, so every event meets itself")


def test_a_terminal_shows_a_bar_while_it_reads_and_colours_in_the_answer(folder: Path) -> None:
    write_long(folder)
    seen = on_terminal(folder, *LONG)
    assert "reading" in seen
    assert re.search(r"[0-9.]+/240\.0 kB", seen)
    assert "\x1b[1;31mDIVERGED\x1b[0m" in seen


def test_no_color_leaves_the_bar_and_takes_the_colours(folder: Path) -> None:
    write_long(folder)
    seen = on_terminal(folder, *LONG, NO_COLOR="1")
    assert "reading" in seen
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", seen)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_answer_that_nobody_reads_keeps_its_exit_code(folder: Path, form: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = ["check", "spec.yaml", "--reference", "a.jsonl", "--candidate", "a.jsonl", *form]
    done = subprocess.run(
        [COMMAND, *arguments], cwd=folder, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert done.returncode == 0
    assert b"rror" not in done.stderr


def test_an_answer_that_cannot_be_written_is_no_verdict(folder: Path) -> None:
    arguments = ["check", "spec.yaml", "--reference", "a.jsonl", "--candidate", "b.jsonl"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [COMMAND, *arguments], cwd=folder, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert b"the answer cannot be written: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


REFUSED = {
    "no such file": (("spec.yaml", "--trace", "none.jsonl"), "none.jsonl: cannot be read: No such file"),
    "a folder as input": (("spec.yaml", "--trace", "."), ".: cannot be read: Is a directory"),
    "a folder as spec": ((".", "--trace", "a.jsonl"), ".: cannot be read: Is a directory"),
    "no spec": (("none.yaml", "--trace", "a.jsonl"), "none.yaml: cannot be read: No such file"),
    "an empty spec": (("empty.yaml", "--trace", "a.jsonl"), "empty.yaml:1: must be a mapping that begins"),
    "a binary spec": (("binary.yaml", "--trace", "a.jsonl"), "binary.yaml: is not a UTF-8 text"),
    "a damaged archive": (("spec.yaml", "--trace", "bad.gz"), "bad.gz: is damaged, or is no .gz file: "),
    "an archive that is cut off": (("spec.yaml", "--trace", "cut.zst"), "cut.zst: ends in the middle of its"),
    "a byte order mark": (
        ("spec.yaml", "--trace", "bom.jsonl"),
        "bom.jsonl:1: begins with a byte order mark",
    ),
    "another encoding": (
        ("spec.yaml", "--reference", "latin.jsonl", "--candidate", "a.jsonl"),
        "latin.jsonl:2: not an event of this comparison: not UTF-8 at byte 6",
    ),
    "one pipe for both sides": (
        ("spec.yaml", "--reference", "-", "--candidate", "/dev/stdin"),
        "--reference and --candidate are one stream (/dev/stdin), which can be read only once",
    ),
    "a line that is no event": (("spec.yaml", "--trace", "a.jsonl"), "a.jsonl:1: a line of a trace is"),
    "standard input twice": (
        ("spec.yaml", "--reference", "-", "--candidate", "-"),
        "--reference and --candidate cannot both be standard input",
    ),
    "one side only": (
        ("spec.yaml", "--reference", "a.jsonl"),
        "give --reference and --candidate, or --trace",
    ),
    "an unknown option": (("spec.yaml", "--trase", "a.jsonl"), "No such option '--trase'"),
    "no spec at all": ((), "Missing argument 'SPEC'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_usage_exits_with_2_and_one_clear_sentence(folder: Path, name: str) -> None:
    (folder / "empty.yaml").write_text("")
    (folder / "binary.yaml").write_bytes(b"\xff\x00\xfe")
    (folder / "bad.gz").write_bytes(gzip.compress(b"")[:10] + b"\xff" * 50)
    (folder / "cut.zst").write_bytes(zstandard.ZstdCompressor().compress(b"x" * 10)[:-3])
    (folder / "bom.jsonl").write_bytes(b"\xef\xbb\xbf{}")
    (folder / "latin.jsonl").write_bytes('{"v":1}\n{"v":"ü"}\n'.encode("latin-1"))
    arguments, message = REFUSED[name]
    code, out, err = run(folder, *arguments)
    assert (code, out) == (2, "")
    assert message in err
