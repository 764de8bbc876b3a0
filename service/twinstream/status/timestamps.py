"""Converts Kafka's timestamps, and times of any zone, to moments of the calendar in UTC.

A timestamp is any 64-bit number that a producer chose: one in microseconds means a year after 50000. Such a
time is shown as the last moment of the calendar, or the first. These moments decide nothing. Of other times
only those at an end of the calendar, which "for ever" is written as, are moved, by less than a day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def moment_of(milliseconds: int) -> datetime:
    """The moment of a timestamp; outside the calendar, its nearest end.

    >>> moment_of(0).isoformat(), moment_of(2**62).year, moment_of(-(2**62)).year
    ('1970-01-01T00:00:00+00:00', 9999, 1)
    """
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return _LAST if milliseconds > 0 else _FIRST


def rfc3339(moment: datetime, timespec: str) -> str:
    """The moment as text in UTC, to a unit as in `datetime.isoformat`. Texts of one unit sort by time.

    >>> rfc3339(moment_of(0), "milliseconds")
    '1970-01-01T00:00:00.000Z'
    """
    return in_utc(moment).isoformat(timespec=timespec).replace("+00:00", "Z")


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC; where that has left the calendar, its nearest end.

    >>> in_utc(datetime.fromisoformat("9999-12-31T23:59:59-05:00")).isoformat()
    '9999-12-31T23:59:59.999999+00:00'
    """
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return _LAST if moment.year > 1 else _FIRST
