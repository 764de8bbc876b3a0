"""What the sink refuses of a Spark where nobody tells the attempts of a task apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from twinstream.errors import SinkError
from twinstream.spark.checks import of_session

ONCE = {
    "spark.task.maxFailures": "1",
    "spark.speculation": "false",
    "spark.stage.maxConsecutiveAttempts": "1",
}


def session(master: str, conf: dict[str, str]) -> Any:
    context = SimpleNamespace(master=master, getConf=lambda: conf)
    return SimpleNamespace(version="4.0.1", sparkContext=context)


@pytest.mark.parametrize("name", ["spark.task.maxFailures", "spark.stage.maxConsecutiveAttempts"])
def test_without_reflect_neither_a_task_nor_a_stage_may_be_run_again(name: str) -> None:
    of_session(session("yarn", ONCE), reflect=False)
    again = {one: value for one, value in ONCE.items() if one != name}
    of_session(session("yarn", again), reflect=True)
    with pytest.raises(SinkError, match=f"{name}"):
        of_session(session("yarn", again), reflect=False)


def test_a_local_master_runs_no_task_again_but_stages() -> None:
    stages = {"spark.stage.maxConsecutiveAttempts": "1"}
    of_session(session("local[2]", stages), reflect=False)
    for master, conf in (("local[2]", {}), ("local[2,3]", stages)):
        with pytest.raises(SinkError, match="cannot tell the attempts of a task apart"):
            of_session(session(master, conf), reflect=False)
