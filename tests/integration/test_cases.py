"""The recorded cases of `tests/cases`, each run as its README says, through the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import twinstream

CASES = Path(__file__).parent.parent / "cases"
FOLDERS = sorted(folder for folder in CASES.iterdir() if folder.is_dir())
EXIT_CODES = {"EQUIVALENT": 0, "DIVERGED": 1, "PENDING": 3, "INCONCLUSIVE": 3}
MEMBERS = {
    *("verdict", "decided_at", "reason", "events", "matched", "unmatched", "max_unmatched", "accounts"),
    *("divergences", "groups", "examples", "spec_digest", "coverage", "explained_by_rule", "holes"),
}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_case_has_its_answer(folder: Path) -> None:
    case = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    expect: dict[str, Any] = case["expect"]
    stdin = (folder / case["stdin"]).read_bytes() if "stdin" in case else b""
    code, out, err = twinstream(*case["command"], folder=folder, stdin=stdin)
    if expect.get("exit_code") == 2:
        check_refusal(expect, code, err)
    else:
        assert err == ""
        check_answer(expect, code, json.loads(out))


def check_refusal(expect: dict[str, Any], exit_code: int, message: str) -> None:
    assert exit_code == 2
    for name in expect.get("stderr_names", ()):
        assert name in message
    if "line" in expect:
        assert f":{expect['line']}: " in message


def check_answer(expect: dict[str, Any], exit_code: int, answer: dict[str, Any]) -> None:
    assert answer.keys() == MEMBERS | ({"checks"} & expect.keys())
    named = {name: answer[name] for name in expect if name != "exit_code"}
    assert {**named, "exit_code": exit_code} == {"exit_code": EXIT_CODES[answer["verdict"]], **expect}
    kinds = answer["divergences"]["by_kind"]
    assert answer["divergences"]["total"] == sum(kinds.values())
    assert answer["divergences"]["total"] == sum(group["count"] for group in answer["groups"])
    assert answer["reason"]
    assert (answer["divergences"]["total"] > 0) == (answer["verdict"] == "DIVERGED")
