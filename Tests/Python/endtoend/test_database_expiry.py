"""The behaviour of connections to the Realtime Database when their token expires."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from endtoend.database_wire import Events, Wire
from endtoend.trees import OWNER, Tree, production, signed
from support.program import Program

NAMESPACE = "shop-default-rtdb"
ADMIN = {"Authorization": "Bearer the administrator's own secret"}
# A token is accepted for a minute after its expiry, because clocks differ.
LEEWAY = 60
#: How long the tokens of these tests are good, which is longer than a busy machine needs to show them.
LIFE_SECONDS = 4
EXPIRED = {"s": "expired_token", "d": "Auth token is expired"}
DENIED = "permission_denied"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    with production(tmp_path) as started:
        yield started


@pytest.fixture
def wire(server: Program) -> Iterator[Wire]:
    with Wire(server.address, NAMESPACE) as made:
        yield made


def test_a_token_that_has_ended_is_refused(wire: Wire) -> None:
    assert wire.call("auth", {"cred": signed("ann", seconds=-600)}) == EXPIRED
    assert wire.call("g", {"p": "users/ann", "q": {}})["s"] == DENIED


def test_the_client_is_told_and_is_nobody_from_then_on(server: Program, wire: Wire) -> None:
    wire.ok("auth", {"cred": signed("ann", seconds=LIFE_SECONDS - LEEWAY)})
    wire.ok("q", {"p": "users/ann", "h": ""})
    wire.ok("p", {"p": "users/ann/x", "d": 1})
    wire.taken()
    assert wire.push() == {"a": "ac", "b": EXPIRED}
    assert wire.push() == {"a": "c", "b": {"p": "users/ann"}}
    assert wire.call("p", {"p": "users/ann/x", "d": 2})["s"] == DENIED
    assert Tree(server.address, NAMESPACE).send("PUT", "users/ann/x", "3", ADMIN).status == 200
    assert wire.quiet()
    # The connection continues with a new token.
    wire.ok("auth", {"cred": signed("ann")})
    assert wire.ok("g", {"p": "users/ann/x", "q": {}}) == 3


def test_a_token_in_time_replaces_the_one_that_ends(wire: Wire) -> None:
    wire.ok("auth", {"cred": signed("ann", seconds=LIFE_SECONDS - LEEWAY)})
    wire.ok("q", {"p": "users/ann", "h": ""})
    wire.ok("auth", {"cred": signed("ann")})
    wire.taken()
    assert wire.quiet(LIFE_SECONDS + 1.5)
    wire.ok("p", {"p": "users/ann/x", "d": 1})


def test_wishes_of_one_whose_token_has_ended_are_judged_as_nobodys(server: Program) -> None:
    tree = Tree(server.address, NAMESPACE)
    rules = {"open": {".write": True}, "users": {"$uid": {".write": "auth.uid == $uid"}}}
    assert tree.send("PUT", ".settings/rules", {"rules": rules}, ADMIN).status == 200
    with Wire(server.address, NAMESPACE) as leaving:
        leaving.ok("auth", {"cred": signed("ann", seconds=LIFE_SECONDS - LEEWAY)})
        leaving.ok("o", {"p": "users/ann/left", "d": True})
        leaving.ok("o", {"p": "open/left", "d": True})
        assert leaving.push()["a"] == "ac"
    for _ in range(100):
        if tree.get("open/left", ADMIN):
            break
        time.sleep(0.05)
    assert tree.get("", ADMIN) == {"open": {"left": True}}


def test_an_event_stream_ends(server: Program) -> None:
    with Events(server.address, NAMESPACE, "users/ann", f"&auth={signed('ann', seconds=LIFE_SECONDS - LEEWAY)}") as events:
        assert events.next() == ("put", {"path": "/", "data": None})
        assert events.next() == ("auth_revoked", "credential is no longer valid")
        assert events.next() == ("", None)
    with Events(server.address, NAMESPACE, "users/ann", f"&auth={signed('ann', seconds=-600)}") as events:
        assert events.status == 401


def test_administrators_never_end(server: Program) -> None:
    with Events(server.address, NAMESPACE, "users", "", ADMIN) as events:
        assert events.next() == ("put", {"path": "/", "data": None})
    assert Tree(server.address, NAMESPACE).send("GET", "users", headers=OWNER).status == 401
