"""`twinstream check` as a user runs it: exit codes, what goes to which stream, and never a stack trace."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("twinstream")
SPEC = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\norder: total\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "a.jsonl").write_text('{"v":1}\n{"v":2}\n')
    (tmp_path / "b.jsonl").write_text('{"v":1}\n{"v":3}\n')
    return tmp_path


def run(folder: Path, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    done = subprocess.run(
        [COMMAND, "check", *arguments], cwd=folder, input=stdin, capture_output=True, timeout=60, check=False
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + err
    return done.returncode, out, err


def test_equal_outputs_exit_with_0_and_different_ones_with_1(folder: Path) -> None:
    code, out, err = run(folder, "spec.yaml", "--reference", "a.jsonl", "--candidate", "a.jsonl", "--json")
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
    assert (
        lines[1] == "events: reference 2, candidate 2; matched 1 pairs; unmatched: reference 1, candidate 1"
    )
    assert lines[2].startswith('- missing: The reference put out {"v":2}')


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


REFUSED = {
    "no such file": (("spec.yaml", "--trace", "none.jsonl"), "none.jsonl: cannot be read: No such file"),
    "a folder as input": (("spec.yaml", "--trace", "."), ".: cannot be read: Is a directory"),
    "a folder as spec": ((".", "--trace", "a.jsonl"), ".: cannot be read: Is a directory"),
    "no spec": (("none.yaml", "--trace", "a.jsonl"), "none.yaml: cannot be read: No such file"),
    "an empty spec": (("empty.yaml", "--trace", "a.jsonl"), "empty.yaml:1: must be a mapping that begins"),
    "a binary spec": (("binary.yaml", "--trace", "a.jsonl"), "binary.yaml: is not a UTF-8 text"),
    "a damaged archive": (("spec.yaml", "--trace", "bad.gz"), "bad.gz: cannot be read: "),
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
    arguments, message = REFUSED[name]
    code, out, err = run(folder, *arguments)
    assert (code, out) == (2, "")
    assert message in err
