"""Observing a location of the Realtime Database over HTTP, by server-sent events."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from endtoend.database_wire import Events, Tree, token
from support.patience import PATIENCE
from support.program import program


@pytest.fixture
def namespace() -> str:
    return f"ns-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def tree(address: str, namespace: str) -> Iterator[Tree]:
    made = Tree(address, namespace)
    yield made
    made.close()


def put(path: str, data: Any) -> tuple[str, Any]:
    return "put", {"path": path, "data": data}


def patch(path: str, data: Any) -> tuple[str, Any]:
    return "patch", {"path": path, "data": data}


def test_begins_with_the_whole(address: str, namespace: str, tree: Tree) -> None:
    tree.put("a", {"b": [1, 2], "c": {".value": 3, ".priority": 4}})
    with Events(address, namespace, "a") as events:
        assert events.status == 200
        assert events.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert events.headers["cache-control"] == "no-cache"
        assert "content-length" not in events.headers
        assert events.headers["access-control-allow-origin"] == "*"
        assert events.next() == put("/", {"b": [1, 2], "c": 3})
    with Events(address, namespace, "nothing") as events:
        assert events.next() == put("/", None)
    with Events(address, namespace, "a", "&format=export") as events:
        assert events.next() == put("/", {"b": {"0": 1, "1": 2}, "c": {".value": 3, ".priority": 4}})


def test_tells_what_writes_change(address: str, namespace: str, tree: Tree) -> None:
    tree.put("a/b", 1)
    with Events(address, namespace, "a") as events:
        assert events.next() == put("/", {"b": 1})
        tree.put("a/b", 2)
        tree.put("a/c/d", {"e": [7]})
        tree.put("a", {"x": 1})
        tree.put("", {"a": {"y": 1}, "z": 1})
        tree.put("z", 2)
        tree.patch("a", {"y": 2, "w/v": 3})
        tree.patch("a/w", {"v": 4})
        tree.patch("", {"a/w/v": 5, "z": 3})
        tree.delete("a/w")
        tree.put("a/y/.priority", 5)
        tree.put("a/n", {".sv": {"increment": 2}})
        tree.delete("")
        expected = [
            put("/b", 2),
            put("/c/d", {"e": [7]}),
            put("/", {"x": 1}),
            put("/", {"y": 1}),
            patch("/", {"y": 2, "w/v": 3}),
            patch("/w", {"v": 4}),
            put("/w/v", 5),
            put("/w", None),
            put("/n", 2),
            put("/", None),
        ]
        assert [events.next() for _ in expected] == expected


def test_follows_queries(address: str, namespace: str, tree: Tree) -> None:
    tree.rules({".read": True, "s": {".indexOn": "n"}})
    tree.put("s", {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}})
    with Events(address, namespace, "s", '&orderBy="n"&limitToLast=2') as events:
        assert events.next() == put("/", {"b": {"n": 2}, "c": {"n": 3}})
        tree.put("s/d", {"n": 2.5})
        assert events.next() == patch("/", {"b": None, "d": {"n": 2.5}})
        tree.put("s/c/x", 1)
        assert events.next() == put("/c/x", 1)
        tree.put("s/a/x", 1)
        tree.delete("s")
        assert events.next() == put("/", None)


def test_refuses_before_it_begins(address: str, namespace: str, tree: Tree) -> None:
    tree.rules({"open": {".read": True}})
    with Events(address, namespace, "closed") as events:
        assert (events.status, json.load(events.response)) == (401, {"error": "Permission denied"})
    with Events(address, namespace, "open", '&orderBy="n"&limitToLast=2') as events:
        assert events.status == 400
        assert b"Index not defined" in events.response.read()
    with Events(address, namespace, "open", "&limitToLast=2") as events:
        assert events.status == 400
    with Events(address, namespace, "closed", "", {"Authorization": "Bearer owner"}) as events:
        assert events.status == 200
    with Events(address, namespace, "open", "&auth=nonsense") as events:
        assert events.status == 401


def test_other_rules_end_it(address: str, namespace: str, tree: Tree) -> None:
    tree.rules({".read": "auth.uid === 'ann'"})
    with Events(address, namespace, "a", f"&auth={token('ann')}") as events:
        assert events.next() == put("/", None)
        tree.rules({".read": "auth.uid === 'ann'", "b": {".read": True}})
        tree.put("a", 1)
        assert events.next() == put("/", 1)
        tree.rules({".read": False})
        assert events.next() == ("cancel", None)
        assert events.next() == ("", None)


def test_many_streams_of_one_place_hear_the_same(address: str, namespace: str, tree: Tree) -> None:
    streams = [Events(address, namespace, "a") for _ in range(30)]
    for events in streams:
        assert events.next() == put("/", None)
    for value in range(20):
        tree.put(f"a/{value % 3}x", value)
    for events in streams:
        assert [events.next() for _ in range(20)] == [put(f"/{value % 3}x", value) for value in range(20)]
        events.close()


def test_streams_begun_under_load_miss_nothing(address: str, namespace: str, tree: Tree) -> None:
    stop = threading.Event()

    def write() -> None:
        writer = Tree(address, namespace)
        value = 0
        while not stop.is_set():
            writer.put("a", value)
            value += 1
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(20):
            with Events(address, namespace, "a") as events:
                last = None
                for _ in range(20):
                    data = events.next()[1]["data"]
                    assert last is None or data == last + 1
                    last = data
    finally:
        stop.set()
        thread.join()


def test_a_client_that_does_not_read_gets_the_whole_later(address: str, namespace: str, tree: Tree) -> None:
    with Events(address, namespace, "a") as events:
        assert events.next() == put("/", None)
        text = "x" * 200_000
        for value in range(200):
            tree.put("a/b", f"{value}{text}")
        tree.put("a/b", "last")
        received = 1
        while True:
            _, event = events.next()
            received += 1
            value = event["data"]["b"] if event["path"] == "/" else event["data"]
            if value == "last":
                break
        assert received < 200


def test_keeps_alive(address: str, namespace: str) -> None:
    with Events(address, namespace, "a") as events:
        assert events.next() == put("/", None)
        began = time.monotonic()
        assert events.next() == ("keep-alive", None)
        assert time.monotonic() - began > 25


def test_a_shutdown_ends_open_streams_at_once(tmp_path: Path) -> None:
    with program(tmp_path, "--memory", "--grace", str(2 * PATIENCE)) as server:
        stream = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        stream.sendall(b"GET /a.json?ns=x HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
        received = b""
        while b"event: put" not in received:
            received += stream.recv(4096)
        # If it waited for them, it would end too late.
        server.terminate()
        while stream.recv(4096):
            pass
        stream.close()
