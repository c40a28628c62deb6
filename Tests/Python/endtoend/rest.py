"""A plain HTTP client for the REST tests: only JSON between the test and the bytes."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    def error(self) -> tuple[int, str, str]:
        """Status, name and message of an error, single or in an array."""
        body = self.json[-1] if isinstance(self.json, list) else self.json
        assert body["error"]["code"] == self.status
        return self.status, body["error"]["status"], body["error"]["message"]


class Rest:
    def __init__(self, connection: http.client.HTTPConnection, project: str) -> None:
        self.connection = connection
        self.project = project
        self.database = f"projects/{project}/databases/(default)"
        self.root = f"{self.database}/documents"

    def name(self, path: str) -> str:
        return f"{self.root}/{path}"

    def send(self, verb: str, target: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """Sends to `target` unchanged; a body that is not bytes is sent as JSON."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Authorization": "Bearer owner", **({"Content-Type": "application/json"} if body is not None else {})}
        self.connection.request(verb, target, content, {**sent, **(headers or {})})
        response = self.connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def get(self, path: str, query: str = "") -> Reply:
        return self.send("GET", f"/v1/{self.root}/{path}{query}")

    def put(self, path: str, fields: Any, query: str = "") -> Reply:
        """PATCH: the REST form of setting a document."""
        return self.send("PATCH", f"/v1/{self.root}/{path}{query}", {"fields": fields})

    def call(self, verb: str, body: Any, parent: str = "") -> Reply:
        return self.send("POST", f"/v1/{self.root}{'/' + parent if parent else ''}:{verb}", body)
