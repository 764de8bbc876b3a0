"""Converts replays to plain data and back: joined hashes for each attempt, of all batches or changed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from twinstream.core.arrivals.attempts import Cell, Execution, MicroBatch, Query
from twinstream.core.arrivals.leaders import HASH_BYTES, Leaders, joined


def merged(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several states of `Retries`, the first of them whole, as one whole state."""
    sides = []
    for side, last in enumerate(states[-1]["sides"]):
        known: dict[tuple[str, int], Any] = {}
        for state in states:
            for query in state["sides"][side]["queries"]:
                for batch in query["batches"]:
                    place = query["name"], batch["number"]
                    known[place] = _with_leaders(known.get(place), batch)
        queries = [
            {**query, "batches": [known[query["name"], row["number"]] for row in query["remembered"]]}
            for query in last["queries"]
        ]
        sides.append({**last, "queries": queries})
    return {**states[-1], "sides": sides}


def _with_leaders(earlier: dict[str, Any] | None, batch: dict[str, Any]) -> dict[str, Any]:
    """The rows of a batch, with the leaders that only an earlier state has."""
    if earlier is None or "leaders" not in earlier:
        return batch
    return {**batch, "leaders": joined([earlier["leaders"], batch["leaders"]])}


def query_state(name: str, query: Query, *, whole: bool) -> dict[str, Any]:
    """A query as plain data; unless `whole`, only rows of batches that have changed since the last one."""
    changed = [row for row in query.batches.items() if whole or row[1].saved < row[1].rows]
    for _, batch in changed:
        batch.saved = batch.rows
    return {
        "name": name,
        "front": [[partition, front, query.last[partition]] for partition, front in query.front.items()],
        "complete": query.complete,
        "forgotten": query.forgotten,
        "newest_seen": query.newest_seen,
        "told": query.told,
        "remembered": [_batch_state(number, batch, query) for number, batch in query.batches.items()],
        "batches": [
            {
                "number": number,
                "executions": [_execution_state(name, one) for name, one in batch.executions.items()],
                **({"leaders": batch.leaders.state(whole=whole)} if batch.leaders.weight else {}),
            }
            for number, batch in changed
        ],
    }


def _batch_state(number: int, batch: MicroBatch, query: Query) -> dict[str, Any]:
    return {
        "number": number,
        "place": list(batch.place),
        "starts": [list(start) for start in batch.starts.items()],
        "open": number in query.open,
        "waits": sorted(batch.waits),
        "passed": batch.passed,
        "retried": batch.retried,
        "refuted": batch.refuted,
        "counts": batch.counts,
    }


def restored_query(state: dict[str, Any]) -> Query:
    """The query of a whole state."""
    query = Query()
    query.front = {partition: front for partition, front, _ in state["front"]}
    query.last = {partition: last for partition, _, last in state["front"]}
    query.complete, query.forgotten = state["complete"], state["forgotten"]
    query.newest_seen, query.told = state["newest_seen"], state["told"]
    for row, kept in zip(state["remembered"], state["batches"], strict=True):
        batch = query.batches[row["number"]] = MicroBatch(tuple(row["place"]), set(row["waits"]))
        batch.retried, batch.refuted, batch.counts = row["retried"], row["refuted"], row["counts"]
        batch.starts, batch.passed = dict(row["starts"]), row["passed"]
        if row["open"]:
            query.open[row["number"]] = batch
        if row["open"] and not batch.passed:
            query.fresh.add(row["number"])
        for one in kept["executions"]:
            batch.executions[one["name"]] = _restored_execution(one, batch)
        if "leaders" in kept:
            batch.leaders = Leaders.restored(kept["leaders"])
        batch.saved = batch.rows
    return query


def _restored_execution(state: dict[str, Any], batch: MicroBatch) -> Execution:
    execution = Execution()
    for task, attempt in state["attempts"]:
        execution.place(task, attempt)
    for place, forms in zip(state["places"], state["records"], strict=True):
        for form in _cut(forms):
            execution.add(place, form)
        batch.rows += len(forms) // HASH_BYTES
    several = state["several"]
    for place, copies, form in zip(
        several["places"], several["copies"], _cut(several["records"][0]), strict=True
    ):
        execution.add(place, form, copies)
        batch.rows += copies
    return execution


def _execution_state(name: str, execution: Execution) -> dict[str, Any]:
    """The rows of an execution: joined hashes for each attempt, and separately those with several copies."""
    single = sorted(
        ((held, form) for form, held in execution.rows.items() if isinstance(held, int)), key=itemgetter(0)
    )
    groups = [(place, b"".join(map(itemgetter(1), rows))) for place, rows in groupby(single, itemgetter(0))]
    several = [
        (place, copies, form)
        for form, held in execution.rows.items()
        if isinstance(held, Cell)
        for place, copies in held.counts.items()
    ]
    return {
        "name": name,
        "attempts": [list(attempt) for attempt in execution.attempts],
        "places": [place for place, _ in groups],
        "records": [forms for _, forms in groups],
        "several": {
            "places": [place for place, _, _ in several],
            "copies": [copies for _, copies, _ in several],
            "records": [b"".join(form for _, _, form in several)],
        },
    }


def _cut(forms: bytes) -> Iterator[bytes]:
    """The hashes that were joined."""
    return (forms[start : start + HASH_BYTES] for start in range(0, len(forms), HASH_BYTES))
