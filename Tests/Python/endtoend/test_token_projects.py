"""A token is for one project: several projects on one server, and users of each, over every protocol."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest

from endtoend.database_wire import Events, Wire
from endtoend.test_database_long_poll import Poller
from endtoend.trees import SECRET, Tree, signed, write_rules
from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.wire import Method, message_class, parse

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

RULES = (
    "rules_version = '2'; service cloud.firestore { match /databases/{db}/documents { match /{d=**} "
    "{ allow read, write: if request.auth != null; } } }"
)
ROOT = "the administrator's own secret"
ELSEWHERE = "the secret of another project's administrator"
#: Of the server's own project, of another one, and of none that is configured.
NAMESPACES = {"shop-default-rtdb": "shop", "other-default-rtdb": "other", "chat": "shop"}
TOKENS: dict[str, Any] = {
    "shop": lambda: signed("ann", aud="shop"),
    "other": lambda: signed("ann", aud="other"),
    "both": lambda: signed("ann", aud=["other", "shop"]),
    "none": lambda: signed("ann"),
    "a key of other": lambda: signed("ann", iss="backend"),
    "a list of no strings": lambda: signed("ann", aud=[1, "shop"]),
}


def reaches(token: str, project: str) -> bool:
    """Tokens without an audience are for the server's project."""
    projects = {
        "shop": {"shop"}, "other": {"other"}, "both": {"shop", "other"}, "none": {"shop"}, "a key of other": {"other"}
    }
    return project in projects.get(token, set())


@contextmanager
def serving(folder: Path, environment: dict[str, str] | None = None, **settings: Any) -> Iterator[Program]:
    (folder / "key.secret").write_text(SECRET)
    (folder / "root.secret").write_text(ROOT)
    (folder / "elsewhere.secret").write_text(ELSEWHERE)
    (folder / "firestore.rules").write_text(RULES)
    write_rules(folder, {".read": "auth != null", ".write": "auth != null"})
    auth = {
        "keys": [{"secretFile": "key.secret"}, {"secretFile": "key.secret", "issuer": "backend", "project": "other"}],
        "credentials": [
            {"name": "root", "secretFile": "root.secret"},
            {"name": "elsewhere", "secretFile": "elsewhere.secret", "project": "other"},
        ],
    }
    text = json.dumps({"auth": auth, "project": "shop", "emulator": False, **settings})
    (folder / "hearth.json").write_text(text)
    with program(folder, "--memory", environment=environment) as started:
        for project in ["shop", "other"]:
            status, _ = send(started, "PATCH", f"/v1/{documents(project)}/c/d", {"fields": {}}, ROOT)
            assert status == 200
        for namespace in NAMESPACES:
            tree = Tree(started.address, namespace)
            assert tree.send("PUT", "a", 1, {"Authorization": f"Bearer {ROOT}"}).status == 200
            tree.close()
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with serving(tmp_path_factory.mktemp("projects")) as started:
        yield started


def documents(project: str) -> str:
    return f"projects/{project}/databases/(default)/documents"


def send(server: Program, verb: str, path: str, body: Any, token: str) -> tuple[int, bytes]:
    reply = Tree(server.address, "none").raw(
        verb, path, None if body is None else json.dumps(body).encode(), {"Authorization": f"Bearer {token}"}
    )
    return reply.status, reply.content


def listen(server: Program, project: str, token: str) -> int:
    """The code with which a target is refused; 0 when it becomes current."""
    kind = Method("Listen", message_class("ListenRequest"), message_class("ListenResponse"), streams=True)
    database = f"projects/{project}/databases/(default)"
    request = {
        "database": database,
        "addTarget": {"targetId": 2, "documents": {"documents": [f"{documents(project)}/c/d"]}},
    }
    with grpc.insecure_channel(server.address) as channel:
        stub = channel.stream_stream(
            kind.path, request_serializer=kind.request.SerializeToString, response_deserializer=kind.response.FromString
        )
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        requests.put(parse(kind, request))
        answers = stub(iter(requests.get, None), metadata=[("authorization", f"Bearer {token}")], timeout=PATIENCE)
        try:
            for answer in answers:
                change = answer.target_change
                if change.cause.code:
                    return int(change.cause.code)
                if change.target_change_type == 3:
                    return 0
        except grpc.RpcError as error:
            return int(error.code().value[0])
        finally:
            requests.put(None)
    raise AssertionError("the stream ended")


