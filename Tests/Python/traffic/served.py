"""The servers of a run: one over plain sockets, one over TLS; and what they must not hold when it is over."""

from __future__ import annotations

import datetime
import http.client
import os
import ssl
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.program import Program

#: What is 0 when no client has anything open.
LEVELS = (
    "hearth_streams_open",
    "hearth_websockets_open",
    "hearth_open_transactions",
    "hearth_queued_commits",
    "hearth_held_bytes{",
    "hearth_snapshots_open{",
    "hearth_long_reads{",
    "hearth_worker_jobs_running{",
    "hearth_worker_jobs_waiting{",
    # Nothing of a client may meet a fault of the program.
    "hearth_broken_invariants_total",
)
CONNECTIONS = "hearth_connections_open"
SETTLE_SECONDS = 30.0


class Finding(AssertionError):
    """The server did something that the model does not know."""


def certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths[1].write_bytes(key.private_bytes(*form))
    return paths


class Served:
    """One server in memory."""

    def __init__(self, folder: Path, *, secure: bool) -> None:
        self.secure = secure
        self.name = "TLS" if secure else "plain"
        options = ["--memory"]
        if secure:
            certificate_path, key_path = certificate(folder)
            options += ["--tls-cert", str(certificate_path), "--tls-key", str(key_path)]
        folder.mkdir(exist_ok=True)
        # Only the thread that trapped; a build with a sanitizer has its own report.
        backtrace = os.environ.get("SWIFT_BACKTRACE", "threads=crashed,registers=none,images=none")
        self.program = Program(folder, *options, environment={"SWIFT_BACKTRACE": backtrace})
        self.port = self.program.port
        self.resident: list[int] = []

    def connection(self, seconds: float = 30) -> http.client.HTTPConnection:
        if self.secure:
            context = ssl._create_unverified_context()
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=seconds, context=context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    @property
    def is_alive(self) -> bool:
        return self.program.process.poll() is None

    def sample(self) -> None:
        if not self.is_alive:
            return
        for line in Path(f"/proc/{self.program.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                self.resident.append(int(line.split()[1]) // 1024)

    def metrics(self) -> list[tuple[str, float]]:
        connection = self.connection()
        try:
            connection.request("GET", "/metrics", headers={"Authorization": "Bearer owner"})
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        parts = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return [(name, float(value)) for name, value in parts]

    def held(self) -> dict[str, float]:
        """The levels that are not 0."""
        metrics = self.metrics()
        # The connection that asks is one itself.
        return {
            name: value for name, value in metrics if (value and name.startswith(LEVELS)) or (name == CONNECTIONS and value > 1)
        }

    def check_end(self, *, is_used: bool) -> None:
        """After the last client: nothing may be held. Once all databases have been used every level is there."""
        names = [name for name, _ in self.metrics()]
        missing = [level for level in (*LEVELS, CONNECTIONS) if not any(name.startswith(level) for name in names)]
        if is_used and missing:
            raise Finding(f"{self.name}: /metrics has no {missing}")
        deadline = time.monotonic() + SETTLE_SECONDS
        while held := self.held():
            if time.monotonic() > deadline:
                raise Finding(f"{self.name}: still held at the end: {held}")
            time.sleep(0.2)

    def end(self) -> str:
        """Stops the server; returns its log."""
        if self.is_alive:
            self.program.process.terminate()
        return self.program.end()[1]
