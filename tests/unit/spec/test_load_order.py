"""Every way to write an order wrong, and the sentence that says so; with the line, however deep it stands."""

from __future__ import annotations

import pytest

from tests.support.refusals import HEAD, refusal
from twinstream.spec.load import loads

KINDS = """\
kinds:
  end_of_day: {where: {type: eod}}
  end_of_month: {where: {type: eom}}
  heartbeat: {where: {type: hb}, ignore: true}
  ride: {}
"""
NESTED = f"""\
{HEAD}{KINDS}order:
  barrier: end_of_day
  inner:
    by_key: [region]
    inner:
      barrier: [end_of_month]
      inner:
"""


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            "sorted",
            (
                '`order`: must be an order, but "sorted" was given; write `unordered`, `total`, or a mapping '
                "with one of per_key, by_key, barrier, parallel, dependent, callable"
            ),
        ),
        ("totl", '`order`: must be an order, but "totl" was given; did you mean `total`?'),
        (
            "perkey",
            '`order`: must be an order, but "perkey" was given; did you mean a mapping with the key `per',
        ),
        ("[total]", '`order`: must be an order, but ["total"] was given; write `unordered`'),
        ("{}", "`order`: is not an order; write `unordered`, `total`, or a mapping with one of per_key"),
        ("{inner: total}", "`order`: is not an order; write `unordered`"),
        ("{zzz: 1}", "`order.zzz`: is not an order; write `unordered`"),
        ("{1: 2}", "`order.1`: is not an order; write `unordered`"),
        ("{per_kye: [a]}", "`order.per_kye`: is not an order; did you mean `per_key`?"),
        ("{barier: eod, inner: total}", "`order.barier`: is not an order; did you mean `barrier`?"),
        ("{inner: total, barier: eod}", "`order.barier`: is not an order; did you mean `barrier`?"),
        ("{dependant: [[a, b]]}", "`order.dependant`: is not an order; did you mean `dependent`?"),
        (
            "{per_key: [a], barrier: b}",
            "`order`: holds `per_key` and `barrier`, which are two orders; write one as the `inner` of t",
        ),
        ("{per_key: []}", "`order.per_key`: must name 1 or more, but [] was given"),
        ("{per_key: a}", '`order.per_key`: must be a list, but "a" was given'),
        ("{per_key: [5]}", "`order.per_key.0`: must be a text, but 5 was given"),
        ("{per_key: [a], inner: total}", "`order.inner`: is not a key of this mapping; known are per_key"),
        ("{by_key: [a]}", "`order.inner`: is required and missing"),
        ("{by_key: [], inner: total}", "`order.by_key`: must name 1 or more"),
        ("{by_key: [a], iner: total}", "`order.iner`: is not a key of this mapping; did you mean `inner`?"),
        ("{barrier: end_of_day}", "`order.inner`: is required and missing"),
        ("{barrier: [], inner: total}", "`order.barrier`: must name 1 or more, but [] was given"),
        ("{barrier: [''], inner: total}", '`order.barrier.0`: must not be empty, but "" was given'),
        ("{barrier: 5, inner: total}", "`order.barrier`: must be a list, but 5 was given"),
        (
            "{barrier: end_of_day, inner: total, copies: two}",
            "`order.copies`: must be 'one' or 'per_partition', but \"two\" was given",
        ),
        ("{barrier: end_of_day, inner: totl}", '`order.inner`: must be an order, but "totl" was given; did'),
        ("{parallel: {}}", "`order.parallel`: must name 1 or more, but {} was given"),
        ("{parallel: [ride]}", '`order.parallel`: must be a mapping, but ["ride"] was given'),
        ("{parallel: {x: total}}", '`order.parallel.x`: must be a mapping, but "total" was given'),
        (
            "{parallel: {x: {kind: [ride], order: total}}}",
            "`order.parallel.x.kind`: is not a key of this mapping; did you mean `kinds`?",
        ),
        ("{parallel: {x: {kinds: [ride]}}}", "`order.parallel.x.order`: is required and missing"),
        ("{parallel: {x: {kinds: [], order: total}}}", "`order.parallel.x.kinds`: must name 1 or more"),
        ("{dependent: []}", "`order.dependent`: must name 1 or more, but [] was given"),
        ("{dependent: ride}", '`order.dependent`: must be a list, but "ride" was given'),
        (
            "{dependent: [ride]}",
            '`order.dependent.0`: must be a rule, `[a, b]` or `{pair: [a, b], same: [FIELD]}`, but "ride',
        ),
        (
            "{dependent: [[ride]]}",
            '`order.dependent.0`: must be two kinds, such as `[a, b]`, but ["ride"] was given',
        ),
        ("{dependent: [[ride, ride, ride]]}", "`order.dependent.0`: must be two kinds, such as `[a, b]`"),
        ("{dependent: [[ride, 5]]}", "`order.dependent.0`: must be two kinds, such as `[a, b]`"),
        ("{dependent: [{pair: ride, same: [a]}]}", "`order.dependent.0.pair`: must be two kinds, such as"),
        ("{dependent: [{same: [a]}]}", "`order.dependent.0.pair`: is required and missing"),
        (
            "{dependent: [{pair: [ride, ride], sme: [a]}]}",
            "`order.dependent.0.sme`: is not a key of this mapping; did you mean `same`?",
        ),
        (
            "{dependent: [{pair: [ride, ride]}]}",
            (
                "`order.dependent.0`: has none of `same`, `within` and `before`; for always, write the"
                " rule as `[ride, ride]`"
            ),
        ),
        (
            "{dependent: [{pair: [a, b], within: {field: t, less_than: 1}, before: {field: t}}]}",
            "`order.dependent.0`: `within` and `before` exclude each other; write two rules",
        ),
        (
            "{dependent: [{pair: [ride, ride], same: [5]}]}",
            "`order.dependent.0.same.0`: must be a field, or `{first: FIELD, second: FIELD}`, but 5 was",
        ),
        (
            "{dependent: [{pair: [a, b], same: [{frst: x, second: y}]}]}",
            "`order.dependent.0.same.0.frst`: is not a key of this mapping; did you mean `first`?",
        ),
        (
            "{dependent: [{pair: [a, b], same: [{first: x}]}]}",
            "`order.dependent.0.same.0.second`: is required",
        ),
        ("{dependent: [{pair: [a, b], same: [{1: x}]}]}", "`order.dependent.0.same.0.first`: must be a text"),
        ("{dependent: [{pair: [a, b], same: ['']}]}", "`order.dependent.0.same.0`: must not be empty"),
        (
            "{dependent: [{pair: [a, b], within: {field: t}}]}",
            "`order.dependent.0.within.less_than`: is required and missing",
        ),
        (
            "{dependent: [{pair: [a, b], within: {field: t, less_than: 0}}]}",
            "`order.dependent.0.within.less_than`: must be more than 0, but 0 was given",
        ),
        (
            "{dependent: [{pair: [a, b], within: {field: t, less_then: 1}}]}",
            "`order.dependent.0.within.less_then`: is not a key of this mapping; did you mean `less_than`?",
        ),
        (
            "{dependent: [{pair: [a, b], within: {field: t, less_than: 1s}}]}",
            '`order.dependent.0.within.less_than`: "1s" is not a number; write it like 0.01 or 1e-6',
        ),
        ("{dependent: [{pair: [a, b], before: t}]}", "`order.dependent.0.before`: must be a mapping, but"),
        (
            "{callable: same_taxi}",
            '`order.callable`: "same_taxi" names no function; write it like `package.module:function`',
        ),
        ("{callable: 'a b:c'}", '`order.callable`: "a b:c" names no function'),
    ],
)
def test_a_wrong_order_is_named_by_the_form_that_was_meant(order: str, message: str) -> None:
    assert f"ads.yaml:10: {message}" in refusal(f"{HEAD}{KINDS}order: {order}\n")


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (
            "        per_kye: [a]",
            "ads.yaml:17: `order.inner.inner.inner.per_kye`: is not an order; did you mean `per_key`?",
        ),
        ("        per_key: a", "ads.yaml:17: `order.inner.inner.inner.per_key`: must be a list"),
        (
            (
                "        parallel:\n          x: {kinds: [ride], order: total}\n          y:\n"
                "            kinds: [rid]\n            order: total"
            ),
            "ads.yaml:20: `order.inner.inner.inner.parallel.y.kinds`: `rid` is not a declared kind; did",
        ),
        (
            (
                "        dependent:\n        - [ride, ride]\n        - pair: [ride, ride]\n"
                "          same:\n          - a\n          - first: x"
            ),
            "ads.yaml:22: `order.inner.inner.inner.dependent.1.same.1.second`: is required and missing",
        ),
        (
            (
                "        dependent:\n        - [ride, ride]\n        - pair:\n          - ride\n"
                "          - eod\n          same: [a]"
            ),
            "ads.yaml:21: `order.inner.inner.inner.dependent.1.pair`: `eod` is not a declared kind",
        ),
        (
            "        per_key:\n        - taxi\n        - taxi",
            "ads.yaml:19: `order.inner.inner.inner.per_key`: names `taxi` twice",
        ),
        (
            "        per_key:\n        - taxi\n        - $offset",
            "ads.yaml:19: `order.inner.inner.inner.per_key`: `$offset` is no part of a record",
        ),
        (
            "        per_key: [taxi]\nequality:\n  quantum:\n    fare: 1\n    taxi: 1",
            (
                "ads.yaml:21: `equality.quantum`: may not name `taxi`: `taxi` decides the order "
                "(`order.inner.inner.inner.per_key`), so"
            ),
        ),
    ],
)
def test_what_is_wrong_deep_inside_has_its_own_line(inner: str, message: str) -> None:
    assert message in refusal(NESTED + inner)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            "{barrier: end_of_dy, inner: total}",
            "`order.barrier`: `end_of_dy` is not a declared kind; did you mean `end_of_day`?",
        ),
        ("{barrier: [end_of_day, zzz], inner: total}", "`order.barrier`: `zzz` is not a declared kind"),
        ("{barrier: '*', inner: total}", "`order.barrier`: `*` is not a declared kind"),
        ("{dependent: [[ride, rides]]}", "`order.dependent.0`: `rides` is not a declared kind; did you mean"),
        (
            "{barrier: heartbeat, inner: total}",
            "`order.barrier`: `heartbeat` is left out of the comparison by `kinds.heartbeat.ignore`, so",
        ),
        ("{dependent: [['*', heartbeat]]}", "`order.dependent.0`: `heartbeat` is left out of the comparison"),
        ("{barrier: [ride, ride], inner: total}", "`order.barrier`: names `ride` twice"),
        (
            "{barrier: end_of_day, inner: {barrier: end_of_day, inner: total}}",
            "`order.inner.barrier`: `end_of_day` does not come here: it is a barrier of `order.barrier`,",
        ),
        (
            "{barrier: end_of_day, inner: {by_key: [a], inner: {dependent: [[end_of_day, ride]]}}}",
            "`order.inner.inner.dependent.0`: `end_of_day` does not come here: it is a barrier of `order",
        ),
        (
            (
                "{parallel: {x: {kinds: [ride], order: {barrier: end_of_day, inner: total}}, "
                "y: {kinds: [end_of_day, end_of_month], order: total}}}"
            ),
            "`order.parallel.x.order.barrier`: `end_of_day` does not come here: `order.parallel.x.kinds`",
        ),
        (
            (
                "{parallel: {x: {kinds: [ride, end_of_day], order: total}, "
                "y: {kinds: [ride, end_of_month], order: total}}}"
            ),
            "`order.parallel.y.kinds`: `ride` is in two branches, `x` and `y`; leave it in one",
        ),
        (
            "{parallel: {x: {kinds: [ride, ride], order: total}}}",
            "`order.parallel.x.kinds`: names `ride` twice",
        ),
        (
            "{parallel: {x: {kinds: [ride, end_of_day], order: total}}}",
            "`order.parallel`: `end_of_month` comes here and is in none of the branches; name it in one",
        ),
        (
            "{barrier: end_of_day, inner: {parallel: {x: {kinds: [end_of_month], order: total}}}}",
            "`order.inner.parallel`: `ride` comes here and is in none of the branches; name it in one",
        ),
    ],
)
def test_a_kind_that_cannot_come_to_its_place_is_refused(order: str, message: str) -> None:
    assert f"ads.yaml:10: {message}" in refusal(f"{HEAD}{KINDS}order: {order}\n")


