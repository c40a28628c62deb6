"""A namespace of the Realtime Database, over plain REST."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from endtoend.rest import Reply
from support.patience import PATIENCE
from support.program import Program, program

OWNER = {"Authorization": "Bearer owner"}


class Tree:
    """Anonymous requests, unless a header or a parameter has a credential."""

    def __init__(self, address: str, namespace: str) -> None:
        host, port = address.rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        self.namespace = namespace

    def close(self) -> None:
        self.connection.close()

    def send(
        self, verb: str, path: str, body: Any = None, headers: dict[str, str] | None = None, **parameters: str
    ) -> Reply:
        """A string or bytes are sent unchanged, everything else except None as JSON."""
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
    """Status and message of an error."""
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert list(reply.json) == ["error"]
    return reply.status, reply.json["error"]


def write_rules(folder: Path, rules: Any) -> None:
    (folder / "database.rules.json").write_text(json.dumps({"rules": rules}))


# A server for production.

SECRET = "a secret that nobody could guess at all"


def signed(uid: str, seconds: int = 3600, **claims: Any) -> str:
    """A token of a user of `production`."""

    def part(of: Any) -> bytes:
        return urlsafe_b64encode(json.dumps(of).encode()).rstrip(b"=")

    now = int(time.time())
    body = {"iss": "hearth", "sub": uid, "iat": now - 7200, "exp": now + seconds, **claims}
    text = part({"alg": "HS256", "typ": "JWT"}) + b"." + part(body)
    mac = hmac.new(SECRET.encode(), text, hashlib.sha256).digest()
    return (text + b"." + urlsafe_b64encode(mac).rstrip(b"=")).decode()


@contextmanager
def production(folder: Path, rules: Any = None) -> Iterator[Program]:
    """Of the project `shop`, where each user has a location of their own below `users` if no other rules are given."""
    (folder / "key.secret").write_text(SECRET)
    (folder / "admin.secret").write_text("the administrator's own secret")
    (folder / "reader.secret").write_text("a secret of one who only reads")
    (folder / "other.secret").write_text("the secret of another project's administrator")
    auth = {
        "keys": [{"secretFile": "key.secret"}],
        "credentials": [
            {"name": "root", "secretFile": "admin.secret"},
            {"name": "reader", "secretFile": "reader.secret", "scope": "read-only"},
            {"name": "other", "secretFile": "other.secret", "project": "elsewhere"},
        ],
    }
    (folder / "hearth.json").write_text(json.dumps({"auth": auth, "project": "shop", "emulator": False}))
    own = {"users": {"$uid": {".read": "auth.uid == $uid", ".write": "auth.uid == $uid"}}}
    write_rules(folder, own if rules is None else rules)
    with program(folder) as started:
        yield started
