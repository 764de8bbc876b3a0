"""The recorded cases of `tests/cases`, each run as its README says, through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("twinstream")
CASES = Path(__file__).parent.parent / "cases"
FOLDERS = sorted(folder for folder in CASES.iterdir() if folder.is_dir())
EXIT_CODES = {"EQUIVALENT": 0, "DIVERGED": 1, "PENDING": 3, "INCONCLUSIVE": 3}
MEMBERS = {
    *("verdict", "decided_at", "reason", "events", "matched", "unmatched", "max_unmatched", "accounts"),
    *("divergences", "examples", "spec_digest", "coverage", "explained_by_rule", "holes"),
}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_case_has_its_answer(folder: Path) -> None:
    case = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    expect: dict[str, Any] = case["expect"]
    done = subprocess.run(
        [COMMAND, *case["command"]],
        cwd=folder,
        input=(folder / case["stdin"]).read_bytes() if "stdin" in case else b"",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    if expect.get("exit_code") == 2:
        check_refusal(expect, done.returncode, done.stderr.decode())
    else:
        assert done.stderr == b""
        check_answer(expect, done.returncode, json.loads(done.stdout))


def check_refusal(expect: dict[str, Any], exit_code: int, message: str) -> None:
    assert exit_code == 2
    for name in expect.get("stderr_names", ()):
        assert name in message
    if "line" in expect:
        assert f":{expect['line']}: " in message


def check_answer(expect: dict[str, Any], exit_code: int, answer: dict[str, Any]) -> None:
    assert answer.keys() == MEMBERS
    named = {name: answer[name] for name in expect if name != "exit_code"}
    assert {**named, "exit_code": exit_code} == {"exit_code": EXIT_CODES[answer["verdict"]], **expect}
    kinds = answer["divergences"]["by_kind"]
    assert answer["divergences"]["total"] == sum(kinds.values())
    assert answer["reason"]
    assert (answer["divergences"]["total"] > 0) == (answer["verdict"] == "DIVERGED")