@pytest.mark.parametrize(
    ("order", "place"),
    [
        ("{by_key: [k], inner: {barrier: end_of_day, inner: total, COPIES}}", "order.inner"),
        ("{barrier: end_of_day, inner: {barrier: ride, inner: total, COPIES}}", "order.inner"),
        (
            "{parallel: {x: {kinds: [ALL], order: {barrier: ride, inner: total, COPIES}}}}",
            "order.parallel.x.order",
        ),
    ],
)
def test_copies_of_a_barrier_that_divides_no_whole_partitions_are_refused(order: str, place: str) -> None:
    written = order.replace("COPIES", "copies: per_partition").replace(
        "ALL", "end_of_day, end_of_month, ride"
    )
    message = (
        f"`{place}.copies`: `per_partition` says that a barrier divides whole partitions, so only the outerm"
    )
    assert f"ads.yaml:10: {message}" in refusal(f"{HEAD}{KINDS}order: {written}\n")


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            "{barrier: eod, inner: total}",
            "`order.barrier`: tells events apart by their kind, and the file declares none; write `kinds",
        ),
        (
            "{parallel: {x: {kinds: [event], order: total}}}",
            "`order.parallel`: tells events apart by their kind, and the file declares none; write `kind",
        ),
        (
            "{dependent: [[ride, ride]]}",
            "`order.dependent.0`: `ride` is not a declared kind; write it under `kinds` first",
        ),
    ],
)
def test_an_order_of_kinds_needs_kinds(order: str, message: str) -> None:
    assert f"ads.yaml:5: {message}" in refusal(f"{HEAD}order: {order}\n")


