"""What the tests of the page share."""

from tests.support.webpage import browser, page, watch

__all__ = ["browser", "page", "watch"]
