"""The HTTP server: its address, its access control, and its certificate."""

from __future__ import annotations

import asyncio
import socket
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI

from twinstream.adapters.credentials import Certificate, TokenFile
from twinstream.api.stream.mailbox import SEND_BUFFER_BYTES
from twinstream.errors import SettingsError
from twinstream.settings import Settings, split_address

RENEW_SECONDS = 10.0
"""How soon a renewed certificate is in use; certificates are renewed days before they expire."""


class Server(uvicorn.Server):
    """Leaves signals to the service, which has to stop matchers before HTTP."""

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens of clients, and the certificate of the server."""

    keys: TokenFile | None
    certificate: Certificate | None

    @classmethod
    def of(cls, settings: Settings) -> Access:
        """Read the files that the settings name. Raises SettingsError for those that cannot be used."""
        keys = None if settings.token_file is None else TokenFile(settings.token_file)
        if settings.tls_cert is None or settings.tls_key is None:
            return cls(keys, None)
        return cls(keys, Certificate(settings.tls_cert, settings.tls_key))

    def server(self, app: FastAPI) -> Server:
        """The HTTP server."""
        tls = self.certificate
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=2,
            ssl_certfile=tls.cert if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        return Server(config)

    async def renew(self, server: Server) -> None:
        """Keep the certificate up to date with its files."""
        while self.certificate is not None:
            await asyncio.sleep(RENEW_SECONDS)
            if server.config.ssl is not None:
                self.certificate.renew(server.config.ssl)


def bound(address: str) -> socket.socket:
    """A socket that listens at an address: clients wait until the server runs. Raises SettingsError."""
    host, port = split_address(address)
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listening.bind(place)
        listening.listen()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no host can have this name"
        raise SettingsError(
            f"bind address {address} cannot be used: {reason}; choose another --bind"
        ) from None
    return listening