@pytest.mark.parametrize("project", ["shop", "other"])
@pytest.mark.parametrize("token", TOKENS)
def test_firestore(server: Program, token: str, project: str) -> None:
    bearer = TOKENS[token]()
    expected = 200 if reaches(token, project) else 401
    root = f"/v1/{documents(project)}"
    assert send(server, "GET", f"{root}/c/d", None, bearer)[0] == expected
    query = {"structuredQuery": {"from": [{"collectionId": "c"}]}}
    assert send(server, "POST", f"{root}:runQuery", query, bearer)[0] == expected
    assert send(server, "PATCH", f"{root}/c/e", {"fields": {}}, bearer)[0] == expected
    assert listen(server, project, bearer) == (0 if expected == 200 else 16)


def test_a_public_bundle_is_for_everybody(server: Program) -> None:
    definition = {"queries": {"all": {"collection": "c"}}, "public": True}
    assert send(server, "PUT", "/v1/projects/shop/databases/(default)/bundles/open", definition, ROOT)[0] == 200
    hidden = {"queries": {"all": {"collection": "c"}}}
    assert send(server, "PUT", "/v1/projects/shop/databases/(default)/bundles/hidden", hidden, ROOT)[0] == 200
    for name, status in [("open", 200), ("hidden", 401), ("missing", 401)]:
        assert send(server, "GET", f"/bundles/shop/(default)/{name}", None, TOKENS["other"]())[0] == status


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("token", TOKENS)
def test_the_realtime_database(server: Program, token: str, namespace: str) -> None:
    bearer = TOKENS[token]()
    is_reached = reaches(token, NAMESPACES[namespace])
    status = 200 if is_reached else 401
    word = "ok" if is_reached else "invalid_token"
    tree = Tree(server.address, namespace)
    assert tree.send("GET", "a", headers={"Authorization": f"Bearer {bearer}"}).status == status
    assert tree.send("GET", "a", auth=bearer).status == status
    assert tree.send("PUT", "b", 1, auth=bearer).status == status
    tree.close()
    with Events(server.address, namespace, "a", f"&auth={quote(bearer)}") as events:
        assert events.status == status
    with Wire(server.address, namespace) as wire:
        assert wire.call("auth", {"cred": bearer})["s"] == word
        assert wire.call("g", {"p": "a"})["s"] == ("ok" if is_reached else "permission_denied")
    with Wire(server.address, namespace, additional_headers={"Authorization": f"Bearer {bearer}"}) as wire:
        assert wire.call("g", {"p": "a"})["s"] == ("ok" if is_reached else "permission_denied")
    poller = Poller(server.address, namespace)
    assert poller.ask(1, "auth", {"cred": bearer})["s"] == word
    assert poller.ask(2, "g", {"p": "a"})["s"] == ("ok" if is_reached else "permission_denied")


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_credential_of_one_project_reaches_its_namespace(server: Program, namespace: str) -> None:
    status = 200 if NAMESPACES[namespace] == "other" else 401
    headers = {"Authorization": f"Bearer {ELSEWHERE}"}
    tree = Tree(server.address, namespace)
    assert tree.send("GET", "a", headers=headers).status == status
    assert tree.send("PUT", "a", 1, headers=headers).status == status
    assert tree.send("GET", ".settings/rules", headers=headers).status == status
    tree.close()


@pytest.mark.parametrize(
    ("environment", "settings"),
    [({"HEARTH_SHARED_SIGN_IN": "true"}, {}), ({}, {"sharedSignIn": True})],
    ids=["environment", "hearth.json"],
)
def test_one_sign_in_for_all_projects(tmp_path: Path, environment: dict[str, str], settings: dict[str, Any]) -> None:
    with serving(tmp_path, environment, **settings) as server:
        for token in ["shop", "other", "none", "a key of other"]:
            bearer = TOKENS[token]()
            for project in ["shop", "other"]:
                assert send(server, "GET", f"/v1/{documents(project)}/c/d", None, bearer)[0] == 200
            for namespace in NAMESPACES:
                tree = Tree(server.address, namespace)
                assert tree.send("GET", "a", auth=bearer).status == 200
                tree.close()
