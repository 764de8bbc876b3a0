"""What is wrong with a command is one sentence on standard error and an exit code, and nothing else."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from tests.support.commands import twinstream
from tests.support.server import TOKENS, served
from tests.support.service import spec_file
from tests.support.statuses import NAME, now, status
from twinstream.answers import Example
from twinstream.api.state.board import Board
from twinstream.testing import check

SPEC = "version: 1\nname: t\nreference: {topic: r}\ncandidate: {topic: c}\norder: total\n"
RIDES = [{"taxi": taxi, "ride": ride} for taxi, ride in ((7, "a"), (9, "b"), (7, "c"), (9, "d"))]
FILES = "--reference a.jsonl --candidate b.jsonl"
TWO = "--reference x --candidate y"
AWAY, AWAY_REDIS = "127.0.0.1:1", "redis://127.0.0.1:1"
NOWHERE = f"--brokers {AWAY} --redis {AWAY_REDIS}"
SERVE = f"ads.yaml {NOWHERE} --bind 127.0.0.1:0"
DRILL = f"ads.yaml {NOWHERE} --kind drop"
ALARM = f"{DRILL} --prometheus http://{AWAY}"
WAITING = f"{NAME} --wait 1h --service"
NO_ADDRESS = "that is not the address of a service; write it like http://127.0.0.1:8080"
NO_FIELD = "no event of either run has such a field"
NO_EVENT = "not an event of this comparison"
BOTH = "--reference and --candidate"
ONE_STREAM = f"{BOTH} are one stream (/dev/stdin), which can be read only once"
TOLD_TO_DRILL = "the drill's service asks for tokens: give it one of its token file in TWINSTREAM_TOKEN"
NO_ANSWER = "answer-{}.json: is not an answer of `twinstream check --json`"
ODD_EXAMPLE = json.dumps(
    {"examples": [dict.fromkeys(Example.model_fields, 7) | {"kind": "missing", "positions": {}, "text": ""}]}
)
ANSWERS = ["", "{", "[]", "{}", '{"examples":[{"id":"a"}]}', '{"examples":5}', ODD_EXAMPLE]

MISTAKES = {
    "check": [
        ("spec.yaml --trace none.jsonl", 2, "none.jsonl: cannot be read: No such file"),
        ("none.yaml --trace a.jsonl", 2, "none.yaml: cannot be read: No such file"),
        ("empty.yaml --trace a.jsonl", 2, "empty.yaml:1: must be a mapping that begins"),
        ("binary.yaml --trace a.jsonl", 2, "binary.yaml: is not a UTF-8 text"),
        ("spec.yaml --trace bad.gz", 2, "bad.gz: is damaged, or is no .gz file: "),
        ("spec.yaml --trace cut.zst", 2, "cut.zst: ends in the middle of its"),
        ("spec.yaml --reference latin.jsonl --candidate a.jsonl", 2,
         f"latin.jsonl:2: {NO_EVENT}: not UTF-8 at byte 6"),
        ("spec.yaml --reference - --candidate /dev/stdin", 2, ONE_STREAM),
        ("spec.yaml --reference - --candidate -", 2, f"{BOTH} cannot both be standard input"),
        ("spec.yaml --trace a.jsonl", 2, "a.jsonl:1: a line of a trace is"),
        ("spec.yaml --reference a.jsonl", 2, f"give {BOTH}, or --trace"),
        ("spec.yaml --trase a.jsonl", 2, "Unknown option '--trase'"),
        ("", 2, "Missing argument 'SPEC'"),
        (f"spec.yaml --brokers {AWAY}", 4, f"twinstream: kafka at {AWAY} does not answer for topic r: "),
        ("spec.yaml --brokers b:1 --reference x", 2, "--reference is a file"),
        (f"spec.yaml --from earliest {TWO}", 2, "--from is for topics"),
        ("rows.yaml --brokers b:1 --from 2026-01-01T00:00:00Z", 2, "with `emits` a table is made of all its"),
        ("rows.yaml --brokers b:1 --to 2026-01-01T00:00:00Z", 2, "with `emits` a table is made of all its"),
        ("spec.yaml --brokers b:1 --slack soon", 2, "Invalid value for '--slack': 'soon' is not a duration"),
        ("spec.yaml --brokers b:1 --to tomorrow", 2, "--to tomorrow: give latest, a time with its zone"),
        (f"spec.yaml {FILES} --report r.txt", 2, "--report r.txt: "),
    ],
    "lint": [
        ("bad.yaml", 2, "twinstream: bad.yaml:5: `order`: must be an order"),
        (f"spec.yaml --brokers {AWAY}", 4, f"twinstream: kafka at {AWAY} does not answer"),
    ],
    "calibrate": [
        (f"--brokers {AWAY} {TWO}", 4, "does not answer"),
        ("", 2, f"give {BOTH}"),
        (f"{FILES} --key ''", 2, "Invalid value for '--key': '' is not a field path"),
        (f"rows.yaml {FILES}", 2, "calibrate compares single events, not rows that replace each other"),
        ("--reference a.jsonl --candidate a.jsonl", 2, "are both the file a.jsonl"),
        ("--reference a.jsonl --candidate bad.jsonl", 2, "bad.jsonl:2: not an event"),
        (f"{FILES} --reference-offsets 0:1-2", 2, "--reference-offsets is for topics"),
        (f"none.yaml {FILES}", 2, "none.yaml: cannot be read"),
        ("--reference many.jsonl --candidate more.jsonl --output no/such/f.yaml", 2, "cannot be written"),
        ("--brokers b:1", 2, "the topics of two runs"),
        ("--brokers b:1 --reference x --candidate x", 2, "each version needs a topic"),
        (f"--brokers b:1 {TWO} --reference-offsets 7", 2, "'7' is not a range of offsets"),
        (f"--brokers b:1 {TWO} --reference-offsets 0:5-3", 2, "'0:5-3' has no offset"),
        (f"--brokers b:1 {TWO} {' --reference-offsets 0:1-2' * 2}", 2, "'0:1-2' is a second range of part"),
        (f"avro.yaml {FILES} --output no/f.yaml", 2, "`rows.avsc` is a path relative to avro.yaml"),
        (f"{FILES} --key taxy", 2, f"twinstream: --key taxy: {NO_FIELD}"),
        (f"{FILES} --identity taxy", 2, f"twinstream: --identity taxy: {NO_FIELD}"),
    ],
    "replay": [
        ("--spec spec.yaml", 2, "give either --divergences FILE or --name COMPARISON"),
        ("--spec spec.yaml --divergences nope.json", 2, "nope.json: cannot be read: No such file or"),
        ("--spec spec.yaml --divergences odd.json", 2, "odd.json:1: is not a divergence of Twinstream"),
        ("--spec spec.yaml --divergences answer.json", 2, "and spec.yaml compares r"),
        (f"--spec spec.yaml --name {NAME} --service {{url}}", 2, "and spec.yaml compares r: give the"),
    ],
    "explain": [
        ("zz --from answer.json", 2, "answer.json has no divergence 'zz'; it has "),
        ("'' --from answer.json", 2, "'' is ambiguous: "),
        ("", 2, "name a divergence by its ID, or give --from FILE"),
        ("--from answer.json --comparison x", 2, "--comparison is for a service"),
        ("--from equal.json", 2, "equal.json: has no divergences"),
        ("d-2 --service {url}", 2, f"no comparison has a divergence 'd-2'; comparisons: {NAME}"),
        (f"d-2 --service {{url}} --comparison {NAME}", 2, "has no divergence"),
        (f"d-1 --service http://{AWAY}", 4, "cannot be reached"),
        *((f"--from answer-{place}.json", 2, NO_ANSWER.format(place)) for place in range(len(ANSWERS))),
    ],
    "divergences": [
        ("nobody --service {url}", 2, "There is no comparison 'nobody'"),
        (f"{NAME} --service {{url}} --kind odd", 2, "'odd' is not one of"),
        (f"{NAME} --service {{url}} --limit 0", 2, "0 is not in the range"),
        (f"{NAME} --service http://{AWAY}", 4, "cannot be reached"),
    ],
    "report": [
        ("other --service {url}", 2, "other"),
        (f"{NAME} --service http://{AWAY}", 4, "cannot be reached"),
        (f"{NAME} --output receipt.pdf", 2, "receipt.pdf: the name ends with .md for Markdown, or with"),
        (f"{NAME} --output no/r.md", 2, "twinstream: --output no/r.md: there is no folder no"),
    ],
    "gate": [
        (f"{NAME} --candidate ''", 2, "it is empty; name VERSION, or leave the option out"),
        (f"{NAME} --spec-digest ''", 2, "it is empty; name DIGEST, or leave the option out"),
        (f"{NAME} --since ''", 2, "it is empty; name TIME, or leave the option out"),
        (f"{NAME} --since 14:02", 2, "'14:02' is not a time with a zone; write it like 2026-03-01T14:02:00Z"),
        (f"{NAME} --wait soon", 2, "'soon' is not a duration; write it like 500ms, 60s, 5m, 2h or 1d"),
        (f"{NAME} --wait 1m --poll 50ms", 2, "it must be at least 100ms"),
        (f"{NAME} --min-matched -1", 2, "-1 is not in the range x>=0"),
        ("nobody --wait 1h --service {url}", 2, f"There is no comparison 'nobody'; available: {NAME}."),
        (f"{WAITING} 127.0.0.1:8080", 2, NO_ADDRESS),
        (f"{WAITING} ftp://host", 2, NO_ADDRESS),
        (f"{WAITING} http://", 2, NO_ADDRESS),
        (f"{WAITING} ''", 2, NO_ADDRESS),
        (f"{WAITING} http://host:abc", 2, NO_ADDRESS),
        (f"{WAITING} http://host:99999", 2, NO_ADDRESS),
        (f"{WAITING} http://[::1", 2, NO_ADDRESS),
        (f"{NAME} --wait 1s --poll 100ms --service http://{AWAY}", 4, "cannot be reached"),
    ],
    "status": [
        ("--token-file none", 2, "cannot be read: No such file"),
        ("--token-file ads.yaml", 2, "must hold one token, and nothing else"),
        ("--ca-file none", 2, "cannot be used: No such file"),
        ("--ca-file ads.yaml", 2, "cannot be used: "),
    ],
    "serve": [
        (f"spec.yaml {NOWHERE} --shards 2", 2, "'t' cannot be divided over 2 shards: events of all keys"),
        (f"rows.yaml {NOWHERE} --bind 127.0.0.1:0", 2, "write `control: TOPIC` and `overdue: {clock:"),
        (f"{SERVE} --results r --config wrong.yaml", 2, "kafka settings: No such configuration property"),
        (f"{SERVE} --token-file none", 2, "none cannot be read: No such file or directory"),
        (f"{SERVE} --tls-cert a --tls-key b", 2, "a cannot be read: No such file"),
        (f"{SERVE} --tls-cert ads.yaml --tls-key ads.yaml", 2, "the certificate, or the key, is no PEM file"),
    ],
    "drill": [
        (f"rows.yaml {NOWHERE} --kind drop", 2, "cannot be drilled: a drill plants a difference in single"),
        (f"ads.yaml {NOWHERE}", 2, "give a comparison file, and --kind for the difference"),
        (f"{DRILL} --field n", 2, "--field is for --kind field"),
        (f"{DRILL} --sweep", 2, "--sweep takes no comparison file and no --kind: it is for all drills"),
        (f"{DRILL} --bind 127.0.0.1:0", 2, "--bind has no meaning without --prometheus"),
        (f"{DRILL} --prometheus none", 2, "--prometheus must be an address like http://HOST:PORT"),
        (f"{DRILL} --page", 2, "--page has no meaning without --prometheus"),
        (f"{DRILL} --alertmanager http://x", 2, "--alertmanager has no meaning without --prometheus"),
        (ALARM, 2, "Prometheus has to scrape the drill: give --scrape-file, a file of its file_sd_configs"),
        (f"{ALARM} --scrape-file x.txt", 2, "--scrape-file x.txt must end with .json or .yml, or Prometheus"),
        (f"{ALARM} --scrape-file settings.yaml", 2, "settings.yaml already exists: name another file, or"),
        (f"{DRILL} --bind 0.0.0.0:0", 2, "flag --bind: '0.0.0.0:0' is not a loopback address"),
        (f"{ALARM} --config settings.yaml --bind 0.0.0.0:0", 2, TOLD_TO_DRILL),
        (DRILL, 4, f"twinstream: kafka at {AWAY} does not answer"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are as they should be, and files that are not."""
    folder = tmp_path_factory.mktemp("mistakes")
    spec_file(folder, "ads", "ads.v1", "ads.v2")
    order = {"order": {"per_key": ["taxi"]}}
    different, equal = (check(order, RIDES, RIDES[start:] + RIDES[:start]).to_dict() for start in (2, 0))
    texts = {
        "spec.yaml": SPEC,
        "bad.yaml": SPEC.replace("total", "totl"),
        "rows.yaml": SPEC.replace("total", "unordered\nemits: {upsert: {key: [v], settled_by: input}}"),
        "avro.yaml": f"{SPEC}decode: {{format: avro, schema_file: rows.avsc}}\n",
        "rows.avsc": '"string"',
        "empty.yaml": "",
        "settings.yaml": f"token_file: {folder}/tokens\n",
        "tokens": TOKENS,
        "wrong.yaml": "kafka: {securty.protocol: ssl}\n",
        "a.jsonl": '{"v":1}\n{"v":2}\n',
        "b.jsonl": '{"v":1}\n{"v":3}\n',
        **dict.fromkeys(("many.jsonl", "more.jsonl"), "".join(f'{{"v":{n}}}\n' for n in range(30))),
        "odd.json": '{"version": 1}',
        "bad.jsonl": '{"a":1}\nnot json\n',
        "answer.json": json.dumps(different, indent=2),
        "equal.json": json.dumps(equal),
        **{f"answer-{place}.json": text for place, text in enumerate(ANSWERS)},
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "binary.yaml").write_bytes(b"\xff\x00\xfe")
    (folder / "bad.gz").write_bytes(gzip.compress(b"")[:10] + b"\xff" * 50)
    (folder / "cut.zst").write_bytes(zstandard.ZstdCompressor().compress(b"x" * 10)[:-3])
    (folder / "latin.jsonl").write_bytes('{"v":1}\n{"v":"ü"}\n'.encode("latin-1"))
    return folder


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a service with one comparison."""
    with served(Board(stale_after_seconds=60)) as service:
        service.publish(status(at=now()))
        yield service.url


def test_a_command_alone_tells_how_it_is_used_once() -> None:
    found, out, err = twinstream()
    assert (found, out, err.count("Usage: ")) == (2, "", 1)
    assert "twinstream check spec.yaml --reference old.jsonl" in err


ROWS = [(command, *row) for command, rows in MISTAKES.items() for row in rows]


@pytest.mark.parametrize(("command", "given", "code", "told"), ROWS)
def test_a_mistake_is_one_sentence(
    folder: Path, url: str, command: str, given: str, code: int, told: str
) -> None:
    found, out, err = twinstream(command, *shlex.split(given.format(url=url)), folder=folder)
    assert (found, out) == (code, ""), err
    assert told in err.splitlines()[-1]
    assert err.count("\n") == 1 or err.startswith(f"Usage: twinstream {command} "), (
        "click says how it is used"
    )
