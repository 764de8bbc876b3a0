"""Which changes of a comparison file can be tried beside the comparison that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinstream.cli.serve import serve, tried_beside
from twinstream.errors import SettingsError
from twinstream.spec.load import loads
from twinstream.spec.trial import changes, finer, midway, refusal

LIVE = """
version: 1
name: rides
reference: {topic: a}
candidate: {topic: b}
order: {per_key: [taxi]}
"""
KNOWN = """known_differences:
  - {id: X, when: {divergences: [missing]}, owner: me, expires: 2099-01-01, ceiling: {count: 1}}
"""


@pytest.mark.parametrize(
    "change",
    [
        "kinds: {hb: {where: {t: hb}, ignore: true}, ride: {}}",
        "equality: {ignore: [at]}",
        "identity: [id]",
        "overdue: {after: 5s}",
        "evidence: {matched: 1}",
        "limits: {unmatched_events: 7}",
        KNOWN,
    ],
)
def test_the_rules_may_differ(change: str) -> None:
    live, trial = loads(LIVE), loads(LIVE + change)
    assert refusal(live, trial) is None
    assert changes(live, trial) == (change.partition(":")[0],)


def test_the_order_may_differ() -> None:
    assert refusal(loads(LIVE), loads(LIVE.replace("{per_key: [taxi]}", "unordered"))) is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("topic: b", "topic: c", "`candidate` must be"),
        ("order:", "decode: {format: msgpack}\norder:", "`decode` must be"),
        ("order:", "start: {at: event_time, field: ts, from: 5}\norder:", "`start` must be"),
        ("order:", "show: [taxi]\norder:", "`show` must be"),
        ("order:", "duplicates: {policy: replays}\norder:", "`duplicates` must be"),
        ("topic: a}", 'topic: a, version: "2"}', "`reference` must be"),
        ("[taxi]", "[$key]", "it reads more of a record than its value"),
    ],
)
def test_what_decides_which_records_are_read_may_not_differ(old: str, new: str, what: str) -> None:
    reason = refusal(loads(LIVE), loads(LIVE.replace(old, new)))
    assert reason is not None
    assert what in reason


def test_a_refusal_names_what_may_differ() -> None:
    reason = refusal(loads(LIVE), loads(LIVE.replace("topic: b", "topic: c")))
    assert reason is not None
    assert reason.endswith(
        "what may differ is `kinds`, `order`, `equality`, `identity`, `known_differences`, `overdue`, "
        "`evidence`, `undecodable`, `on_divergence`, `limits`, `gate`"
    )


def test_the_clock_of_the_input_is_not_tried_where_nobody_reads_it() -> None:
    live = LIVE.replace("order:", "control: c\norder:")
    live = live.replace("topic: a}", "topic: a, version: x}").replace("topic: b}", "topic: b, version: y}")
    reason = refusal(loads(live), loads(live + "overdue: {clock: input}"))
    assert reason is not None
    assert reason.startswith("`overdue: {clock: input}` needs the control topic")


def test_nothing_is_tried_beside_a_comparison_that_keeps_no_records() -> None:
    live = LIVE + "keep: hashes\n"
    reason = refusal(loads(live), loads(live + "evidence: {matched: 1}"))
    assert reason is not None
    assert "`twinstream check --brokers`, or leave --trial out" in reason
    assert "`keep` must be as" in (refusal(loads(LIVE), loads(live)) or "")


@pytest.mark.parametrize(
    ("trials", "shards", "reason"),
    [
        (
            [LIVE.replace("rides", "other")],
            1,
            "--trial t0.yaml: it is of comparison 'other', and served is rides",
        ),
        ([LIVE], 1, "--trial t0.yaml: it says the same as the comparison file of rides"),
        (
            [LIVE + "evidence: {matched: 1}", LIVE + "evidence: {matched: 2}"],
            1,
            "t1.yaml: another file is tried",
        ),
        ([LIVE + "evidence: {matched: 1}"], 2, "2 matchers share the comparison"),
    ],
)
def test_a_trial_that_cannot_be_is_refused_with_its_reason(
    trials: list[str], shards: int, reason: str
) -> None:
    files = {f"t{number}.yaml": loads(text) for number, text in enumerate(trials)}
    with pytest.raises(SettingsError) as refused:
        tried_beside([loads(LIVE)], files, shards)
    assert reason in str(refused.value)


def test_a_process_without_matchers_has_no_trial(tmp_path: Path) -> None:
    (tmp_path / "live.yaml").write_text(LIVE)
    given = [str(tmp_path / "live.yaml"), "--role", "api", "--trial", str(tmp_path / "live.yaml")]
    with pytest.raises(SettingsError, match="--trial is for a process with matchers"):
        serve.main(given, standalone_mode=False)


def test_a_trial_goes_with_the_comparison_of_its_name() -> None:
    live, trial = loads(LIVE), loads(LIVE + "evidence: {matched: 1}")
    other = loads(LIVE.replace("rides", "other"))
    assert tried_beside([other, live], {"t.yaml": trial}, 1) == {"rides": trial}


@pytest.mark.parametrize(
    ("live", "trial", "keys"),
    [
        ("", "equality: {ignore: [at]}", ()),
        ("equality: {ignore: [at]}", "equality: {ignore: [at, by]}", ()),
        ("equality: {ignore: [at, by]}", "equality: {ignore: [by]}", ("equality",)),
        ("equality: {quantum: {fare: 0.1}}", "equality: {quantum: {fare: 1}}", ("equality",)),
        ("", "equality: {unordered: [stops]}", ("equality",)),
        ("", KNOWN, ()),
        ("", "identity: [id]", ()),
        ("", "kinds: {hb: {where: {t: hb}, ignore: true}, ride: {}}", ("kinds",)),
        ("equality: {tolerance: {fare: {abs: 1}}}", "equality: {tolerance: {fare: {abs: 1}}}\nidentity: [id]",
         ("identity",)),
    ],
)  # fmt: skip
def test_rules_are_finer_where_they_may_tell_apart_what_was_paired(
    live: str, trial: str, keys: tuple[str, ...]
) -> None:
    assert finer(loads(LIVE + live), loads(LIVE + trial)) == keys


def test_another_order_is_finer_only_where_a_tolerance_decides_who_is_equal() -> None:
    tolerant = LIVE + "equality: {tolerance: {fare: {abs: 1}}}"
    for file, keys in ((LIVE, ()), (tolerant, ("order",))):
        assert finer(loads(file), loads(file.replace("{per_key: [taxi]}", "total"))) == keys


NO_ORDER = LIVE.replace("{per_key: [taxi]}", "unordered")
TOTAL = LIVE.replace("{per_key: [taxi]}", "total")
BLIND = "equality: {ignore: [at]}\n"
TOLERANT = "equality: {tolerance: {fare: {abs: 1}}}\n"
PROVES = "overdue: {proves: true}\n"


@pytest.mark.parametrize(
    ("live", "trial", "anytime"),
    [
        (LIVE, LIVE + KNOWN, True),
        (LIVE, TOTAL, True),
        (LIVE, LIVE + BLIND, True),
        (LIVE + BLIND, LIVE, True),
        (LIVE + BLIND, TOTAL, True),
        (NO_ORDER, LIVE + BLIND, False),
        (LIVE, NO_ORDER + BLIND, True),
        (LIVE + PROVES, NO_ORDER + BLIND + PROVES, False),
        (LIVE + PROVES, LIVE + BLIND + PROVES, True),
        (LIVE, LIVE + PROVES, False),
        (LIVE, LIVE.replace("[taxi]", "[taxi, id]") + BLIND, True),
        (LIVE, LIVE.replace("[taxi]", "[id]") + BLIND, False),
        (LIVE + TOLERANT, LIVE + TOLERANT + KNOWN, True),
        (LIVE, LIVE + TOLERANT, True),
        (LIVE + TOLERANT, TOTAL + TOLERANT, False),
    ],
)  # fmt: skip
def test_when_rules_can_begin_beside_a_comparison_under_way(live: str, trial: str, anytime: bool) -> None:
    found = midway(loads(live), loads(trial))
    assert (found.refusal, found.anytime) == (None, anytime)


COPIES = LIVE.replace("order: {per_key: [taxi]}", "kinds: {day: {where: {k: day}}, ride: {}}\n"
    "order: {barrier: day, inner: unordered, copies: per_partition}")  # fmt: skip
REPLAYS = LIVE + "duplicates: {policy: replays}\n"


@pytest.mark.parametrize(
    ("live", "trial", "reason"),
    [
        (NO_ORDER + BLIND, NO_ORDER, "these rules may compare more (`equality`), and could pair what lies"),
        (LIVE, LIVE + "kinds: {hb: {where: {t: hb}}, ride: {}}", "these rules may compare more (`kinds`)"),
        (LIVE + BLIND, LIVE.replace("[taxi]", "[at]"), "these rules may compare more (`equality`)"),
        (REPLAYS, REPLAYS + BLIND, "what both versions have said of their batches by now"),
        (COPIES, COPIES + BLIND, "some partitions may have had their copy of a barrier by now"),
    ],
)
def test_rules_that_cannot_begin_midway_say_why(live: str, trial: str, reason: str) -> None:
    assert (midway(loads(live), loads(trial)).refusal or "").startswith(reason)
