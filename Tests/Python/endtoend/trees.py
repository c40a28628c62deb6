"""A namespace of the Realtime Database, over plain REST."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlencode

from endtoend.rest import Reply

OWNER = {"Authorization": "Bearer owner"}


class Tree:
    """Requests as nobody in particular, unless a header or a parameter says otherwise."""

    def __init__(self, address: str, namespace: str) -> None:
        host, port = address.rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=30)
        self.namespace = namespace

    def close(self) -> None:
        self.connection.close()

    def send(
        self, verb: str, path: str, body: Any = None, headers: dict[str, str] | None = None, **parameters: str
    ) -> Reply:
        """A text or bytes go as they are, everything else but None as JSON."""
        content = body.encode() if isinstance(body, str) else body
        if content is not None and not isinstance(content, bytes):
            content = json.dumps(content).encode()
        target = f"/{quote(path.strip('/'), safe='/%$.+')}.json?" + urlencode({"ns": self.namespace, **parameters})
        return self.raw(verb, target, content, headers)

    def raw(
        self, verb: str, target: str, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        self.connection.request(verb, target, content, headers or {})
        response = self.connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def get(self, path: str = "", headers: dict[str, str] | None = None, **parameters: str) -> Any:
        """The value; an answer with an error fails the test."""
        reply = self.send("GET", path, headers=headers, **parameters)
        assert reply.status == 200, reply.content
        return reply.json

    def put(self, path: str, value: Any, **parameters: str) -> Any:
        reply = self.send("PUT", path, json.dumps(value), OWNER, **parameters)
        assert reply.status == 200, reply.content
        return reply.json

    def rules(self, rules: Any) -> None:
        text = rules if isinstance(rules, str) else json.dumps({"rules": rules})
        reply = self.send("PUT", ".settings/rules", text, OWNER)
        assert (reply.status, reply.json) == (200, {"status": "ok"}), reply.content


def failure(reply: Reply) -> tuple[int, str]:
    """Status and text of a refusal."""
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert list(reply.json) == ["error"]
    return reply.status, reply.json["error"]
