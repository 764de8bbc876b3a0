"""The Python interface: what a user's test meets."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgpack
import pytest

import twinstream
from tests.support import commands
from twinstream import Answer, InputError, Matcher, SpecError, check, load

RIDES: list[dict[str, Any]] = [{"taxi": 7, "n": 1}, {"taxi": 9, "n": 1}, {"taxi": 7, "n": 2}]
SWAPPED = [RIDES[1], RIDES[2], RIDES[0]]
PER_TAXI = {"order": {"per_key": ["taxi"]}}


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "rides.yaml"
    path.write_text(
        "version: 1\nname: rides\nreference: {topic: a}\ncandidate: {topic: b}\norder: {per_key: [taxi]}\n"
    )
    return path


def test_a_comparison_is_a_path_a_spec_or_a_mapping(spec_file: Path) -> None:
    for comparison in (spec_file, str(spec_file), load(spec_file), PER_TAXI):
        assert check(comparison, RIDES, SWAPPED).verdict == "DIVERGED"
        assert check(comparison, RIDES, RIDES[::-1][1:] + RIDES[2:]).equivalent


def test_an_output_is_a_path_values_or_records(tmp_path: Path) -> None:
    records = [json.dumps(ride).encode() for ride in RIDES]
    path = tmp_path / "rides.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join(records)))
    for output in (path, str(path), RIDES, iter(RIDES), tuple(records)):
        assert check(PER_TAXI, output, RIDES).equivalent


def test_an_answer_is_typed_and_is_what_the_command_prints(tmp_path: Path, spec_file: Path) -> None:
    for name, rides in (("a.jsonl", RIDES), ("b.jsonl", SWAPPED)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rides)))
    arguments = ["check", spec_file, "--reference", "a.jsonl", "--candidate", "b.jsonl", "--json"]
    _, printed, _ = commands.twinstream(*arguments, folder=tmp_path)
    answer = check(spec_file, tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert answer.to_dict() == json.loads(printed)
    assert Answer.from_dict(json.loads(printed)).to_dict() == json.loads(printed)
    assert (answer.events.reference, answer.matched, answer.unmatched.candidate) == (3, 2, 0)
    (example,) = answer.examples
    assert (example.kind, example.scope, example.reference) == ("reordered", {"taxi": 7}, RIDES[0])
    assert [seen.position.offset for seen in example.witness] == [2, 1]


def test_an_answer_tells_itself_to_people() -> None:
    answer = check(PER_TAXI, RIDES, SWAPPED)
    assert answer.text == str(answer)
    assert repr(answer) == "<Answer DIVERGED, 2 pairs, 1 divergences>"
    assert answer.text.startswith("DIVERGED The outputs differ, first proven at line 4")
    assert answer.examples[0].diagram in answer.text.replace("\n   ", "\n")
    assert "╳" in str(answer.examples[0])


def test_an_answer_is_not_true_by_accident() -> None:
    with pytest.raises(TypeError, match=r"ask for `answer\.equivalent`"):
        assert check(PER_TAXI, RIDES, RIDES)


def test_what_was_handed_out_cannot_change_the_answer() -> None:
    answer = check(PER_TAXI, RIDES, SWAPPED)
    answer.to_dict()["examples"].clear()
    assert answer.to_dict()["examples"]
    with pytest.raises(ValueError, match="frozen"):
        answer.verdict = "EQUIVALENT"  # type: ignore[misc]


def test_the_options_are_those_of_the_command() -> None:
    assert check({"order": "total"}, [], []).verdict == "INCONCLUSIVE"
    assert check({"order": "total"}, [], [], allow_empty=True).equivalent
    assert check({"order": "unordered"}, RIDES, [], open_ended=True).verdict == "PENDING"
    assert check({"order": "unordered"}, RIDES, RIDES, require_evidence=True).verdict == "PENDING"
    assert check({"order": "unordered"}, RIDES, RIDES, interleave="reference-first").max_unmatched == 3


def test_a_trace_is_read_instead_of_two_outputs(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"side":"reference","value":1}\n{"side":"candidate","value":2}\n')
    assert check({"order": "total"}, trace=trace).decided_at == 2
    with pytest.raises(TypeError, match="give reference and candidate, or trace alone"):
        check({"order": "total"}, RIDES, trace=trace)


def test_decimals_are_compared_exactly() -> None:
    one, other = [{"fare": Decimal("0.1")}], [{"fare": Decimal("0.10000000000000000001")}]
    assert check({"order": "total"}, one, [{"fare": 0.1}]).equivalent
    assert not check({"order": "total"}, one, other).equivalent


@pytest.mark.parametrize("output", [b"[]", {"a": 1}, 5])
def test_an_output_that_is_none_is_refused(output: Any) -> None:
    kind = type(output).__name__
    with pytest.raises(InputError, match=f"^candidate: must be a path or values in their order, but {kind} "):
        check({"order": "total"}, [], output)


def test_a_mapping_that_is_no_comparison_is_refused_by_key_and_not_by_line() -> None:
    with pytest.raises(SpecError, match=r"^the comparison: `orde`: unknown key; did you mean"):
        check({"orde": "total"}, [], [])


def test_a_value_that_is_no_event_is_named_by_its_side_and_number() -> None:
    with pytest.raises(
        InputError, match=r"^candidate:2: not an event of this comparison: field `taxi`, that"
    ):
        check(PER_TAXI, RIDES, [RIDES[0], {"taxii": 7}])
    with pytest.raises(InputError, match=r"^reference:1: nan is no JSON number$"):
        check(PER_TAXI, [{"taxi": 7, "fare": float("nan")}], RIDES)


def test_a_matcher_knows_its_verdict_after_every_event() -> None:
    matcher = Matcher(order={"per_key": ["taxi"]})
    verdicts = [matcher.verdict]
    for side, ride in (("r", 0), ("c", 1), ("r", 1), ("c", 0), ("r", 2), ("c", 2)):
        (matcher.reference if side == "r" else matcher.candidate)(RIDES[ride])
        verdicts.append(matcher.verdict)
    waiting = ["PENDING"] * 4
    assert verdicts == [*waiting, "EQUIVALENT", "PENDING", "EQUIVALENT"]
    assert matcher.end().equivalent


def test_a_matcher_decides_at_the_first_event_at_which_it_can() -> None:
    matcher = Matcher(PER_TAXI)
    matcher.reference(*RIDES)
    matcher.candidate(RIDES[2])
    assert matcher.verdict == "DIVERGED"
    matcher.candidate(RIDES[0], RIDES[1])
    answer = matcher.end()
    assert (answer.verdict, answer.decided_at) == ("DIVERGED", 4)
    assert matcher.end() is answer


def test_a_side_of_a_matcher_can_end_before_the_other() -> None:
    matcher = Matcher(order="unordered")
    matcher.reference(1)
    matcher.end_candidate()
    assert matcher.verdict == "DIVERGED"
    with pytest.raises(InputError, match=r"^candidate:1: the candidate goes on after its end$"):
        matcher.candidate(1)
    matcher.end_reference()
    assert matcher.end().divergences.by_kind["missing"] == 1


def test_a_matcher_that_has_ended_takes_nothing_more() -> None:
    matcher = Matcher(order="unordered")
    matcher.reference(1)
    assert matcher.end(open_ended=True).verdict == matcher.verdict == "PENDING"
    with pytest.raises(InputError, match=r"^reference:2: the comparison has ended$"):
        matcher.reference(1)


def test_a_matcher_is_given_one_comparison() -> None:
    for arguments in ((PER_TAXI, {"order": "total"}), (None, {})):
        with pytest.raises(TypeError, match="give a comparison, or the keys of one"):
            Matcher(arguments[0], **arguments[1])


def test_every_public_name_is_there_and_no_other() -> None:
    assert set(twinstream.__all__) <= set(dir(twinstream))
    assert all(getattr(twinstream, name) is not None for name in twinstream.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'chek'"):
        twinstream.chek  # type: ignore[attr-defined]  # noqa: B018


def test_a_command_does_not_wait_for_what_it_does_not_need() -> None:
    names = "sorted(name for name in sys.modules if name.startswith('twinstream.'))"
    program = f"import sys, twinstream; print({names})"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert found.decode().strip() == "[]"


RAW = [msgpack.packb(ride) for ride in RIDES]


def test_binary_records_are_given_as_bytes_and_each_side_may_have_its_format() -> None:
    sides = {"reference": {"topic": "r", "decode": {"format": "msgpack"}}, "candidate": {"topic": "c"}}
    assert check({**PER_TAXI, **sides}, RAW, RIDES).equivalent
    (example,) = check({**PER_TAXI, **sides}, RAW, RIDES[:2]).examples
    assert (example.kind, example.reference) == ("missing", RIDES[2])


def test_a_tombstone_is_no_event_and_no_end(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    gone = '{"side":"reference","value_base64":null}\n'
    trace.write_text(gone + '{"side":"reference","value":1}\n{"side":"candidate","value":1}\n')
    with pytest.raises(InputError, match=r"trace.jsonl:1: not an event of this comparison: a tombstone"):
        check({"order": "total"}, trace=trace)
    answer = check({"order": "total", "decode": {"tombstones": "ignore"}}, trace=trace)
    assert (answer.equivalent, answer.accounts.reference.ignored) == (True, 1)


def test_what_a_record_has_beside_its_value_is_compared_where_it_is_named(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines = [("reference", "a"), ("reference", "b"), ("candidate", "b"), ("candidate", "c")]
    trace.write_text("\n".join(json.dumps({"side": s, "value": 1, "key": k}) for s, k in lines))
    answer = check({"order": {"per_key": ["$key"]}, "identity": ["$partition"]}, trace=trace)
    (example,) = answer.examples
    assert (example.kind, example.scope) == ("changed", {"$key": "a"})
    assert example.fields["$key"].candidate == "c"
    assert example.reference == {"$value": 1, "$key": "a", "$partition": 0, "$headers": {}}
    with pytest.raises(InputError, match="reference: holds values alone"):
        check({"order": {"per_key": ["$key"]}}, [1], [1])