def test_without_kinds_all_events_are_of_the_kind_event() -> None:
    loads(f"{HEAD}order: {{dependent: [{{pair: [event, event], same: [taxi]}}]}}")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "{pair: [ride, ride], before: {field: ts}}",
            (
                "`order.dependent.0.before`: `before` asks which event is the earlier, and the rule is"
                " for `ride` with itself: which of the two is the first would decide; write `within`, or"
            ),
        ),
        (
            "{pair: [ride, '*'], before: {field: ts}}",
            (
                "`order.dependent.0.before`: `before` asks which event is the earlier, and the rule is"
                " for two events of one kind, since `*` is every kind"
            ),
        ),
        (
            "{pair: [ride, ride], same: [{first: user, second: user_id}]}",
            (
                "`order.dependent.0.same`: `same` has two names here, `user` and `user_id`, and the rule"
                " is for `ride` with itself: which of the two is the first would decide; write one field"
            ),
        ),
        (
            "{pair: [ride, ride], same: [{from: to}]}",
            "`same` has two names here, `from` and `to`, and the rule",
        ),
        (
            "{pair: ['*', '*'], same: [a, {from: to}]}",
            "`same` has two names here, `from` and `to`, and the rule",
        ),
    ],
)
def test_a_rule_on_a_kind_with_itself_may_not_tell_first_from_second(rule: str, message: str) -> None:
    said = refusal(f"{HEAD}{KINDS}order: {{dependent: [{rule}]}}")
    assert said.startswith("ads.yaml:10: `order.dependent.0.")
    assert message in said


