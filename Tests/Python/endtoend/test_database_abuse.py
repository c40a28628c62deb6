"""Hostile clients of the Realtime Database and an anonymous bystander at the same address: the bystander's requests
never fail, and memory is bounded.

The server is one for production: rules are in force. `HEARTH_TEST_STRICT` enables the documented bounds of time.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from endtoend.trees import production
from support.attacks import message as request
from support.attacks import ones, text_frame
from support.patience import PATIENCE
from support.program import BINARY, Program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

NAMESPACE = "shop-default-rtdb"
RULES = {
    "open": {".read": True, ".write": True},
    "shut": {".read": False, ".write": False},
    "mine": {"$uid": {".write": "auth.uid == $uid"}},
}
ANSWER_SECONDS_MAX = 0.25 if os.environ.get("HEARTH_TEST_STRICT") else math.inf
RESIDENT_MEGABYTES_MAX = 400
MANY_SESSIONS = 21_000


class Target:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.port = program.port
        self.waits: list[tuple[float, float, str]] = []
        command = [sys.executable, "-m", "support.database_bystander", str(self.port), NAMESPACE]
        self.bystander = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.bystander.stdout is not None
        for line in self.bystander.stdout:
            if line.endswith("\n"):
                began, took, way = line.split(" ", 2)
                self.waits.append((float(began), float(took), way.strip()))

    def rounds_after(self, began: float) -> list[tuple[float, float, str]]:
        """The bystander's waiting times since then, after one complete round from now on."""
        now = time.monotonic()
        while len({way for start, _, way in list(self.waits) if start >= now}) < 4:
            if self.bystander.poll() is not None:
                assert self.bystander.stderr is not None
                raise AssertionError("the bystander was refused: " + self.bystander.stderr.read()[-2000:])
            assert time.monotonic() < now + PATIENCE, "the bystander waits for ever"
            time.sleep(0.01)
        return [wait for wait in list(self.waits) if wait[0] + wait[1] >= began]

    def megabytes(self, name: str) -> float:
        status = Path(f"/proc/{self.program.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]

    def forget_peak(self) -> None:
        Path(f"/proc/{self.program.process.pid}/clear_refs").write_text("5")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with production(tmp_path_factory.mktemp("abuse"), RULES) as program:
        made = Target(program)
        try:
            yield made
        finally:
            made.bystander.kill()
            made.bystander.wait()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(autouse=True)
def judged(target: Target) -> Iterator[None]:
    target.rounds_after(0)
    target.forget_peak()
    began = time.monotonic()
    yield
    waits = target.rounds_after(began)
    peak = target.megabytes("VmHWM")
    _, longest, way = max(waits, key=lambda wait: wait[1])
    print(f"{len(waits)} answers, the slowest after {longest * 1000:.0f} ms over {way}; {peak:.0f} MB at most")
    assert peak < RESIDENT_MEGABYTES_MAX, f"{peak:.0f} MB were resident"
    assert longest < ANSWER_SECONDS_MAX, f"the bystander waited {longest:.2f} s over {way}"


def put(target: Target, path: str, body: bytes, chunked: bool = False, method: str = "PUT") -> int:
    """The status; -1 when the server ended the connection."""
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=PATIENCE)
    try:
        pieces = iter([body[start : start + (1 << 20)] for start in range(0, len(body), 1 << 20)])
        content = pieces if chunked else body
        connection.request(method, f"/{path}.json?ns={NAMESPACE}", content, encode_chunked=chunked,
                           headers={"Transfer-Encoding": "chunked"} if chunked else {})
        return connection.getresponse().status
    except OSError:
        return -1
    finally:
        connection.close()


def at_once(count: int, body: object, *arguments: object) -> None:
    threads = [threading.Thread(target=body, args=arguments) for _ in range(count)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# REST


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST"])
@pytest.mark.parametrize("chunked", [False, True])
def test_large_writes_where_nobody_may(target: Target, method: str, chunked: bool) -> None:
    body = ones(14) if method != "PATCH" else b'{"a":' + ones(14) + b"}"
    assert put(target, "shut", body, chunked, method) == 401
    assert put(target, "mine/ann", body, chunked, method) == 401
    at_once(6, put, target, "shut", body, chunked, method)


def test_a_body_beyond_the_limit(target: Target) -> None:
    assert put(target, "open/a", ones(60)) in (413, -1)
    at_once(6, put, target, "open/a", ones(60))


def test_texts_that_become_too_much(target: Target) -> None:
    assert put(target, "open/a", ones(14)) == 400
    at_once(8, put, target, "open/a", ones(14))


def test_large_writes_where_everybody_may(target: Target) -> None:
    """More of them, and their bystander's latencies, in `test_exhaustion.py`."""
    at_once(3, put, target, "open/a", ones(2))
    assert put(target, "open/a", b"null") == 200


def test_forms_with_large_heads(target: Target) -> None:
    """Uploads: the head of a part is of any size, and so is the number of parts."""

    def upload(body: bytes) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=120)
        try:
            sent = {"Content-Type": "multipart/form-data; boundary=x"}
            connection.request("POST", f"/open/a/.upload?ns={NAMESPACE}", body, sent)
            assert connection.getresponse().status in (400, 503)
        finally:
            connection.close()

    for count, lines in ((6, b"a\r\n" * (5 << 20)), (1, b"x" * (15 << 20)), (1, b"A: b\r\n\r\n\r\n--x\r\n" * (1 << 20))):
        at_once(count, upload, b"--x\r\n" + lines + b"\r\n\r\n1\r\n--x--\r\n")


# Sockets


