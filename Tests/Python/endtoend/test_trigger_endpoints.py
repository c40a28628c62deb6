"""Triggers whose endpoints answer wrongly in every way: each such event is given up with the right reason, and neither
another trigger nor a client notices.
"""

from __future__ import annotations

import http.client
import math
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from endtoend.test_tls import pair
from support.events import Endpoint, Served, definition, name_of, until
from support.patience import PATIENCE
from support.program import BINARY, program
from support.servers import free_port

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

#: Far more than the server reads of one answer: 64 KiB of a body, 32 KiB of headers, and what buffers of sockets hold.
TAKEN_BYTES_MAX = 16 << 20
#: What a bystander may wait for at most, on a machine without other load: see test_abuse.py.
ANSWER_SECONDS_MAX = 5.0 if os.environ.get("HEARTH_TEST_STRICT") else math.inf
EVENTS = 10


@dataclass
class Peer:
    """One connection of the server to a wrong endpoint."""

    socket: socket.socket
    #: Set when the test is over.
    over: threading.Event
    sent: int = 0

    def head(self) -> bytes:
        """Reads a request's head and its body."""
        received = b""
        while b"\r\n\r\n" not in received:
            piece = self.socket.recv(65_536)
            if not piece:
                return b""
            received += piece
        head, _, body = received.partition(b"\r\n\r\n")
        lengths = [
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        ]
        while len(body) < lengths[0]:
            body += self.socket.recv(65_536)
        return head

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)
        self.sent += len(content)

    def without_end(self, piece: bytes, pause: float = 0) -> None:
        """Sends until the server closes the connection, or has taken too much."""
        while not self.over.wait(pause) and self.sent < TAKEN_BYTES_MAX:
            self.send(piece)


Behaviour = Callable[[Peer], None]


