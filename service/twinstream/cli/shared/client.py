"""Queries a running service over HTTP."""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click
import httpx
import orjson

from twinstream.cli.shared.output import Refused, Unreachable
from twinstream.errors import SettingsError, told_of_connection, without_secrets
from twinstream.explain.picture import printable
from twinstream.settings import DEFAULT_BIND
from twinstream.spec.file.values import is_http_address

TIMEOUT_SECONDS = 5.0

_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9._~-]+")
"""What a path may hold as it is; a server would take dots alone as a way to another place."""
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, ValueError)
"""Nothing of the request was sent."""
_UNKNOWN = "; it is not known whether it did what was asked: see `resets` in the status"
_WRONG = frozenset({401, 403, 404, 409, 421, 422})
"""The request is wrong: its token, role, name, time, address or parameters."""


@dataclass(frozen=True, slots=True)
class Service:
    """The address of a service, and how to query it. The address may hold the token, as a password."""

    address: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None

    def __str__(self) -> str:
        return without_secrets(self.address)

    @property
    def options(self) -> dict[str, Any]:
        """The options of every request."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        verify = True if self.ca_file is None else ssl.create_default_context(cafile=self.ca_file)
        return {"headers": headers, "verify": verify, "trust_env": False}


def _token(_context: click.Context, _option: click.Parameter, file: str | None) -> str | None:
    """The token in the only line of a file, or else in the environment; None if there is none."""
    if file is None:
        token = os.environ.get("TWINSTREAM_TOKEN") or None
        if token is not None and not _is_token(token):
            raise click.UsageError("TWINSTREAM_TOKEN must be one token, and nothing else")
        return token
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(
            f"token file {file} cannot be read: {getattr(error, 'strerror', error)}"
        ) from None
    if not _is_token(token):
        raise click.UsageError(f"token file {file} must hold one token, and nothing else")
    return token


def _is_token(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _check_ca(_context: click.Context, _option: click.Parameter, file: str | None) -> str | None:
    try:
        if file is not None:
            ssl.create_default_context(cafile=file)
    except OSError as error:
        raise click.UsageError(f"--ca-file {file} cannot be used: {error.strerror or error}") from None
    return file


def _check_address(_context: click.Context, _option: click.Parameter, address: str) -> str:
    """Refuse what cannot be the address of a service: an impossible one is not waited for."""
    if not is_http_address(address):
        # The address is not repeated: it may have a password.
        raise click.BadParameter(f"that is not the address of a service; write it like http://{DEFAULT_BIND}")
    return address


def service_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that choose the service to query; together they become the parameter `service`."""

    @click.option(
        "--service",
        "address",
        envvar="TWINSTREAM_SERVICE",
        default=f"http://{DEFAULT_BIND}",
        show_default=True,
        callback=_check_address,
        help="Address of the service; also TWINSTREAM_SERVICE.",
    )
    @click.option(
        "--token-file",
        "token",
        callback=_token,
        help="A file with your token; or give the token itself in TWINSTREAM_TOKEN.",
    )
    @click.option(
        "--ca-file",
        envvar="TWINSTREAM_CA_FILE",
        callback=_check_ca,
        help="Who signed the certificate of the service, where that is nobody public (PEM).",
    )
    @wraps(command)
    def asking(*, address: str, token: str | None, ca_file: str | None, **given: Any) -> Any:
        return command(service=Service(address, token, ca_file), **given)

    return asking


def path_of(*names: str) -> str:
    """The path of a comparison, or of something of it. Raises SettingsError for what can be no name."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{name!r} cannot be the name of a comparison or the ID of a divergence")
    return "/".join(("/comparisons", *names))


def ask(
    service: Service, path: str, *members: str, body: Any = None, timeout_seconds: float = TIMEOUT_SECONDS
) -> dict[str, Any]:
    """The JSON object that the service answers to GET `path`, or to POST with a body; it has these members.

    Raises Unreachable, or Refused if the service says that the request is wrong.
    """
    response, content = _response(service, path, body, timeout_seconds)
    answer = _object(content)
    if response.is_success and answer.keys() >= {*members}:
        return answer
    told, detail = "what answers there is no Twinstream", answer.get("detail")
    if isinstance(detail, str):
        told = printable(detail)
        if response.status_code in _WRONG:
            raise Refused(told)
    if response.has_redirect_location:
        told = f"that is a redirect to {printable(without_secrets(response.headers['location']))}"
    elif body is not None and response.is_server_error and detail is None:
        told += _UNKNOWN
    raise Unreachable(f"the service at {service} answered {response.status_code}: {told}")


def _response(
    service: Service, path: str, body: Any, timeout_seconds: float
) -> tuple[httpx.Response, bytearray]:
    """The answer, and its content. Each part of it has to come in time, and the whole in twice the time."""
    method, url = "GET" if body is None else "POST", f"{service.address.rstrip('/')}/v1{path}"
    end, content = time.monotonic() + 2 * timeout_seconds, bytearray()
    try:
        with httpx.stream(method, url, json=body, timeout=timeout_seconds, **service.options) as response:
            for part in response.iter_bytes():
                content += part
                if time.monotonic() > end:
                    raise httpx.ReadTimeout("its answer does not end")
    except httpx.InvalidURL:  # Its text may contain a part of a password.
        reason = "that is not the address of a service"
        raise Refused(f"the service at {service} cannot be reached: {reason}") from None
    except (httpx.HTTPError, ValueError) as error:
        hint = ""
        if "self-signed" in str(error) or "local issuer" in str(error):
            hint = "; name who signed its certificate with --ca-file"
            if service.ca_file is not None:
                hint = f"; {service.ca_file} does not name who signed its certificate"
        elif isinstance(error, httpx.RemoteProtocolError) and url.startswith("http:"):
            hint = "; is it https?"
        if body is not None and not isinstance(error, _UNSENT):
            hint += _UNKNOWN
        told = f"{told_of_connection(error).rstrip('.')}{hint}"
        raise Unreachable(f"the service at {service} cannot be reached: {told}") from None
    return response, content


def _object(content: bytearray) -> dict[str, Any]:
    """The JSON object of a content; an empty one if it is none."""
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(content)
        if isinstance(found, dict):
            return found
    return {}
