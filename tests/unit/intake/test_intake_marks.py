"""Marks on their way from the headers of records to the comparison, in the service and offline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.retries import Reader, Row, replays, rows
from tests.support.saying import TOPICS, VERSIONS, control_record
from tests.support.streams import LEFT, RIGHT, spec
from tests.support.workers import SPEC, Bench
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.errors import InputError
from twinstream.intake.control import ControlDesk
from twinstream.offline.check import check
from twinstream.offline.file_start import with_partitions
from twinstream.ports import Batch, ControlEntry, Line
from twinstream.reporting.accounts import account_of
from twinstream.spec.decode.headers import ATTEMPT, BATCH, QUERY, Headers
from twinstream.spec.load import digest, loads

BROKEN: Headers = [(QUERY, b"q"), (BATCH, b"one"), (ATTEMPT, b"e/0.0")]
IGNORE = "kinds: {beat: {where: {k: hb}, ignore: true}, event: {}}\n"


def lines(written: Sequence[tuple[Side, Row]]) -> Iterator[Line]:
    offsets = [0, 0]
    for number, (side, row) in enumerate(written, 1):
        record = json.dumps(row.value).encode()
        yield Line(side, record, row.partition, offsets[side], 0, "t", number, number, headers=row.headers)
        offsets[side] += 1


def answer(text: str, left: str, right: str, **options: bool) -> dict[str, Any]:
    written = [*((LEFT, row) for row in rows(left)), *((RIGHT, row) for row in rows(right))]
    return check(spec(text), lines(written), **options)


def test_a_record_with_marks_that_cannot_be_read_is_undecodable_with_the_reason() -> None:
    reader = Reader(replays(more="undecodable: {budget: 1}\n" + IGNORE))
    records = [b'{"k":"a"}', b'{"k":"hb"}', b'{"k":"b"}', b"{", b'{"k":"c"}']
    headers = [[], BROKEN, BROKEN, BROKEN, []]
    reader.intake.take(Batch(LEFT, 0, records, range(5), [0] * 5, headers))
    refused = [(record.offset, record.reason) for record in reader.intake.undecodable]
    assert refused[0] == (2, "its header twinstream-batch is no number (text, 3 characters)")
    assert [offset for offset, _ in refused] == [2, 3]
    assert "JSON" in refused[1][1]
    account = account_of(reader.comparison, LEFT)
    assert (account["ignored"], account["undecodable"], account["unmatched"]) == (1, 2, 2)
    assert len(reader.reasons()) == 1


def test_headers_are_of_no_concern_where_every_copy_counts() -> None:
    reader = Reader("unordered")
    reader.intake.take(Batch(LEFT, 0, [b"{}"], range(1), [0], [BROKEN]))
    assert account_of(reader.comparison, LEFT)["unmatched"] == 1


def test_the_account_has_what_was_replayed() -> None:
    reader = Reader(replays())
    reader.read(LEFT, rows("1/e/0.0:ab 1/e/0.1:abc"))
    account = account_of(reader.comparison, LEFT)
    assert (account["consumed"], account["replayed"], account["unmatched"]) == (5, 2, 3)


def test_recorded_input_has_marks_too() -> None:
    found = answer(replays(), "1/e/0.0:abc", "1/x/0.0:ca 1/y/0.0:bca")
    assert (found["verdict"], found["matched"]) == ("EQUIVALENT", 3)
    assert found["accounts"]["candidate"]["replayed"] == 2
    assert answer("unordered", "1/e/0.0:abc", "1/x/0.0:ca 1/y/0.0:bca")["verdict"] == "DIVERGED"


def test_recorded_input_with_marks_that_cannot_be_read_is_bad_input() -> None:
    line = Line(LEFT, b"{}", 0, 0, 0, "t", 1, 1, headers=BROKEN)
    with pytest.raises(InputError, match="twinstream-batch is no number"):
        check(spec(replays()), [line])


def test_marks_outlast_a_second_reading() -> None:
    line = Line(LEFT, b"{}", 0, 0, 0, "t", 1, 1, headers=rows("1/e/0.0:a")[0].headers)
    _, again = with_partitions([line])
    assert [found.headers for found in again] == [line.headers]


def test_where_records_have_no_marks_the_reason_of_a_difference_says_so() -> None:
    found = answer(replays(), "1/e/0.0:ab", ":ab 1/e/0.0:ab")
    assert found["verdict"] == "DIVERGED"
    assert found["reason"].endswith(" 2 records without marks were taken as they are.")
    assert " 1 record without marks was taken as it is." in answer(replays(), "1/e/0.0:ab", ":a")["reason"]
    assert "marks" not in answer(replays(), "1/e/0.0:ab", "1/e/0.0:a")["reason"]


def test_a_difference_in_an_open_batch_is_not_decided_yet() -> None:
    found = answer(replays("total"), "1/e/0.0:ab", "1/e/0.0:ba", open_ended=True)
    assert found["verdict"] == "INCONCLUSIVE"
    assert "it counts once the batches open at that time are finished" in found["reason"]


def test_a_batch_whose_attempts_do_not_agree_yet_is_not_enough() -> None:
    found = answer(replays(), "1/e/0.0:ab", "1/x/0.0:a 1/y/0.0:b", open_ended=True)
    assert (found["verdict"], found["matched"]) == ("PENDING", 2)
    assert "query q of the candidate writes batch 1 again" in found["reason"]


def test_the_moment_of_a_difference_is_that_of_its_proof() -> None:
    found = answer(replays("total"), "1/e/0.0:ab 2/e/0.0:c", "1/e/0.0:ba 2/e/0.0:c")
    assert (found["verdict"], found["decided_at"]) == ("DIVERGED", 4)


def test_a_comparison_that_is_strict_keeps_its_digest() -> None:
    assert digest(spec()) == digest(spec(more="duplicates: {policy: strict, horizon: 3}"))
    told = [digest(spec(replays("total", horizon))) for horizon in (3, 4)]
    assert len({digest(spec()), *told}) == 3


# -- the service -------------------------------------------------------------------------------------------

SERVED = SPEC + "duplicates: {policy: replays}\n"


def write(bench: Bench, side: Side, text: str) -> None:
    for row in rows(text):
        bench.source.append(side, row.partition, json.dumps(row.value).encode(), 0, row.headers)


def test_the_service_tells_retries() -> None:
    bench = Bench(spec=SERVED)
    write(bench, LEFT, "1/e/0.0:ab 2/e/0.0:a")
    write(bench, RIGHT, "1/x/0.0:a 1/y/0.0:ba 2/y/0.0:a")
    status = bench.run(bench.started())
    assert status.verdict == "EQUIVALENT"
    assert status.accounts.candidate.replayed == 1
    write(bench, RIGHT, "1/z/0.0:ab 2/z/0.0:a")
    status = bench.run(bench.restarted())
    assert status.verdict == "EQUIVALENT"
    assert status.accounts.candidate.replayed == 4


def test_the_service_says_diverged_when_the_batch_is_read() -> None:
    bench = Bench(spec=SERVED.replace("{per_key: [k]}", "total"))
    write(bench, LEFT, "1/e/0.0:ab")
    write(bench, RIGHT, "1/x/0.0:aab")
    bench.finds("INCONCLUSIVE", "it counts once the batches open at that time are finished")
    write(bench, LEFT, "2/e/0.0:b")
    write(bench, RIGHT, "2/x/0.0:b")
    bench.run()
    status = bench.run(bench.restarted())
    assert status.verdict == "DIVERGED"
    assert "records without marks" not in status.reason


def test_the_service_passes_nothing_while_attempts_do_not_agree() -> None:
    bench = Bench(spec=SERVED)
    write(bench, LEFT, "1/e/0.0:ab")
    write(bench, RIGHT, "1/x/0.0:a 1/y/0.0:b")
    bench.finds("PENDING", "no attempt has come to all of it yet")
    write(bench, RIGHT, "2/y/0.0:c")
    write(bench, LEFT, "2/e/0.0:c")
    status = bench.run()
    assert status.verdict == "INCONCLUSIVE"
    assert status.holes[0].position is not None
    assert status.holes[0].side == "candidate"


@pytest.mark.parametrize(
    ("emits", "mode", "trouble"),
    [
        ("append", "append", None),
        ("append", "update", "its query is in update mode, and the file says `emits: append`"),
        ("{upsert: {key: [k], settled_by: input}}", "update", None),
        ("{complete: {key: [k], settled_by: input}}", "complete", None),
    ],
)
def test_a_query_whose_rows_replace_each_other_is_no_trouble_where_the_file_says_so(
    emits: str, mode: str, trouble: str | None
) -> None:
    heard: list[Finished] = []
    file = f"{VERSIONS}order: unordered\ncontrol: said\noverdue: {{clock: input}}\nemits: {emits}\n"
    desk = ControlDesk(loads(file), lambda _, fact: heard.append(fact))
    desk.take(
        [ControlEntry(7, control_record("1", 0, {"in": {"0": 5}}, {TOPICS[0]: {"0": 1}}, mode=mode))], None
    )
    assert (desk.trouble is None, len(heard)) == (trouble is None, int(trouble is None))
    assert (trouble or "") in (desk.trouble or "")


def test_a_row_of_a_whole_table_needs_the_number_of_its_batch() -> None:
    file = f"{VERSIONS}order: unordered\nemits: {{complete: {{key: [k], settled_by: input}}}}\n"
    lines = [
        Line(side, b'{"k":1}', 0, 0, 0, "f", 1, 1, headers=headers)
        for side, headers in ((LEFT, [("twinstream-batch", b"0")]), (RIGHT, [("twinstream-batch", b"x")]))
    ]
    assert check(loads(file), lines[:1])["accounts"]["reference"]["consumed"] == 1
    with pytest.raises(InputError, match="its header twinstream-batch is no number"):
        check(loads(file), lines)
    with pytest.raises(InputError, match="it lacks the header twinstream-batch, that tells which rows are"):
        check(loads(file), [lines[0]._replace(headers=())])
