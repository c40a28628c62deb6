"""TLS from outside: the certificate that new connections are shown, its renewal, and handshakes that nobody finishes."""

from __future__ import annotations

import datetime
import http.client
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.patience import PATIENCE
from support.program import BINARY, Program, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

#: What a server that checks its files every second has done long before.
SECONDS = PATIENCE


def pair(days: int) -> tuple[bytes, bytes]:
    """A certificate for localhost and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(*form)


def shown(hearth: Program) -> bytes:
    """The certificate that a new connection is shown."""
    return ssl.get_server_certificate(("127.0.0.1", hearth.port), timeout=PATIENCE).encode()


def metric(hearth: Program, name: str) -> int:
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", hearth.port, timeout=PATIENCE, context=context)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return next(int(line.removeprefix(name + " ")) for line in text.splitlines() if line.startswith(name + " "))


def seconds_left(hearth: Program) -> int:
    return metric(hearth, "hearth_tls_certificate_expiry_seconds")


def hello() -> bytes:
    """The first record of a client."""
    output = ssl.MemoryBIO()
    client = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), output)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return output.read()


def wait_for(hearth: Program, certificate: bytes) -> None:
    end = time.monotonic() + SECONDS
    while shown(hearth) != certificate:
        assert time.monotonic() < end, "the renewed certificate is not shown"
        time.sleep(0.1)


def logged(hearth: Program, words: str) -> str:
    """The next record with these words."""
    guard = threading.Timer(SECONDS, hearth.process.kill)
    guard.start()
    try:
        assert hearth.process.stderr is not None
        return next(line for line in hearth.process.stderr if words in line)
    finally:
        guard.cancel()


def test_a_renewed_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    first, second, third = pair(1), pair(30), pair(60)
    certificate.write_bytes(first[0])
    key.write_bytes(first[1])
    with program(tmp_path, "--memory", "--tls-cert", "cert.pem", "--tls-key", "key.pem") as hearth:
        assert shown(hearth) == first[0]
        assert 0 < seconds_left(hearth) <= 86_400
        certificate.write_bytes(second[0])
        key.write_bytes(second[1])
        wait_for(hearth, second[0])
        assert 29 * 86_400 < seconds_left(hearth) <= 30 * 86_400
        # Half of a pair: the record says that it was looked at, and the former one is still shown.
        certificate.write_bytes(third[0])
        assert "key.pem" in logged(hearth, "the former one stays in use")
        assert shown(hearth) == second[0]
        key.write_bytes(third[1])
        wait_for(hearth, third[0])
        code, log = hearth.terminate()
        assert code == 0
        assert log.count("certificate reloaded") == 1


@pytest.mark.parametrize("part", [100, None], ids=["a hello in part", "a whole hello"])
def test_handshakes_that_nobody_finishes_take_little_memory(tmp_path: Path, part: int | None) -> None:
    (tmp_path / "cert.pem").write_bytes((files := pair(1))[0])
    (tmp_path / "key.pem").write_bytes(files[1])
    with program(tmp_path, "--memory", "--tls-cert", "cert.pem", "--tls-key", "key.pem") as hearth:
        before = metric(hearth, "process_resident_memory_bytes")
        first = hello()[:part]
        peers = [socket.create_connection(("127.0.0.1", hearth.port)) for _ in range(800)]
        for peer in peers:
            peer.sendall(first)
        # An honest client, beside all of them: OpenSSL would hold 46 KB for each, or 67 KB.
        assert metric(hearth, "process_resident_memory_bytes") - before < 20 << 20
        for peer in peers:
            peer.close()
