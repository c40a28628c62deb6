"""Clients under rules learn nothing of the past and of versions: what was withdrawn or deleted is gone for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from endtoend.trees import Tree, production, signed
from support.program import BINARY, Program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{db}/documents {
    match /public/{d} { allow read: if resource.data.open == true; }
    match /all/{d} { allow read: if true; }
    match /inbox/{d} { allow write: if true; }
  }
}
"""
ROOT = "the administrator's own secret"
DOCUMENTS = "projects/shop/databases/(default)/documents"
OPEN = {"fields": {"open": {"booleanValue": True}}}
SHUT = {"fields": {"open": {"booleanValue": False}}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    (tmp_path / "firestore.rules").write_text(RULES)
    with production(tmp_path) as started:
        yield started


def send(server: Program, verb: str, path: str, body: Any, token: str | None) -> tuple[int, Any]:
    tree = Tree(server.address, "none")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    reply = tree.raw(verb, f"/v1/{DOCUMENTS}{path}", None if body is None else json.dumps(body).encode(), headers)
    tree.close()
    return reply.status, reply.json


def set_document(server: Program, path: str, body: Any) -> str:
    status, answer = send(server, "PATCH", path, body, ROOT)
    assert status == 200
    return str(answer["updateTime"])


def reads(time: str | None) -> dict[str, tuple[str, str, Any]]:
    """The ways to read the collection `public`, at a time or now."""
    at = {} if time is None else {"readTime": time}
    query = {
        "from": [{"collectionId": "public"}],
        "where": {"fieldFilter": {"field": {"fieldPath": "open"}, "op": "EQUAL", "value": {"booleanValue": True}}},
    }
    options = {"readOnly": at}
    names = {"documents": [f"{DOCUMENTS}/public/a"]}
    counted = {"structuredQuery": query, "aggregations": [{"alias": "n", "count": {}}]}
    return {
        "get": ("GET", "/public/a" + (f"?readTime={time}" if time else ""), None),
        "batch": ("POST", ":batchGet", {**names, **at}),
        "batch in a transaction": ("POST", ":batchGet", {**names, "newTransaction": options}),
        "query": ("POST", ":runQuery", {"structuredQuery": query, **at}),
        "query in a transaction": ("POST", ":runQuery", {"structuredQuery": query, "newTransaction": options}),
        "aggregation": ("POST", ":runAggregationQuery", {"structuredAggregationQuery": counted, **at}),
        "transaction": ("POST", ":beginTransaction", {"options": options}),
    }


@pytest.mark.parametrize("way", reads(None))
@pytest.mark.parametrize("token", [None, "user"])
def test_what_was_public_is_gone(server: Program, way: str, token: str | None) -> None:
    bearer = signed("ann") if token else None
    time = set_document(server, "/public/a", OPEN)
    assert send(server, *reads(None)[way], bearer)[0] == 200
    set_document(server, "/public/a", SHUT)
    assert send(server, *reads(time)[way], bearer)[0] == 403
    assert send(server, *reads(time)[way], ROOT)[0] == 200
    assert send(server, "DELETE", "/public/a", None, ROOT)[0] == 200
    assert send(server, *reads(time)[way], bearer)[0] == 403


def test_later_pages_have_no_document_that_was_deleted(server: Program) -> None:
    for name in "abc":
        set_document(server, f"/all/{name}", OPEN)
    status, page = send(server, "GET", "/all?pageSize=1", None, None)
    assert status == 200
    assert send(server, "DELETE", "/all/b", None, ROOT)[0] == 200
    for token, expected in [(None, ["c"]), (ROOT, ["b", "c"])]:
        status, rest = send(server, "GET", f"/all?pageToken={page['nextPageToken']}", None, token)
        assert status == 200
        assert [document["name"][-1] for document in rest["documents"]] == expected


def test_a_failed_condition_does_not_tell_the_version(server: Program) -> None:
    time = set_document(server, "/inbox/a", OPEN)
    other = "2020" + time[4:]

    def update(token: str | None) -> str:
        status, answer = send(server, "PATCH", f"/inbox/a?currentDocument.updateTime={other}", SHUT, token)
        assert status == 400
        return str(answer["error"]["message"])

    assert update(None).startswith("the stored version does not match the required base version (")
    assert update(ROOT).startswith("the stored version (")


def test_what_is_refused_is_refused_alike(server: Program) -> None:
    """Whether a document, a database or a namespace exists is not shown."""
    set_document(server, "/public/shut", SHUT)
    set_document(server, "/other/a", SHUT)
    for verb, existing, missing in [
        ("GET", "/public/shut", "/public/none"), ("GET", "/other/a", "/other/none"),
        ("DELETE", "/other/a", "/other/none"), ("PATCH", "/other/a", "/other/none"),
        ("PATCH", "/other/a?currentDocument.exists=true", "/other/none?currentDocument.exists=true"),
        ("PATCH", "/other/a?currentDocument.exists=false", "/other/none?currentDocument.exists=false"),
    ]:
        body = OPEN if verb == "PATCH" else None
        first, second = (send(server, verb, path, body, None) for path in [existing, missing])
        assert first == second
        assert first[0] == 403
