"""What a person takes elsewhere from the page: drafts of rules, the file, commands, links to Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import watched
from tests.support.server import Served, served
from tests.support.statuses import NAME, counts, diverged, divergence, expectation, later
from tests.support.webpage import at, row, unfold, violations
from twinstream.api.routes.declared import KafkaLinks
from twinstream.api.state.board import Board
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.groups import Group

pytestmark = pytest.mark.requires_chromium

FILE = f"""# <b>The rules</b> of the ads team
version: 1
name: {NAME}
reference: {{topic: ads.reference, version: "1.8.2"}}
candidate: {{topic: ads.candidate, version: "1.9.0"}}
order: {{per_key: [ad_id]}}
identity: [ride]
"""
LINKS = KafkaLinks(brokers="kafka-1:9092", record_url="https://ui.example/{topic}/p{partition}?at={offset}")
FARE = Group(
    id="g1", kind="changed", fields=["fare"], kinds={"event": 3}, count=3, text="3 changed, all in `fare`."
)


@pytest.fixture
def service() -> Iterator[Served]:
    """A service that knows Kafka, and a comparison by its file."""
    with served(Board(stale_after_seconds=60), kafka=LINKS) as service:
        declared = expectation(file=ComparisonFile(loads(FILE), FILE))
        service.call(lambda: service.board.expect(declared))
        three = counts(changed=3)
        service.publish(
            diverged(at=later(1), divergences=three, closed_divergences=three, groups=[FARE]),
            divergence("5d1f0c"),
        )
        yield service


def clipboard(page: Page) -> str:
    copied: str = page.evaluate("navigator.clipboard.readText()")
    return copied


def test_a_group_has_drafts_with_what_they_hide_and_how_to_try_them(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("Draft a rule").click()
    drafts = page.locator(".draft")
    expect(drafts).to_have_count(2)
    expect(drafts.first.locator("pre").first).to_have_text("equality:\n  ignore: [fare]\n")
    expect(drafts.first).to_contain_text("3")
    drafts.first.get_by_role("button", name="Copy this part of the comparison file").click()
    expect(drafts.first.get_by_role("button", name="Copied")).to_be_visible()
    assert clipboard(page) == "equality:\n  ignore: [fare]\n"
    drafts.first.get_by_role("button", name="Copy the command").click()
    expect(drafts.first.get_by_role("button", name="Copied")).to_have_count(2)
    assert clipboard(page) == (f"twinstream replay --spec changed.yaml --name {NAME} --brokers kafka-1:9092")
    assert violations(page) == []


def test_without_a_clipboard_the_text_is_selected(page: Page) -> None:
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()) }")
    page.get_by_text("Draft a rule").click()
    page.get_by_role("button", name="Copy this part of the comparison file").first.click()
    expect(page.get_by_role("button", name="Select it, then copy").first).to_be_visible()
    assert page.evaluate("getSelection().toString()").strip() == "equality:\n  ignore: [fare]"


def test_the_file_is_shown_as_declared_with_its_digest_and_the_versions_at_work(
    page: Page,
) -> None:
    declared = page.get_by_role("region", name="Comparison file and versions")
    unfold(declared)
    expect(declared.locator("pre")).to_have_text(FILE)
    expect(declared).to_contain_text("ads.reference, version 1.8.2")
    expect(declared).to_contain_text("ads.candidate, version 1.9.0")
    expect(declared).to_contain_text("Digest of the file5f0c9a")
    expect(declared.locator("dd").nth(2)).to_have_text(version("twinstream"))
    assert violations(page) == []


def test_positions_lead_to_the_records_in_a_kafka_ui_and_commands_name_the_real_broker_and_this_service(
    service: Served, page: Page
) -> None:
    reference = "https://ui.example/ads.reference/p1?at=2504"
    link = row(page, "5d1f0c").get_by_role("link", name="ads.reference 1 : 2504")
    expect(link).to_have_attribute("href", reference)
    expect(link).to_have_attribute("rel", "noreferrer")
    page.goto(at(service, f"{NAME}/5d1f0c"))
    expect(page.locator(f'#divergence a[href="{reference}"]')).to_have_count(2)
    commands = page.get_by_role("region", name="In the terminal").locator("pre")
    explain = f"twinstream explain 5d1f0c --comparison {NAME} --service {service.url}"
    expect(commands).to_have_count(3)
    expect(commands.first).to_have_text(explain)
    expect(commands.nth(1)).to_contain_text("--bootstrap-server kafka-1:9092 --topic ads.reference")


def test_a_comparison_without_a_file_says_so(browser: Browser) -> None:
    with served(Board(stale_after_seconds=60)) as service, watched(browser) as watch:
        service.publish(diverged(at=later(1)))
        watch.page.goto(at(service))
        declared = watch.page.get_by_role("region", name="Comparison file and versions")
        unfold(declared)
        expect(declared).to_contain_text(f"Comparison '{NAME}' was not read from a file.")
