"""Which changed files can be tried beside a comparison, and what they change."""

from __future__ import annotations

import pytest

from twinstream.cli.commands.serve import with_trials
from twinstream.errors import SettingsError
from twinstream.spec.file.model import Spec
from twinstream.spec.file.start import Start
from twinstream.spec.load import ComparisonFile, begun_at, digest, loads
from twinstream.spec.trial import as_trial, changes, refusal, tried_beside

LIVE = """
version: 1
name: orders
reference: {topic: orders.v1}
candidate: {topic: orders.v2}
order: {per_key: [customer]}
kinds:
  order: {where: {type: order}}
  refund: {where: {type: refund}}
"""
START = "start: earliest\n"


def file(*replaced: tuple[str, str], more: str = "") -> Spec:
    text = LIVE
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    return loads(text + more)


def read(spec: Spec) -> ComparisonFile:
    return ComparisonFile(spec, f"# {spec.name}")


def test_a_changed_file_is_a_comparison_of_its_own_behind_the_one_of_its_name() -> None:
    other = file(("name: orders", "name: other"))
    tried = file(more=f"{START}keep: hashes\nequality: {{ignore: [at]}}\n")
    served = with_trials([read(file()), read(other)], {"looser.yaml": ComparisonFile(tried, "# looser")})
    names = [spec.name for spec, _ in served]
    assert [text for _, text in served] == ["# orders", "# looser", "# other"]
    assert names == ["orders", "orders~trial", "other"]
    assert [tried_beside(name) for name in names] == [None, "orders", None]
    assert digest(as_trial(file())) != digest(file())


def test_the_changes_are_keys_of_the_file_in_its_order() -> None:
    tried = file(("[customer]", "[id]"), more=f"{START}identity: [id]\n")
    assert changes(file(), as_trial(tried)) == ("order", "identity")
    swapped = file(
        ("  order: {where: {type: order}}\n", ""),
        ("{where: {type: refund}}\n", "{where: {type: refund}}\n  order: {where: {type: order}}\n"),
    )
    assert changes(file(), swapped) == ("kinds",)
    assert changes(file(), as_trial(file(more=START))) == ()


def test_a_trial_may_begin_elsewhere_like_any_comparison() -> None:
    begun = begun_at(as_trial(file()), Start(at="offsets", reference={0: 3}, candidate={0: 4}))
    assert (begun.name, begun.start.at) == ("orders~trial", "offsets")


NAMELESS = (
    "its name is 'ordres', and served is orders: give it the name of the comparison beside which it is tried"
)
STARTLESS = (
    "it does not say where it begins: a trial has a start of its own, so write `start: earliest`, or a cut "
    "such as `start: {at: event_time, field: time, from: 2026-01-01T00:00:00Z}`"
)
ELSEWHERE = (
    "`candidate.topic` is orders.v3, and the comparison orders reads orders.v2: a trial is of the same "
    "topics, so write that"
)


@pytest.mark.parametrize(
    ("tried", "sentence"),
    [
        (file(("name: orders", "name: ordres"), more=START), NAMELESS),
        (file(), STARTLESS),
        (file(("orders.v2", "orders.v3"), more=START), ELSEWHERE),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(tried: Spec, sentence: str) -> None:
    assert refusal(tried, [file()]) == sentence
    with pytest.raises(SettingsError, match=r"^--trial looser\.yaml: ") as error:
        with_trials([read(file())], {"looser.yaml": read(tried)})
    assert str(error.value).endswith(sentence)


def test_one_file_at_a_time_is_tried_beside_a_comparison() -> None:
    tried = file(more=START)
    with pytest.raises(SettingsError, match="--trial b: another file is tried beside orders already: one at"):
        with_trials([read(file())], {"a": read(tried), "b": read(tried)})
