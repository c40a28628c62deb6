"""Listens over WebChannel, as browsers have them, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import base64
import json
import random
import time

from support.http2 import Http2
from support.ways import Http1
from support.webchannel import WebListen
from traffic.content import content, size
from traffic.served import Finding, Served
from traffic.tunnel import Network


class Lane:
    """A listener of one document, whose versions arrive in order; the last one always."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.number = number
        self.network = Network(served, seed, number)
        self.chance = random.Random(f"{seed}/{number}/web")
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}
        self.version = 0

    def run(self, until: float) -> None:
        writer = self.served.connection()
        path = f"web{self.number}/d"
        while time.monotonic() < until or not self.counts["whole"]:
            address = self.network.address()
            way = Http2(address) if self.chance.random() < 0.5 else Http1(address)
            listen = WebListen(address, "demo", way=way, polls=self.chance.random() < 0.3)
            self.counts["connections"] += 1
            try:
                listen.add_documents(1, path)
                written: list[tuple[int, int]] = []
                for _ in range(self.chance.randrange(1, 20)):
                    if time.monotonic() > until and self.counts["whole"]:
                        break
                    self.version += 1
                    # The server keeps old versions: most are small.
                    written.append((self.version, size(self.chance, 300 << 10 if self.chance.random() < 0.1 else 2_000)))
                    self._write(writer, path, *written[-1])
                    self._wait(listen, written)
                    if self.chance.random() < 0.2:
                        self.counts["reset"] += 1
                        listen.session.cut()
            finally:
                listen.cancel()

    def _write(self, writer: object, path: str, version: int, count: int) -> None:
        fields = {
            "v": {"integerValue": str(version)},
            "b": {"bytesValue": base64.b64encode(content(version, count)).decode()},
        }
        name = f"projects/demo/databases/(default)/documents/{path}"
        body = json.dumps({"writes": [{"update": {"name": name, "fields": fields}}]})
        target = "/v1/projects/demo/databases/(default)/documents:commit"
        writer.request("POST", target, body, {"Authorization": "Bearer owner"})  # type: ignore[attr-defined]
        answer = writer.getresponse()  # type: ignore[attr-defined]
        text = answer.read()
        if answer.status != 200:
            raise Finding(f"a commit was refused: {text[:300]!r}")

    def _wait(self, listen: WebListen, written: list[tuple[int, int]]) -> None:
        """Until the newest version has arrived."""
        sizes = dict(written)
        while True:
            message = listen.take(40)
            if message is None:
                raise Finding("the listen ended")
            if message.WhichOneof("response_type") != "document_change":
                continue
            fields = message.document_change.document.fields
            version = fields["v"].integer_value
            if version not in sizes:
                continue  # From before this listen.
            if fields["b"].bytes_value != content(version, sizes[version]):
                raise Finding(f"version {version} has {len(fields['b'].bytes_value)} instead of {sizes[version]} bytes")
            self.counts["bytes"] += sizes[version]
            if version == written[-1][0]:
                self.counts["whole"] += 1
                return
