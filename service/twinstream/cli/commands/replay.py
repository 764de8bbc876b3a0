"""`twinstream replay`: find out which known divergences a changed comparison file would have hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
import orjson

from twinstream.adapters.files.lines import InputFile
from twinstream.cli.asking.divergences import listing
from twinstream.cli.shared.client import Service, ask, path_of, service_option
from twinstream.cli.shared.output import print_json, print_text
from twinstream.cli.shared.topics import kafka_options, reaching_kafka
from twinstream.core.events import Place, Side
from twinstream.errors import InputError, SettingsError
from twinstream.offline.replay import OUTCOMES, Case, Outcome, Replay, Replayed, cases_of
from twinstream.ports import KeptRecord
from twinstream.settings import Settings
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest, load

EXAMPLES = 5
MOST = 100_000
MEANING = {
    "hidden": "hidden: no difference any more",
    "explained": "explained: covered by a known difference",
    "equal": "equal: the values are equal; whether their places in the order agree is not told",
    "reported": "reported: still a difference",
    "unknown": "unknown: cannot be told",
}
UNLISTED = "others are not listed in this answer, so they are unknown"
_GONE: tuple[Outcome, ...] = ("hidden", "explained", "equal")


@click.command()
@click.option("--spec", "file", required=True, type=click.Path(), help="The changed comparison file.")
@click.option("--divergences", "kept", type=click.Path(), help="A file of divergences; - is standard input.")
@click.option("--name", help="The comparison of a service whose divergences are taken.")
@kafka_options(": read the records again.")
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print an answer for each as one JSON object.")
def replay(
    file: str, kept: str | None, name: str | None, kafka: Settings | None, service: Service, as_json: bool
) -> int:
    """Tell which divergences that were found a changed comparison file would have hidden.

    \b
      twinstream replay --spec new.yaml --divergences answer.json
      twinstream replay --spec new.yaml --name orders
      twinstream replay --spec new.yaml --name orders --brokers localhost:9092
      twinstream divergences orders --json | twinstream replay --spec new.yaml --divergences -

    The events of each divergence are compared again with the rules of the new file. They come from an answer
    of `twinstream check --json`, from what `twinstream divergences --json` or the export of the service has
    written, or from a running service (--name). A service masks values, and an export has none: with
    --brokers the records are read again from Kafka, as long as it has them. What cannot be told for sure is
    said to be unknown.

    Exit codes: 0 none is hidden · 1 some are hidden, explained or equal · 2 usage, bad comparison file or bad
    input · 3 none is known to be hidden, and some are unknown · 4 the service or Kafka cannot be reached.
    """
    spec = load(file)
    if (kept is None) == (name is None):
        raise click.UsageError("give either --divergences FILE or --name COMPARISON")
    if spec.folding is not None:
        raise SettingsError(
            f"{file} has `emits`, and replay compares the events of one divergence, not rows that replace "
            "each other: give a file without it"
        )
    cases, whole = _of_file(kept) if kept is not None else _of_service(service, name or "", file, spec)
    _check_topics(file, spec, cases)
    records = None if kafka is None else _records(spec, cases, kafka)
    answers = Replay(spec, records).answers(cases)
    counts = Counter(answer.outcome for answer in answers)
    if as_json:
        outcomes = {outcome: counts[outcome] for outcome in OUTCOMES}
        items = [answer._asdict() for answer in answers]
        print_json({"spec_digest": digest(spec), "outcomes": outcomes, "all_listed": whole, "items": items})
    else:
        print_text("".join(f"{line}\n" for line in (*_told(answers), *([] if whole else [UNLISTED]))))
    if any(counts[outcome] for outcome in _GONE):
        return 1
    return 3 if counts["unknown"] or not whole else 0


def _of_service(service: Service, name: str, file: str, spec: Spec) -> tuple[list[Case], bool]:
    """The divergences that a service lists, and whether these are all. Raises SettingsError."""
    status = ask(service, path_of(name), "reference", "candidate", "divergences")
    for version, side in ((spec.reference, "reference"), (spec.candidate, "candidate")):
        _check_topic(f"comparison {name}", status[side]["topic"], file, version.topic)
    total = status["divergences"]["total"]
    cases = cases_of(str(service), listing(service, name, {}, MOST)["items"])
    return cases, len(cases) >= total


def _of_file(file: str) -> tuple[list[Case], bool]:
    """The divergences of an answer, or one for each line, and whether these are all. Raises InputError."""
    lines = list(InputFile(file).lines())
    if not lines:
        raise InputError(file, None, "is empty: give an answer of `twinstream check --json`, or divergences")
    try:
        answer = orjson.loads(b"\n".join(line for _, line in lines))
    except orjson.JSONDecodeError:
        return cases_of(file, [_parsed(file, number, line) for number, line in lines]), True
    if isinstance(answer, dict):
        listed = next((answer[key] for key in ("examples", "items") if key in answer), [answer])
        if not isinstance(listed, list):
            raise InputError(file, None, "has no list of divergences: see `twinstream replay --help`")
        cases = cases_of(file, listed)
        counts = answer.get("divergences")
        total = counts.get("total", 0) if isinstance(counts, dict) else 0
        if type(total) is not int:
            raise InputError(file, None, "`divergences.total` is not a number")
        return cases, len(cases) >= total and not answer.get("next")
    raise InputError(file, None, "is not a list of divergences: see `twinstream replay --help`")


def _parsed(file: str, number: int, line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(file, number, f"is not JSON: {error}") from None


def _check_topics(file: str, spec: Spec, cases: Iterable[Case]) -> None:
    """Raise SettingsError if a divergence is of other topics."""
    for case in cases:
        for seat in case.seats:
            topic = spec.version_of(seat.place[0]).topic
            _check_topic(f"divergence {case.id}", seat.topic, file, topic)


def _check_topic(what: str, topic: str, file: str, wanted: str) -> None:
    if topic != wanted:
        told = f"{what} is of topic {topic}, and {file} compares {wanted}"
        raise SettingsError(f"{told}: give the changed file of that comparison")


def _records(spec: Spec, cases: Iterable[Case], kafka: Settings) -> Mapping[Place, KeptRecord]:
    """The records of all events, as far as Kafka still has them."""
    from twinstream.adapters.kafka.records import records_at
    from twinstream.adapters.kafka.source import record_reader

    topics = {side: spec.version_of(side).topic for side in Side}
    places = [seat.place for case in cases for seat in case.seats]
    with reaching_kafka():
        return records_at(kafka.brokers, topics, places, kafka.kafka, record_reader(spec))


def _told(answers: Sequence[Replayed]) -> Iterator[str]:
    """The counts, and the first divergences of each outcome."""
    counted = f"{len(answers):,} {'divergence' if len(answers) == 1 else 'divergences'}"
    yield f"{counted} with the new rules{':' if answers else '.'}"
    for outcome, meaning in MEANING.items():
        of_it = [answer for answer in answers if answer.outcome == outcome]
        if of_it:
            yield f"{len(of_it):6,}  {meaning}"
        for one in of_it[:EXAMPLES]:
            yield f"        {one.kind} {one.id}" + (f": {one.why}" if one.why else "")
        if len(of_it) > EXAMPLES:
            yield f"        … and {len(of_it) - EXAMPLES:,} more (--json has all)"
