"""Digests of the events that the candidate matched lately: by them a surplus event is called a copy.

A surplus event is a copy if it equals one of them exactly: in whatever spelling, and whatever its tolerance.
So a digest of the exact form tells it, over a restart, too, and it does not matter which side was read first.

No verdict hangs on it: where one does, `repeats` tells. Noting a match must cost next to nothing, asking is
rare. So noted contents are only queued, and brought into exact form when somebody asks.
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
"""About so much of contents may be queued; of large records fewer are remembered."""
SAMPLED = 50
"""Contents of which the size is looked at."""
DIGEST_BYTES = 8
"""By chance one of 100,000 matches has the digest of another event with a probability below 10^-14."""


class RecentMatches:
    """The last `limit` matched contents, by digests of what `exact` makes of them.

    0 remembers nothing, and calls nothing a copy.
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
        """Forget the oldest where what is queued takes up more than `BYTES`.

        Complexity: O(1), and for each forgotten. Sizes are those of a sample, so that it may be called often.
        """
        surplus = _size(self._noted) - BYTES
        if surplus > 0:
            self._known.clear()
            self._copies.clear()
        while surplus > 0:
            surplus -= len(self._noted.popleft())

    def is_copy(self, event: Event, paired: Sequence[Event] = ()) -> bool:
        """Whether an event equals one that was matched lately, or one of these, which equal it exactly.

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

    def restore(self, digests: Sequence[object]) -> None:
        """Take over the `state`.

        Of older versions, checksums, which guess, are left out. Digests of bytes, which they kept beside a
        tolerance, are no digests of exact forms, and call nothing a copy but what is spelled like these.
        """
        for digest in reversed(digests):
            if isinstance(digest, bytes):
                self._remember(digest)


def _size(contents: deque[bytes]) -> int:
    """About how large some contents are together."""
    sizes = [len(contents[place]) for place in range(0, len(contents), max(1, len(contents) // SAMPLED))]
    return sum(sizes) * len(contents) // max(1, len(sizes))
