"""Clients of the Realtime Database that read receive all large data, complete and in order, on each transport."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from endtoend.database_wire import Events, Tree, Wire
from endtoend.test_database_long_poll import Poller

LETTERS = 'ab"\\é漢😀\n'


@pytest.fixture
def namespace() -> str:
    return f"ns-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def tree(address: str, namespace: str) -> Iterator[Tree]:
    made = Tree(address, namespace)
    yield made
    made.close()


def text(size: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(LETTERS, k=size))


def large(seed: int) -> dict[str, Any]:
    """About a megabyte: of strings, of small values, and with a name that has a special meaning in a script."""
    return {
        "strings": {f"s{i}": text(20_000, seed + i) for i in range(8)},
        "numbers": {f"k{i}": i for i in range(40_000)},
        "__proto__": {"a": seed},
    }


def patched(value: dict[str, Any], number: int) -> tuple[str, dict[str, Any]]:
    """Changes, every other one of which is large."""
    change = {"text": text(120_000 if number % 2 else 5, number), "number": number}
    value[f"change{number}"] = change
    return f"change{number}", change


def test_sockets(address: str, namespace: str, tree: Tree) -> None:
    value = large(1)
    tree.put("a", value)
    with Wire(address, namespace) as wire:
        numbers = [wire.begin("g", {"p": "/a"}) for _ in range(3)]
        listening = wire.begin("q", {"p": "/a", "h": ""})
        small = wire.begin("g", {"p": "/a/__proto__"})
        for number in numbers:
            assert wire.answer(number) == {"s": "ok", "d": value}
        assert wire.answer(listening) == {"s": "ok", "d": {}}
        assert wire.answer(small) == {"s": "ok", "d": value["__proto__"]}
        assert wire.taken() == [("d", "a", value)]
        changes = [patched(value, number) for number in range(6)]
        for key, change in changes:
            tree.put(f"a/{key}", change)
        tree.patch("a", {"x": text(200_000, 7), "y": 1})
        got = wire.wait()
        assert got[:6] == [("d", f"a/{key}", change) for key, change in changes]
        assert got[6:] == [("m", "a", {"x": text(200_000, 7), "y": 1})]
        own = text(300_000, 8)
        assert wire.ok("p", {"p": "/a/own", "d": own}) == ""
        assert wire.taken() == [("d", "a/own", own)]


def test_queries(address: str, namespace: str, tree: Tree) -> None:
    value = {f"c{i:03}": {"n": i % 7, "text": text(3000, i)} for i in range(200)}
    tree.put("a", value)
    tree.rules({".read": True, ".write": True, "a": {".indexOn": ["n"]}})
    query = {"i": "n", "sp": 2, "ep": 4}
    wanted = {key: child for key, child in value.items() if 2 <= child["n"] <= 4}
    with Wire(address, namespace) as wire:
        assert wire.ok("g", {"p": "/a", "q": query}) == wanted
        assert wire.ok("q", {"p": "/a", "q": query, "t": 5, "h": ""}) == {}
        assert wire.taken() == [("d", "a", wanted, 5)]
    for extra in ("", "&print=pretty"):
        assert tree.get("a", f'&orderBy="n"&startAt=2&endAt=4{extra}') == wanted
    tree.put("list", [text(100_000, i) for i in range(4)])
    assert tree.get("list", '&orderBy="$key"&limitToFirst=3') == [text(100_000, i) for i in range(3)]
    assert tree.get("list", '&orderBy="$key"&startAt="9"') == {}


def test_streams(address: str, namespace: str, tree: Tree) -> None:
    value = large(2)
    tree.put("a", value)
    with Events(address, namespace, "a") as events:
        assert events.next() == ("put", {"path": "/", "data": value})
        changes = [patched(value, number) for number in range(6)]
        for key, change in changes:
            tree.put(f"a/{key}", change)
        tree.patch("a", {"x": text(200_000, 7), "y": 1})
        for key, change in changes:
            assert events.next() == ("put", {"path": f"/{key}", "data": change})
        assert events.next() == ("patch", {"path": "/", "data": {"x": text(200_000, 7), "y": 1}})
        tree.put("a", None)
        assert events.next() == ("put", {"path": "/", "data": None})


def following(page: Poller) -> dict[str, Any]:
    while not page.messages:
        page.poll()
    return page.messages.pop(0)


def test_polls(address: str, namespace: str, tree: Tree) -> None:
    value = large(3)
    tree.put("a", value)
    page = Poller(address, namespace)
    page.say({"t": "d", "d": {"r": 1, "a": "g", "b": {"p": "/a"}}})
    page.say({"t": "d", "d": {"r": 2, "a": "q", "b": {"p": "/a", "h": ""}}})
    messages = [following(page) for _ in range(3)]
    assert messages[0] == {"t": "d", "d": {"r": 1, "b": {"s": "ok", "d": value}}}
    assert messages[1] == {"t": "d", "d": {"a": "d", "b": {"p": "a", "d": value}}}
    assert messages[2] == {"t": "d", "d": {"r": 2, "b": {"s": "ok", "d": {}}}}
    changes = [patched(value, number) for number in range(4)]
    for key, change in changes:
        tree.put(f"a/{key}", change)
    for key, change in changes:
        assert following(page) == {"t": "d", "d": {"a": "d", "b": {"p": f"a/{key}", "d": change}}}
