"""Waiting for the gate, on a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click
import pytest

from twinstream.cli.shared.output import Unreachable
from twinstream.cli.shared.polling import span, wait_until_decided

PASS = {"answer": "pass", "undecided": False, "reason": "Equivalent."}
FAIL = {"answer": "fail", "undecided": False, "reason": "It differs."}
UNDECIDED = {"answer": "undecided", "undecided": True, "reason": "Too little."}
LOST = Unreachable("the service cannot be reached")

Step = Mapping[str, Any] | Exception


class Scene:
    """A service that answers so, one after the other and the last for ever, and the time that passes."""

    def __init__(self, *steps: Step) -> None:
        self.steps, self.now, self.asked = list(steps), 50.0, 0
        self.told: list[tuple[str, float]] = []

    def ask(self) -> Mapping[str, Any]:
        step = self.steps[min(self.asked, len(self.steps) - 1)]
        self.asked += 1
        if isinstance(step, Exception):
            raise step
        return step

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def wait(self, seconds: float, poll: float = 5) -> Mapping[str, Any]:
        return wait_until_decided(
            self.ask,
            timedelta(seconds=seconds),
            timedelta(seconds=poll),
            lambda hindrance, left: self.told.append((hindrance, left)),
            clock=lambda: self.now,
            sleep=self.sleep,
        )


@pytest.mark.parametrize("decided", [PASS, FAIL])
def test_the_first_decided_answer_ends_the_waiting(decided: Mapping[str, Any]) -> None:
    scene = Scene(UNDECIDED, LOST, UNDECIDED, decided, UNDECIDED)
    assert scene.wait(60) == decided
    assert (scene.asked, scene.now) == (4, 65)
    assert scene.told == [("Too little.", 60), (LOST.message, 55), ("Too little.", 50)]


def test_it_is_asked_a_last_time_when_the_time_is_over() -> None:
    scene = Scene(UNDECIDED, UNDECIDED, UNDECIDED, PASS)
    assert scene.wait(12) == PASS
    assert scene.now == 62


def test_an_undecided_gate_stays_undecided_when_the_time_is_over() -> None:
    scene = Scene(UNDECIDED)
    assert scene.wait(12) == UNDECIDED
    assert (scene.asked, scene.now) == (4, 62)


def test_a_service_that_never_answers_cannot_be_reached() -> None:
    scene = Scene(LOST)
    with pytest.raises(Unreachable):
        scene.wait(12)
    assert (scene.asked, scene.now) == (4, 62)


def test_a_service_that_is_lost_in_the_end_leaves_its_last_answer() -> None:
    assert Scene(LOST, UNDECIDED, LOST).wait(60) == UNDECIDED


@pytest.mark.parametrize("wait", [0, 60])
def test_what_stays_wrong_is_not_waited_for(wait: float) -> None:
    scene = Scene(click.UsageError("no such comparison"))
    with pytest.raises(click.UsageError):
        scene.wait(wait)
    assert scene.asked == 1


@pytest.mark.parametrize("only", [PASS, UNDECIDED])
def test_without_waiting_it_is_asked_once(only: Mapping[str, Any]) -> None:
    scene = Scene(only)
    assert scene.wait(0) == only
    assert (scene.asked, scene.told, scene.now) == (1, [], 50)


def test_a_duration_is_written_as_in_a_comparison_file() -> None:
    option = click.Option(["--wait"])
    context = click.Context(click.Command("gate"))
    assert span(context, option, "30m") == timedelta(minutes=30)
    assert span(context, option, "500ms") == timedelta(milliseconds=500)
    assert span(context, option, "5") == timedelta(seconds=5)
    assert span(context, option, "0.5") == timedelta(milliseconds=500)
    assert span(context, option, None) is None
    for wrong in ("-5", "5 parsecs", "half an hour", ""):
        with pytest.raises(click.BadParameter, match="is not a duration; write it like"):
            span(context, option, wrong)
