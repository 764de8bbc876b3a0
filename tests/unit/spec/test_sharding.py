"""What cannot be dealt out by key is refused with the reason, and with what would help."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.orders import spec_of
from twinstream.spec.lint.sharding import refusal_by_key

PER_KEY = {"per_key": ["k"]}
KNOWN = {
    "id": "K",
    "when": {"divergences": ["missing"]},
    "owner": "me",
    "expires": "2999-01-01",
}
COUNT, SHARE = {**KNOWN, "ceiling": {"count": 3}}, {**KNOWN, "ceiling": {"share": 0.1}}


@pytest.mark.parametrize(
    ("order", "more", "why"),
    [
        (PER_KEY, {"known_differences": [SHARE]}, "give a `count`"),
        (PER_KEY, {"known_differences": [COUNT], "identity": ["n"]}, "whose k has changed is `missing`"),
        (
            {"dependent": [{"pair": ["a", "a"], "same": ["k"]}]},
            {"known_differences": [COUNT], "identity": ["k"]},
            "whose type has changed is `missing`",
        ),
    ],
)
def test_what_no_shard_knows_is_refused_with_the_reason(order: Any, more: dict[str, Any], why: str) -> None:
    spec = spec_of(order, **more)
    assert why in str(refusal_by_key(spec, 2))
    assert refusal_by_key(spec, 1) is None


@pytest.mark.parametrize("more", [{}, {"identity": ["k", "n"]}])
def test_known_differences_with_counts_are_divided_by_key(more: dict[str, Any]) -> None:
    assert refusal_by_key(spec_of(PER_KEY, known_differences=[COUNT], **more), 2) is None
