"""What a person sees of a run: sentences as things happen, and a line a comparison that is always current."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from deploy.demo.service import Look

_RATE_SECONDS = 5.0
"""Rates are means over this stretch: Spark writes in bursts, one a micro-batch."""

_PLAIN_SECONDS = 5.0
"""How often a line that has changed is written where there is no terminal to redraw one on."""

_STYLES = {
    "EQUIVALENT": "bold green",
    "DIVERGED": "bold red",
    "INCONCLUSIVE": "bold yellow",
    "PENDING": "cyan",
}


class Rates:
    """Events per second of each side of each comparison, from counts that are looked at now and then."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], deque[tuple[float, int]]] = {}

    def note(self, name: str, side: str, count: int, now: float) -> float:
        """Take in a count and return the rate over the last seconds; 0 until there are two counts."""
        seen = self._seen.setdefault((name, side), deque())
        seen.append((now, count))
        while len(seen) > 2 and seen[1][0] <= now - _RATE_SECONDS:
            seen.popleft()
        (first_at, first), (last_at, last) = seen[0], seen[-1]
        return max(0.0, (last - first) / (last_at - first_at)) if last_at > first_at else 0.0


def line(look: Look, reference_rate: float, candidate_rate: float) -> Text:
    """The status of one comparison in one line."""
    status, verdict = look.status, str(look.gate["verdict"])
    unmatched = status["unmatched"]
    kinds = ", ".join(f"{count} {kind}" for kind, count in status["divergences"]["by_kind"].items() if count)
    text = Text(f"{look.name:<11}")
    text.append(f"{verdict:<13}", style=_STYLES.get(verdict, ""))
    text.append(f"{look.gate['answer']:<10}{reference_rate:6.0f} | {candidate_rate:<6.0f} events/s")
    text.append(f"{status['matched']:>10,} matched   ")
    text.append(f"{unmatched['reference']} | {unmatched['candidate']} unmatched")
    if kinds:
        text.append(f"   {kinds}", style="red")
    return text


class Display:
    """Writes to one console; a context manager that leaves the terminal as it was.

    Args:
        to_stderr: keep standard output free for the result.
    """

    def __init__(self, *, to_stderr: bool) -> None:
        self._console = Console(stderr=to_stderr, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._rates = Rates()
        self._began = time.monotonic()
        self._last_plain = 0.0
        self._plain: set[str] = set()

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def tell(self, text: str, style: str = "") -> None:
        """Write a sentence that stays, with the seconds since the start."""
        now = time.monotonic() - self._began
        self._console.print(Text(f"[{now:5.1f} s] {text}", style=style), soft_wrap=True)

    def show(self, looks: Sequence[Look]) -> None:
        """Bring the status lines up to date."""
        now = time.monotonic()
        lines = [
            line(look, *(self._rate(look, side, now) for side in ("reference", "candidate")))
            for look in looks
        ]
        if self._console.is_terminal:
            self._redraw(lines)
        elif now - self._last_plain >= _PLAIN_SECONDS:
            self._last_plain = now
            for one in lines:
                if one.plain not in self._plain:
                    self._console.print(one, soft_wrap=True)
            self._plain = {one.plain for one in lines}

    def _redraw(self, lines: Sequence[Text]) -> None:
        grid = Table.grid()
        grid.add_column(no_wrap=True, overflow="ellipsis")  # a line that wraps cannot be redrawn in place
        for one in lines:
            grid.add_row(one)
        self._live.start()
        self._live.update(grid, refresh=True)

    def _rate(self, look: Look, side: str, now: float) -> float:
        return self._rates.note(look.name, side, int(look.status["events"][side]), now)
