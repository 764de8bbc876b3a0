"""`twinstream check`: compare two recorded outputs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from typing import Any

import click

from twinstream.adapters.files.jsonl import INTERLEAVINGS, read_pair, read_trace, shapes_of
from twinstream.adapters.files.lines import STANDARD_INPUT, InputFile
from twinstream.cli.shared.mistakes import PREFIX
from twinstream.cli.shared.output import exit_of_answer, print_answer, print_json
from twinstream.cli.shared.polling import span
from twinstream.cli.shared.progress import progress, progress_of_records
from twinstream.cli.shared.topics import kafka_options, topics_of
from twinstream.cli.shared.writing import files_callback, force_option, may_write, write_receipt
from twinstream.core.events import Side
from twinstream.errors import SettingsError
from twinstream.explain.receipts.receipt import receipt_of_answer
from twinstream.offline.bounded import BoundedCheck
from twinstream.offline.check import check as run_check
from twinstream.offline.offset_range import Edge, edge_of
from twinstream.spec.file.model import Spec
from twinstream.spec.load import load


@click.command()
@click.argument("spec", type=click.Path())
@click.option("--reference", type=click.Path(), help="The reference's output, one event a line.")
@click.option("--candidate", type=click.Path(), help="The candidate's output, one event a line.")
@click.option("--trace", type=click.Path(), help="Both outputs in one file, in the order in which they came.")
@click.option(
    "--interleave",
    type=click.Choice(INTERLEAVINGS),
    default="alternate",
    show_default=True,
    help="Read both files in turn, or one before the other: it decides at which line a difference is proven.",
)
@click.option(
    "--open",
    "open_ended",
    is_flag=True,
    help="More events may follow: an unmatched event may still find its partner.",
)
@click.option(
    "--allow-empty", is_flag=True, help="Call two empty outputs equivalent; else they are inconclusive."
)
@click.option(
    "--require-evidence",
    "evidence",
    is_flag=True,
    help="Require the pairs of `evidence.matched`, and one of each kind; else the verdict is PENDING.",
)
@kafka_options(": compare what the topics of SPEC hold.")
@click.option(
    "--from", "begin", multiple=True, metavar="EDGE", help="Where to start in the topics: see above."
)
@click.option("--to", "end", multiple=True, metavar="EDGE", help="Where to end in the topics.")
@click.option(
    "--slack",
    metavar="DURATION",
    callback=span,
    help="How far apart partners may be in Kafka time; by default `overdue.after` of SPEC (60s).",
)
@click.option(
    "--report",
    multiple=True,
    metavar="FILE",
    callback=files_callback,
    help="Also write a receipt: FILE.md is Markdown, FILE.json JSON; repeat it for both.",
)
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as one JSON object.")
def check(spec: str, as_json: bool, **options: Any) -> int:
    """Compare two recorded outputs, a trace of both, or what two topics hold.

    \b
      twinstream check spec.yaml --reference old.jsonl --candidate new.jsonl
      twinstream check spec.yaml --reference old.jsonl.gz --candidate - <new.jsonl
      twinstream check spec.yaml --trace both.jsonl.zst --json >answer.json
      twinstream check spec.yaml --brokers localhost:9092
      twinstream check spec.yaml --brokers b:9092 --from 2026-05-01T00:00:00Z --to 2026-05-01T06:00:00Z
      twinstream check spec.yaml --brokers b:9092 --from reference:0=1200,1=980 --from candidate:0=0,1=0
      twinstream check spec.yaml --brokers b:9092 --report receipt.md --report receipt.json
      twinstream explain --from answer.json

    SPEC is a comparison file. A line of --reference and --candidate is an event's value: in the format json
    the value itself, in utf8 a JSON text, in others {"value_base64": "…"}. A line of --trace is {"side":
    "reference", "value": {…}} (or "value_base64"), if need be with key, headers, partition, offset,
    timestamp_ms; or {"side": "reference", "end": true}. `-` is standard input; .gz and .zst are read. Files
    may be larger than memory: only events without a partner are kept.

    With --brokers (or --config) the topics of SPEC are read once, from --from up to --to: `earliest` and
    `latest`, the defaults, are for versions that have stopped; offsets of all partitions of a side, for
    stretches of which you know that they belong together; or a time with its zone, by Kafka's timestamps.
    Around a time --slack more is read on both sides, where partners may be; a difference that may have its
    partner beyond even that is undecided. What comes while it runs is not read.

    Exit codes: 0 equivalent · 1 diverged, or the candidate violates a check of SPEC · 2 usage, bad comparison
    file or bad input · 3 inconclusive or pending, or a check is undecided · 4 Kafka cannot be reached.
    """
    may_write(options["report"], force=options["force"])
    comparison = load(spec)
    asked = {name: options[name] for name in ("open_ended", "allow_empty", "evidence")}
    compare = _check_files if options["kafka"] is None else _check_topics
    answer = compare(comparison, options, asked)
    if options["report"]:
        made_by = f"twinstream {installed_version('twinstream')}"
        write_receipt(receipt_of_answer(answer, comparison, datetime.now(UTC), made_by), options["report"])
    if as_json:
        print_json(answer)
    else:
        print_answer(answer)
    return exit_of_answer(answer)


def _check_files(spec: Spec, options: Mapping[str, Any], asked: Mapping[str, bool]) -> dict[str, Any]:
    for option, name in {"begin": "from", "end": "to", "slack": "slack"}.items():
        if options[option] not in (None, ()):
            raise SettingsError(f"--{name} is for topics; give --brokers, too")
    files, shapes = _files(options), shapes_of(spec)
    if len(files) == 1:
        lines = read_trace(files[0], shapes)
    else:
        lines = read_pair(files[0], files[1], options["interleave"], shapes)
    with progress(files) as watched:
        return run_check(spec, watched(lines), **asked)


def _check_topics(spec: Spec, options: Mapping[str, Any], asked: Mapping[str, bool]) -> dict[str, Any]:
    for option in ("reference", "candidate", "trace"):
        if options[option] is not None:
            raise SettingsError(
                f"--{option} is a file; with --brokers the topics of the comparison file are read"
            )
    from twinstream.adapters.clocks import SystemClock

    end = edge_of("--to", options["end"], "latest")
    if spec.folding is not None and (options["begin"] or isinstance(end, datetime)):
        raise SettingsError(
            "with `emits` a table is made of all its rows: leave --from out, and a time of --to"
        )
    begin = _begin(spec, options["begin"])
    slack = spec.overdue.after if options["slack"] is None else options["slack"]
    with topics_of(spec, options["kafka"], headers=spec.reads_marks) as source:
        bounded = BoundedCheck(spec, source, begin, end, slack, SystemClock())
        with progress_of_records(bounded.size) as watched:
            return bounded.run(watched, **asked)


def _begin(spec: Spec, given: tuple[str, ...]) -> Edge:
    """The first edge: if not given, the `start` of the file, if that names offsets or a time."""
    if given or spec.start.at == "earliest":
        return edge_of("--from", given, "earliest")
    if spec.start.at == "offsets":
        return {Side.LEFT: spec.start.reference or {}, Side.RIGHT: spec.start.candidate or {}}
    raise SettingsError(
        f"`start: {spec.start.at}` is found by `serve`, while events come: say where to begin with --from"
    )


def _files(options: Mapping[str, Any]) -> list[InputFile]:
    """The trace alone, or the reference and the candidate."""
    trace, reference, candidate = options["trace"], options["reference"], options["candidate"]
    if trace is not None and reference is None and candidate is None:
        return [InputFile(trace)]
    if trace is not None or reference is None or candidate is None:
        raise SettingsError("give --reference and --candidate, or --trace alone")
    files = [InputFile(reference), InputFile(candidate)]
    if files[0].same_as(files[1]):
        _tell_sameness(*files)
    return files


def _tell_sameness(reference: InputFile, candidate: InputFile) -> None:
    """Warn of one file for both sides. Raises SettingsError if it can be read only once."""
    if reference.name == candidate.name == STANDARD_INPUT:
        raise SettingsError("--reference and --candidate cannot both be standard input")
    if reference.size is None:
        problem = f"are one stream ({candidate.name}), which can be read only once"
        raise SettingsError(f"--reference and --candidate {problem}")
    click.echo(
        f"{PREFIX}both sides are the file {candidate.name}, so every event is compared with itself: "
        "this tells only whether the comparison file can read it",
        err=True,
    )
