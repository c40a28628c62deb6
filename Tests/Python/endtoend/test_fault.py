"""A fault ends the process under load: the last lines of the log say what it was doing, and nothing acknowledged is lost."""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from support.patience import PATIENCE
from support.program import BINARY, EFFORT, Program, assert_sound, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ROUNDS = 3 if EFFORT == 1 else 20
#: Of each writer, before the fault.
WRITES = 25


def thread_of(server: Program, name: str) -> int:
    for task in Path(f"/proc/{server.process.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise AssertionError(f"there is no thread {name}")


def send_to_thread(server: Program, name: str, number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    assert libc.syscall(tgkill, server.process.pid, thread_of(server, name), number) == 0, os.strerror(ctypes.get_errno())


class JSONProgram(Program):
    """Logs JSON, where a record has the address."""

    def __init__(self, folder: Path) -> None:
        self.process = self.spawn(folder, "--log-format", "json")
        assert self.process.stderr is not None
        for line in self.process.stderr:
            record = json.loads(line)
            if record["message"] == "serving":
                self.port = int(record["address"].rsplit(":", 1)[1])
                return
        raise AssertionError("the server has not started")


class Writer(threading.Thread):
    """Writes numbers that grow until the server ends, over one connection."""

    def __init__(self, server: Program, product: str) -> None:
        super().__init__(daemon=True)
        self.product = product
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self.acknowledged: list[int] = []
        self.reached = threading.Event()

    def run(self) -> None:
        number = 0
        while True:
            number += 1
            try:
                status = put(self.connection, self.product, number)
            except (OSError, http.client.HTTPException):
                return
            assert status == 200, status
            self.acknowledged.append(number)
            if number == WRITES:
                self.reached.set()


def put(connection: http.client.HTTPConnection, product: str, number: int) -> int:
    if product == "firestore":
        path = f"/v1/projects/d/databases/(default)/documents/c/{number}"
        connection.request("PATCH", path, json.dumps({"fields": {"n": {"integerValue": str(number)}}}))
    else:
        connection.request("PUT", f"/c/{number}.json?ns=d&access_token=owner", str(number))
    answer = connection.getresponse()
    answer.read()
    return answer.status


def get(server: Program, product: str, number: int) -> bool:
    if product == "firestore":
        return server.send("GET", f"/v1/projects/d/databases/(default)/documents/c/{number}")[0] == 200
    return server.send("GET", f"/c/{number}.json?ns=d")[1] == str(number).encode()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_fault_under_load_loses_nothing_and_says_what_happened(tmp_path: Path, log_format: str) -> None:
    for round_number in range(ROUNDS):
        folder = tmp_path / str(round_number)
        folder.mkdir()
        server = Program(folder) if log_format == "text" else JSONProgram(folder)
        try:
            writers = [Writer(server, product) for product in ["firestore", "realtime"]]
            for writer in writers:
                writer.start()
            for writer in writers:
                assert writer.reached.wait(PATIENCE)
            send_to_thread(server, "hearth-loop-0", signal.SIGILL)
            for writer in writers:
                writer.join(PATIENCE)
            code, log = server.end()
        finally:
            server.process.kill()
        assert code == -signal.SIGILL, (code, log)
        lines = log.splitlines()
        fault = next(line for line in lines if "a fault ends the process" in line)
        if log_format == "json":
            record = json.loads(fault)
            assert record["level"] == "error" and record["signal"] == "SIGILL" and record["thread"] == "hearth-loop-0"
            assert record["activity"] and record["lastRequest"].startswith(("PATCH /v1/projects/d/", "PUT /c/"))
            assert record["lastClient"].startswith("127.0.0.1:")
            stack = json.loads(lines[-1])
            assert stack["message"] == "stack" and stack["addresses"].startswith("0x")
        else:
            assert 'signal="SIGILL" thread="hearth-loop-0"' in fault and ' activity="' in fault, fault
            assert 'lastRequest="P' in fault and ' lastClient="127.0.0.1:' in fault
            assert any("hearth(" in line for line in lines[lines.index(fault) :]), log
        # A query may have a token.
        assert "access_token=owner" not in log
        assert_sound(folder / "hearth-data")
        with program(folder) as again:
            for writer in writers:
                assert all(get(again, writer.product, number) for number in writer.acknowledged)
            again.terminate()


def test_abort_and_a_fault_of_memory_end_with_their_own_signals(tmp_path: Path) -> None:
    for number in [signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGTRAP]:
        with program(tmp_path, "--memory") as server:
            os.kill(server.process.pid, number)
            code, log = server.end()
        assert code == -number and f'signal="{number.name}"' in log, log
        assert f'sender="{os.getpid()}"' in log
