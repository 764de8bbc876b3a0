"""Writes the control records of a query: what each batch has read and written (see `spec.decode.control`).

They are proofs for whoever compares the output; the query itself needs none. So a control topic that is away
neither fails nor slows the query: the wait for it is bounded, one warning is logged, and the next record
contains all that the lost ones said. Nor does a record that cannot be made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from twinstream.spark.topics import Topics
from twinstream.spec.decode.control import ControlRecord

RETRY_SECONDS = 30.0
"""How long a topic that is away is left alone."""
log = logging.getLogger("twinstream.spark")


class ControlWriter:
    """Writes control records to one topic."""

    def __init__(self, topics: Topics, topic: str) -> None:
        self._topics, self._topic = topics, topic
        self._away_until: float | None = None

    def write(self, record: Callable[[], ControlRecord]) -> None:
        """Write what `record` makes, if Kafka answers soon; else the next one makes up for it."""
        now = time.monotonic()
        if self._away_until is not None and now < self._away_until:
            return
        try:
            self._topics.write(self._topic, record().model_dump_json().encode())
        except Exception as error:  # noqa: BLE001 - whatever it is, the query goes on
            if self._away_until is None:
                log.warning(
                    "%s: the query goes on, and until control records are written again, an event that is "
                    "lost is found late, or not for certain",
                    error,
                )
            self._away_until = now + RETRY_SECONDS
            return
        if self._away_until is not None:
            log.warning("topic %s takes control records again", self._topic)
        self._away_until = None
