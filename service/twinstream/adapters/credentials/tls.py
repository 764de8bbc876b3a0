"""The certificate of the service, loaded again when its files have changed."""

from __future__ import annotations

import ssl

import structlog

from twinstream.adapters.files.stamps import stamp
from twinstream.errors import SettingsError


class Certificate:
    """A certificate with its chain, and its key, as PEM files.

    Files that become unreadable or do not match each other change nothing: the former certificate stays in
    use, and the log says why.
    """

    def __init__(self, cert: str, key: str) -> None:
        """Read both once. Raises SettingsError if they cannot be used."""
        self.cert, self.key = cert, key
        self._stamps = self._look()
        self._load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))

    def renew(self, context: ssl.SSLContext) -> None:
        """Have `context` use the files as they are now, if they have changed since the last call."""
        try:
            stamps = self._look()
            if stamps == self._stamps:
                return
            # First on trial: a key that does not match must not replace half of a working pair.
            self._load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
            self._load(context)
        except SettingsError as error:
            structlog.get_logger().error("certificate not renewed: the former stays", error=str(error))
            return
        self._stamps = stamps
        structlog.get_logger().info("certificate read again", file=self.cert)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self.cert, self.key, password=_no_password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
            raise SettingsError(
                f"--tls-cert {self.cert} and --tls-key {self.key} cannot be used: {reason}"
            ) from None

    def _look(self) -> tuple[object, object]:
        try:
            return stamp(self.cert), stamp(self.key)
        except OSError as error:
            raise SettingsError(f"{error.filename} cannot be read: {error.strerror}") from None


def _no_password() -> str:
    """Answer a prompt for a password: there is nobody to type one."""
    raise ValueError("the key is encrypted, and a key without a password is needed")
