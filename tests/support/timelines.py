"""Small histories in words: what both sides write at which second, and what is seen of it.

``L:a@5`` is the event `a` that the left writes at second 5, ``L:a=2@5`` one with the value 2, and ``L:a.7@5``
one with the number 7. ``both@0-60`` are new events, one a second, that both sides write, ``both:a@0-60`` are
copies of one, ``apart@0-60`` others on each side. ``?`` is a look at everything that waits, ``review`` one at
what is set aside, ``restart`` goes on from a checkpoint, ``end`` is that of both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Side
from twinstream.core.overdue.survey import Survey

SECOND_MS = 1000


@dataclass
class Timeline:
    """A comparison that is fed words. With `timed` events carry their second as `t`."""

    driver: Driver
    timed: bool = False
    looks: list[Survey] = field(default_factory=list)

    def go_on(self, text: str) -> Timeline:
        """What comes next."""
        for word in text.split():
            self._take(word)
        return self

    def _take(self, word: str) -> None:
        if word == "?":
            self.looks.append(self.driver.look())
        elif word == "review":
            self.driver.comparison.review()
        elif word in ("restart", "end"):
            getattr(self.driver, word)()
        else:
            match = re.fullmatch(r"(L|R|both|apart)(?::(\w+))?(?:\.(\d+))?(?:=(\d+))?@(\d+)(?:-(\d+))?", word)
            assert match, f"{word!r} is no word"
            who, name, number, value, first, end = match.groups()
            more = {} if number is None else {"n": int(number)}
            for second in range(int(first), int(end or int(first) + 1)):
                for side in {"L": (LEFT,), "R": (RIGHT,)}.get(who, Side):
                    self._write(side, f"{who}{side}" if who == "apart" else name, value, second, more)

    def _write(
        self, side: Side, name: str | None, value: str | None, second: int, more: dict[str, int]
    ) -> None:
        event = {"k": name or "tick", "v": int(value or 0) if name and "apart" not in name else second}
        timed = {"t": second} if self.timed else {}
        self.driver.feed(side, [record({**event, **timed, **more})], [second * SECOND_MS])

    @property
    def suspicions(self) -> list[int]:
        """How many there were at each look."""
        return [look.suspicions for look in self.looks]

    @property
    def diverged(self) -> bool:
        return self.driver.comparison.diverged

    @property
    def kinds(self) -> list[str]:
        """What was found."""
        return self.driver.kinds()

    @property
    def found(self) -> list[tuple[str, float | None]]:
        """What was found, with how much later a partner came."""
        return [(one.finding.kind, one.late) for one in self.driver.findings()]

    @property
    def held(self) -> list[list[int]]:
        """The offsets of what waits on each side."""
        return [self.driver.held(side) for side in Side]


def timeline(text: str, more: str = "", order: str = "unordered", *, timed: bool = False) -> Timeline:
    """A comparison with this order that was fed so much; `more` are further lines of its file."""
    return Timeline(Driver(spec(order, more)), timed).go_on(text)
