"""`twinstream report` and `check --report` as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.support.commands import said
from tests.support.server import Served, served
from tests.support.statuses import NAME, diverged, expectation, now, status
from twinstream.api.state.board import Board
from twinstream.explain.receipts.exclusions import Exclusion

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "docs" / "receipt.schema.json").read_text(encoding="utf-8"))
)
IGNORED = Exclusion(key="equality.ignore", name="processed_at", hides="any change of the field")
SPEC = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\norder: total\n"


def run(folder: Path, *arguments: str, url: str = "http://127.0.0.1:1", code: int = 0) -> str:
    return said(*arguments, folder=folder, code=code, TWINSTREAM_SERVICE=url)


@pytest.fixture
def service() -> Iterator[Served]:
    with served(Board(stale_after_seconds=60)) as service:
        service.call(lambda: service.board.expect(expectation(exclusions=(IGNORED,))))
        service.publish(status(at=now()))
        yield service


def test_the_receipt_of_a_running_comparison_is_printed_or_written(service: Served, tmp_path: Path) -> None:
    out = run(tmp_path, "report", NAME, url=service.url)
    assert out.startswith(f"# Verdict receipt: {NAME}\n\n**EQUIVALENT**: ")
    assert "| gate | **pass**: Equivalent: 5,000 events matched" in out
    assert "| `equality.ignore` | processed\\_at | any change of the field | not named | - |" in out

    service.publish(diverged(at=now()))
    files = ("--output", "r.md", "--output", "r.json")
    assert run(tmp_path, "report", NAME, *files, url=service.url) == ""
    assert (tmp_path / "r.md").read_text(encoding="utf-8").startswith("# Verdict receipt")
    written = json.loads((tmp_path / "r.json").read_bytes())
    SCHEMA.validate(written)
    assert (written["verdict"], written["gate"]["answer"]) == ("DIVERGED", "fail")
    assert written["exclusions"] == [IGNORED.model_dump()]

    out = run(tmp_path, "report", NAME, "--json", url=service.url)
    assert {**json.loads(out), "made_at": written["made_at"]} == written


def test_check_writes_its_receipt_beside_its_answer(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "a.jsonl").write_text('{"v":1}\n{"v":2}\n')
    (tmp_path / "b.jsonl").write_text('{"v":1}\n{"v":3}\n')
    files = ("spec.yaml", "--reference", "a.jsonl", "--candidate", "b.jsonl")
    out = run(tmp_path, "check", *files, "--json", "--report", "r.json", "--report", "r.md", code=1)
    receipt = json.loads((tmp_path / "r.json").read_bytes())
    SCHEMA.validate(receipt)
    answer = json.loads(out)
    assert (receipt["verdict"], receipt["spec_digest"]) == ("DIVERGED", answer["spec_digest"])
    assert receipt["divergences"] == answer["divergences"]
    assert "**DIVERGED**: The outputs differ" in (tmp_path / "r.md").read_text(encoding="utf-8")
