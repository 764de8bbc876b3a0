"""A certificate is checked when the service starts, and taken up again when it was renewed."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest
import structlog

from tests.support.certificates import certify
from twinstream.adapters.credentials import Certificate
from twinstream.errors import SettingsError


def shown(context: ssl.SSLContext, trusted: Path) -> bool:
    """Whether a client that trusts one certificate alone gets that one from a server with this context."""
    client, server = socket.socketpair()
    trusting = ssl.create_default_context(cafile=str(trusted))

    def serve() -> None:
        try:
            context.wrap_socket(server, server_side=True).close()
        except (ssl.SSLError, OSError):
            server.close()

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        trusting.wrap_socket(client, server_hostname="127.0.0.1").close()
    except ssl.SSLCertVerificationError:
        return False
    finally:
        client.close()
        serving.join(10)
    return True


def serving(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    return context


def test_a_renewed_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    cert, key = certify(tmp_path)
    certificate = Certificate(str(cert), str(key))
    context = serving(certificate)
    former = cert.rename(tmp_path / "former.crt")
    certify(tmp_path)
    assert shown(context, former)
    certificate.renew(context)
    assert (shown(context, cert), shown(context, former)) == (True, False)


@pytest.mark.parametrize("spoil", ["gone", "of another key"])
def test_a_renewal_that_cannot_be_used_leaves_the_former_certificate(tmp_path: Path, spoil: str) -> None:
    cert, key = certify(tmp_path)
    certificate = Certificate(str(cert), str(key))
    context = serving(certificate)
    former = tmp_path / "former.crt"
    former.write_bytes(cert.read_bytes())
    cert.unlink() if spoil == "gone" else certify(tmp_path, "other")[0].replace(cert)
    with structlog.testing.capture_logs() as logs:
        certificate.renew(context)
    assert [line["log_level"] for line in logs] == ["error"]
    assert shown(context, former)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    cert, key = map(str, certify(tmp_path))
    with pytest.raises(SettingsError, match="none cannot be read: No such file"):
        Certificate(str(tmp_path / "none"), key)
    with pytest.raises(
        SettingsError, match=r"--tls-cert .*tls\.crt and --tls-key .*other\.key cannot be used: "
    ):
        Certificate(cert, str(certify(tmp_path, "other")[1]))
