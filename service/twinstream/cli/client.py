"""Asking a running service over HTTP."""

from __future__ import annotations

from typing import Any

import click
import httpx

from twinstream.cli.output import Unreachable
from twinstream.settings import DEFAULT_BIND

TIMEOUT_SECONDS = 5.0

service_option = click.option(
    "--service",
    envvar="TWINSTREAM_SERVICE",
    default=f"http://{DEFAULT_BIND}",
    show_default=True,
    help="Address of the service; also TWINSTREAM_SERVICE.",
)


_WRONG = (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY)


def ask(service: str, path: str) -> Any:
    """The JSON answer of the service to GET `path`.

    Raises Unreachable, or UsageError where the service says that the request is wrong.
    """
    return _answer(service, "GET", path, TIMEOUT_SECONDS)


def tell(service: str, path: str, body: Any, timeout_seconds: float) -> Any:
    """The JSON answer of the service to POST `path` with a body. Raises as `ask` does."""
    return _answer(service, "POST", path, timeout_seconds, json=body)


def _answer(service: str, method: str, path: str, timeout: float, **body: Any) -> Any:
    url = f"{service.rstrip('/')}/v1{path}"
    try:
        response = httpx.request(method, url, timeout=timeout, trust_env=False, **body)
        answer = response.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise Unreachable(f"the service at {service} cannot be reached: {error}; is it running?") from None
    if response.status_code in _WRONG:
        raise click.UsageError(answer.get("detail", "not found"))
    if response.is_error:
        raise Unreachable(
            f"the service at {service} answered {response.status_code}: {answer.get('detail', '')}"
        )
    return answer