@pytest.mark.parametrize(
    "rule",
    [
        "[ride, '*']",
        "['*', '*']",
        "[ride, ride]",
        "{pair: [ride, '*'], within: {field: ts, less_than: 0.5}}",
        "{pair: [ride, ride], within: {field: ts, less_than: 1}, same: [taxi]}",
        "{pair: [ride, ride], same: [{first: taxi, second: taxi}]}",
        "{pair: [ride, end_of_month], same: [{user: user_id}], before: {field: ts}}",
    ],
)
def test_a_symmetric_rule_is_taken(rule: str) -> None:
    loads(f"{HEAD}{KINDS}order: {{dependent: [{rule}]}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "kinds: {'*': {}}\norder: total",
            "`kinds.*`: `*` stands for every kind in rules, so no kind may have",
        ),
        ("kinds: {'': {}}\norder: total", '`kinds.`: must not be empty, but "" was given'),
        ("identity: [a, b, a]\norder: total", "`identity`: names `a` twice"),
        (
            "identity: [$value]\norder: total",
            "`identity`: `$value` is no part of a record; beside fields of the",
        ),
        (
            "kinds: {a: {where: {$key.x: 1}}}\norder: total",
            "`kinds.a.where`: `$key.x` is no part of a record",
        ),
        (
            "order: {per_key: [$headers]}",
            (
                "`order.per_key`: `$headers` is no part of a record; beside fields of the value there are"
                " $key, $timestamp, $partition and $headers.NAME; a field of the value with this"
            ),
        ),
        (
            "order: {per_key: [$headers.trace.id]}",
            (
                "`$headers.trace.id` is no part of a record; beside fields of the value there are $key,"
                " $timestamp, $partition and $headers.NAME; a dot in the name of a header is written `\\.`"
            ),
        ),
        (
            "order: {per_key: [meta, meta.taxi]}",
            "`order.per_key`: names `meta.taxi` beside `meta`, and one of them holds the other; keep one",
        ),
    ],
)
def test_what_decides_is_a_field_of_the_value_or_a_part_of_the_record(text: str, message: str) -> None:
    assert message in refusal(HEAD + text)


@pytest.mark.parametrize(
    "field",
    ["$key", "$timestamp", "$partition", "$headers.trace", r"$headers.trace\.id", r"\$key", "_id.$oid"],
)
def test_a_part_of_the_record_may_decide(field: str) -> None:
    kinds, order = f"kinds: {{a: {{where: {{'{field}': 1}}}}}}", f"order: {{per_key: ['{field}']}}"
    assert loads(f"{HEAD}{kinds}\n{order}\nidentity: ['{field}']").identity == [field]
