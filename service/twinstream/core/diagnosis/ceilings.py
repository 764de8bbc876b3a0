"""Ceilings: assigns each known difference to a rule that covers it, so that the most are explained.

A difference that several rules cover may take a place that a difference with only one rule needs. The order
in which the two are found must not decide. So if all rules that cover a difference are at their ceilings, an
earlier difference is moved to another rule that covers it, and so on along a chain that ends at a free place:
an augmenting path. Then the most differences are explained, in whatever order they come.

Differences that the same rules cover are interchangeable here, so only their numbers are kept.

Source: Edmonds, Fulkerson, "Transversals and matroid partition" (1965).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

Choices = tuple[str, ...]
"""The ids of the rules that cover a difference, in the order of the file."""
IsFree = Callable[[str], bool]
"""Whether a rule has a free place."""


class Move(NamedTuple):
    """A move of a difference with these choices from a rule to the one that the move is stored under."""

    rule: str
    choices: Choices


class Ceilings:
    """The number of differences that count against each rule, by their choices.

    >>> ceilings, most = Ceilings(), {"A": 1, "B": 1}
    >>> free = lambda rule: ceilings.count(rule) < most[rule]
    >>> ceilings.take(("A", "B"), free), ceilings.take(("A",), free), ceilings.take(("A",), free)
    ('A', 'B', None)
    """

    def __init__(self, taken: Iterable[tuple[str, Choices, int]] = ()) -> None:
        self._taken: dict[str, Counter[Choices]] = {}
        for rule, choices, count in taken:
            self._of(rule)[choices] += count

    def __iter__(self) -> Iterator[tuple[str, Choices, int]]:
        """The differences counted: rule, choices and number."""
        for rule, taken in self._taken.items():
            yield from ((rule, choices, count) for choices, count in taken.items() if count)

    def count(self, rule: str) -> int:
        """The number of differences that count against a rule. Complexity: O(s) in their distinct choices."""
        return self._of(rule).total()

    def take(self, choices: Choices, is_free: IsFree) -> str | None:
        """Count a difference; return the rule that now has one more, None if no place can be freed.

        That rule is the end of the chain. It need not cover this difference.
        """
        moves, end = self._search(choices, is_free)
        if end is not None:
            self._count(choices, 1, _chain(moves, end), end)
        return end

    def take_many(self, choices: Choices, count: int, ceilings: Mapping[str, int]) -> int:
        """Count so many differences, as far as places can be freed; return how many found none.

        Complexity: polynomial in the rules and distinct choices, whatever the number of differences.
        """
        while count:
            moves, end = self._search(choices, lambda rule: self.count(rule) < ceilings[rule])
            if end is None:
                break
            chain = _chain(moves, end)
            held = (self._of(move.rule)[move.choices] for _, move in chain)
            at_once = min(count, ceilings[end] - self.count(end), *held)
            self._count(choices, at_once, chain, end)
            count -= at_once
        return count

    def _count(self, choices: Choices, count: int, chain: Sequence[tuple[str, Move]], end: str) -> None:
        """Move so many differences along a chain, and count as many new ones where it begins."""
        for rule, move in chain:
            self._of(move.rule)[move.choices] -= count
            self._of(rule)[move.choices] += count
        self._of(chain[-1][1].rule if chain else end)[choices] += count

    def give_back(self, choices: Choices) -> None:
        """Stop counting a difference with these choices."""
        rule = next(rule for rule in choices if self._of(rule)[choices] > 0)
        self._of(rule)[choices] -= 1

    def reachable(self, choices: Choices) -> Iterable[str]:
        """The rules whose free place would serve these choices, if other differences were moved."""
        return self._search(choices, lambda _: False)[0]

    def _search(self, choices: Choices, is_free: IsFree) -> tuple[dict[str, Move | None], str | None]:
        """Search breadth first: the move that finds each rule, and the first rule that is free."""
        moves: dict[str, Move | None] = dict.fromkeys(choices)
        waiting = deque(choices)
        while waiting:
            rule = waiting.popleft()
            if is_free(rule):
                return moves, rule
            for others, count in self._of(rule).items():
                for other in others if count else ():
                    if other not in moves:
                        moves[other] = Move(rule, others)
                        waiting.append(other)
        return moves, None

    def _of(self, rule: str) -> Counter[Choices]:
        return self._taken.setdefault(rule, Counter())


def _chain(moves: Mapping[str, Move | None], end: str) -> list[tuple[str, Move]]:
    """The moves that free a place for the first rule of a search, each with the rule that it moves to."""
    found, rule = [], end
    while (move := moves[rule]) is not None:
        found.append((rule, move))
        rule = move.rule
    return found
