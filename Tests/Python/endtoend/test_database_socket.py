"""The Realtime Database's WebSocket protocol over real sockets: messages, their order, and the lifetime of a
connection's state.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from endtoend.database_wire import SECONDS_MAX, Tree, Wire, token

OK = {"s": "ok", "d": ""}
DENIED = {"s": "permission_denied", "d": "Permission denied"}


@pytest.fixture
def namespace() -> str:
    return f"ns-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def tree(address: str, namespace: str) -> Iterator[Tree]:
    made = Tree(address, namespace)
    yield made
    made.close()


@pytest.fixture
def wire(address: str, namespace: str) -> Iterator[Wire]:
    with Wire(address, namespace) as opened:
        yield opened


@pytest.fixture
def other(address: str, namespace: str) -> Iterator[Wire]:
    with Wire(address, namespace) as opened:
        yield opened


def until(condition: Any, seconds: float = SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.01)


# The connection.


def test_the_handshake_names_the_host_as_the_client_does(address: str, wire: Wire) -> None:
    data = wire.handshake["d"]["d"]
    assert wire.handshake["t"] == "c" and wire.handshake["d"]["t"] == "h"
    assert data["v"] == "5" and data["h"] == address and len(data["s"]) >= 20
    assert abs(data["ts"] / 1000 - time.time()) < 60


def test_sessions_differ(wire: Wire, other: Wire) -> None:
    assert wire.handshake["d"]["d"]["s"] != other.handshake["d"]["d"]["s"]


def test_pings_are_answered_and_keep_alives_ignored(wire: Wire) -> None:
    wire.socket.send("0")
    wire.send({"t": "c", "d": {"t": "p", "d": {}}})
    assert wire.next() == {"t": "c", "d": {"t": "o", "d": None}}


def test_the_example_session(address: str, namespace: str, tree: Tree) -> None:
    """The order of answers and events, case by case."""
    tree.put("counter", 10)
    tree.put("scores", {"ann": {"points": 7}, "bob": {"points": 9}, "abe": {"points": 1}})
    tree.rules({".read": True, "admin": {".write": False}, "$other": {".write": True}})
    with Wire(address, namespace) as wire:
        assert wire.handshake["d"]["t"] == "h"
        wire.send({"t": "d", "d": {"r": 1, "a": "s", "b": {"c": {"sdk.js.11-0-0": 1}}}})
        wire.send({"t": "d", "d": {"r": 2, "a": "q", "b": {"p": "/counter", "h": ""}}})
        assert wire.next() == {"t": "d", "d": {"r": 1, "b": {"s": "ok", "d": ""}}}
        assert wire.next() == {"t": "d", "d": {"a": "d", "b": {"p": "counter", "d": 10}}}
        assert wire.next() == {"t": "d", "d": {"r": 2, "b": {"s": "ok", "d": {}}}}
        wire.send({"t": "c", "d": {"t": "p", "d": {}}})
        assert wire.next() == {"t": "c", "d": {"t": "o", "d": None}}
        put = {"p": "/counter", "d": 11, "h": "+r5aI9HvKKagELki8SYKBk0q7D4="}
        wire.send({"t": "d", "d": {"r": 3, "a": "p", "b": put}})
        assert wire.next() == {"t": "d", "d": {"a": "d", "b": {"p": "counter", "d": 11}}}
        assert wire.next() == {"t": "d", "d": {"r": 3, "b": {"s": "ok", "d": ""}}}
        query = {"l": 2, "vf": "r", "i": "points"}
        wire.send({"t": "d", "d": {"r": 4, "a": "q", "b": {"p": "/scores", "q": query, "t": 1, "h": ""}}})
        data = {"ann": {"points": 7}, "bob": {"points": 9}}
        assert wire.next() == {"t": "d", "d": {"a": "d", "b": {"p": "scores", "d": data, "t": 1}}}
        assert wire.next() == {"t": "d", "d": {"r": 4, "b": {"s": "ok", "d": {"w": ["no_index"]}}}}
        tree.put("scores/cy", {"points": 8})
        change = {"ann": None, "cy": {"points": 8}}
        assert wire.next() == {"t": "d", "d": {"a": "m", "b": {"p": "scores", "d": change, "t": 1}}}
        wire.send({"t": "d", "d": {"r": 5, "a": "n", "b": {"p": "/scores", "q": query, "t": 1}}})
        assert wire.next() == {"t": "d", "d": {"r": 5, "b": {"s": "ok", "d": ""}}}
        wire.send({"t": "d", "d": {"r": 6, "a": "p", "b": {"p": "/admin", "d": True}}})
        assert wire.next() == {"t": "d", "d": {"r": 6, "b": DENIED}}


def test_long_messages_go_in_pieces_both_ways(wire: Wire, other: Wire) -> None:
    for character in ("a", "ü", "€", "😀"):
        text = character * 50_000
        wire.ok("p", {"p": "long", "d": {"text": text}})
        assert other.ok("g", {"p": "long", "q": {}}) == {"text": text}


@pytest.mark.parametrize(
    "text", ["nonsense", "[]", "{}", '{"t":"d","d":{}}', "10001", '{"t":"d","d":{"r":1,"a":"p","b":{}}', "-1"]
)
def test_what_is_no_message_ends_the_connection(wire: Wire, text: str) -> None:
    wire.socket.send(text)
    with pytest.raises(ConnectionClosed):
        wire.next()


def test_unknown_actions_and_bad_bodies_leave_the_connection(wire: Wire) -> None:
    assert wire.call("zz", {})["s"] == "error"
    assert wire.call("p", {"p": "a/.info", "d": 1}) == {"s": "failure", "d": "Invalid path: Invalid token in path"}
    assert wire.call("g", {"p": ".info/connected", "q": {}})["d"] == "Invalid path: Invalid token in path"
    assert wire.call("p", {"p": "a", "d": {"b.c": 1}})["s"] == "failure"
    assert wire.call("m", {"p": "a", "d": {"b": 1, "b/c": 2}})["s"] == "failure"
    assert wire.call("p", {"p": "a", "d": {".sv": "nonsense"}})["s"] == "failure"
    assert wire.ok("g", {"p": "", "q": {}}) is None


def test_a_message_that_is_too_large_ends_the_connection(wire: Wire) -> None:
    wire.socket.send("2000")
    with pytest.raises(ConnectionClosed):
        for _ in range(2000):
            wire.socket.send("x" * 16384)
        wire.next()


def test_names_of_namespaces_are_checked(address: str) -> None:
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus):
        Wire(address, "no%2Fname")


# Reads and writes.


def test_puts_merges_and_gets(wire: Wire, tree: Tree) -> None:
    wire.ok("p", {"p": "/a", "d": {"b": {".value": 1, ".priority": 2}, "c": [1, None, 3]}})
    assert wire.ok("g", {"p": "a", "q": {}}) == {"b": {".value": 1, ".priority": 2}, "c": {"0": 1, "2": 3}}
    wire.ok("m", {"p": "/a", "d": {"c/1": 2, "b": None, "d/e": {".sv": "timestamp"}}})
    assert abs(tree.get("a/d/e") / 1000 - time.time()) < 60
    assert tree.get("a/c") == [1, 2, 3]
    wire.ok("p", {"p": "n", "d": {".sv": {"increment": 5}}})
    wire.ok("p", {"p": "n", "d": {".sv": {"increment": -2}}})
    assert wire.ok("g", {"p": "n", "q": {}}) == 3
    wire.ok("p", {"p": "n/.priority", "d": "x"})
    assert wire.ok("g", {"p": "n", "q": {}}) == {".value": 3, ".priority": "x"}


def test_a_get_sees_the_writes_before_it(wire: Wire) -> None:
    for number in range(100):
        wire.begin("p", {"p": "x", "d": number})
        assert wire.answer(wire.begin("g", {"p": "x", "q": {}}))["d"] == number


def test_gets_by_queries_need_their_index(wire: Wire, tree: Tree) -> None:
    tree.put("people", {"ann": {"age": 30}, "bob": {"age": 20}, "cy": {"age": 40}})
    query = {"i": "age", "l": 1, "vf": "l"}
    text = 'Index not defined, add ".indexOn": "age", for path "/people", to the rules'
    assert wire.call("g", {"p": "people", "q": query}) == {"s": "failure", "d": text}
    assert wire.ok("g", {"p": "people", "q": {"i": ".key", "sp": "b"}}) == {"bob": {"age": 20}, "cy": {"age": 40}}
    tree.rules({".read": True, "people": {".indexOn": "age"}})
    assert wire.ok("g", {"p": "people", "q": query}) == {"bob": {"age": 20}}


def test_answers_come_in_the_order_of_requests(wire: Wire) -> None:
    """Except for listens, whose answer directly follows their data."""
    numbers = []
    listens = set()
    for round in range(200):
        action = random.choice(["p", "g", "q", "n", "s", "m"])
        bodies = {
            "p": {"p": "a/b", "d": round},
            "g": {"p": "a", "q": {}},
            "q": {"p": f"a/{round % 7}", "h": ""},
            "n": {"p": f"a/{round % 7}"},
            "s": {"c": {}},
            "m": {"p": "a", "d": {"c": round}},
        }
        numbers.append(wire.begin(action, bodies[action]))
        if action == "q":
            listens.add(numbers[-1])
    got = []
    while len(got) < len(numbers):
        message = wire.next()["d"]
        if "r" in message:
            got.append(message["r"])
    assert sorted(got) == numbers
    assert [number for number in got if number not in listens] == [number for number in numbers if number not in listens]


# Transactions.


def test_a_stale_hash_is_answered_after_the_newer_data(wire: Wire, other: Wire) -> None:
    wire.ok("q", {"p": "counter", "h": ""})
    wire.taken()
    for value in range(1, 30):
        other.ok("p", {"p": "counter", "d": value})
        answer = wire.call("p", {"p": "counter", "d": 99, "h": "+r5aI9HvKKagELki8SYKBk0q7D4="})
        if value == 10:
            assert answer == OK
            assert wire.taken() == [("d", "counter", 10), ("d", "counter", 99)]
        else:
            assert answer["s"] == "datastale"
            assert wire.taken()[-1] == ("d", "counter", value)


def test_counting_by_transactions_loses_nothing(address: str, namespace: str, tree: Tree) -> None:
    """Clients that add one, each to the value that it has received."""
    import base64
    import hashlib
    import struct

    def digest(value: int | None) -> str:
        if value is None:
            return ""
        text = "number:" + struct.pack(">d", value).hex()
        return base64.b64encode(hashlib.sha1(text.encode()).digest()).decode()

    counted: list[int] = []

    def count() -> None:
        with Wire(address, namespace) as wire:
            wire.ok("q", {"p": "n", "h": ""})
            value = wire.taken()[-1][2]
            for _ in range(20):
                # A slower client often fails; SDKs would give up after 25 times.
                for attempt in range(1, 1000):
                    answer = wire.call("p", {"p": "n", "d": (value or 0) + 1, "h": digest(value)})
                    value = wire.taken()[-1][2] if wire.pushes else value
                    if answer["s"] == "ok":
                        counted.append(attempt)
                        break
                    assert answer["s"] == "datastale"

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.get("n") == 80
    assert len(counted) == 80


# Listens.


def test_a_listen_sends_its_data_before_its_answer(wire: Wire, tree: Tree) -> None:
    tree.put("a", {"b": 1})
    assert wire.ok("q", {"p": "/a", "h": ""}) == {}
    assert wire.taken() == [("d", "a", {"b": 1})]
    assert wire.ok("q", {"p": "/nothing", "h": ""}) == {}
    assert wire.taken() == [("d", "nothing", None)]


def test_a_listen_with_the_right_hash_sends_nothing(wire: Wire, tree: Tree) -> None:
    tree.put("a", {"a": 1, "b": True})
    assert wire.ok("q", {"p": "/a", "h": "dMIngtFjgiBRVPggxZ73b00h5cU="}) == {}
    assert wire.taken() == []
    assert wire.ok("q", {"p": "/a", "q": {"i": ".key", "ep": "b"}, "t": 3, "h": "dMIngtFjgiBRVPggxZ73b00h5cU="}) == {}
    assert wire.taken() == []
    tree.put("a/c", 2)
    assert wire.wait() == [("d", "a/c", 2)]
    assert wire.ok("q", {"p": "/a/b", "h": "wrong"}) == {}
    assert wire.taken() == [("d", "a/b", True)]


def test_changes_above_at_and_below(wire: Wire, tree: Tree) -> None:
    tree.put("a/b/c", 1)
    wire.ok("q", {"p": "a/b", "h": ""})
    wire.taken()
    tree.put("a/b/c", 2)
    tree.put("a/b", {"c": 3})
    tree.put("a", {"b": {"d": 4}, "x": 1})
    tree.put("a/x", 2)
    tree.patch("a/b", {"e": 5, "d": None})
    tree.patch("a/b", {"e": 6})
    tree.patch("", {"a/b/e": 7, "a/x": 3})
    tree.patch("", {"a/b/e": 8, "a/b/f": {"g": 1}, "z": 3})
    tree.delete("")
    assert wire.wait() == [
        ("d", "a/b/c", 2),
        ("d", "a/b", {"c": 3}),
        ("d", "a/b", {"d": 4}),
        ("m", "a/b", {"e": 5, "d": None}),
        ("m", "a/b", {"e": 6}),
        ("d", "a/b/e", 7),
        ("m", "a/b", {"e": 8, "f": {"g": 1}}),
        ("d", "a/b", None),
    ]


def test_writes_that_change_nothing_are_not_told(wire: Wire, tree: Tree) -> None:
    tree.put("a", {"b": 1})
    wire.ok("q", {"p": "a", "h": ""})
    wire.taken()
    tree.put("a", {"b": 1})
    tree.delete("a/c")
    assert wire.wait() == []


def test_server_values_are_told_resolved(wire: Wire, other: Wire) -> None:
    wire.ok("q", {"p": "", "h": ""})
    wire.taken()
    other.ok("m", {"p": "", "d": {"n": {".sv": {"increment": 3}}, "t": {".sv": "timestamp"}}})
    [(action, path, data)] = wire.wait()
    assert (action, path, data["n"]) == ("m", "", 3)
    assert isinstance(data["t"], int)


def test_priorities_are_told(wire: Wire, other: Wire) -> None:
    wire.ok("q", {"p": "a", "h": ""})
    wire.taken()
    other.ok("p", {"p": "a/b", "d": {".value": 1, ".priority": "x"}})
    other.ok("p", {"p": "a/b/.priority", "d": 5})
    assert wire.wait() == [("d", "a/b", {".value": 1, ".priority": "x"}), ("d", "a/b/.priority", 5)]


def test_listens_above_each_other_are_told_once(wire: Wire, tree: Tree) -> None:
    wire.ok("q", {"p": "a", "h": ""})
    wire.ok("q", {"p": "a/b", "h": ""})
    wire.ok("q", {"p": "", "h": ""})
    wire.taken()
    tree.put("a/b/c", 1)
    assert wire.wait() == [("d", "a/b/c", 1)]


def test_nothing_comes_after_an_unlisten(wire: Wire, other: Wire) -> None:
    query = {"i": ".key", "l": 3, "vf": "r"}
    for round in range(30):
        wire.ok("q", {"p": "a", "h": ""})
        wire.ok("q", {"p": "a", "q": query, "t": round + 1, "h": ""})
        for value in range(5):
            other.begin("p", {"p": "a/b", "d": [round, value]})
        wire.ok("n", {"p": "a"})
        wire.ok("n", {"p": "a", "q": query, "t": round + 1})
        wire.taken()
        other.answer(other.number)
        assert wire.wait() == []


def test_a_second_listen_takes_the_place_of_the_first(wire: Wire, tree: Tree) -> None:
    query = {"i": ".key", "l": 3, "vf": "r"}
    wire.ok("q", {"p": "a", "q": query, "t": 1, "h": ""})
    wire.ok("q", {"p": "a", "q": query, "t": 2, "h": ""})
    wire.taken()
    tree.put("a/b", 1)
    assert wire.wait() == [("d", "a/b", 1, 2)]
    wire.ok("n", {"p": "a", "q": query})
    tree.put("a/b", 2)
    assert wire.wait() == []


# Queries.


def test_windows_are_led_from_one_state_to_the_next(wire: Wire, tree: Tree) -> None:
    tree.put("s", {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}})
    wire.ok("q", {"p": "s", "q": {"i": "n", "l": 2, "vf": "r"}, "t": 5, "h": ""})
    assert wire.taken() == [("d", "s", {"b": {"n": 2}, "c": {"n": 3}}, 5)]
    steps: list[tuple[str, Any, list[tuple[Any, ...]]]] = [
        ("s/a/x", 1, []),
        ("s/b/x", 1, [("d", "s/b/x", 1, 5)]),
        ("s/a/n", 2.5, [("m", "s", {"b": None, "a": {"n": 2.5, "x": 1}}, 5)]),
        ("s/c", None, [("m", "s", {"c": None, "b": {"n": 2, "x": 1}}, 5)]),
        ("s/d", {"n": "text"}, [("m", "s", {"b": None, "d": {"n": "text"}}, 5)]),
        ("s/d/n", -1, [("m", "s", {"d": None, "b": {"n": 2, "x": 1}}, 5)]),
        ("s/.priority", 4, []),
        ("s", {"z": {"n": 9}}, [("d", "s", {"z": {"n": 9}}, 5)]),
        ("s", "leaf", [("d", "s", None, 5)]),
        ("s", "other", []),
        ("", {"s": {"q": {"n": 1}}}, [("d", "s", {"q": {"n": 1}}, 5)]),
        ("", None, [("d", "s", None, 5)]),
    ]
    for path, value, pushes in steps:
        wire.ok("p", {"p": path, "d": value})
        assert wire.taken() == pushes, path


def test_several_changes_at_once_are_one_push_a_query(wire: Wire, other: Wire) -> None:
    other.ok("p", {"p": "s", "d": {key: {"n": n} for n, key in enumerate("abcdef")}})
    wire.ok("q", {"p": "s", "q": {"i": "n", "l": 3, "vf": "l"}, "t": 1, "h": ""})
    wire.ok("q", {"p": "s", "q": {"i": "n", "sp": 2, "ep": 4}, "t": 2, "h": ""})
    wire.taken()
    other.ok("m", {"p": "s", "d": {"a": None, "b/n": 10, "c/x": 1, "f/n": 3}})
    pushes = wire.wait()
    assert sorted(pushes, key=lambda push: push[3]) == [
        ("m", "s", {"a": None, "b": None, "c/x": 1, "d": {"n": 3}, "f": {"n": 3}}, 1),
        ("m", "s", {"c/x": 1, "f": {"n": 3}}, 2),
    ]


def test_a_listen_without_index_is_warned_and_right(wire: Wire, tree: Tree) -> None:
    tree.rules({".read": True, ".write": True, "s": {".indexOn": ["n", ".value"]}})
    assert wire.ok("q", {"p": "s", "q": {"i": "n", "sp": 1}, "t": 1, "h": ""}) == {}
    assert wire.ok("q", {"p": "s", "q": {"i": ".value", "sp": 1}, "t": 2, "h": ""}) == {}
    assert wire.ok("q", {"p": "s", "q": {"sp": 1}, "t": 3, "h": ""}) == {}
    assert wire.ok("q", {"p": "s", "q": {"i": "m", "sp": 1}, "t": 4, "h": ""}) == {"w": ["no_index"]}


class Window:
    """A client's data under a tag."""

    def __init__(self, path: str, children: Any) -> None:
        self.path = path
        self.children: dict[str, Any] = children or {}

    def apply(self, push: tuple[Any, ...]) -> None:
        action, path, data = push[:3]
        inside = path[len(self.path) :].strip("/")
        for name, value in data.items() if action == "m" else [(inside, data)]:
            keys = [key for key in name.split("/") if key]
            if not keys:
                self.children = value or {}
            elif len(keys) == 1:
                self.children.pop(keys[0], None)
                if value is not None:
                    self.children[keys[0]] = value
            else:
                assert keys[0] in self.children, "a change inside of a child that the client doesn't have"
                self.children[keys[0]] = put(self.children[keys[0]], keys[1:], value)


