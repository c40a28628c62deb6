"""Starts Google's emulator and Hearth as child processes, on free ports, and stops them by their ids."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.patience import PATIENCE

PACKAGE = "google-cloud-cli-firestore-emulator"
MAIN_CLASS = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
START_SECONDS_MAX = PATIENCE


class Unavailable(Exception):
    """The server cannot be started here; the message states what is missing."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _emulator_jar() -> Path:
    """The emulator's jar as the Debian package lists it."""
    listing = subprocess.run(["dpkg", "-L", PACKAGE], capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        if line.endswith("cloud-firestore-emulator.jar"):
            return Path(line)
    raise Unavailable(f"the package {PACKAGE} is not installed, so there is no emulator to compare with")


def emulator_command(port: int) -> list[str]:
    if shutil.which("java") is None:
        raise Unavailable("no java on the path: the emulator cannot run")
    # The error messages follow the locale; the wrapper script beside the jar fixes it to English as well.
    return [
        *("java", "-Xmx1g", "-Duser.language=en", "-cp", str(_emulator_jar()), MAIN_CLASS),
        *("--host=127.0.0.1", f"--port={port}"),
    ]


def hearth_command(binary: str, port: int) -> list[str]:
    return [binary, "serve", "--host", "127.0.0.1", "--port", str(port), "--memory"]


def wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Both servers answer `GET /` with 200 as soon as they serve."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Unavailable(f"the server ended with {process.returncode}:\n{log.read_text()[-2000:]}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", "/")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise Unavailable(f"the server did not answer on port {port}:\n{log.read_text()[-2000:]}")


@contextmanager
def process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server for the duration of the block."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            started = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
            try:
                wait_until_ready(started, port, log)
                yield started
            finally:
                started.terminate()
                try:
                    started.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    started.kill()
                    started.wait()


@contextmanager
def running(command: list[str], port: int) -> Iterator[str]:
    """Runs a server for the duration of the block; yields its `host:port`."""
    with process(command, port):
        yield f"127.0.0.1:{port}"


@contextmanager
def emulator(*options: str) -> Iterator[str]:
    port = free_port()
    with running([*emulator_command(port), *options], port) as address:
        yield address


@contextmanager
def hearth() -> Iterator[str]:
    binary = os.environ.get("HEARTH_BINARY")
    if not binary:
        raise Unavailable("HEARTH_BINARY does not name the server's binary")
    port = free_port()
    with running(hearth_command(binary, port), port) as address:
        yield address
