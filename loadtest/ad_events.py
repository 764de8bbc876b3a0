"""The input of the advertising pipeline (Yahoo streaming benchmark), as a pure function of seed and number.

Event `n` of a run is made from one hash of (seed, n), so any stretch of a run can be made again without what
came before it, and the same seed, schedule and start give the same bytes on every machine.

Most events carry their scheduled time. A share of them is *disordered*: it carries an earlier time, as an
event does that was held up on its way. A share is *late*: held up for longer than the watermark of a windowed
query allows, so that such a query may drop it; there is none of them unless asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct

from loadtest.schedule import Schedule

CAMPAIGNS = 100
ADS_PER_CAMPAIGN = 10
ADS = CAMPAIGNS * ADS_PER_CAMPAIGN
USERS = 100_000
PAGES = 10_000
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")

_SEED_AND_NUMBER = Struct("<qQ")
_DRAWS = Struct("<IIIHBBII")
_UINT32 = 2**32

_TEMPLATE = (
    '{"user_id":"user-%05d","page_id":"page-%04d","ad_id":"%s","ad_type":"%s","event_type":"%s",'
    '"event_time":%d,"ip_address":"10.%d.%d.%d"}'
)


@dataclass(frozen=True, slots=True)
class Disorder:
    """Which events carry a time before their scheduled one, and by how much.

    `share` of the events are up to `seconds` early; `late_share` are between `seconds` and `late_seconds`.
    """

    share: float = 0.1
    seconds: float = 4.0
    late_share: float = 0.0
    late_seconds: float = 60.0

    def __post_init__(self) -> None:
        if min(self.share, self.late_share) < 0 or self.share + self.late_share > 1:
            raise ValueError(
                f"the shares of disordered and late events must lie in 0..1 together, "
                f"not {self.share!r} and {self.late_share!r}"
            )
        if self.seconds < 0 or (self.late_share and self.late_seconds < self.seconds):
            raise ValueError(f"late events ({self.late_seconds!r} s) must be later than {self.seconds!r} s")

    def milliseconds(self, which: float, how_much: float) -> int:
        """How far back an event is stamped, given two draws from [0, 1)."""
        if which < self.share:
            return int(how_much * self.seconds * 1000)
        if which < self.share + self.late_share:
            return int((self.seconds + how_much * (self.late_seconds - self.seconds)) * 1000)
        return 0


@dataclass(frozen=True, slots=True)
class AdEvents:
    """All events of a run: `event(n)` is the key and the value of the n-th record.

    Their times run `speed` times as fast as the schedule.
    """

    seed: int
    start_ms: int
    schedule: Schedule
    disorder: Disorder = Disorder()
    speed: float = 1.0

    def event(self, n: int) -> tuple[bytes, bytes]:
        """Key (the ad) and value (JSON) of event `n`, as they are written to Kafka."""
        digest = blake2b(_SEED_AND_NUMBER.pack(self.seed, n), digest_size=24).digest()
        user, page, address, ad, ad_type, event_type, which, how_much = _DRAWS.unpack(digest)
        back = self.disorder.milliseconds(which / _UINT32, how_much / _UINT32)
        due = self.start_ms + int(self.schedule.due_seconds(n) * 1000 * self.speed)
        ad_id = ad_name(ad % ADS)
        value = _TEMPLATE % (
            user % USERS,
            page % PAGES,
            ad_id,
            AD_TYPES[ad_type % len(AD_TYPES)],
            EVENT_TYPES[event_type % len(EVENT_TYPES)],
            due - back,
            address >> 16 & 255,
            address >> 8 & 255,
            address & 255,
        )
        return ad_id.encode(), value.encode()

    def between(self, first: int, last: int) -> Iterator[tuple[bytes, bytes]]:
        """The events from number `first` up to, but not including, `last`."""
        return map(self.event, range(first, last))


def ad_name(ad: int) -> str:
    """The name of ad 0..999, whose campaign is the number divided by ten."""
    return f"ad-{ad:03d}"
