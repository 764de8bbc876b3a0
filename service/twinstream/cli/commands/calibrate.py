"""`twinstream calibrate`: infer a comparison file from two runs of one version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from twinstream.adapters.files.jsonl import read_side, shapes_of
from twinstream.adapters.files.lines import STANDARD_INPUT, InputFile
from twinstream.calibration.proposals import Draft
from twinstream.calibration.writing import summary
from twinstream.cli.shared.output import print_json, print_text
from twinstream.cli.shared.progress import progress
from twinstream.cli.shared.topics import kafka_options, topics_of
from twinstream.cli.shared.writing import force_option, may_write
from twinstream.core.accounts import Hole
from twinstream.core.events import Side
from twinstream.errors import SettingsError
from twinstream.explain.holes import doubts
from twinstream.explain.text import tell_answer
from twinstream.intake.topics import TopicBook
from twinstream.offline.calibrate import Calibrated, Recording, start_of
from twinstream.offline.calibrate import calibrate as run_calibrate
from twinstream.offline.offset_range import ALL_OFFSETS, Recorded, refuse_topics
from twinstream.ports import Topic
from twinstream.spec.file.model import Spec
from twinstream.spec.file.values import field_path
from twinstream.spec.lint.topics import Topic as TopicFacts

EXIT_OF_RESULT = {"equal": 0, "proposed": 0, "unexplained": 1, "undecided": 3}
MOST_RECORDS = 200_000
"""The default limit for both runs: they are kept in memory, and compared once for each question."""
_RANGE = re.compile(r"(\d+):(\d*)-(\d*)")


def _field_paths(_context: click.Context, _option: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    try:
        for number, key in enumerate(given):
            if key in given[:number]:
                raise ValueError(f"`{key}` is given twice")
        return tuple(map(field_path, given))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("spec", type=click.Path(), required=False)
@click.option("--reference", help="One run: a file, one event a line; with --brokers a topic.")
@click.option("--candidate", help="The other run, likewise.")
@click.option(
    "--identity", multiple=True, metavar="FIELD", help="A field that names an event; repeat it for several."
)
@click.option(
    "--key",
    multiple=True,
    metavar="FIELD",
    callback=_field_paths,
    help="A field by which the order is kept; repeat it likewise.",
)
@kafka_options(": read two topics.")
@click.option(
    "--max-records",
    type=click.IntRange(1),
    default=MOST_RECORDS,
    show_default=True,
    help="Read at most N events of each run.",
)
@click.option(
    "--reference-offsets",
    multiple=True,
    metavar="P:FROM-TO",
    help="Of a partition, from an offset up to below another.",
)
@click.option("--candidate-offsets", multiple=True, metavar="P:FROM-TO", help="The same for the other topic.")
@click.option("--output", type=click.Path(), metavar="FILE", help="Write the proposed file here.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print all that was found as one JSON object.")
def calibrate(spec: str | None, **options: Any) -> int:
    """Propose what to declare as noise, from two runs of one version.

    \b
      twinstream calibrate --reference run1.jsonl --candidate run2.jsonl --output spec.yaml
      twinstream calibrate spec.yaml --reference run1.jsonl.gz --candidate - <run2.jsonl
      twinstream calibrate --reference run1.jsonl --candidate run2.jsonl --identity order_id --key customer
      twinstream calibrate spec.yaml --brokers localhost:9092 --max-records 50000
      twinstream calibrate --brokers localhost:9092 --reference run.one --candidate run.two

    Run the version that you trust twice on the same input. What differs between the two outputs is noise, and
    this finds the tightest comparison file under which they are equal: fields that always differ, numbers
    that wobble, arrays without an order, nulls that are missing on one side, and the order that is kept. Each
    proposal stands under a comment with its evidence and with what it hides. What shows at few places, at one
    time or for one key is no noise: it is told with its places, and no rule is told from it. Nothing else is
    loosened: each is necessary, and together they are sufficient, both found by running the comparison.

    SPEC is a comparison file to start from: what it declares stands, and its order is the tightest one.
    Without it everything is compared, in one order. Outputs are files as for `twinstream check`; with
    --brokers they are topics, by default those of SPEC. The file goes to standard output, or to --output; a
    summary to standard error.

    Exit codes: 0 equal, as they are or with the proposals · 1 something differs that no rule explains · 2
    usage, bad comparison file or bad input · 3 too few data, or ambiguous: nothing is proposed · 4 Kafka
    cannot be reached.
    """
    if options["output"] is not None:
        may_write([Path(options["output"])], force=options["force"])
    on_kafka = options["kafka"] is not None
    topics = {side: options[side] for side in ("reference", "candidate")} if on_kafka else {}
    start = start_of(spec, topics, options["identity"])
    _check_schema_files(spec, start, options["output"])
    if start.spec.folding is not None:
        raise SettingsError(
            "the comparison file has `emits`, and calibrate compares single events, not rows that replace "
            "each other: calibrate with a file without it"
        )
    if start.spec.start.at == "barrier":
        raise SettingsError(
            "the comparison file starts at a barrier that is equal in both runs, and calibrate has yet to "
            "find out what is equal: calibrate with a file without `start`"
        )
    recording = Recording(start.spec, options["max_records"])
    read = _read_topics if on_kafka else _read_files
    read(recording, start, options)
    _check_fields(recording, options)
    with Console(stderr=True).status("comparing"):
        answer = run_calibrate(recording, start, options["key"])
    _print(answer, recording, options)
    return EXIT_OF_RESULT[answer.found.result]


def _check_schema_files(spec: str | None, start: Draft, output: str | None) -> None:
    """Refuses an output in another folder than that from which the file names its schemas."""
    if spec is None or output is None or Path(spec).resolve().parent == Path(output).resolve().parent:
        return
    for part in (start.base, start.base["reference"], start.base["candidate"]):
        file = (part.get("decode") or {}).get("schema_file")
        if file is not None and not Path(file).is_absolute():
            raise SettingsError(
                f"--output {output}: `{file}` is a path relative to {spec}, so write both into one folder"
            )


def _check_fields(recording: Recording, options: Mapping[str, Any]) -> None:
    """Raises SettingsError: a misspelt field would make a rule without effect."""
    outside = next((key for key in options["key"] if key.startswith("$")), None)
    if outside is not None and not recording.whole:
        raise SettingsError(
            f"--key {outside}: only the values were read; give a comparison file with the order "
            f"{{per_key: [{outside}]}}"
        )
    for option in ("identity", "key"):
        field = recording.lacking(options[option])
        if field is not None:
            raise SettingsError(f"--{option} {field}: no event of either run has such a field")


def _read_files(recording: Recording, start: Draft, options: Mapping[str, Any]) -> None:
    for option in ("reference_offsets", "candidate_offsets"):
        if options[option]:
            raise SettingsError(f"--{option.replace('_', '-')} is for topics; give --brokers, too")
    if options["reference"] is None or options["candidate"] is None:
        raise SettingsError("give --reference and --candidate, the outputs of two runs of one version")
    files = [InputFile(options["reference"]), InputFile(options["candidate"])]
    if files[0].same_as(files[1]):
        what = "standard input" if files[0].name == STANDARD_INPUT else f"the file {files[0].name}"
        raise SettingsError(f"--reference and --candidate are both {what}; give the outputs of two runs")
    shapes = shapes_of(start.spec)
    with progress(files) as watched:
        for file, side in zip(files, Side, strict=True):
            recording.read(watched(read_side(file, side, shapes[side])))


def _read_topics(recording: Recording, start: Draft, options: Mapping[str, Any]) -> None:
    from twinstream.adapters.clocks import SystemClock

    if not start.given and (options["reference"] is None or options["candidate"] is None):
        raise SettingsError("give --reference and --candidate, the topics of two runs, or a comparison file")
    given = {Side.LEFT: options["reference_offsets"], Side.RIGHT: options["candidate_offsets"]}
    ranges = {side: _ranges(texts) for side, texts in given.items()}
    names = {side: start.spec.version_of(side).topic for side in Side}
    with topics_of(start.spec, options["kafka"], headers=True) as source, progress([]) as watched:
        topics, book = source.topics(), TopicBook(start.spec)
        book.begin(topics)
        _check_cleanup(start.spec, topics)
        recorded = Recorded(source, names, ranges, options["max_records"], SystemClock())
        for side in Side:
            recording.read(watched(recorded.lines(side)))
        _check_unchanged(start.spec, book.changes(source.topics(), {s: topics[s].ends for s in Side}))
    recording.cut |= recorded.cut


def _check_cleanup(spec: Spec, topics: Mapping[Side, Topic]) -> None:
    """Refuses compacted topics; whether an order holds on several partitions is left to the search."""
    refuse_topics(spec, {side: TopicFacts(1, topic.cleanup_policy) for side, topic in topics.items()})


def _check_unchanged(spec: Spec, changes: Sequence[Hole]) -> None:
    """Refuses topics that changed while they were read: a consumer goes on in the one that came anew."""
    if changes:
        reasons = "; ".join(doubts(changes, spec))
        raise SettingsError(f"{reasons}: so it is unknown what was read; calibrate again")


def _ranges(texts: Sequence[str]) -> dict[int, range]:
    ranges: dict[int, range] = {}
    for text in texts:
        found = _RANGE.fullmatch(text)
        if found is None:
            raise SettingsError(f"{text!r} is not a range of offsets; write it like 0:1000-2000, or 0:1000-")
        partition, offsets = int(found[1]), range(int(found[2] or 0), int(found[3] or ALL_OFFSETS.stop))
        if not offsets:
            raise SettingsError(f"{text!r} has no offset: write it like 0:1000-2000, up to below the second")
        if partition in ranges:
            raise SettingsError(f"{text!r} is a second range of partition {partition}; give one")
        ranges[partition] = offsets
    return ranges


def _print(answer: Calibrated, recording: Recording, options: Mapping[str, Any]) -> None:
    if answer.file is not None and options["output"] is not None:
        try:
            Path(options["output"]).write_text(answer.file, encoding="utf-8")
        except OSError as error:
            raise SettingsError(f"{options['output']} cannot be written: {error.strerror}") from None
    if options["as_json"]:
        print_json(answer.to_dict(recording))
        return
    if answer.file is not None and options["output"] is None:
        print_text(answer.file)
    click.echo(summary(answer.found), err=True)
    if answer.differences is not None:
        told = tell_answer(answer.differences)
        click.echo(f"\nWhat no rule explains, under the proposed file:\n{told}", err=True)
