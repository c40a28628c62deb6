"""A project with security rules, and its clients: over gRPC and REST as messages, and with Google's client."""

from __future__ import annotations

import http.client
import json
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from differential.transports import OWNER, Answer, Server
from support.patience import PATIENCE
from support.tokens import unsigned

Json = Any

SERVICE = "rules_version = '2';\nservice cloud.firestore {{\n  match /databases/{{db}}/documents {{\n{}\n  }}\n}}\n"


def service(*blocks: str) -> str:
    """A rules file with these blocks below `/databases/{db}/documents`."""
    return SERVICE.format("\n".join(blocks))


def rule(path: str, *allows: str) -> str:
    return f"match /{path} {{ " + " ".join(f"allow {allow};" for allow in allows) + " }"


def value(of: Any) -> Json:
    """The JSON form of a value."""
    match of:
        case None:
            return {"nullValue": None}
        case bool():
            return {"booleanValue": of}
        case int():
            return {"integerValue": str(of)}
        case float():
            return {"doubleValue": of}
        case str():
            return {"stringValue": of}
        case list():
            return {"arrayValue": {"values": [value(one) for one in of]}}
        case dict():
            return {"mapValue": {"fields": fields(of)}}
    raise TypeError(of)


def fields(of: dict[str, Any]) -> Json:
    return {name: value(one) for name, one in of.items()}


def condition(path: str, op: str, operand: Any) -> Json:
    if op == "IS_NULL":
        return {"unaryFilter": {"field": {"fieldPath": path}, "op": op}}
    made = operand if isinstance(operand, dict) and "referenceValue" in operand else value(operand)
    return {"fieldFilter": {"field": {"fieldPath": path}, "op": op, "value": made}}


def any_of(*conditions: Json) -> Json:
    return {"compositeFilter": {"op": "OR", "filters": list(conditions)}}


def all_of(*conditions: Json) -> Json:
    return {"compositeFilter": {"op": "AND", "filters": list(conditions)}}


def query(collection: str, where: Json = None, group: bool = False, **more: Any) -> Json:
    source = {"collectionId": collection, **({"allDescendants": True} if group else {})}
    made = {"from": [source], **more}
    if where is not None:
        made["where"] = where
    return made


class Person:
    """A client with a token, or an anonymous one, over gRPC or REST."""

    def __init__(self, site: Site, token: str | None, rest: bool = False) -> None:
        self.site = site
        self.token = token
        self.rest = rest

    def ask(self, method: str, body: Json) -> Answer:
        transport = self.site.server.transport(self.rest)
        return transport.finish(transport.start(method, body, self.token))

    # Reading

    def get(self, path: str, **more: Any) -> Answer:
        return self.ask("GetDocument", {"name": self.site.name(path), **more})

    def batch_get(self, *paths: str, **more: Any) -> Answer:
        names = [self.site.name(path) for path in paths]
        return self.ask("BatchGetDocuments", {"database": self.site.database, "documents": names, **more})

    def run(self, asked: Json, parent: str = "", **more: Any) -> Answer:
        return self.ask("RunQuery", {"parent": self.site.name(parent), "structuredQuery": asked, **more})

    def count(self, asked: Json, parent: str = "", **more: Any) -> Answer:
        counted = {"structuredQuery": asked, "aggregations": [{"alias": "n", "count": {}}]}
        body = {"parent": self.site.name(parent), "structuredAggregationQuery": counted, **more}
        return self.ask("RunAggregationQuery", body)

    def list(self, collection: str, parent: str = "", **more: Any) -> Answer:
        return self.ask("ListDocuments", {"parent": self.site.name(parent), "collectionId": collection, **more})

    # Writing

    def commit(self, *writes: Json, **more: Any) -> Answer:
        return self.ask("Commit", {"database": self.site.database, "writes": list(writes), **more})

    def create(self, path: str, **content: Any) -> Answer:
        parent, collection, name = ("/" + path).rsplit("/", 2)
        body = {"parent": self.site.name(parent.strip("/")), "collectionId": collection, "documentId": name}
        return self.ask("CreateDocument", {**body, "document": {"fields": fields(content)}})

    def update(self, path: str, **content: Any) -> Answer:
        """UpdateDocument: replaces or creates the document."""
        return self.ask("UpdateDocument", {"document": {"name": self.site.name(path), "fields": fields(content)}})

    def delete(self, path: str) -> Answer:
        return self.ask("DeleteDocument", {"name": self.site.name(path)})


class Site:
    """One project of the server under test."""

    def __init__(self, address: str, project: str) -> None:
        self.address = address
        self.project = project
        self.server = Server(address)
        self.database = f"projects/{project}/databases/(default)"
        self.owner = Person(self, OWNER)
        self.clients: list[firestore.Client] = []

    def name(self, path: str) -> str:
        return f"{self.database}/documents{'/' if path else ''}{path}"

    def send(self, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers or {})
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content.startswith((b"{", b"[")) else content
        finally:
            connection.close()

    def rules(self, *blocks: str) -> None:
        """Sets the project's rules: blocks of `service`, or a whole file."""
        text = blocks[0] if "service" in blocks[0] else service(*blocks)
        path = f"/emulator/v1/projects/{self.project}:securityRules"
        status, answer = self.send("PUT", path, {"rules": {"files": [{"name": "rules", "content": text}]}})
        assert status == 200, answer

    def person(self, uid: str | None, rest: bool = False, **claims: Any) -> Person:
        return Person(self, None if uid is None else unsigned(uid, **claims), rest)

    def client(self, uid: str | None, **claims: Any) -> firestore.Client:
        made = UserClient(self.project, None if uid is None else unsigned(uid, **claims))
        self.clients.append(made)
        return made

    # The administrator's actions, which always succeed

    def set(self, path: str, **content: Any) -> None:
        answer = self.owner.commit(self.written(path, **content))
        assert answer.good, answer

    def remove(self, path: str) -> None:
        answer = self.owner.commit(self.deleted(path))
        assert answer.good, answer

    def read(self, path: str) -> Json:
        """The fields of a document; None when there is none."""
        answer = self.owner.get(path)
        if answer.code == "NOT_FOUND":
            return None
        assert answer.good, answer
        return answer.body.get("fields", {})

    # Writes

    def written(self, path: str, *, mask: list[str] | None = None, when: Json = None, **content: Any) -> Json:
        made: Json = {"update": {"name": self.name(path), "fields": fields(content)}}
        if mask is not None:
            made["updateMask"] = {"fieldPaths": mask}
        if when is not None:
            made["currentDocument"] = when
        return made

    def deleted(self, path: str, when: Json = None) -> Json:
        return {"delete": self.name(path), **({"currentDocument": when} if when is not None else {})}

    def close(self) -> None:
        self.server.close()
        for client in self.clients:
            client.close()


class UserClient(firestore.Client):
    """Google's client as a user other than the administrator, which is its default with an emulator."""

    def __init__(self, project: str, token: str | None) -> None:
        super().__init__(project=project, credentials=AnonymousCredentials())
        self._token = token

    @property
    def _rpc_metadata(self) -> list[tuple[str, str]]:
        others = [pair for pair in super()._rpc_metadata if pair[0] != "authorization"]
        return others if self._token is None else [*others, ("authorization", f"Bearer {self._token}")]


DENIED = "PERMISSION_DENIED"


def is_denied(answer: Answer) -> bool:
    """By rules, and in the form of its transport."""
    return answer.code == DENIED and answer.http in (None, 403) and bool(answer.message)


