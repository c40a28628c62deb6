"""Listeners without the right, or after its loss: no newer data is sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from endtoend.people import Site, is_denied, rule
from endtoend.user_streams import MEMBERS, listener, loaded, refusal, refused, told
from support.streams import Listen

Open = Callable[[str | None], Any]


@pytest.fixture(params=["grpc", "webchannel", "polls"])
def listen(request: pytest.FixtureRequest, channel: grpc.Channel, site: Site) -> Iterator[Open]:
    """Opens a Listen stream of a user."""
    opened = []

    def open_one(uid: str | None) -> Any:
        opened.append(listener(site, request.param, channel, uid))
        return opened[-1]

    yield open_one
    for stream in opened:
        stream.cancel()


streams_of_users = pytest.mark.emulator_differs("it answers changes with the whole result")


@streams_of_users
def test_listeners_need_a_right(site: Site, listen: Open) -> None:
    site.rules(
        rule("users/{user}", "read: if request.auth.uid == user"),
        rule("c/{x}", "list: if resource.data.n > 5"),
        rule("d/{x}", "get"),
    )
    site.set("users/alice", n=1)
    site.set("c/a", n=7)
    site.set("d/a", n=1)
    alice, nobody = listen("alice"), listen(None)
    alice.add_documents(1, "users/alice")
    assert ("change", "users/alice", 1, [1], []) in alice.snapshot()
    alice.add_query(2, "c", where=[("n", 3, 6)])
    assert ("change", "c/a", 7, [2], []) in alice.snapshot()
    alice.add_documents(3, "d/a")
    assert ("change", "d/a", 1, [3], []) in alice.snapshot()
    for stream in (alice, nobody):
        stream.add_documents(11, "users/bob")
        assert told(refusal(stream, 11)) == []
        stream.add_documents(13, "d/a", "users/bob")
        assert told(refusal(stream, 13)) == []
        stream.add_query(15, "c")
        assert told(refusal(stream, 15)) == []
        stream.add_query(17, "c", where=[("n", 3, 4)])
        assert told(refusal(stream, 17)) == []
        stream.add_query(19, "users")
        assert told(refusal(stream, 19)) == []
        stream.add_query(21, "d")
        assert told(refusal(stream, 21)) == []
        stream.add_query(23, "c", group=True)
        assert told(refusal(stream, 23)) == []
        # The target's number may be used again.
        stream.add_documents(11, "d/a")
        assert ("change", "d/a", 1, [11], []) in stream.snapshot()
    # The other targets continue.
    site.set("users/alice", n=2)
    assert ("change", "users/alice", 2, [1], []) in alice.snapshot()


@streams_of_users
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("target", ["query", "window", "documents"])
def test_a_document_that_a_rule_reads_changes(site: Site, listen: Open, target: str, together: bool) -> None:
    """No data newer than the right is sent, not even that of the commit that revokes it."""
    site.rules(rule("c/{x}", f"read: if {MEMBERS}"))
    site.set("members/alice", n=1)
    site.set("members/bob", n=1)
    site.set("c/a", n=1)
    alice, bob = listen("alice"), listen("bob")
    for stream in (alice, bob):
        if target == "documents":
            stream.add_documents(2, "c/a", "c/b")
        else:
            stream.add_query(2, "c", **({"limit": 5} if target == "window" else {}))
        assert ("change", "c/a", 1, [2], []) in stream.snapshot()
    site.set("c/a", n=2)
    for stream in (alice, bob):
        assert ("change", "c/a", 2, [2], []) in stream.snapshot()
    writes = [site.written("c/a", n=3), site.written("c/b", n=3), site.deleted("members/alice")]
    if together:
        assert site.owner.commit(*writes).good
    else:
        site.remove("members/alice")
        assert site.owner.commit(*writes[:2]).good
    assert told(refusal(alice, 2)) == []
    assert ("change", "c/a", 3, [2], []) in bob.snapshot()
    # She receives no more data, and may not listen again.
    site.set("c/a", n=4)
    assert ("change", "c/a", 4, [2], []) in bob.snapshot()
    alice.add_query(4, "c")
    assert told(refusal(alice, 4)) == []
    # Until she has the right again.
    site.set("members/alice", n=2)
    alice.add_query(6, "c")
    assert ("change", "c/a", 4, [6], []) in alice.snapshot()


@streams_of_users
def test_a_right_changes_by_what_a_document_says(site: Site, listen: Open) -> None:
    site.rules(
        rule("c/{x}", "list: if get(/databases/$(db)/documents/roles/$(request.auth.uid)).data.role in ['r', 'w']")
    )
    for role in ("r", "w", "r"):
        site.set("roles/alice", role=role, n=1)
    site.set("c/a", n=1)
    alice = listen("alice")
    alice.add_query(2, "c")
    alice.snapshot()
    site.set("roles/alice", role="w")
    site.set("c/a", n=2)
    assert told(alice.snapshot()) == [("change", "c/a", 2, [2], [])]
    assert site.owner.commit(site.written("roles/alice", role="x"), site.written("c/a", n=3)).good
    assert told(refusal(alice, 2)) == []


@streams_of_users
def test_a_document_appears_that_a_rule_has_not_found(site: Site, listen: Open) -> None:
    site.rules(rule("c/{x}", "read: if !exists(/databases/$(db)/documents/banned/$(request.auth.uid))"))
    site.set("c/a", n=1)
    alice, bob = listen("alice"), listen("bob")
    for stream in (alice, bob):
        stream.add_query(2, "c")
        stream.add_documents(4, "c/a")
        loaded(stream, 2, 4)
    assert site.owner.commit(site.written("banned/alice", n=1), site.written("c/a", n=2)).good
    refused(alice, 2, 4)
    assert ("change", "c/a", 2, [2, 4], []) in bob.snapshot()
    for path in ("c/a", "c/b"):
        assert is_denied(site.person("alice").get(path))


@streams_of_users
def test_a_right_that_passes_from_one_document_to_another(site: Site, listen: Open) -> None:
    """Each time it depends on other documents than before."""
    first, second = (f"exists(/databases/$(db)/documents/{name}/$(request.auth.uid))" for name in ("first", "second"))
    site.rules(rule("c/{x}", f"read: if {first} || {second}"))
    site.set("first/alice", n=1)
    site.set("c/a", n=0)
    alice = listen("alice")
    alice.add_query(2, "c")
    alice.snapshot()
    for turn in range(1, 5):
        other, old = ("second", "first") if turn % 2 else ("first", "second")
        site.set(f"{other}/alice", n=turn)
        site.remove(f"{old}/alice")
        site.set("c/a", n=turn)
        assert told(alice.snapshot()) == [("change", "c/a", turn, [2], [])]
    assert site.owner.commit(site.deleted("first/alice"), site.written("c/a", n=9)).good
    assert told(refusal(alice, 2)) == []


@streams_of_users
def test_a_cleared_database_takes_rights(site: Site, listen: Open) -> None:
    site.rules(rule("c/{x}", f"read: if {MEMBERS}"))
    site.set("members/alice", n=1)
    site.set("c/a", n=1)
    alice = listen("alice")
    alice.add_query(2, "c")
    alice.snapshot()
    status, _ = site.send("DELETE", f"/emulator/v1/{site.database}/documents")
    assert status == 200
    site.set("c/b", n=2)
    assert [one for one in told(refusal(alice, 2)) if one[0] == "change"] == []


@streams_of_users
def test_a_document_shuts_itself(site: Site, listen: Open) -> None:
    site.rules(rule("c/{x}", "get: if resource.data.open"))
    site.set("c/a", open=True, n=1)
    site.set("c/b", open=True, n=1)
    alice = listen("alice")
    alice.add_documents(2, "c/a")
    alice.add_documents(4, "c/b")
    alice.add_documents(6, "c/a", "c/b")
    loaded(alice, 2, 4, 6)
    site.set("c/a", open=True, n=2)
    assert ("change", "c/a", 2, [2, 6], []) in alice.snapshot()
    site.set("c/a", open=False, n=3)
    refused(alice, 2, 6)
    site.set("c/b", open=True, n=4)
    assert ("change", "c/b", 4, [4], []) in alice.snapshot()
    # A deleted document is not open, either.
    site.remove("c/b")
    assert told(refusal(alice, 4)) == []


@streams_of_users
def test_rules_change_under_listeners(site: Site, listen: Open) -> None:
    site.rules(rule("{c}/{x}", "read"))
    site.set("c/a", n=1)
    site.set("d/a", n=1)
    alice = listen("alice")
    alice.add_query(2, "c")
    alice.add_documents(4, "c/a")
    alice.add_query(6, "d")
    loaded(alice, 2, 4, 6)
    site.rules(rule("d/{x}", "read"))
    site.set("c/a", n=2)
    refused(alice, 2, 4)
    site.set("d/a", n=2)
    assert told(alice.snapshot()) == [("change", "d/a", 2, [6], [])]


@streams_of_users
def test_resuming_needs_the_right_again(site: Site, listen: Open) -> None:
    site.rules(rule("c/{x}", f"read: if {MEMBERS}"))
    site.set("members/alice", n=1)
    site.set("c/a", n=1)
    first = listen("alice")
    first.add_query(2, "c")
    first.add_documents(4, "c/a")
    loaded(first, 2, 4)
    token, read_time = first.token, first.read_time
    first.cancel()
    site.remove("members/alice")
    site.set("c/a", n=2)
    for uid in ("alice", "bob", None):
        again = listen(uid)
        again.add_query(2, "c", resume_token=token)
        assert told(refusal(again, 2)) == []
        again.add_query(6, "c", read_time=read_time)
        assert told(refusal(again, 6)) == []
        again.add_documents(8, "c/a", resume_token=token, expected_count=0)
        assert told(refusal(again, 8)) == []
        again.add_query(10, "c", once=True)
        assert told(refusal(again, 10)) == []


@streams_of_users
def test_a_right_is_lost_while_a_result_is_loaded(site: Site, channel: grpc.Channel) -> None:
    """A client that reads slowly: the result is of a state that it may see; later changes are not sent."""
    site.rules(rule("c/{x}", f"read: if {MEMBERS}"))
    site.set("members/alice", n=1)
    text = "x" * 20_000
    for part in range(4):
        writes = [site.written(f"c/{part}x{number}", n=1, text=text) for number in range(100)]
        assert site.owner.commit(*writes).good
    alice = listener(site, "grpc", channel, "alice")
    go_on = threading.Event()
    alice.hold(go_on)
    alice.add_query(2, "c")
    time.sleep(0.3)
    assert site.owner.commit(site.deleted("members/alice"), site.written("c/0x0", n=2)).good
    site.set("c/new", n=3)
    time.sleep(0.1)
    go_on.set()
    changes = told(refusal(alice, 2))
    assert all(value in (1, None) for _, _, value, *_ in changes) and len(changes) <= 400
    alice.cancel()


EQUAL, GREATER = 5, 3


def contents(messages: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [one for one in told(messages) if one[0] == "change"]


@streams_of_users
@pytest.mark.parametrize("more", [{}, {"limit": 5}, {"select": ["n"]}], ids=["query", "window", "projection"])
def test_what_left_a_query_is_named_and_not_shown(site: Site, listen: Open, more: dict[str, Any]) -> None:
    """Rules allow the result of the query; the content of a document after it left the result is not a part of that."""
    site.rules(rule("c/{x}", "read: if resource.data.n == 1"))
    site.set("c/a", n=1, text="open")
    site.set("c/b", n=1, text="open")
    alice = listen("alice")
    alice.add_query(2, "c", where=[("n", EQUAL, 1)], **more)
    assert len(contents(alice.snapshot())) == 2
    site.set("c/a", n=2, text="secret")
    assert told(alice.snapshot()) == [("document_remove", "c/a", [2])]
    assert is_denied(site.person("alice").get("c/a"))
    site.set("c/a", n=1)
    assert told(alice.snapshot()) == [("change", "c/a", 1, [2], [])]
    # A deletion is one.
    site.remove("c/b")
    assert told(alice.snapshot()) == [("delete", "c/b", [2])]


@streams_of_users
@pytest.mark.parametrize("more", [{}, {"limit": 5}, {"select": ["n"]}], ids=["query", "window", "projection"])
@pytest.mark.parametrize("by", ["token", "read_time"])
def test_what_left_while_nobody_listened_is_named_and_not_shown(
    site: Site, listen: Open, by: str, more: dict[str, Any]
) -> None:
    """A client that never listened may name a time when a document was public; the document is not public any more."""
    site.rules(rule("c/{x}", "read: if resource.data.n == 1"))
    site.set("c/a", n=1, text="open")
    site.set("c/b", n=1, text="open")
    first = listen("alice")
    first.add_query(2, "c", where=[("n", EQUAL, 1)], **more)
    assert len(contents(first.snapshot())) == 2
    knowledge = {"resume_token": first.token} if by == "token" else {"read_time": first.read_time}
    first.cancel()
    site.set("c/a", n=2, text="secret")
    site.remove("c/b")
    site.set("c/new", n=1)
    for uid in ("alice", None):
        again = listen(uid)
        again.add_query(2, "c", where=[("n", EQUAL, 1)], expected_count=2, **knowledge, **more)
        messages = told(again.snapshot())
        assert contents(messages) == [("change", "c/new", 1, [2], [])]
        assert ("document_remove", "c/a", [2]) in messages and ("delete", "c/b", [2]) in messages


@streams_of_users
def test_a_document_that_one_target_shows_may_leave_another(site: Site, listen: Open) -> None:
    site.rules(rule("c/{x}", "read"))
    site.set("c/a", n=1, text="x")
    alice = listen("alice")
    alice.add_query(2, "c", where=[("n", EQUAL, 1)])
    alice.add_query(4, "c", where=[("n", GREATER, 1)])
    loaded(alice, 2, 4)
    site.set("c/a", n=2, text="y")
    assert told(alice.snapshot()) == [("change", "c/a", 2, [4], [2])]


@streams_of_users
def test_contents_that_leave_go_no_further_than_projections(
    site: Site, channel: grpc.Channel, listen: Open
) -> None:
    """A target with some fields only does not reveal the others when documents move between targets."""
    site.rules(rule("c/{x}", "read"))
    site.set("c/a", n=1, text="x")
    alice = listen("alice")
    alice.add_query(2, "c", where=[("n", EQUAL, 1)], select=["m"])
    alice.add_query(4, "c", where=[("n", GREATER, 1)], select=["m"])
    loaded(alice, 2, 4)
    site.set("c/a", n=2, text="y")
    # Without `n`, which was not requested.
    assert sorted(told(alice.snapshot())) == [("change", "c/a", None, [4], []), ("document_remove", "c/a", [2])]
    # An administrator receives the document in the form of the target that it left.
    owner = Listen(channel, site.project, database=site.database)
    owner.add_query(2, "c", where=[("n", EQUAL, 2)], select=["m"])
    owner.snapshot()
    site.set("c/a", n=3, text="z")
    assert told(owner.snapshot()) == [("change", "c/a", None, [], [2])]
    owner.cancel()
