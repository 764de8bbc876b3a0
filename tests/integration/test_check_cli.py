"""`twinstream check` as a user runs it: exit codes, what goes to which stream, and never a stack trace."""

from __future__ import annotations

import fcntl
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

from tests.support.commands import COMMAND, twinstream
from tests.support.marks import one_a_change

SPEC = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\norder: total\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "a.jsonl").write_text('{"v":1}\n{"v":2}\n')
    (tmp_path / "b.jsonl").write_text('{"v":1}\n{"v":3}\n')
    return tmp_path


@pytest.fixture
def watched(folder: Path) -> tuple[str, ...]:
    """Two outputs that are long enough to watch, and differ in their last event."""
    lines = '{"v":1}\n' * 15_000
    (folder / "long.jsonl").write_text(lines)
    (folder / "other.jsonl").write_text(lines + '{"v":2}\n')
    return files("long.jsonl", "other.jsonl")


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


def files(reference: str, candidate: str, *options: str) -> tuple[str, ...]:
    return "spec.yaml", "--reference", reference, "--candidate", candidate, *options


def test_without_json_the_answer_is_for_people(folder: Path) -> None:
    code, out, err = run(folder, *files("a.jsonl", "b.jsonl"))
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("DIVERGED The outputs differ, first proven at line 4")
    counts = "events: reference 2, candidate 2; matched 1 pair; unmatched: reference 1, candidate 1"
    assert lines[1:4] == [counts, "divergences: 1 missing, 1 extra", ""]
    assert lines[4].startswith("1. missing · v 2 · id ")
    assert lines[5].startswith('   Missing from the candidate: {"v":2}. ')
    assert lines[8] == '   1  {"v":2} ───────────────────✕       (no equal event)'


def test_no_colour_and_no_progress_where_nobody_looks(folder: Path, watched: tuple[str, ...]) -> None:
    _, out, err = run(folder, *watched)
    assert err == ""
    assert "\x1b" not in out


def test_offsets_given_in_a_trace_are_those_of_the_positions(folder: Path) -> None:
    trace = b'{"side":"reference","value":1,"partition":3,"offset":4711}\n'
    _, out, _ = run(folder, "spec.yaml", "--trace", "-", "--json", stdin=trace)
    (example,) = json.loads(out)["examples"]
    assert example["positions"]["reference"] == {"topic": "r", "partition": 3, "offset": 4711}


def test_one_file_on_both_sides_is_compared_with_a_word_of_warning(folder: Path) -> None:
    (folder / "link.jsonl").symlink_to("a.jsonl")
    code, _, err = run(folder, *files("a.jsonl", "link.jsonl"))
    assert code == 0
    assert err.startswith(
        "twinstream: both sides are the file link.jsonl, so every event is compared with itself"
    )


def test_a_terminal_shows_a_bar_while_it_reads_and_colours_that_no_color_takes(
    folder: Path, watched: tuple[str, ...]
) -> None:
    seen = on_terminal(folder, *watched)
    assert "reading" in seen
    assert re.search(r"[0-9.]+/240\.0 kB", seen)
    assert "\x1b[1;31mDIVERGED\x1b[0m" in seen
    seen = on_terminal(folder, *watched, NO_COLOR="1")
    assert "reading" in seen
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", seen)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_answer_that_nobody_reads_keeps_its_exit_code(folder: Path, form: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    asked = [COMMAND, "check", *files("a.jsonl", "a.jsonl", *form)]
    done = subprocess.run(asked, cwd=folder, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 0
    assert b"rror" not in done.stderr


@pytest.mark.parametrize("streams", ["2>&1 | true", "2>/dev/full", "2>&-", ">&-", "| true"])
@pytest.mark.parametrize(
    ("command", "code"),
    one_a_change(
        [
            ("check spec.yaml --reference a.jsonl --candidate b.jsonl", 1),
            ("gate x --service http://127.0.0.1:1", 4),
        ]
    ),
)
def test_the_exit_code_does_not_hang_on_who_reads(
    folder: Path, command: str, code: int, streams: str
) -> None:
    asked = ["bash", "-c", f"{COMMAND} {command} {streams}; exit ${{PIPESTATUS[0]}}"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(asked, cwd=folder, env=environment, capture_output=True, check=False)
    assert done.returncode == code


@pytest.mark.parametrize("asked", [("check", *files("a.jsonl", "b.jsonl")), ("version",)])
def test_an_answer_that_cannot_be_written_is_no_verdict(folder: Path, asked: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([COMMAND, *asked], cwd=folder, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"twinstream: the answer cannot be written: No space left on device\n"