def put(node: Any, keys: list[str], value: Any) -> Any:
    if not keys:
        return value
    children = dict(node) if isinstance(node, dict) else {}
    child = put(children.get(keys[0]), keys[1:], value)
    children.pop(keys[0], None)
    if child not in (None, {}):
        children[keys[0]] = child
    return children or None


@pytest.mark.parametrize("is_indexed", [True, False])
def test_random_windows_agree_with_the_tree(wire: Wire, other: Wire, tree: Tree, is_indexed: bool) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rolls = random.Random(seed)
    if is_indexed:
        tree.rules({".read": True, ".write": True, "s": {".indexOn": "n"}})
    queries: list[dict[str, Any]] = [
        {"i": "n", "l": 3, "vf": "l"},
        {"i": "n", "l": 4, "vf": "r"},
        {"i": "n", "sp": 3, "ep": 6},
        {"i": "n", "sp": 3, "l": 2, "vf": "l"},
        {"i": "n", "ep": 5, "l": 2, "vf": "r"},
        {"i": ".key", "sp": "k3", "l": 3, "vf": "l"},
    ]
    windows: dict[int, tuple[Window, dict[str, Any]]] = {}
    for tag, query in enumerate(queries, 1):
        wire.ok("q", {"p": "s", "q": query, "t": tag, "h": ""})
        windows[tag] = (Window("s", wire.taken()[-1][2]), query)

    def expected(children: Any, query: dict[str, Any]) -> dict[str, Any]:
        def index(key: str, child: Any) -> Any:
            if query["i"] == ".key":
                return 0
            value = child.get("n") if isinstance(child, dict) else None
            return -1 if value is None else value

        rows = sorted((index(key, child), key) for key, child in (children or {}).items())
        if query["i"] == ".key":
            rows = [row for row in rows if row[1] >= query["sp"]]
        else:
            rows = [row for row in rows if query.get("sp", -1) <= row[0] <= query.get("ep", 99)]
        if "l" in query:
            rows = rows[: query["l"]] if query["vf"] == "l" else rows[-query["l"] :]
        return {key: children[key] for _, key in rows}

    for _ in range(150):
        changes: dict[str, Any] = {}
        for _ in range(rolls.randrange(1, 4)):
            key = f"k{rolls.randrange(12)}"
            if any(name.startswith(key + "/") or name == key for name in changes):
                continue
            changes.update(
                rolls.choice(
                    [
                        {key: None},
                        {key: {"n": rolls.randrange(9), "x": rolls.randrange(9)}},
                        {f"{key}/n": rolls.randrange(9)},
                        {f"{key}/x": rolls.randrange(9)},
                        {f"{key}/n": None},
                        {f"{key}/deep/er": rolls.choice([1, None])},
                    ]
                )
            )
        other.ok("m", {"p": "s", "d": changes})
        for push in wire.wait():
            windows[push[3]][0].apply(push)
        children = tree.get("s", "&format=export")
        for window, query in windows.values():
            assert window.children == expected(children, query), (query, changes)


