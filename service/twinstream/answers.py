"""The answer of an offline comparison as typed values, like ``twinstream check --json``."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NoReturn

from pydantic import ConfigDict, PrivateAttr

from twinstream.explain.checks import judged
from twinstream.explain.picture import diagram
from twinstream.explain.text import tell_answer, tell_divergence
from twinstream.status.common import Accounts, DivergenceCounts, DivergenceKind, Frozen, Sides, Verdict
from twinstream.status.comparison import CheckStatus, Position, Witness
from twinstream.status.groups import Group

WIDTH = 100
"""The width of the texts: a log of tests shows so many columns without wrapping."""


class Example(Frozen):
    """One divergence, with its events, their positions and its proof.

    `reference` and `candidate` are the values of its events, None where that side has none; `fields` maps
    each differing path of a changed event to both values; `scope` names the part of the order it lies in.
    `title` is the answer in one line, `text` a few sentences.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    kind: DivergenceKind
    scope: dict[str, Any]
    reference: Any
    candidate: Any
    positions: Sides[Position | None]
    fields: dict[str, Sides[Any]]
    witness: tuple[Witness, ...]
    text: str
    tainted: bool = False
    title: str = ""

    @property
    def diagram(self) -> str:
        """Both sides' events in the order of their offsets, drawn."""
        return "\n".join(diagram(self.model_dump(), WIDTH))

    def __str__(self) -> str:
        return tell_divergence(self.model_dump(), WIDTH)


class Answer(Frozen):
    """The answer of a comparison.

    `decided_at` is the number of the line at which DIVERGED became certain, None if only the end decided or
    nothing did. `matched` counts pairs, `unmatched` by side the events without a partner at the end of the
    input. `divergences` counts all differences,
    `groups` sums them up, and `examples` are the first. `checks` are the declared checks of
    each side, which do not change the verdict. `text` describes all of it for people.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    verdict: Verdict
    decided_at: int | None
    reason: str
    events: Sides[int]
    matched: int
    unmatched: Sides[int]
    max_unmatched: int
    accounts: Sides[Accounts]
    divergences: DivergenceCounts
    groups: tuple[Group, ...] = ()
    examples: tuple[Example, ...]
    checks: tuple[CheckStatus, ...] = ()
    spec_digest: str
    _data: dict[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Answer:
        """The answer of ``check --json``, or of `to_dict`."""
        answer = cls.model_validate(data)
        answer._data = deepcopy(data)
        return answer

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data: the object that ``twinstream check --json`` prints."""
        return deepcopy(self._data)

    @property
    def equivalent(self) -> bool:
        """Whether the outputs are proven equivalent, up to the declared order: the verdict is EQUIVALENT."""
        return self.verdict == "EQUIVALENT"

    @property
    def checks_hold(self) -> bool:
        """Whether no check that the gate asks for is violated or undecided, on either side."""
        return judged(self.checks) is None

    @property
    def text(self) -> str:
        """Verdict, reason, counts and the first divergences with a picture of each, for people."""
        return tell_answer(self._data, WIDTH)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Answer {self.verdict}, {self.matched} pairs, {self.divergences.total} divergences>"

    def __bool__(self) -> NoReturn:
        raise TypeError("an answer is neither true nor false; ask for `answer.equivalent`")
