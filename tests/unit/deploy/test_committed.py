"""The health check of the pipelines: a job is well while each of its queries finishes batches."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from deploy.docker.committed import idle_seconds, main

NOW = 1_700_000_000.0


def query(folder: Path, name: str, *ages: float, now: float = NOW) -> None:
    """A checkpoint as Spark lays it out, with commits of the given ages."""
    commits = folder / name / "commits"
    commits.mkdir(parents=True)
    (folder / name / "offsets").mkdir()
    (folder / name / "metadata").write_text('{"id":"7"}')
    for batch, age in enumerate(ages):
        (commits / str(batch)).write_text("v1\n{}")
        os.utime(commits / str(batch), (now - age, now - age))


def test_the_newest_commit_of_each_query_counts_and_checksum_files_are_none(tmp_path: Path) -> None:
    query(tmp_path, "views", 90, 5)
    query(tmp_path, "counts", 70)
    query(tmp_path, "none")
    (tmp_path / "counts" / "commits" / ".0.crc").write_text("")
    assert idle_seconds(tmp_path, NOW) == {"counts": 70, "views": 5, "none": None}


def test_a_job_whose_queries_go_on_is_well(tmp_path: Path) -> None:
    query(tmp_path, "views", 5, now=time.time())
    assert main(str(tmp_path), "60") == 0


def test_one_query_that_stands_still_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query(tmp_path, "reference/counts", 3600, now=time.time())
    query(tmp_path, "reference/views", 5, now=time.time())
    query(tmp_path, "reference/more")
    assert main(str(tmp_path), "60") == 1
    told = capsys.readouterr().out
    assert "reference/counts: no batch for 36" in told
    assert "reference/more: no batch yet" in told
    assert "views" not in told


def test_a_job_that_has_not_begun_is_not_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(tmp_path), "60") == 1
    assert "no query has begun" in capsys.readouterr().out
