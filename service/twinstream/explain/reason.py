"""Gives the reason of a verdict, for one matcher or for several as one, and the numbers of differences in it.

Every text that tells how many differences there are asks here. A difference is *final* when its scope is
closed and a checkpoint has it, else *provisional*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from twinstream.core.verdict import Verdict

REASONS_SHOWN = 3
K = TypeVar("K", bound=str)


def undiverged(
    verdict: Verdict, doubts: Sequence[str], waiting: Sequence[str], missing: Sequence[str], compared: str
) -> str:
    """The reason of any verdict but DIVERGED; `compared` is the text for EQUIVALENT.

    PENDING says what it is `waiting` for before anything is known, else which evidence is `missing`.

    >>> undiverged(Verdict.INCONCLUSIVE, ["a", "b", "c", "d"], [], [], "")
    'Not decided: a; b; c; and 1 more.'
    >>> undiverged(Verdict.PENDING, [], ["kafka does not answer"], ["200 of 300 required pairs"], "")
    'Not known yet: kafka does not answer.'
    """
    if verdict is Verdict.INCONCLUSIVE:
        return undecided(doubts)
    if verdict is Verdict.PENDING and waiting:
        return _sentence(f"Not known yet: {'; '.join(waiting)}")
    if verdict is Verdict.PENDING:
        return _sentence(f"Nothing wrong so far; not enough compared yet: {'; '.join(missing)}")
    return compared


def compared_text(pairs: int, explained: int, order: str) -> str:
    """How many pairs match, and how many differences known ones explain; `order` says how both are compared.

    >>> compared_text(1200, 0, "in any order")
    '1,200 pairs match, nothing differs. Compared in any order.'
    >>> compared_text(1, 2, "in any order")
    '1 pair matches; known differences explain all 2 differences. Compared in any order.'
    """
    matched = "1 pair matches" if pairs == 1 else f"{pairs:,} pairs match"
    differs = f"; {all_explained(explained)}" if explained else ", nothing differs"
    return f"{matched}{differs}. Compared {order}."


def all_explained(count: int) -> str:
    """That known differences explain so many, which are all."""
    return f"known differences explain {'the one difference' if count == 1 else f'all {count:,} differences'}"


def undecided(doubts: Sequence[str]) -> str:
    """The reason of INCONCLUSIVE. A doubt that recurs is told once.

    >>> undecided(["a", "a", "b"])
    'Not decided: a; b.'
    """
    doubts = list(dict.fromkeys(doubts))
    more = f"; and {len(doubts) - REASONS_SHOWN} more" if len(doubts) > REASONS_SHOWN else ""
    return _sentence(f"Not decided: {'; '.join(doubts[:REASONS_SHOWN])}{more}")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


# -- numbers of differences --------------------------------------------------------------------------------


def kinds_text(by_kind: Mapping[K, int]) -> str:
    """The number of each kind that there is.

    >>> kinds_text({"missing": 1_416, "extra": 0, "changed": 3})
    '1,416 missing, 3 changed'
    """
    return ", ".join(f"{count:,} {kind}" for kind, count in by_kind.items() if count)


def sure_text(total: int, final: int, why: str = "") -> str:
    """How many of all differences are final, and how many provisional, and `why` if that needs a reason.

    It is empty if all are final: then there is nothing to divide.

    >>> sure_text(782, 360), sure_text(2, 0, "not compared further"), sure_text(5, 5)
    ('360 final, 422 provisional', '2 provisional: not compared further', '')
    """
    if total <= final:
        return ""
    parts = (f"{final:,} final" if final else "", f"{total - final:,} provisional")
    return ": ".join(filter(None, (", ".join(filter(None, parts)), why)))


def found_text(by_kind: Mapping[K, int], final: int, why: str = "") -> str:
    """The number of each kind, and how many of them are final.

    >>> found_text({"missing": 416, "changed": 366}, 360)
    '416 missing, 366 changed (360 final, 422 provisional)'
    """
    sure = sure_text(sum(by_kind.values()), final, why)
    return f"{kinds_text(by_kind)}{sure and f' ({sure})'}"


def of_shards(sayings: Mapping[int, Sequence[str]], count: int) -> list[str]:
    """The sentences of shards, by their numbers, each once: with the names of its shards unless all agree.

    >>> of_shards({0: ["a"], 1: ["a", "b"]}, 2)
    ['a', 'shard 1 of 2: b']
    """
    who: dict[str, list[int]] = {}
    for number in sorted(sayings):
        for text in sayings[number]:
            who.setdefault(text, []).append(number)
    return [
        text if len(numbers) == count else f"{_names(numbers, count)}: {text}"
        for text, numbers in who.items()
    ]


def _names(numbers: Sequence[int], count: int) -> str:
    if len(numbers) > REASONS_SHOWN:
        return f"{len(numbers):,} of {count:,} shards"
    if len(numbers) == 1:
        return f"shard {numbers[0]} of {count}"
    return f"shards {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} of {count}"