# Order


def test_a_clients_own_write_is_told_before_it_is_answered(wire: Wire) -> None:
    wire.ok("q", {"p": "a", "h": ""})
    wire.ok("q", {"p": "a", "q": {"i": ".key", "sp": "b"}, "t": 1, "h": ""})
    wire.taken()
    for value in range(100):
        wire.ok("p", {"p": "a/b", "d": value})
        assert sorted(wire.taken(), key=len) == [("d", "a/b", value), ("d", "a/b", value, 1)]


def test_every_connection_hears_commits_in_their_order(address: str, namespace: str) -> None:
    """Many writers; the listens of one connection never differ in their commits."""
    writers = 4
    each = 60

    def write(index: int) -> None:
        with Wire(address, namespace) as wire:
            for value in range(each):
                wire.begin("m", {"p": "", "d": {f"left/{index}": value, f"right/{index}": value}})
            wire.answer(wire.number)

    with Wire(address, namespace) as wire:
        for path, query, tag in [("left", None, None), ("right", None, None), ("left", {"i": ".key", "l": 9, "vf": "l"}, 7)]:
            wire.ok("q", {"p": path, "h": "", **({"q": query, "t": tag} if query else {})})
        wire.taken()
        threads = [threading.Thread(target=write, args=(index,)) for index in range(writers)]
        for thread in threads:
            thread.start()
        seen: dict[tuple[str, int], int] = {}
        told: list[tuple[int, int]] = []
        while len(told) < 3 * writers * each:
            push = wire.push()["b"]
            [index] = [int(part) for part in push["p"].split("/")[1:]]
            place = (push["p"].split("/")[0], push.get("t", 0))
            assert seen.get((*place, index), -1) == push["d"] - 1, "a change was left out or came in another order"
            seen[(*place, index)] = push["d"]
            told.append((index, push["d"]))
        for start in range(0, len(told), 3):
            assert len(set(told[start : start + 3])) == 1, "pushes of two commits are mixed"
        for thread in threads:
            thread.join()


