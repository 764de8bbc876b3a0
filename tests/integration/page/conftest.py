"""What the tests of the page share."""

from tests.support.webpage import browser, page, service, watch

__all__ = ["browser", "page", "service", "watch"]
