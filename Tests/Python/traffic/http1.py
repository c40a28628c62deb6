"""Requests of HTTP/1.1 on one connection, pipelined, in pieces of any size: REST of both products, and event streams."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import random
import socket
import ssl
import time
from typing import Any

from traffic.content import letters, size
from traffic.http2 import DATABASE, Document, Documents, check_rest
from traffic.served import Finding, Served


#: Locations of a lane in its namespace; each keeps its first value.
PATHS = 20


class _Slow(io.RawIOBase):
    """Reads as little at a time as chance wants."""

    def __init__(self, raw: socket.socket, chance: random.Random, pace: str) -> None:
        self._raw = raw
        self._chance = chance
        self._pace = pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        most = len(buffer)
        if self._pace == "few":
            most = min(most, self._chance.choice([1, 2, 7, 5_000]))
        elif self._pace == "any":
            most = self._chance.randrange(1, most + 1)
        return self._raw.recv_into(memoryview(buffer)[:most])


class _Kept:
    """What `HTTPResponse` reads from: the same reader for all answers of a connection."""

    def __init__(self, reader: io.BufferedReader) -> None:
        self._reader = reader

    def makefile(self, *_: Any) -> Any:
        reader = self._reader

        class Shared:
            closed = False

            def __getattr__(self, name: str) -> Any:
                return getattr(reader, name)

            def close(self) -> None:
                pass

            def flush(self) -> None:
                pass

        return Shared()


class Lane:
    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.number = number
        self.chance = random.Random(f"{seed}/{number}/http1")
        self.documents = Documents(f"t{number}", self.chance)
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}
        self.tree: dict[str, str] = {}

    def run(self, until: float) -> None:
        while time.monotonic() < until or not self.counts["whole"]:
            raw = socket.create_connection(("127.0.0.1", self.served.port), timeout=40)
            if self.served.secure:
                context = ssl._create_unverified_context()
                context.set_alpn_protocols(["http/1.1"])
                raw = context.wrap_socket(raw, server_hostname="localhost")
            self.counts["connections"] += 1
            pace = self.chance.choice(["all", "all", "any", "few"])
            reader = io.BufferedReader(_Slow(raw, self.chance, pace), 8_192)
            try:
                for _ in range(self.chance.randrange(1, 40)):
                    if time.monotonic() > until and self.counts["whole"]:
                        break
                    self._exchange(raw, reader)
                if self.chance.random() < 0.3:
                    self._break_off(raw, reader)
            finally:
                raw.close()

    def _send(self, raw: socket.socket, data: bytes) -> None:
        """In pieces, unless chance wants it whole."""
        if self.chance.random() < 0.5:
            return raw.sendall(data)
        while data:
            length = min(len(data), self.chance.choice([1, 3, 100, 16_384, 70_000]))
            raw.sendall(data[:length])
            data = data[length:] if len(data) < 200_000 or length > 1_000 else data[length:]
            if len(data) > 100_000 and length < 1_000:
                raw.sendall(data[:100_000])
                data = data[100_000:]

    def _exchange(self, raw: socket.socket, reader: io.BufferedReader) -> None:
        requests = [self._request() for _ in range(self.chance.choice([1, 1, 1, 3]))]
        self._send(raw, b"".join(request for request, _, _ in requests))
        for request, method, check in requests:
            answer = http.client.HTTPResponse(_Kept(reader), method=method)  # type: ignore[arg-type]
            try:
                answer.begin()
                body = answer.read()
            except (http.client.HTTPException, OSError) as error:
                raise Finding(f"{request[:200]!r}: {error!r}") from error
            self.counts["bytes"] += len(body)
            if answer.getheader("content-encoding") == "gzip":
                body = gzip.decompress(body)
            check(str(answer.status), body)
            self.counts["whole"] += 1

    def _break_off(self, raw: socket.socket, reader: io.BufferedReader) -> None:
        """Closes within a request or an answer."""
        request, _, _ = self._request(writes=False)
        self.counts["reset"] += 1
        if self.chance.random() < 0.5:
            raw.sendall(request[: self.chance.randrange(len(request))])
        else:
            raw.sendall(request)
            # Not `read`: an answer may be shorter.
            reader.read1(self.chance.randrange(1, 200))

    def _build(self, method: str, target: str, body: bytes, compressed: bool = False) -> bytes:
        head = f"{method} {target} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner\r\n"
        if compressed:
            head += "accept-encoding: gzip\r\n"
        if not body:
            return f"{head}\r\n".encode()
        if self.chance.random() < 0.6:
            return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        chunks = b""
        while body:
            length = min(len(body), max(1, size(self.chance)))
            chunks += f"{length:x}\r\n".encode() + body[:length] + b"\r\n"
            body = body[length:]
        return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n"

    def _request(self, writes: bool = True) -> tuple[bytes, str, Any]:
        kind = self.chance.random()
        if writes and (not self.documents.known or kind < 0.2):
            return self._commit()
        if self.documents.known and kind < 0.55:
            document = self.chance.choice(self.documents.known)
            request = self._build("GET", f"/v1/{document.name}", b"", compressed=self.chance.random() < 0.5)
            return request, "GET", lambda status, body: check_rest(document.name, status, body, document)
        if writes and (not self.tree or kind < 0.75):
            return self._put()
        if not self.tree:
            return self._build("GET", "/v1/x", b""), "GET", lambda status, body: None
        path = self.chance.choice(list(self.tree))
        value = self.tree[path]

        def check(status: str, body: bytes) -> None:
            if status != "200" or json.loads(body) != value:
                raise Finding(f"{path}: {status}, {len(body)} bytes")

        return self._build("GET", f"/{path}.json?ns=lane{self.number}", b""), "GET", check

    def _commit(self) -> tuple[bytes, str, Any]:
        document: Document = self.documents.new()
        body = json.dumps({"writes": [self.documents.write(document)]}).encode()

        def check(status: str, answer: bytes) -> None:
            if status != "200":
                raise Finding(f"commit of {document.name}: {status} {answer[:300]!r}")
            self.documents.add(document)

        return self._build("POST", f"/v1/{DATABASE}/documents:commit", body), "POST", check

    def _put(self) -> tuple[bytes, str, Any]:
        path = f"v{self.chance.randrange(PATHS)}"
        value = self.tree.get(path)
        if value is None:
            value = letters(self.chance.randrange(1 << 20), size(self.chance))

        def check(status: str, answer: bytes) -> None:
            if status != "200" or json.loads(answer) != value:
                raise Finding(f"put of {path}: {status} {answer[:300]!r}")
            self.tree[path] = value

        return self._build("PUT", f"/{path}.json?ns=lane{self.number}", json.dumps(value).encode()), "PUT", check
