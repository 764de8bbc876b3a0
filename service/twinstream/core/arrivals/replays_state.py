"""Converts replays to plain data and back: the rows of each execution, of all batches or changed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinstream.core.arrivals.attempts import Cell, Execution, MicroBatch, Query
from twinstream.core.arrivals.leaders import Leaders, joined


def merged(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several states of the replays of both sides, the first of them whole, as one whole state."""
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
        "requests": [list(request) for request in query.requests],
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
        "mixed": batch.mixed,
        "counts": batch.counts,
    }


def restored_query(state: dict[str, Any]) -> Query:
    """The query of a whole state. Looks that an earlier version saved have no number: they are made again."""
    query, numbered = Query(), "requests" in state
    query.front = {partition: front for partition, front, _ in state["front"]}
    query.last = {partition: last for partition, _, last in state["front"]}
    query.complete, query.forgotten = state["complete"], state["forgotten"]
    query.told = state["told"]
    query.requests = [(number, newest) for number, newest in state.get("requests", ())]
    for row, kept in zip(state["remembered"], state["batches"], strict=True):
        batch = query.batches[row["number"]] = MicroBatch(tuple(row["place"]), set(row["waits"]))
        batch.retried, batch.refuted, batch.counts = row["retried"], row["refuted"], row["counts"]
        batch.mixed = row.get("mixed", False)
        batch.starts, batch.passed = dict(row["starts"]), row["passed"] if numbered else 0
        if row["open"]:
            query.open[row["number"]] = batch
            if not batch.passed:
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
    for form, held in state["rows"].items():
        for place, copies in ({held: 1} if isinstance(held, int) else held).items():
            execution.add(place, form, copies)
            batch.rows += copies
    execution.lent = {leader: set(places) for leader, places in state.get("lent", {}).items()}
    return execution


def _execution_state(name: str, execution: Execution) -> dict[str, Any]:
    """The rows of an execution: by the hash of a form the attempt that wrote its only copy, or the counts."""
    return {
        "name": name,
        "attempts": [list(attempt) for attempt in execution.attempts],
        "rows": {
            form: dict(held.counts) if isinstance(held, Cell) else held
            for form, held in execution.rows.items()
        },
        **({"lent": {leader: sorted(of) for leader, of in lent.items()}} if (lent := execution.lent) else {}),
    }