class Wrong:
    """An endpoint that does with each connection what a function says, then closes it."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.over = threading.Event()
        self.peers: list[Peer] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                made, _ = self.listener.accept()
            except OSError:
                return
            made.settimeout(60)
            peer = Peer(made, self.over)
            self.peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: Peer) -> None:
        try:
            self.behaviour(peer)
        except OSError:
            pass
        finally:
            peer.socket.close()

    def close(self) -> None:
        self.over.set()
        self.listener.close()


def answer(content: bytes) -> Behaviour:
    def behaviour(peer: Peer) -> None:
        if peer.head():
            peer.send(content)

    return behaviour


def never(peer: Peer) -> None:
    peer.head()
    peer.over.wait()


def never_read(peer: Peer) -> None:
    peer.over.wait()


def drip(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    peer.without_end(b"x", 0.02)


def drip_head(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\nx: ")
    peer.without_end(b"x", 0.02)


def endless_headers(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\n")
    peer.without_end(b"x-more: " + b"x" * 1000 + b"\r\n")


def endless_header(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\nx: ")
    peer.without_end(b"x" * 1000)


def endless_line(peer: Peer) -> None:
    peer.head()
    peer.without_end(b"HTTP/1.1 200 " + b"O" * 1000)


def endless_interim(peer: Peer) -> None:
    peer.head()
    peer.without_end(b"HTTP/1.1 102 Processing\r\n\r\n" * 20)


def endless_body(status: bytes) -> Behaviour:
    def behaviour(peer: Peer) -> None:
        peer.head()
        peer.send(b"HTTP/1.1 " + status + b"\r\ntransfer-encoding: chunked\r\n\r\n")
        peer.without_end(b"400\r\n" + b"x" * 1024 + b"\r\n")

    return behaviour


def early(peer: Peer) -> None:
    """Answers at the first byte of a request, and reads the rest afterwards."""
    peer.socket.recv(1)
    peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    peer.socket.shutdown(socket.SHUT_WR)
    while peer.socket.recv(65_536):
        pass


def reset(peer: Peer) -> None:
    peer.head()
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


OK = b"HTTP/1.1 200 OK\r\n"

#: What becomes of the event: None when it is acknowledged, else the status of its failure. Each endpoint closes the
#: connection after its answer, and a good one says so: else the next request may be sent at that moment, and is cut.
CASES: dict[str, tuple[Behaviour, Any]] = {
    "never answers": (never, "timeout"),
    "never reads": (never_read, "timeout"),
    "drips a body": (drip, "timeout"),
    "drips a head": (drip_head, "timeout"),
    "closes": (lambda peer: peer.head() and None, "cut"),
    "resets": (reset, "cut"),
    "garbage": (answer(b"\x00\xff\x16\x03 what is this\r\n\r\n"), "cut"),
    "HTTP/0.9": (answer(b"hello\n"), "cut"),
    "wrong length": (answer(OK + b"content-length: -1\r\n\r\n"), "cut"),
    "two lengths": (answer(OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab"), "cut"),
    "wrong chunk": (answer(OK + b"transfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"), "cut"),
    "half a body": (answer(OK + b"content-length: 100\r\n\r\nhalf"), "cut"),
    "half of the chunks": (answer(OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"), "cut"),
    "half a head": (answer(b"HTTP/1.1 200 OK\r\ncontent-le"), "cut"),
    "endless headers": (endless_headers, "cut"),
    "endless header": (endless_header, "cut"),
    "endless status line": (endless_line, "cut"),
    "endless interim answers": (endless_interim, "cut"),
    "endless body of a failure": (endless_body(b"500 Internal Server Error"), 500),
    "endless body": (endless_body(b"200 OK"), None),
    "answers early": (early, None),
    "400": (answer(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"), 400),
    "404": (answer(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"), 404),
    "304": (answer(b"HTTP/1.1 304 Not Modified\r\n\r\n"), 304),
    "connection: close": (answer(OK + b"connection: close\r\ncontent-length: 2\r\n\r\nok"), None),
    "until the end": (answer(OK + b"connection: close\r\n\r\nok"), None),
    "interim answers first": (
        answer(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n"
            + (OK + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        ),
        None,
    ),
    "204": (answer(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"), None),
}


class Bystander:
    """A client in a process of its own, which only reads its document."""

    def __init__(self, served: Served) -> None:
        served.put("bystander/small", n=1)
        command = [sys.executable, "-m", "support.bystander", str(served.program.port), name_of("bystander/small")]
        self.waits: list[tuple[float, float]] = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith("\n"):
                return
            began, took, _ = line.split(" ", 2)
            self.waits.append((float(began), float(took)))

    def judge(self, began: float) -> None:
        """It was served all the time since then, and is now."""
        now = time.monotonic()
        until(lambda: self.process.poll() is not None or any(start >= now for start, _ in list(self.waits)))
        assert self.process.poll() is None, "the bystander was not served: see its error above"
        assert max(took for start, took in list(self.waits) if start + took >= began) < ANSWER_SECONDS_MAX


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("endpoints")) as made:
        yield made


@pytest.fixture(scope="module")
def bystander(served: Served) -> Iterator[Bystander]:
    made = Bystander(served)
    yield made
    made.process.terminate()
    made.process.wait()


@contextmanager
def attacked(served: Served, bystander: Bystander, url: str, **more: Any) -> Iterator[tuple[str, str]]:
    """Two triggers for the same documents: one to a wrong endpoint, one to a good one, which must get all at once.

    Yields the name of the wrong one and the documents' collection.
    """
    collection = f"c{uuid.uuid4().hex[:8]}"
    names = [f"wrong-{collection}", f"good-{collection}"]
    began = time.monotonic()
    with Endpoint() as good:
        try:
            retry = {"minBackoff": "20ms", "maxAttempts": 2}
            wrong = definition(url, f"{collection}/{{d}}", **{"timeout": "500ms", "retry": retry, **more})
            served.good("PUT", f"/hearth/v1/triggers/{names[0]}", wrong)
            served.good("PUT", f"/hearth/v1/triggers/{names[1]}", definition(good.url, f"{collection}/{{d}}"))
            for number in range(EVENTS):
                start = time.monotonic()
                served.put(f"{collection}/{number % 5}", n=number)
                assert time.monotonic() - start < ANSWER_SECONDS_MAX
            served.settled(names[1])
            assert sorted(event.after["n"] for event in good.events()) == list(range(EVENTS))
            yield names[0], collection
            bystander.judge(began)
        finally:
            for name in names:
                served.ask("DELETE", f"/hearth/v1/triggers/{name}")


@pytest.mark.parametrize("case", CASES)
def test_wrong_answers(served: Served, bystander: Bystander, case: str) -> None:
    behaviour, status = CASES[case]
    wrong = Wrong(behaviour)
    # Short only where it is what ends an attempt: on a busy machine it would end others, too.
    timeout = "500ms" if status == "timeout" else "30s"
    try:
        with attacked(served, bystander, f"http://127.0.0.1:{wrong.port}/", timeout=timeout) as (name, _):
            served.settled(name)
            state = served.trigger(name)
            if status is None:
                assert (state["delivered"], state["deadLetters"], state["failedAttempts"]) == (EVENTS, 0, 0), state
            else:
                assert (state["delivered"], state["deadLetters"]) == (0, EVENTS), state
                assert state["failedAttempts"] == 2 * EVENTS
                assert state["lastError"]["status"] == status and state["lastError"]["message"], state
                assert state["state"] == "failing"
            # The server has closed what has no end, after little.
            until(lambda: all(is_closed(peer) for peer in wrong.peers) or not case.startswith("endless"))
            assert max(peer.sent for peer in wrong.peers) < TAKEN_BYTES_MAX
    finally:
        wrong.close()


def is_closed(peer: Peer) -> bool:
    return peer.socket.fileno() < 0


def test_redirects_are_not_followed(served: Served, bystander: Bystander) -> None:
    with Endpoint() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            location = f"HTTP/1.1 {status} Elsewhere\r\nlocation: {elsewhere.url}\r\ncontent-length: 0\r\n\r\n".encode()
            wrong = Wrong(answer(location))
            with attacked(served, bystander, f"http://127.0.0.1:{wrong.port}/", timeout="30s") as (name, _):
                served.settled(name)
                assert served.trigger(name)["lastError"]["status"] == status
                assert served.trigger(name)["deadLetters"] == EVENTS
            wrong.close()
        assert elsewhere.all() == []


def test_nobody_listens(served: Served, bystander: Bystander) -> None:
    with attacked(served, bystander, f"http://127.0.0.1:{free_port()}/") as (name, _):
        until(lambda: served.trigger(name).get("lastError"))
        state = served.trigger(name)
        assert (state["pending"], state["state"], state["lastError"]["status"]) == (EVENTS, "failing", "unreachable")


def test_a_host_that_has_no_address(served: Served, bystander: Bystander) -> None:
    with attacked(served, bystander, "http://no-such-host.invalid/") as (name, _):
        until(lambda: served.trigger(name).get("lastError"))
        assert served.trigger(name)["lastError"]["status"] == "unreachable"
        assert served.trigger(name)["pending"] == EVENTS


def test_a_certificate_that_nobody_vouches_for(served: Served, bystander: Bystander, tmp_path: Path) -> None:
    certificate, key = pair(days=30)
    (tmp_path / "c.pem").write_bytes(certificate)
    (tmp_path / "k.pem").write_bytes(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    received: list[bytes] = []

    def behaviour(peer: Peer) -> None:
        secured = context.wrap_socket(peer.socket, server_side=True)
        received.append(secured.recv(65_536))

    wrong = Wrong(behaviour)
    with attacked(served, bystander, f"https://localhost:{wrong.port}/") as (name, _):
        served.settled(name)
        assert (served.trigger(name)["delivered"], served.trigger(name)["deadLetters"]) == (0, EVENTS)
    wrong.close()
    assert not any(received)


@pytest.mark.parametrize(
    "content", [b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", b"", b"\x16\x03\x01\xff\xff" + b"x" * 4000]
)
def test_no_tls(served: Served, bystander: Bystander, content: bytes) -> None:
    def behaviour(peer: Peer) -> None:
        peer.socket.recv(65_536)
        peer.send(content)

    wrong = Wrong(behaviour)
    with attacked(served, bystander, f"https://127.0.0.1:{wrong.port}/") as (name, _):
        served.settled(name)
        assert (served.trigger(name)["delivered"], served.trigger(name)["deadLetters"]) == (0, EVENTS)
    wrong.close()


def test_a_handshake_that_nobody_answers(served: Served, bystander: Bystander) -> None:
    wrong = Wrong(never_read)
    with attacked(served, bystander, f"https://127.0.0.1:{wrong.port}/") as (name, _):
        until(lambda: served.trigger(name).get("lastError"))
        assert served.trigger(name)["delivered"] == 0
    wrong.close()


def test_large_events_to_an_endpoint_that_answers_at_once(served: Served, bystander: Bystander) -> None:
    """The answer comes before the request was read to its end; both states are 900 KB."""
    wrong = Wrong(early)
    with attacked(served, bystander, f"http://127.0.0.1:{wrong.port}/", timeout="20s") as (name, collection):
        for number in range(3):
            served.put(f"{collection}/large", n=number, s="x" * 900_000)
        served.settled(name)
        assert served.trigger(name)["delivered"] == EVENTS + 3
    wrong.close()


def test_memory_with_many_that_never_answer(served: Served, bystander: Bystander) -> None:
    """Pending events are references: the server holds what is under way only."""
    wrong = Wrong(never)
    with attacked(served, bystander, f"http://127.0.0.1:{wrong.port}/", timeout="60s", concurrency=4) as (
        name,
        collection,
    ):
        before = resident(served)
        for number in range(150):
            served.put(f"{collection}/{number}", n=number, s="x" * 500_000)
        assert served.trigger(name)["pending"] == EVENTS + 150
        # 75 MB of documents, of which the cache of a store may hold some.
        grown = resident(served) - before
        assert grown < 150, grown
        assert len(wrong.peers) <= 4
    wrong.close()


def resident(served: Served) -> float:
    """In megabytes."""
    for line in Path(f"/proc/{served.program.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError


def test_the_server_ends_while_nothing_is_answered(tmp_path: Path) -> None:
    """At SIGTERM requests under way get the grace time; what is not acknowledged comes after the next start."""
    wrong = Wrong(never)
    triggers = {"t": definition(f"http://127.0.0.1:{wrong.port}/")}
    with Served(tmp_path, triggers, "--grace", "1") as served:
        served.put("a/b", n=1)
        until(lambda: wrong.peers)
        served.program.terminate()
        with Endpoint() as endpoint:
            served.write({"t": definition(endpoint.url)})
            served.start()
            (request,) = endpoint.wait(1)
            assert request.event.after == {"n": 1}
    wrong.close()


def test_connections_are_kept(served: Served) -> None:
    """Events in sequence go over one connection."""
    ports: set[int] = set()
    with Endpoint() as endpoint:
        original = endpoint.server.process_request

        def process(request: socket.socket, address: Any) -> None:
            ports.add(address[1])
            original(request, address)

        endpoint.server.process_request = process  # type: ignore[method-assign]
        served.good("PUT", "/hearth/v1/triggers/kept", definition(endpoint.url, "kept/{d}"))
        for number in range(30):
            served.put("kept/d", n=number)
        served.settled("kept")
        served.good("DELETE", "/hearth/v1/triggers/kept")
    assert len(ports) == 1


def test_http_headers_of_a_request(served: Served) -> None:
    with Endpoint() as endpoint:
        served.good("PUT", "/hearth/v1/triggers/heads", definition(f"{endpoint.url}a/b%20c?d=e", "heads/{d}"))
        served.put("heads/d", n=1)
        (request,) = endpoint.wait(1)
        served.good("DELETE", "/hearth/v1/triggers/heads")
    assert request.path == "/a/b%20c?d=e"
    assert request.header("host") == f"127.0.0.1:{endpoint.port}"
    assert int(request.header("content-length")) == len(request.body)
    assert "cookie" not in request.headers and "expect" not in request.headers


def test_proxies_of_the_environment_are_not_used(tmp_path: Path) -> None:
    with Endpoint() as proxy, Endpoint() as endpoint:
        (tmp_path / "hearth.json").write_text(
            f'{{"triggers": {{"t": {{"event": "google.cloud.firestore.document.v1.written", "document": "{{all=**}}", '
            f'"url": "{endpoint.url}"}}}}}}'
        )
        environment = {"http_proxy": proxy.url, "HTTP_PROXY": proxy.url, "all_proxy": proxy.url}
        with program(tmp_path, "--memory", environment=environment) as hearth:
            connection = http.client.HTTPConnection("127.0.0.1", hearth.port, timeout=PATIENCE)
            connection.request("PATCH", f"/v1/{name_of('a/b')}", '{"fields": {}}', {"Authorization": "Bearer owner"})
            assert connection.getresponse().status == 200
            connection.close()
            endpoint.wait(1)
        assert proxy.all() == []
