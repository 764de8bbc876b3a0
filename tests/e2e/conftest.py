"""What the tests of the whole product share."""

from tests.support.cases import place_of, serve

__all__ = ["place_of", "serve"]
