"""Makes the shared fixtures known to every test, how long Hypothesis looks, and what is noted at the end."""

import pytest
from hypothesis import settings

from tests.support.searching import PROFILE

pytest_plugins = ["tests.support.spark", "tests.support.stack"]

settings.load_profile(PROFILE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what tests that passed have to note (`record_property("note", …)`)."""
    passed = terminalreporter.getreports("passed")
    notes = [note for report in passed for name, note in report.user_properties if name == "note"]
    if notes:
        terminalreporter.section("notes")
        for note in notes:
            terminalreporter.line(str(note))
