"""Digests of the candidate's recent matches, by which a surplus event is recognised as a copy.

A surplus event is a copy if it equals one of them exactly: in whatever spelling, and whatever its tolerance.
So a digest of the exact form decides it, even over a restart, and it does not matter which side was read
first.

No verdict depends on it: where one does, `repeats` decides. Noting a match must cost almost nothing, and
queries are rare. So noted contents are only queued, and brought into exact form at a query.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain, islice

from twinstream.core.events import CONTENT, FORM, Event, Exactly

SNAPSHOT_LIMIT = 2_000
"""Matches remembered over a restart: a copy comes soon after its original; a checkpoint stays cheap."""
BYTES = 128 << 20
"""The approximate size of the contents queued; fewer large records are remembered."""
SAMPLED = 50
"""The contents whose sizes are sampled."""
DIGEST_BYTES = 8
"""An event has the digest of one of 100,000 other matches with a probability below 10^-14."""


class RecentMatches:
    """The last `limit` matched contents, by digests of their `exact` forms.

    A limit of 0 remembers nothing, and calls no event a copy.
    """

    def __init__(self, limit: int, exact: Exactly) -> None:
        self.limit, self.exact = limit, exact
        self._noted: deque[bytes] = deque(maxlen=limit)
        self._known: deque[bytes] = deque()
        self._copies: Counter[bytes] = Counter()

    def note(self, contents: Iterable[bytes]) -> None:
        """Remember contents that were matched. Complexity: about 20 ns each."""
        self._noted.extend(contents)

    def trim(self) -> None:
        """Forget the oldest contents where the queue takes more than `BYTES`.

        Complexity: O(1), plus O(1) for each one forgotten; sizes are sampled, so it may be called often.
        """
        surplus = _size(self._noted) - BYTES
        if surplus > 0:
            self._known.clear()
            self._copies.clear()
        while surplus > 0 and self._noted:
            surplus -= len(self._noted.popleft())

    def move(self) -> None:
        """Copy the queued contents: some keep blocks that all others have left. About 60 ns each."""
        self._noted = deque(map(b"%b".__mod__, self._noted), self.limit)

    def is_copy(self, event: Event, paired: Sequence[Event] = ()) -> bool:
        """Whether an event equals a recent match exactly; the `paired` events are known to.

        Complexity: O(1) amortised over the contents noted.
        """
        if not self.limit:
            return False
        if paired:
            return True
        self._bring_up()
        return self._digest(event[FORM][CONTENT]) in self._copies

    def _bring_up(self) -> None:
        while self._noted:
            self._remember(self._digest(self._noted.popleft()))

    def _remember(self, digest: bytes) -> None:
        self._known.append(digest)
        self._copies[digest] += 1
        if len(self._known) > self.limit:
            oldest = self._known.popleft()
            self._copies[oldest] -= 1
            if not self._copies[oldest]:
                del self._copies[oldest]

    def _digest(self, content: bytes) -> bytes:
        return blake2b(self.exact(content), digest_size=DIGEST_BYTES).digest()

    def state(self) -> list[bytes]:
        """The digests of the latest matches, the newest first. Complexity: O(1), some ms."""
        newest_first = chain(map(self._digest, reversed(self._noted)), reversed(self._known))
        return list(islice(newest_first, min(self.limit, SNAPSHOT_LIMIT)))

    def restore(self, digests: Sequence[bytes]) -> None:
        """Take over the `state`."""
        for digest in reversed(digests):
            self._remember(digest)


def _size(contents: deque[bytes]) -> int:
    """The approximate total size of some contents."""
    sizes = [len(contents[place]) for place in range(0, len(contents), max(1, len(contents) // SAMPLED))]
    return sum(sizes) * len(contents) // max(1, len(sizes))
