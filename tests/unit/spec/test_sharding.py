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
VERSIONS = {
    "reference": {"topic": "r", "version": "1"},
    "candidate": {"topic": "c", "version": "2"},
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
        (
            PER_KEY,
            {"emits": {"complete": {"key": ["k"], "settled_by": "input"}}, "kinds": {}},
            "known by its rows of all keys",
        ),
        (PER_KEY, {"duplicates": {"policy": "replays"}}, "have to agree in the rows of all keys"),
        ({"barrier": ["e"], "inner": PER_KEY}, {}, "one with a copy in each partition can be divided by"),
        ("unordered", {"checks": [{"id": "c", "once": ["k"], "horizon": "1h"}]}, "or `identity`"),
        (PER_KEY, {"checks": [{"id": "c", "once": ["m"], "horizon": "1h"}]}, "name k among its fields"),
        (PER_KEY, {"checks": [{"id": "c", "ascending": "v"}]}, "name k among its fields"),
        (
            {"by_key": ["k"], "inner": "unordered"},
            {"identity": ["n"], "checks": [{"id": "c", "key_partition": ["k"]}]},
            "name k, n among its fields",
        ),
        (
            PER_KEY,
            {"checks": [{"id": "c", "watermark": "never_back"}], "control": "x", **VERSIONS},
            "control records, which belong to no key",
        ),
    ],
)
def test_what_no_shard_knows_is_refused_with_the_reason(order: Any, more: dict[str, Any], why: str) -> None:
    spec = spec_of(order, **more)
    assert why in str(refusal_by_key(spec, 2))
    assert refusal_by_key(spec, 1) is None


@pytest.mark.parametrize(
    ("order", "more"),
    [
        (PER_KEY, {"known_differences": [COUNT]}),
        (PER_KEY, {"known_differences": [COUNT], "identity": ["k", "n"]}),
        (PER_KEY, {"checks": [{"id": "c", "once": ["k", "n"], "horizon": "1h"}]}),
        (PER_KEY, {"checks": [{"id": "c", "key_partition": []}, {"id": "d", "not_null": ["v"]}]}),
        ("unordered", {"checks": [{"id": "c", "ascending": "v", "per": ["n"]}], "identity": ["n"]}),
        ("unordered", {"checks": [{"id": "c", "not_null": ["v"]}]}),
        ("unordered", {"emits": {"upsert": {"key": ["k"], "settled_by": "input"}}, "kinds": {}}),
        (
            PER_KEY,
            {
                "emits": {"retract": {"id": "k", "valid_from": "f", "valid_to": "t", "settled_by": "input"}},
                "kinds": {},
            },
        ),
    ],
)
def test_what_each_shard_can_judge_by_itself_is_divided_by_key(order: Any, more: dict[str, Any]) -> None:
    assert refusal_by_key(spec_of(order, **more), 2) is None
