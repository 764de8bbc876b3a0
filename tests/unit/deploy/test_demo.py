"""What the demo makes of the service's answers, and how it clears up after itself."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.__main__ import arguments
from deploy.demo.display import Rates, line
from deploy.demo.folder import RunFolder
from deploy.demo.outcome import result, worst
from deploy.demo.service import Look


def look(answer: str = "pass", verdict: str = "EQUIVALENT", name: str = "ads-views", **status: Any) -> Look:
    counts = {"reference": 10, "candidate": 10}
    known = {"name": name, "events": counts, "matched": 9, "unmatched": {"reference": 1, "candidate": 1}}
    divergences = {"total": 0, "by_kind": {"missing": 0, "changed": 0}}
    gate = {"answer": answer, "verdict": verdict, "reason": "a reason"}
    return Look({**known, "divergences": divergences, **status}, gate)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "undecided"], "undecided"),
        (["fail", "undecided"], "fail"),
        (["pass", "fail"], "fail"),
        ([], "undecided"),
    ],
)
def test_the_worst_answer_counts(answers: list[str], expected: str) -> None:
    assert worst([look(answer) for answer in answers])[0] == expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["EQUIVALENT", "PENDING"], "PENDING"),
        (["INCONCLUSIVE", "PENDING"], "INCONCLUSIVE"),
        (["INCONCLUSIVE", "DIVERGED"], "DIVERGED"),
        ([], "PENDING"),
    ],
)
def test_the_worst_verdict_counts(verdicts: list[str], expected: str) -> None:
    assert worst([look(verdict=verdict) for verdict in verdicts])[1] == expected


@pytest.mark.parametrize(("answer", "code"), [("pass", 0), ("fail", 1), ("undecided", 3)])
def test_the_exit_code_is_that_of_the_gate(answer: str, code: int) -> None:
    assert result([look(answer)], reachable=True)["exit_code"] == code


def test_a_service_that_does_not_answer_passes_nothing() -> None:
    outcome = result([look("pass")], reachable=False)
    assert (outcome["answer"], outcome["exit_code"]) == ("undecided", 4)


def test_a_run_that_broke_says_why_and_passes_nothing() -> None:
    outcome = result([look("pass")], reachable=True, error="Kafka ended")
    assert (outcome["answer"], outcome["exit_code"], outcome["error"]) == ("undecided", 4, "Kafka ended")


def test_each_comparison_stands_under_its_name() -> None:
    outcome = result([look(name="a"), look("fail", "DIVERGED", name="b")], reachable=True)
    assert {name: one["verdict"] for name, one in outcome["comparisons"].items()} == {
        "a": "EQUIVALENT",
        "b": "DIVERGED",
    }


def test_the_line_names_the_differences() -> None:
    divergences = {"total": 3, "by_kind": {"missing": 0, "changed": 3}}
    text = line(look("fail", "DIVERGED", divergences=divergences), 500.2, 499.6).plain
    assert "DIVERGED" in text
    assert "500 | 500" in text
    assert text.endswith("3 changed")


def test_a_rate_is_the_mean_of_the_last_seconds() -> None:
    rates = Rates()
    assert rates.note("a", "reference", 0, now=0.0) == 0.0
    assert rates.note("a", "reference", 100, now=1.0) == 100.0
    for second in range(2, 20):
        last = rates.note("a", "reference", 100 + 10 * second, now=float(second))
    assert last == pytest.approx(10.0)


@pytest.mark.parametrize(
    "wrong", [["--fault", "fire"], ["--duration", "0"], ["--rate", "nan"], ["--rate", "x"]]
)
def test_a_wrong_option_is_a_usage_error(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(wrong)
    assert ended.value.code == 2


def test_a_run_that_ends_well_leaves_nothing(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as run:
        (run.path / "service.log").write_text("fine")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_leaves_its_logs_alone(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as run:
        (run.path / "data").mkdir()
        (run.path / "data" / "0000.log").write_text("records of Kafka, not a log to read")
        (run.path / "service.log").write_text("trouble")
        run.keep_logs = True
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["service.log"]


def test_the_data_of_a_killed_run_are_cleared_up_by_the_next_and_those_of_a_live_one_are_not(
    tmp_path: Path,
) -> None:
    killed, alive = tmp_path / "run-killed", tmp_path / "run-alive"
    for folder in (killed, alive):
        folder.mkdir()
        (folder / "running").touch()
        (folder / "state").touch()
    with (alive / "running").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with RunFolder(tmp_path):
            pass
    assert (alive / "state").exists()
    assert not (killed / "state").exists()


def test_old_logs_are_bounded(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"run-{number}").mkdir()
        (tmp_path / f"run-{number}" / "service.log").touch()
    with RunFolder(tmp_path):
        pass
    assert len(list(tmp_path.iterdir())) == 5
