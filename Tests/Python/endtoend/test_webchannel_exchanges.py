"""Exchanges over WebChannel as recorded in `webchannel_exchanges.txt`, replayed byte for byte.

The requests are exactly a browser's: its encoding of a form, its order of parameters, and HTTP/1.1 by hand.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from support.patience import PATIENCE
from support.webchannel import FORM, Frames

EXCHANGES = Path(__file__).with_name("webchannel_exchanges.txt")
ORIGIN = "http://127.0.0.1:39935"
KINDS = {
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3,9})?Z",
    "token": r"[A-Za-z0-9+/]+={0,2}",
    "number": r"\d+",
    "id": r"[A-Za-z0-9_.-]+",
}
PLACEHOLDER = re.compile(r"<(\w+)>")

pytestmark = pytest.mark.emulator_differs("it leaves out members that are empty, and counts in another way")


@dataclass
class Exchange:
    verb: str
    method: str
    query: str
    sent: list[str] = field(default_factory=list)
    status: int = 0
    answer: list[str] = field(default_factory=list)


def read(text: str) -> dict[str, list[Exchange]]:
    """The exchanges by their titles."""
    found: dict[str, list[Exchange]] = {}
    exchanges: list[Exchange] = []
    for line in text.splitlines():
        if line.startswith("=== "):
            exchanges = found[line[4:]] = []
        elif re.match("GET|POST", line):
            exchanges.append(Exchange(*line.split(" ", 2)))
        elif line[:3].isdigit():
            exchanges[-1].status = int(line)
        elif line.startswith("  "):
            (exchanges[-1].answer if exchanges[-1].status else exchanges[-1].sent).append(line[2:])
    return found


class Peer:
    """Sends the recorded requests, and knows the values of the placeholders."""

    def __init__(self, address: str, project: str) -> None:
        self.address = address
        database = f"projects/{project}/databases/(default)"
        self.known = {"db": database, "database": quote(database, safe="()")}

    def filled(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda match: self.known[match[1]], text)

    def meet(self, expected: str, text: str) -> None:
        """The string must equal the expected one; unknown placeholders get their values here."""
        fresh: set[str] = set()

        def pattern(match: re.Match[str]) -> str:
            name = match[1]
            if name in KINDS:
                return KINDS[name]
            if name in self.known:
                return re.escape(self.known[name])
            if name in fresh:
                return f"(?P={name})"
            fresh.add(name)
            kind = next((kind for kind in KINDS if name.startswith(kind)), "id")
            return f"(?P<{name}>{KINDS[kind]})"

        parts = PLACEHOLDER.split(expected)
        made = "".join(
            re.escape(part) if n % 2 == 0 else PLACEHOLDER.sub(pattern, f"<{part}>") for n, part in enumerate(parts)
        )
        found = re.fullmatch(made, text)
        assert found, f"expected {self.show(expected)}\n     got {text}"
        self.known.update(found.groupdict())

    def show(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda match: self.known.get(match[1], match[0]), text)

    def request(self, one: Exchange, query: str) -> tuple[int, dict[str, str], bytes]:
        """Sends one request on a connection of its own; status, headers and body of the answer."""
        head = f"{one.verb} /google.firestore.v1.Firestore/{one.method}/channel?{query} HTTP/1.1\r\n"
        head += f"Host: {self.address}\r\nOrigin: {ORIGIN}\r\nConnection: close\r\n"
        body = b""
        if one.verb == "POST":
            body = self.form(one.sent)
            kind = FORM if body else "text/plain;charset=UTF-8"
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        host, port = self.address.rsplit(":", 1)
        received = b""
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
            peer.sendall(head.encode() + b"\r\n" + body)
            while piece := peer.recv(65536):
                received += piece
        top, _, content = received.partition(b"\r\n\r\n")
        line, *lines = top.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
        if headers.get("transfer-encoding") == "chunked":
            content = b"".join(unchunked(content))
        return int(line.split()[1]), headers, content

    def form(self, sent: list[str]) -> bytes:
        if not sent:
            return b""
        members = []
        if sent[0].startswith("headers "):
            lines = "".join(f"{line}\r\n" for line in sent[0][8:].split("|"))
            members.append("headers=" + quote(lines, safe="()!~*'"))
        messages = [self.filled(line) for line in sent if not line.startswith("headers ")]
        offset = 0
        if messages and messages[0][0].isdigit():
            offset = int(messages[0].split(" ", 1)[0])
            messages = [message.split(" ", 1)[1] for message in messages]
        members += [f"count={len(messages)}", f"ofs={offset}"]
        members += [f"req{n}___data__=" + quote(message, safe="()!~*'") for n, message in enumerate(messages)]
        return "&".join(members).encode()

    def play(self, one: Exchange) -> None:
        query = self.filled(one.query)
        if one.verb == "POST" or one.status != 200:
            status, headers, content = self.request(one, query)
            assert status == one.status, content
            self.check_headers(headers)
            if one.status != 200:
                self.meet("\n".join(one.answer), content.decode().rstrip("\n"))
            elif one.sent:
                self.meet("\n".join(one.answer), "\n".join(texts(content)))
            return
        arrays: list[str] = []
        while len(arrays) < len(one.answer):
            status, headers, content = self.request(one, query)
            assert status == 200, content
            self.check_headers(headers)
            for text in texts(content):
                arrays += arrays_of(text)
            last = re.match(r"\[(\d+),", arrays[-1])
            assert last
            query = re.sub(r"\bAID=\d+", f"AID={last[1]}", query)
        assert len(arrays) == len(one.answer), arrays
        for expected, array in zip(one.answer, arrays, strict=True):
            self.meet(expected, array)

    def check_headers(self, headers: dict[str, str]) -> None:
        assert headers["access-control-allow-origin"] == ORIGIN
        assert headers["access-control-allow-credentials"] == "true"
        assert headers["content-type"] == "text/plain; charset=utf-8"
        assert headers["x-content-type-options"] == "nosniff"


def unchunked(content: bytes) -> Iterator[bytes]:
    while content:
        size, _, rest = content.partition(b"\r\n")
        length = int(size, 16)
        yield rest[:length]
        assert rest[length : length + 2] == b"\r\n"
        content = rest[length + 2 :]


def texts(content: bytes) -> list[str]:
    """The JSON of each frame."""
    reader = Frames()
    reader.feed(content)
    reader.finish()
    return reader.texts


def arrays_of(text: str) -> list[str]:
    """The arrays of a frame, unchanged. None contains `],[` followed by a number except between arrays."""
    assert text.startswith("[[") and text.endswith("]]")
    return re.split(r"(?<=\]),(?=\[\d+,\[[{\"])", text[1:-1])


@pytest.mark.parametrize("title", read(EXCHANGES.read_text()))
def test_exchanges(address: str, project: str, title: str) -> None:
    peer = Peer(address, project)
    for one in read(EXCHANGES.read_text())[title]:
        peer.play(one)


def test_an_exchange_that_is_not_so_is_noticed(address: str, project: str) -> None:
    exchanges = next(iter(read(EXCHANGES.read_text()).values()))
    for place, old, new in ((0, "8,14", "8,15"), (1, '"CURRENT"', '"current"'), (1, "[1,[", "[2,[")):
        peer = Peer(address, project)
        changed = [Exchange(**vars(one)) for one in exchanges[: place + 1]]
        answer = [line.replace(old, new) for line in changed[place].answer]
        assert answer != changed[place].answer
        changed[place].answer = answer
        with pytest.raises(AssertionError, match="expected"):
            for one in changed:
                peer.play(one)
