"""What the service says about its comparisons, asked over HTTP as any release tool would ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import httpx

from twinstream.errors import told_of_connection

_ANSWER_SECONDS = 3.0


@dataclass(frozen=True)
class Look:
    """One comparison at one moment: its status and the gate's answer, both as the service gave them."""

    status: dict[str, Any]
    gate: dict[str, Any]

    @property
    def name(self) -> str:
        """The comparison's name."""
        return str(self.status["name"])

    @property
    def writing(self) -> bool:
        """Whether an event of each side has arrived."""
        events = self.status["events"]
        return bool(events["reference"] and events["candidate"])


class UnreachableError(Exception):
    """The service did not answer, or not as a service of this version does."""


class Service:
    """A client of one service. Not for use from several threads."""

    def __init__(self, address: str) -> None:
        self.address = address
        # The proxies of the environment are for the world outside, not for a loopback address.
        self._http = httpx.Client(base_url=f"{address}/v1", timeout=_ANSWER_SECONDS, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def look(self) -> list[Look]:
        """Ask for every comparison.

        Raises:
            UnreachableError: it did not answer.
        """
        statuses = self._get("/comparisons")["items"]
        return [Look(status, self._get(f"/comparisons/{status['name']}/gate")) for status in statuses]

    def divergence(self, name: str) -> str | None:
        """The sentence that explains a divergence of a comparison, if it has one: the newest that is final.

        Raises:
            UnreachableError: it did not answer.
        """
        items = self._get(f"/comparisons/{name}/divergences")["items"]
        final = [item for item in items if not item["provisional"]]
        for item in final or items:
            return f"{item['kind']}: {item['text']}"
        return None

    def _get(self, path: str) -> dict[str, Any]:
        try:
            answer = self._http.get(path).raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            told = told_of_connection(error) or type(error).__name__
            raise UnreachableError(f"{self.address} does not answer: {told}") from error
        if not isinstance(answer, dict):
            raise UnreachableError(f"{self.address}/v1{path} did not answer with an object")
        return answer
