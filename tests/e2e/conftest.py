"""What the tests of the whole product share."""

from tests.support.cases import place_of, serve
from tests.support.versions import pair_of

__all__ = ["pair_of", "place_of", "serve"]
