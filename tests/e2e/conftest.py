"""What the tests of the whole product share."""

from tests.support.cases import serve

__all__ = ["serve"]
