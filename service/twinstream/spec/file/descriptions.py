"""Describes each key of the comparison file, in one line that an editor shows beside the key.

By the name of the class in `twinstream.spec.file.model`, then by the name of the member.
"""

from __future__ import annotations

_EQUALITY = {
    "ignore": "Fields that are not compared.",
    "compare_only": "The only fields that are compared; not together with `ignore`.",
    "quantum": "Field → step: the number is rounded to the nearest multiple before it is compared.",
    "tolerance": "Field → how far two numbers may differ; only where the partner is known without it.",
    "unordered": "Arrays that are compared as multisets: the order of their elements is free.",
    "sets": "Arrays that are compared as sets: order and repeats are free.",
    "absent_is_null": "Whether a member that is missing equals one that is null.",
}

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "Spec": {
        "version": "The version of this format.",
        "name": "The name of the comparison, a DNS label.",
        "reference": "The trusted version and its topic.",
        "candidate": "The new version and its topic.",
        "control": "The topic on which both versions say how far they have come, by their `version`.",
        "decode": "How the values of records are read; a side may have its own.",
        "kinds": "Named classes of events; the first that fits wins. Without it all are of kind `event`.",
        "emits": "Each result is written once; the only mode that can be compared.",
        "order": "Which events must keep their order. Required: there is no safe default.",
        "equality": "Which fields are compared, and how.",
        "identity": "Fields that name what an event is about, so that a difference can be called `changed`.",
        "show": "Fields whose values the service may show; all others are masked.",
        "keep": "What is held of an event that waits for its partner: its `records`, or `hashes` alone.",
        "maps": "Objects whose member names are data: the service masks these names, too.",
        "start": "The cut at which the comparison begins.",
        "duplicates": "What a second copy of an event is.",
        "overdue": "When an unmatched event is overdue, and whether that proves a difference.",
        "evidence": "What must have been compared before the verdict can be EQUIVALENT.",
        "undecodable": "How many records may be no event.",
        "gate": "How fresh a pass must be.",
        "co_partitioned": "Both topics have as many partitions, and events that are equal or dependent "
        "stand in partitions of one number: checked on each pair, and what `serve --shards` needs.",
        "on_divergence": "`continue`, or `halt` at the first difference and ignore everything later.",
        "limits": "Bounds on memory and work.",
        "known_differences": "Differences that are known and explained, for a while and up to a ceiling.",
    },
    "Version": {
        "topic": "The Kafka topic that this version writes.",
        "version": "The name of the version, to be shown.",
        "decode": "How this side's values are read, if not as `decode` says.",
    },
    "Decode": {
        "format": "The format of values.",
        "schema_file": "Avro, protobuf: the file that holds the schema, relative to the comparison file.",
        "registry": "Avro, protobuf: the address of the schema registry.",
        "message": "Protobuf with `schema_file`: the full name of the message type.",
        "tombstones": "What a record without a value is: `undecodable`, or `ignore`d.",
    },
    "EventKind": {
        "where": "Field → value, or list of values; all must hold. Empty fits everything.",
        "ignore": "Whether events of this kind are left out of the comparison, and counted.",
    },
    "PerKey": {"per_key": "Events with equal values of all these fields are in order."},
    "ByKey": {
        "by_key": "Events with different values of these fields are independent.",
        "inner": "The order of events with equal values.",
    },
    "Barrier": {
        "barrier": "The kind, or kinds, that everything here is in order with.",
        "inner": "The order of the events between two barriers.",
        "copies": "`one` barrier for the topic, or one copy of it in each partition.",
    },
    "Parallel": {"parallel": "Branch → its kinds and their order; every kind is in exactly one branch."},
    "Branch": {"kinds": "The kinds in this branch.", "order": "The order of their events."},
    "Dependent": {"dependent": "Rules: exactly the pairs that one of them names are dependent."},
    "PairRule": {
        "pair": "Two kinds; `*` is every kind that comes here.",
        "same": "Fields that must be equal in both events; all must be.",
        "within": "Dependent when a number differs by less than so much.",
        "before": "Dependent when a number of the first kind's event is the smaller.",
    },
    "SamePair": {
        "first": "The field in the event of the first kind.",
        "second": "The field in the event of the second kind.",
    },
    "Within": {"field": "A number in both events.", "less_than": "The difference that is just too large."},
    "Before": {"field": "A number in both events."},
    "CallableOrder": {"callable": "`package.module:function` of two events; the slow way."},
    "Equality": _EQUALITY,
    "SpecEquality": {
        **_EQUALITY,
        "per_kind": "Kind → its own equality, in place of the whole of this one.",
    },
    "Tolerance": {
        "abs": "Two numbers match when they differ by at most this much,",
        "rel": "plus this share of the larger of the two.",
    },
    "Start": {
        "at": "`earliest`: what the topics hold; or a cut: `offsets`, `event_time`, `barrier`.",
        "reference": "`offsets`: partition → the first offset that is compared, for every partition.",
        "candidate": "`offsets`: partition → the first offset that is compared, for every partition.",
        "field": "`event_time`: the field that holds an event's time.",
        "from": "`event_time`: what is earlier is before the start; 2026-01-01T00:00:00Z, or a number.",
        "warm_up": "`event_time`: how long after `from` events still lie before the start.",
    },
    "Duplicates": {
        "policy": "`strict`: an event like any other. `replays`: what a retry has written again is left out.",
        "horizon": "`replays`: how many batches of a query are remembered.",
    },
    "Overdue": {
        "clock": "`arrival`: Kafka's timestamps. `event_time`: a field of the events. `input`: what the two "
        "versions say on the `control` topic.",
        "after": "The age from which an unmatched event is overdue; at least 1s.",
        "proves": "Whether an overdue event is a difference, or only a suspicion.",
        "field": "`event_time`: the field with an event's time, a number or an ISO 8601 text.",
        "window_end": "`input`: the field with the end of the window that an event stands for.",
        "unit": "What a number in `field` or `window_end` counts since 1970.",
        "max_jump": "`event_time`: a time further ahead than this does not count.",
        "idle_after": "`event_time`: a partition without events for so long does not hold its side back.",
    },
    "Evidence": {
        "matched": "Pairs wanted before EQUIVALENT.",
        "seconds": "Seconds of Kafka time wanted before EQUIVALENT.",
        "may_be_absent": "Kinds that need not have matched.",
    },
    "Undecodable": {"budget": "Records of both sides together that may be no event."},
    "Gate": {"max_staleness": "How old `verified_through` may be for a pass."},
    "Limits": {
        "unmatched_events": "Unmatched events held; beyond it a hole.",
        "unmatched_bytes": "Bytes of unmatched events held; beyond it a hole.",
        "lead": "How far a side may run ahead before it waits.",
        "scope_events": "Events in a part that is set aside after a difference; beyond it a hole.",
        "kept_divergences": "Divergences saved with their records; all are counted.",
        "recent_matches": "Matches remembered to name a difference `duplicate`, not `extra`; 0: none.",
        "duplicate_horizon": "Where a known difference names `duplicate`: how many offsets of its partition "
        "a copy may stand behind an equal event; what may be a copy of something further back is a hole.",
    },
    "KnownDifference": {
        "id": "The name of this rule, unique in the file.",
        "when": "Which divergences it explains.",
        "owner": "Who answers for it.",
        "expires": "The day from which it explains nothing any more, in UTC.",
        "ceiling": "How many it may explain.",
        "ticket": "Where it is tracked.",
    },
    "When": {
        "divergences": "The kinds of divergence that it explains.",
        "where": "Field → value, or list of values, that the event must have.",
        "fields": "The only fields that may differ in a `changed` event.",
    },
    "Ceiling": {
        "count": "The largest number of divergences.",
        "share": "The largest share of the events, above 0 and up to 1.",
    },
}
