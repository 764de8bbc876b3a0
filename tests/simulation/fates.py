"""What may become of a call into a port, or of a command on its way to the store."""

from __future__ import annotations

from tests.simulation.scheduler import Scheduler, Weather

_SHARES = {
    "poll": 0.25,
    "seen": 0.25,
    "ends": 0.25,
    "trouble": 0.25,
    "said": 0.25,
    "flip": 4.0,
    "stage chunk": 1.5,
    "stage reports": 1.5,
    "tell": 0.25,
    "hear": 0.25,
    "take": 0.25,
}
"""Some calls are disturbed more often than others; what is many is disturbed less."""
_READS = 0.2
"""The share of a command that only reads."""
_PLAIN = frozenset(
    {"get", "time", "hgetall", "smembers", "exists", "info", "memory", "script", "unknown script"}
)


def drawn(scheduler: Scheduler, weather: Weather, port: str, method: str) -> str | None:
    """What becomes of one call; None where it goes through."""
    if port in ("store", "relay") or method == "close" or not weather.disturbs_calls:
        return None
    left = scheduler.random.random() / _share(method)
    for fate, chance in _fates(weather, port, method):
        left -= chance
        if left < 0:
            return fate
    return None


def _share(method: str) -> float:
    return _READS if method in _PLAIN else _SHARES.get(method, 1.0)


def _fates(weather: Weather, port: str, method: str) -> list[tuple[str, float]]:
    """What may happen, each with its chance; the shipped stores run undisturbed, their commands do not."""
    fates = [
        ("crash before", weather.crash_in_call / 2),
        ("crash after", weather.crash_in_call / 2),
        ("pause before", weather.pause_in_call / 2),
        ("pause after", weather.pause_in_call / 2),
        ("slow", weather.slow),
    ]
    if port == "redis" or method == "topics":
        fates += [("call lost", weather.call_lost), ("answer lost", weather.answer_lost)]
    if port == "redis" and method not in _PLAIN:
        late = weather.arrives_late / 2
        fates += [("arrives late", late), ("arrives again", late), ("repeated", weather.repeated)]
    return fates
