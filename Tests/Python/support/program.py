"""Runs of the built program with a folder of its own: starts, requests over plain HTTP, ends of every kind."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.patience import PATIENCE

BINARY = os.environ.get("HEARTH_BINARY", "")

#: The effort of the long tests: 1 for `make test`, 10 for a night.
EFFORT = int(os.environ.get("HEARTH_TEST_EFFORT", "1"))


def environment_of_a_child(changes: dict[str, str] | None = None) -> dict[str, str]:
    """The environment without the tests' own variables, which the program would read as settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "FIRESTORE_"))}
    return {**clean, **(changes or {})}


class Program:
    """One run of `hearth serve` in a folder."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        file_bytes_max: int | None = None,
        port: int = 0,
    ) -> None:
        self.process = self.spawn(folder, *options, environment=environment, file_bytes_max=file_bytes_max, port=port)
        self.block: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.block.append(line.strip())
            if "FIRESTORE_EMULATOR_HOST=" in line:
                self.port = int(line.rsplit(":", 1)[1])
                return
        raise AssertionError(self.process.communicate()[1])

    @staticmethod
    def spawn(
        folder: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        file_bytes_max: int | None = None,
        port: int = 0,
    ) -> subprocess.Popen[str]:
        """Only the process, before it is known to serve.

        `file_bytes_max` bounds the size of its files, as `ulimit -f` does, so that it can be raised again.
        """
        # No Python code runs in the child before the server: gRPC's fork handlers have ended such children.
        limited = [] if file_bytes_max is None else ["prlimit", f"--fsize={file_bytes_max}:unlimited"]
        return subprocess.Popen(
            [*limited, BINARY, "serve", "--port", str(port), *options],
            cwd=folder,
            env=environment_of_a_child(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def settle(self) -> None:
        """Waits until the databases' files have all that their logs have."""
        end = time.monotonic() + PATIENCE
        while b"\nhearth_table_bytes 0\n" not in self.send("GET", "/metrics")[1]:
            assert time.monotonic() < end, "the files don't follow their logs"
            time.sleep(0.05)

    def end(self) -> tuple[int, str]:
        """The exit code, and the log."""
        _, log = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, log

    def terminate(self) -> tuple[int, str]:
        self.process.terminate()
        return self.end()

    def kill(self) -> str:
        """SIGKILL; returns the log."""
        self.process.kill()
        return self.process.communicate()[1]


@contextmanager
def program(folder: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[Program]:
    started = Program(folder, *options, environment=environment)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.process.communicate()


@dataclass(frozen=True)
class Check:
    """The output of `hearth check`."""

    code: int
    text: str
    complaint: str


def check(data: Path, *options: str) -> Check:
    command = [BINARY, "check", "--data", str(data), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment_of_a_child())
    return Check(ended.returncode, ended.stdout, ended.stderr)


def assert_sound(data: Path) -> str:
    """`hearth check` finds nothing; returns its counts."""
    result = check(data)
    assert result.code == 0, result.text + result.complaint
    return result.text