def opened(target: Target, receive_bytes: int | None = None) -> socket.socket:
    made = socket.socket()
    if receive_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    made.settimeout(20)
    made.connect(("127.0.0.1", target.port))
    made.sendall(
        f"GET /.ws?v=5&ns={NAMESPACE} HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
    received = b""
    while b'"t":"h"' not in received:
        received += made.recv(65_536)
    return made


def pushed(to: socket.socket, content: bytes) -> bool:
    try:
        to.sendall(content)
        return True
    except OSError:
        return False


@pytest.mark.parametrize("path", ["shut/a", "open/a"])
@pytest.mark.parametrize("action", ["p", "m", "o"])
def test_large_puts_over_sockets(target: Target, path: str, action: str) -> None:
    message = text_frame(request(1, action, path, b'{"x":' + ones(14) + b"}"))

    def send() -> None:
        with opened(target) as made:
            if not pushed(made, message):
                return
            received = b""
            try:
                while b'"r":1' not in received and (piece := made.recv(65_536)):
                    received += piece
            except OSError:
                return
            assert b"permission_denied" in received or b"too_big" in received or b"\x88" in received, received[:200]

    at_once(6, send)


@pytest.mark.parametrize("path", ["shut/a", "open/a"])
def test_sockets_that_end_amid_their_answers(target: Target, path: str) -> None:
    """Some hundred writes are answered, and others are in progress, when the connection is cut."""
    writes = b"".join(text_frame(request(number, "p", path)) for number in range(1, 601))
    for attempt in range(20):
        made = opened(target)
        pushed(made, writes)
        received = b""
        while received.count(b'"r":') < 150 + attempt:
            received += made.recv(65_536)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        made.close()
    assert target.program.process.poll() is None


def test_pieces_that_are_announced(target: Target) -> None:
    sockets = [opened(target) for _ in range(40)]
    piece = text_frame(b"x" * 16_000)
    for made in sockets:
        pushed(made, text_frame(b"1000") + piece * 900)
    time.sleep(0.5)
    for made in sockets:
        made.close()


def test_requests_that_wait_their_turn(target: Target) -> None:
    """Each must wait for the one before: the first is large."""
    sockets = [opened(target) for _ in range(30)]
    for made in sockets:
        large = text_frame(request(1, "p", "open/w", b'"' + b"x" * 1_000_000 + b'"'))
        made.settimeout(1)
        pushed(made, large * 14)
    for made in sockets:
        made.close()


def test_sockets_that_do_not_read(target: Target) -> None:
    assert put(target, "open/large", b'"' + b"x" * 4_000_000 + b'"') == 200
    sockets = [opened(target, 4096) for _ in range(60)]
    for number, made in enumerate(sockets):
        for again in range(8):
            pushed(made, text_frame(request(again + 1, "g", "open/large")))
        pushed(made, text_frame(request(9, "q", "open/large")))
    time.sleep(2)
    for made in sockets:
        made.close()
    assert put(target, "open/large", b"null") == 200


# Event streams


def test_streams_that_are_not_read(target: Target) -> None:
    assert put(target, "open/large", b'"' + b"x" * 4_000_000 + b'"') == 200
    sockets = []
    for _ in range(60):
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", target.port))
        made.sendall(f"GET /open.json?ns={NAMESPACE}&sse=true HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        sockets.append(made)
    for number in range(20):
        assert put(target, "open/other", json.dumps("y" * 100_000 + str(number)).encode()) == 200
    for made in sockets:
        made.close()
    assert put(target, "open/large", b"null") == 200


# Long polling


def begin(target: Target, connection: http.client.HTTPConnection) -> tuple[str, str] | None:
    connection.request("GET", f"/.lp?start=t&ser=1&cb=7&v=5&ns={NAMESPACE}")
    answer = connection.getresponse()
    found = re.search(r'"start","([0-9a-f]+)","([0-9a-f]+)"', answer.read().decode())
    return (found[1], found[2]) if found else None


def test_polling_sessions_beyond_all_bounds(target: Target) -> None:
    ask = f"GET /.lp?start=t&ser=1&cb=7&v=5&ns={NAMESPACE} HTTP/1.1\r\nHost: h\r\n\r\n".encode()

    def flood(count: int) -> None:
        with socket.create_connection(("127.0.0.1", target.port), timeout=PATIENCE) as made:
            left = count
            while left > 0:
                made.sendall(ask * 50)
                received = b""
                while received.count(b'"start"') + received.count(b"HTTP/1.1 4") + received.count(b"HTTP/1.1 5") < 50:
                    received += made.recv(1 << 20)
                left -= 50

    at_once(4, flood, MANY_SESSIONS // 4)
    target.rounds_after(time.monotonic())


def test_polled_pieces_before_their_turn(target: Target) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=PATIENCE)
    piece = "A" * 30_000
    for _ in range(30):
        session = begin(target, connection)
        assert session
        for number in range(1, 40):
            made = socket.create_connection(("127.0.0.1", target.port), timeout=PATIENCE)
            path = f"/.lp?id={session[0]}&pw={session[1]}&ser=2&seg0={number}&ts0=1000&d0={piece}"
            pushed(made, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            made.close()
    connection.close()


def test_polled_answers_that_nobody_fetches(target: Target) -> None:
    import base64

    assert put(target, "open/large", b'"' + b"x" * 4_000_000 + b'"') == 200
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=PATIENCE)
    for _ in range(60):
        session = begin(target, connection)
        if not session:
            continue
        text = base64.urlsafe_b64encode(request(1, "q", "open/large")).decode().replace("=", ".")
        made = socket.create_connection(("127.0.0.1", target.port), timeout=PATIENCE)
        path = f"/.lp?id={session[0]}&pw={session[1]}&ser=2&seg0=0&ts0=1&d0={text}"
        pushed(made, f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        made.close()
    time.sleep(2)
    connection.close()
    assert put(target, "open/large", b"null") == 200