def test_listens_begun_under_load_miss_nothing(address: str, namespace: str) -> None:
    stop = threading.Event()

    def write() -> None:
        with Wire(address, namespace) as wire:
            value = 0
            while not stop.is_set():
                for _ in range(20):
                    wire.begin("m", {"p": "", "d": {"n": value, f"list/k{value % 50}": value}})
                    value += 1
                wire.answer(wire.number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(10):
            with Wire(address, namespace) as wire:
                wire.ok("q", {"p": "n", "h": ""})
                wire.ok("q", {"p": "list", "q": {"i": ".value", "l": 3, "vf": "r"}, "t": 1, "h": ""})
                last = None
                window: Window | None = None
                for _ in range(60):
                    push = wire.push()["b"]
                    if push.get("t") == 1:
                        if window is None:
                            window = Window("list", push["d"])
                        else:
                            window.apply(("d" if not isinstance(push["d"], dict) or "list/" in push["p"] else "m", push["p"], push["d"]))
                        values = sorted(window.children.values())
                        assert len(values) <= 3
                        assert values == list(range(values[0], values[0] + len(values))) if values else True
                    else:
                        assert last is None or push["d"] == last + 1
                        last = push["d"]
    finally:
        stop.set()
        thread.join()


# Identity and rights.


def test_rules_judge_listens_gets_and_writes(wire: Wire, tree: Tree) -> None:
    tree.rules({"users": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid"}}})
    assert wire.call("q", {"p": "users/ann", "h": ""}) == DENIED
    assert wire.call("g", {"p": "users/ann", "q": {}}) == DENIED
    assert wire.call("p", {"p": "users/ann/x", "d": 1}) == DENIED
    assert wire.call("m", {"p": "users", "d": {"ann/x": 1}}) == DENIED
    assert wire.call("o", {"p": "users/ann/x", "d": 1}) == DENIED
    answer = wire.ok("auth", {"cred": token("ann")})
    assert answer["auth"]["uid"] == "ann"
    assert wire.ok("q", {"p": "users/ann", "h": ""}) == {}
    wire.ok("p", {"p": "users/ann/x", "d": 1})
    assert wire.call("m", {"p": "users", "d": {"ann/x": 1, "bob/x": 1}}) == DENIED
    assert tree.get("users") == {"ann": {"x": 1}}


def test_requests_behind_a_sign_in_are_the_users(wire: Wire, tree: Tree) -> None:
    """The web client sends its whole queue without waiting for the answer."""
    tree.rules({"users": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid"}}})
    numbers = [
        wire.begin("auth", {"cred": token("ann")}),
        wire.begin("q", {"p": "users/ann", "h": ""}),
        wire.begin("p", {"p": "users/ann/x", "d": 1}),
    ]
    assert [wire.answer(number)["s"] for number in numbers] == ["ok"] * 3


def test_administrators_and_their_overrides(wire: Wire, other: Wire, tree: Tree) -> None:
    tree.rules({"ann": {".write": "auth.uid === 'ann'"}, "nobody": {".write": "auth === null"}})
    assert wire.call("p", {"p": "x", "d": 1}) == DENIED
    wire.ok("gauth", {"cred": "owner"})
    wire.ok("p", {"p": "x", "d": 1})
    wire.ok("gauth", {"cred": "owner", "authvar": {"uid": "ann"}})
    assert wire.call("p", {"p": "x", "d": 1}) == DENIED
    wire.ok("p", {"p": "ann", "d": 1})
    wire.ok("gauth", {"cred": "owner", "noauth": True})
    assert wire.call("p", {"p": "ann", "d": 1}) == DENIED
    wire.ok("p", {"p": "nobody", "d": 1})
    other.ok("auth", {"cred": "owner"})
    other.ok("p", {"p": "x", "d": 2})


def test_bad_tokens_are_refused(wire: Wire) -> None:
    assert wire.call("auth", {"cred": "nonsense"})["s"] == "invalid_token"
    assert wire.call("auth", {})["s"] in ("failure", "invalid_token")
    assert wire.ok("g", {"p": "", "q": {}}) is None


def test_signing_out_revokes_what_may_not_be_read(wire: Wire, tree: Tree) -> None:
    tree.rules(
        {
            "open": {".read": True},
            "users": {"$uid": {".read": "auth.uid === $uid"}},
        }
    )
    query = {"i": ".key", "l": 2, "vf": "l"}
    wire.ok("auth", {"cred": token("ann")})
    wire.ok("q", {"p": "users/ann", "h": ""})
    wire.ok("q", {"p": "users/ann", "q": query, "t": 4, "h": ""})
    wire.ok("q", {"p": "open", "h": ""})
    wire.taken()
    wire.ok("unauth", {})
    revoked = [push for push in wire.pushes if push["a"] == "c"]
    assert len(revoked) == len(wire.pushes) == 2
    plain = [push["b"] for push in revoked if "q" not in push["b"]]
    filtered = [push["b"] for push in revoked if "q" in push["b"]]
    assert plain == [{"p": "users/ann"}]
    assert [(push["p"], isinstance(push["q"], list), push["q"][0]["i"]) for push in filtered] == [
        ("users/ann", True, ".key")
    ]
    wire.taken()
    tree.put("users/ann/x", 1)
    tree.put("open/x", 1)
    assert wire.wait() == [("d", "open/x", 1)]


def test_new_rules_revoke_what_may_not_be_read(wire: Wire, tree: Tree) -> None:
    tree.rules({".read": True, ".write": True})
    wire.ok("q", {"p": "secret", "h": ""})
    wire.ok("q", {"p": "open", "h": ""})
    wire.taken()
    tree.rules({".write": True, "open": {".read": True}})
    assert wire.push() == {"a": "c", "b": {"p": "secret"}}
    tree.put("secret", 1)
    tree.put("open", 1)
    assert wire.wait() == [("d", "open", 1)]


# The operations at the end of a connection.


def test_writes_at_the_end_are_one_change(address: str, namespace: str, wire: Wire, tree: Tree) -> None:
    tree.put("foo/old", 1)
    wire.ok("q", {"p": "foo", "h": ""})
    wire.taken()
    with Wire(address, namespace) as leaving:
        leaving.ok("o", {"p": "foo", "d": {"bar": "a", "baz": "b"}})
        leaving.ok("om", {"p": "foo", "d": {"bam": "c"}})
        leaving.ok("o", {"p": "foo/baz", "d": None})
        leaving.ok("o", {"p": "gone", "d": 1})
        leaving.ok("oc", {"p": "gone", "d": None})
    until(lambda: tree.get("foo") == {"bar": "a", "bam": "c"})
    assert wire.wait() == [("d", "foo", {"bar": "a", "bam": "c"})]


@pytest.mark.parametrize("how", ["close", "reset", "end"])
def test_writes_at_the_end_run_however_it_ends(address: str, namespace: str, tree: Tree, how: str) -> None:
    leaving = Wire(address, namespace)
    leaving.ok("o", {"p": "left", "d": {".sv": "timestamp"}})
    leaving.ok("o", {"p": "count", "d": {".sv": {"increment": 1}}})
    tree.put("count", 5)
    if how == "close":
        leaving.close()
    else:
        raw = leaving.socket.socket
        if how == "reset":
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        raw.shutdown(socket.SHUT_RDWR) if how == "end" else raw.close()
    until(lambda: tree.get("left") is not None)
    assert abs(tree.get("left") / 1000 - time.time()) < 60
    assert tree.get("count") == 6


def test_a_cancelled_wish_is_not_carried_out(address: str, namespace: str, tree: Tree) -> None:
    with Wire(address, namespace) as leaving:
        leaving.ok("o", {"p": "a/b", "d": 1})
        leaving.ok("o", {"p": "c", "d": 1})
        leaving.ok("oc", {"p": "a", "d": None})
    until(lambda: tree.get("c") == 1)
    assert tree.get("a") is None


def test_a_client_that_comes_again_ends_its_former_session_first(address: str, namespace: str) -> None:
    former = Wire(address, namespace)
    former.ok("o", {"p": "left", "d": True})
    session = former.handshake["d"]["d"]["s"]
    with Wire(address, namespace, parameters=f"&ls={session}") as wire:
        assert wire.ok("g", {"p": "left", "q": {}}) is True
        wire.ok("p", {"p": "left", "d": False})
        former.close()
        time.sleep(0.2)
        assert wire.ok("g", {"p": "left", "q": {}}) is False
    with pytest.raises(ConnectionClosed):
        former.next()


def test_rules_are_asked_again_at_the_end(address: str, namespace: str, tree: Tree) -> None:
    tree.rules({".write": True})
    with Wire(address, namespace) as leaving:
        leaving.ok("auth", {"cred": token("ann")})
        leaving.ok("o", {"p": "open/x", "d": 1})
        leaving.ok("o", {"p": "mine/x", "d": 1})
        leaving.ok("o", {"p": "closed/x", "d": 1})
        tree.rules({"open": {".write": True}, "mine": {".write": "auth.uid === 'ann'"}})
    until(lambda: tree.get("open/x") == 1)
    assert tree.get("") == {"open": {"x": 1}, "mine": {"x": 1}}


def test_a_request_that_is_too_large_is_answered(wire: Wire, tree: Tree) -> None:
    half = "x" * (9 << 20)
    before = wire.begin("p", {"p": "a", "d": 1})
    numbers = [wire.begin(action, {"p": "large", "d": {"x": half, "y": half}}) for action in ("p", "m", "o")]
    after = wire.begin("p", {"p": "b", "d": 2})
    assert [wire.answer(number)["s"] for number in (before, *numbers, after)] == ["ok", *["too_big"] * 3, "ok"]
    assert tree.get("") == {"a": 1, "b": 2}


def test_wishes_of_one_connection_are_bounded(wire: Wire) -> None:
    numbers = [wire.begin("o", {"p": f"a/{i}", "d": 1}) for i in range(1005)]
    answers = [wire.answer(number)["s"] for number in numbers]
    assert answers[:1000] == ["ok"] * 1000
    assert answers[1000:] == ["too_big"] * 5


# Clients that do not read.


def test_a_client_that_does_not_read_is_sent_the_whole_later(address: str, namespace: str, tree: Tree) -> None:
    """The waiting messages stay small; in the end the client has the newest value."""
    with Wire(address, namespace, max_queue=1) as slow, Wire(address, namespace) as writer:
        slow.ok("q", {"p": "a", "h": ""})
        slow.ok("q", {"p": "a", "q": {"i": ".key", "sp": "b"}, "t": 1, "h": ""})
        slow.taken()
        text = "x" * 200_000
        for value in range(300):
            writer.begin("p", {"p": "a/b", "d": f"{value}{text}"})
        writer.answer(writer.number)
        writer.ok("p", {"p": "a/b", "d": "last"})
        received = 0
        seen: dict[int, Any] = {}
        while seen.get(0) != "last" or seen.get(1) != "last":
            push = slow.push()["b"]
            received += 1
            data = push["d"]
            seen[push.get("t", 0)] = data["b"] if isinstance(data, dict) else data
        assert received < 500, "nothing was left out"
        slow.ok("p", {"p": "a/c", "d": 1})
        assert ("d", "a/c", 1) in slow.taken()


def test_json_of_messages_is_as_it_was_written(wire: Wire, tree: Tree) -> None:
    values = {"i": 2**62, "d": 0.1, "e": 1e21, "t": 'q"\\\n€😀', "b": False, "n": -5, "f": 5.0}
    wire.ok("p", {"p": "v", "d": values})
    assert json.dumps(wire.ok("g", {"p": "v", "q": {}}), sort_keys=True) == json.dumps({**values, "f": 5}, sort_keys=True)
