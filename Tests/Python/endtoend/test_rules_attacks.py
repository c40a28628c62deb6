"""What somebody tries who wants to see or do more than the rules allow. None of it may succeed."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest

from differential.request import nanoseconds
from endtoend.channels import Bare
from endtoend.people import Person, Site, all_of, any_of, condition, fields, is_denied, query, rule, value
from support.program import BINARY, EFFORT, Program, program
from support.streams import Listen, Stream, WriteRequest
from support.tokens import encoded, unsigned
from support.webchannel import WebListen
from support.ways import Http1

SEED = int(os.environ.get("HEARTH_TEST_SEED", random.randrange(10**6)))
PERMISSION_DENIED = 7


@pytest.fixture(params=["grpc", "rest"])
def over_rest(request: pytest.FixtureRequest) -> bool:
    return request.param == "rest"


@pytest.fixture
def alice(site: Site, over_rest: bool) -> Person:
    return site.person("alice", over_rest)


# Batches


def test_a_batch_whose_help_is_itself_denied(site: Site, alice: Person) -> None:
    """A write that getAfter wants to see must be allowed, too."""
    b = "/databases/$(db)/documents/b/b"
    site.rules(
        rule("a/{x}", f"write: if getAfter({b}).data.role == 'admin'"),
        rule("b/{x}", "create, update: if request.resource.data.role == 'guest'", "delete"),
        rule("c/{x}", f"write: if !existsAfter({b})"),
    )
    site.set("b/b", role="guest")
    a = site.written("a/a", n=1)
    admin, guest = site.written("b/b", role="admin"), site.written("b/b", role="guest")
    raised = {**site.written("b/b", mask=[]), "updateTransforms": [{"fieldPath": "role", "increment": value(1)}]}
    for writes in (
        [a, admin],
        [admin, a],
        [admin, a, guest],
        [guest, a, admin],
        [site.deleted("b/b"), admin, a],
        [a, site.written("b/b", mask=["role"], role="admin")],
        [a, raised],
        [a, guest],
        [a, site.deleted("b/b")],
        [site.deleted("b/b"), guest, site.written("c/a", n=1)],
        [site.written("c/a", n=1), site.deleted("b/b"), guest],
    ):
        assert is_denied(alice.commit(*writes)), writes
    # What fails for another reason has done nothing, either.
    failing = site.deleted("b/b", when={"updateTime": "2020-01-01T00:00:00Z"})
    assert not alice.commit(failing, site.written("c/a", n=1)).good
    assert site.read("b/b") == fields({"role": "guest"})
    assert site.read("a/a") is None and site.read("c/a") is None
    # And allowed it is only together.
    assert alice.commit(site.deleted("b/b"), site.written("c/a", n=1)).good


def test_a_precondition_does_not_choose_a_better_rule(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", "create: if request.resource.data.n < 10"), rule("d/{x}", "update"))
    site.set("c/a", n=1)
    absent, there = {"exists": False}, {"exists": True}
    assert alice.commit(site.written("c/a", when=absent, n=2)).code == "ALREADY_EXISTS"
    for writes in (
        [site.written("c/a", n=2)],
        [site.written("c/a", n=2, when=there)],
        [site.deleted("c/a"), site.written("c/a", when=absent, n=2)],
        [site.written("d/none", n=1)],
        [site.written("d/none", n=1, when=absent)],
        [site.written("c/b", n=1), site.written("c/b", mask=["n"], n=99, when=there)],
    ):
        assert not alice.commit(*writes).good, writes
    assert site.read("c/a") == fields({"n": 1})
    for path in ("c/b", "d/none"):
        assert site.read(path) is None


def test_names_that_look_like_others(site: Site, alice: Person) -> None:
    """A rule is for whole segments, exactly; a path in a rule is no way out of it."""
    site.rules(
        rule("open/{x}", "read, write"),
        rule("by/{x}", "get: if exists(/databases/$(db)/documents/flags/$(request.auth.token.flag))"),
    )
    site.set("shut/a", n=1)
    site.set("flags/f/deep/g", n=1)
    for path in ("Open/a", "open /a", "open/a/b/c", "ope/a", "openx/a", "open\u200b/a", "ｏpen/a"):
        assert is_denied(alice.get(path)), path
        assert is_denied(alice.update(path, n=1)), path
    for target in ("open/..%2Fshut/a", "open/../shut/a", "open/a/../../shut/a", "open%2F..%2Fshut/a", "shut/a%00", "//shut/a"):
        headers = {"Authorization": f"Bearer {alice.token}"}
        status, answer = site.send("GET", f"/v1/{site.name('')}/{target}", headers=headers)
        assert status in (400, 403, 404), (target, answer)
        assert b"fields" not in json.dumps(answer if not isinstance(answer, bytes) else answer.decode()).encode()
    for flag in ("f/deep/g", "f%2Fdeep%2Fg", "../flags/f", ""):
        assert is_denied(site.person("alice", alice.rest, flag=flag).get("by/a")), flag


# Queries


def ways_around_a_filter(site: Site) -> Iterator[tuple[str, Any]]:
    own = condition("owner", "EQUAL", "alice")
    order = [{"field": {"fieldPath": "owner"}}]
    alices = {"values": [value("alice")], "before": True}
    yield "nothing", query("c")
    yield "another's", query("c", condition("owner", "EQUAL", "bob"))
    yield "not another's", query("c", condition("owner", "NOT_EQUAL", "bob"))
    yield "one of two", query("c", condition("owner", "IN", ["alice", "bob"]))
    yield "none of others", query("c", condition("owner", "NOT_IN", ["bob"]))
    yield "a range around", query(
        "c", all_of(condition("owner", "GREATER_THAN", "a"), condition("owner", "LESS_THAN", "b"))
    )
    yield "or anything", query("c", any_of(own, condition("n", "GREATER_THAN", 0)))
    yield "or deeply", query("c", all_of(condition("n", "EQUAL", 1), any_of(own, condition("n", "EQUAL", 1))))
    yield "a member", query("c", condition("owner.x", "EQUAL", "alice"))
    yield "a quoted name", query("c", condition("`owner `", "EQUAL", "alice"))
    yield "in an array", query("c", condition("owner", "ARRAY_CONTAINS", "alice"))
    yield "in arrays", query("c", condition("owner", "ARRAY_CONTAINS_ANY", ["alice"]))
    yield "an array", query("c", condition("owner", "EQUAL", ["alice"]))
    yield "null", query("c", condition("owner", "IS_NULL", None))
    yield "the first", query("c", limit=1)
    yield "from there", query("c", orderBy=order, startAt=alices)
    yield "from there to there", query("c", orderBy=order, startAt=alices, endAt={**alices, "before": False})
    yield "only that field", query("c", select={"fields": [{"fieldPath": "owner"}]})
    yield "only names", query("c", select={"fields": [{"fieldPath": "__name__"}]})
    yield "by name", query("c", condition("__name__", "EQUAL", {"referenceValue": site.name("c/b")}))
    yield "own and other, by name", query(
        "c", all_of(condition("__name__", "GREATER_THAN", {"referenceValue": site.name("c/a")}))
    )
    yield "its group", query("c", group=True)
    yield "its group, filtered", query("c", own, group=True)


def test_no_query_is_wider_than_its_rule(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", "list: if resource.data.owner == request.auth.uid"))
    site.set("c/a", owner="alice", n=1)
    site.set("c/b", owner="bob", n=1)
    assert alice.run(query("c", condition("owner", "EQUAL", "alice"))).good
    for name, asked in ways_around_a_filter(site):
        assert is_denied(alice.run(asked)), name
        assert is_denied(alice.count(asked)), name
        assert is_denied(alice.run(asked, newTransaction={"readOnly": {}})), name
    for more in ({}, {"orderBy": "owner"}, {"pageSize": 1}, {"showMissing": True}, {"mask": {"fieldPaths": ["owner"]}}):
        assert is_denied(alice.list("c", **more)), more
    sums = [{"alias": "s", "sum": {"field": {"fieldPath": "n"}}}, {"alias": "a", "avg": {"field": {"fieldPath": "n"}}}]
    counted = {"structuredQuery": query("c"), "aggregations": sums}
    body = {"parent": site.name(""), "structuredAggregationQuery": counted}
    assert is_denied(alice.ask("RunAggregationQuery", body))


@pytest.mark.emulator_differs("it knows neither explanations nor the nearest vectors")
def test_explanations_and_nearest_vectors_are_queries(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", "list: if resource.data.owner == request.auth.uid"))
    nearest = {
        "vectorField": {"fieldPath": "v"},
        "queryVector": {
            "mapValue": {
                "fields": {"__type__": value("__vector__"), "value": {"arrayValue": {"values": [{"doubleValue": 1}]}}}
            }
        },
        "distanceMeasure": "EUCLIDEAN",
        "limit": 5,
    }
    assert is_denied(alice.run(query("c", findNearest=nearest)))
    for analyze in (False, True):
        assert is_denied(alice.run(query("c"), explainOptions={"analyze": analyze}))
        assert is_denied(alice.count(query("c"), explainOptions={"analyze": analyze}))


def test_queries_of_everything_are_denied(site: Site, alice: Person, is_emulator: bool) -> None:
    """No rule can be written for them."""
    site.rules(rule("{all=**}", "read"))
    site.set("c/a", n=1)
    everything = {"from": [{"allDescendants": True}]}
    if not is_emulator:
        assert is_denied(alice.run(everything))
        assert is_denied(alice.run({"from": [{}]}))
        assert is_denied(alice.count(everything))
        assert is_denied(alice.list(""))


def test_collection_groups_pass_no_nested_match(site: Site, alice: Person) -> None:
    site.rules(
        rule("users/{user}/notes/{note}", "read: if user == request.auth.uid"),
        rule("users/{user}/{kind}/{x}", "read: if user == request.auth.uid"),
        rule("users/{user}/deep/{path=**}", "read: if user == request.auth.uid"),
        rule("{path=**}/names/{x}", "read: if path[1] == request.auth.uid"),
        rule("{path=**}/users/{user}/tags/{x}", "read: if user == request.auth.uid"),
    )
    for user in ("alice", "bob"):
        for collection in ("notes", "names", "tags", "other"):
            site.set(f"users/{user}/{collection}/x", owner=user)
    for collection in ("notes", "names", "tags", "other"):
        for where in (None, condition("owner", "EQUAL", "alice")):
            assert is_denied(alice.run(query(collection, where, group=True))), collection
            assert is_denied(alice.count(query(collection, where, group=True))), collection
            assert is_denied(alice.run(query(collection, where, group=True), "users/bob")), collection
    for collection in ("notes", "tags", "other"):
        assert alice.run(query(collection), "users/alice").good, collection
        assert is_denied(alice.run(query(collection), "users/bob")), collection


# Transactions and the past


MEMBERS = "exists(/databases/$(db)/documents/members/$(request.auth.uid))"


def test_anothers_transaction_brings_no_rights(site: Site, alice: Person, is_emulator: bool) -> None:
    site.rules(rule("c/{x}", "read, write: if request.auth.uid == 'alice'"))
    site.set("c/a", n=1)
    bob = site.person("bob", alice.rest)
    transaction = alice.ask("BeginTransaction", {"database": site.database}).body["transaction"]
    assert alice.batch_get("c/a", transaction=transaction).good
    for answer in (
        bob.batch_get("c/a", transaction=transaction),
        bob.get("c/a", transaction=transaction),
        bob.run(query("c"), transaction=transaction),
        bob.count(query("c"), transaction=transaction),
        bob.list("c", transaction=transaction),
        bob.commit(site.written("c/a", n=2), transaction=transaction),
    ):
        assert not answer.good and not answer.body
    assert site.read("c/a") == fields({"n": 1})


def test_rights_are_lost_within_a_transaction(site: Site, alice: Person) -> None:
    """Its reads are of one state, but its commit is judged when it is made."""
    site.rules(rule("c/{x}", f"read, write: if {MEMBERS}"))
    site.set("c/a", n=1)
    site.set("members/alice", n=1)
    transaction = alice.ask("BeginTransaction", {"database": site.database}).body["transaction"]
    assert alice.batch_get("c/a", transaction=transaction).good
    # Nothing that the transaction has read.
    site.remove("members/alice")
    assert is_denied(alice.commit(site.written("c/a", n=2), transaction=transaction))
    assert site.read("c/a") == fields({"n": 1})


def test_the_past_is_judged_by_what_was_then(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", f"read: if {MEMBERS}"), rule("d/{x}", "read: if resource.data.open"))
    site.set("c/a", n=1)
    site.set("d/a", open=False)
    before = site.owner.commit(site.written("z/z", n=1)).body["commitTime"]
    time.sleep(0.01)
    site.set("members/alice", n=1)
    site.set("d/a", open=True)
    assert alice.get("c/a").good and alice.get("d/a").good
    for ask in (
        lambda **when: alice.get("c/a", **when),
        lambda **when: alice.get("d/a", **when),
        lambda **when: alice.batch_get("c/a", **when),
        lambda **when: alice.run(query("c"), **when),
        lambda **when: alice.count(query("c"), **when),
        lambda **when: alice.list("c", **when),
    ):
        assert is_denied(ask(readTime=before))
    options = {"database": site.database, "options": {"readOnly": {"readTime": before}}}
    old = alice.ask("BeginTransaction", options).body["transaction"]
    assert is_denied(alice.batch_get("c/a", transaction=old))


def test_a_page_token_is_no_right(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", "list: if request.auth.uid == 'alice'"))
    for number in range(4):
        site.set(f"c/{number}", n=number)
    token = alice.list("c", pageSize=2).body["nextPageToken"]
    assert is_denied(site.person("bob", alice.rest).list("c", pageSize=2, pageToken=token))
    site.rules(rule("c/{x}", "list: if false"))
    assert is_denied(alice.list("c", pageSize=2, pageToken=token))


# Listeners


def listener(site: Site, kind: str, channel: grpc.Channel, uid: str | None) -> Any:
    authorization = None if uid is None else f"Bearer {unsigned(uid)}"
    if kind == "grpc":
        return Listen(channel, site.project, database=site.database, authorization=authorization)
    headers = {} if authorization is None else {"Authorization": authorization}
    return WebListen(site.address, site.project, polls=kind == "polls", headers=headers)


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


def refusal(stream: Any, target: int) -> list[tuple[Any, ...]]:
    """What is said until a target is removed for want of a right."""
    said = []
    while True:
        message = stream.next()
        assert message is not None
        if message[:3] == ("REMOVE", [target], PERMISSION_DENIED):
            assert message[3]
            return said
        assert message[0] != "REMOVE", message
        said.append(message)


def refused(stream: Any, *targets: int) -> None:
    """All these targets are removed, in any order, before any document is told."""
    waiting = set(targets)
    while waiting:
        message = stream.next()
        if message[0] == "REMOVE":
            assert message[2] == PERMISSION_DENIED
            waiting -= set(message[1])
        else:
            assert told([message]) == []


def loaded(stream: Any, *targets: int) -> None:
    """Until the boundary behind their first results; they may share one."""
    waiting = set(targets)
    while (message := stream.next()) != ("boundary",) or waiting:
        if message[0] == "CURRENT":
            waiting -= set(message[1])


def told(messages: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [one for one in messages if one[0] in ("change", "delete", "document_remove")]


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
        # The number may be used again.
        stream.add_documents(11, "d/a")
        assert ("change", "d/a", 1, [11], []) in stream.snapshot()
    # The others go on.
    site.set("users/alice", n=2)
    assert ("change", "users/alice", 2, [1], []) in alice.snapshot()


@streams_of_users
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("target", ["query", "window", "documents"])
def test_a_document_that_a_rule_reads_changes(site: Site, listen: Open, target: str, together: bool) -> None:
    """Nothing newer than the right is told, be it of the very commit that takes it."""
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
    # She is told no more, and may not come back.
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
    # Gone, it isn't open, either.
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
    """A client that reads slowly: the result is of a state that it may see; what comes later isn't told."""
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


@streams_of_users
def test_a_race_of_revocations(site: Site, channel: grpc.Channel) -> None:
    """Documents are written all the while, from several threads; nothing later than the right ever comes."""
    site.rules(rule("c/{x}", f"read: if {MEMBERS}"))
    done = threading.Event()

    def write(number: int) -> None:
        count = 0
        while not done.is_set():
            count += 1
            assert site_of_thread[number].owner.commit(site.written(f"c/{number}", n=count)).good

    site_of_thread = [Site(site.address, site.project) for _ in range(2)]
    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(15 * EFFORT):
            site.set("members/alice", n=turn)
            kind = ("grpc", "webchannel", "polls")[turn % 3]
            alice = listener(site, kind, channel, "alice")
            alice.add_query(2, "c")
            alice.add_documents(4, "c/0", "c/1")
            loaded(alice, 2, 4)
            revoked = site.owner.commit(site.deleted("members/alice")).body["commitTime"]
            newest, removed = "", 0
            while removed < 2:
                message = alice.take()
                change = message.target_change
                if message.HasField("document_change"):
                    newest = max(newest, message.document_change.document.update_time.ToJsonString())
                elif message.HasField("target_change") and change.target_change_type == 2:
                    assert change.cause.code == PERMISSION_DENIED
                    removed += 1
            assert _nanoseconds(newest) < _nanoseconds(revoked), (newest, revoked)
            alice.cancel()
    finally:
        done.set()
        for thread in threads:
            thread.join()
        for one in site_of_thread:
            one.close()


def _nanoseconds(text: str) -> int:
    return nanoseconds(text) or 0 if text else 0


# Races of writes


def test_nothing_comes_between_judgement_and_commit(site: Site) -> None:
    """Of two documents that exclude each other by rules, never both are there; seeded, a thousand attempts."""
    a, b = ("/databases/$(db)/documents/{}/$(x)".format(name) for name in "ab")
    site.rules(
        rule("a/{x}", f"create: if !exists({b}) && !existsAfter({b})", "delete"),
        rule("b/{x}", f"create: if !existsAfter({a})", "delete"),
    )
    attempts = 500 * EFFORT
    dice = random.Random(SEED)
    rounds = [(number, dice.random() < 0.5, dice.random()) for number in range(attempts)]
    barrier = threading.Barrier(2)
    outcomes: list[dict[int, str]] = [{}, {}]

    def race(side: int) -> None:
        own = Site(site.address, site.project)
        person = own.person("alice", rest=False)
        try:
            for number, goes_first, pause in rounds:
                barrier.wait(30)
                if goes_first == bool(side):
                    time.sleep(pause * 0.0005)
                outcomes[side][number] = person.commit(own.written(f"{'ab'[side]}/x{number}", n=number)).code
        finally:
            own.close()

    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(race, side) for side in (0, 1)]:
            one.result()
    there = {
        side: {found["document"]["name"].rsplit("x", 1)[1] for found in site.owner.run(query(side)).body if "document" in found}
        for side in "ab"
    }
    assert not there["a"] & there["b"], f"seed {SEED}"
    # Whoever came first won, and each did sometimes.
    assert len(there["a"]) + len(there["b"]) == attempts and there["a"] and there["b"], f"seed {SEED}"
    for side, name in enumerate("ab"):
        for number, code in outcomes[side].items():
            assert code == ("OK" if str(number) in there[name] else "PERMISSION_DENIED"), f"seed {SEED}: {code}"


def test_a_gate_that_opens_and_shuts(site: Site) -> None:
    """A rule reads a gate, which somebody moves all the time: what was made was made while it was open.

    The times of the commits tell their order, and so what the gate was.
    """
    site.rules(rule("c/{x}", "create: if get(/databases/$(db)/documents/gates/g).data.open"))
    site.set("gates/g", open=False)
    attempts = 500 * EFFORT
    done = threading.Event()
    moves: list[tuple[str, bool]] = []
    made: queue.Queue[str] = queue.Queue()
    denied: queue.Queue[int] = queue.Queue()

    def move() -> None:
        own = Site(site.address, site.project)
        dice = random.Random(SEED)
        is_open = False
        while not done.is_set():
            is_open = not is_open
            answer = own.owner.commit(own.written("gates/g", open=is_open))
            assert answer.good, answer
            moves.append((answer.body["commitTime"], is_open))
            time.sleep(dice.random() * 0.002)
        own.close()

    def make(part: int) -> None:
        own = Site(site.address, site.project)
        person = own.person("alice", rest=part == 0)
        dice = random.Random(SEED * 31 + part)
        for number in range(attempts // 3):
            writes = [own.written(f"c/{part}x{number}", n=1)]
            if dice.random() < 0.3:
                writes.append(own.written(f"c/{part}y{number}", n=1))
            answer = person.commit(*writes)
            if answer.good:
                made.put(answer.body["commitTime"])
            else:
                assert answer.code == "PERMISSION_DENIED", answer
                denied.put(number)
        own.close()

    mover = threading.Thread(target=move)
    mover.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            for one in [pool.submit(make, part) for part in range(3)]:
                one.result()
    finally:
        done.set()
        mover.join()
    assert made.qsize() > 20 and denied.qsize() > 20
    events = sorted([(_nanoseconds(at), "move", is_open) for at, is_open in moves] + [
        (_nanoseconds(at), "make", True) for at in made.queue
    ])  # fmt: skip
    is_open = False
    for at, kind, state in events:
        if kind == "move":
            is_open = state
        else:
            assert is_open, f"seed {SEED}: made at {at} while the gate was shut"


# WebChannel sessions


@pytest.mark.emulator_differs("its sessions are its own")
def test_session_ids_cannot_be_guessed(site: Site) -> None:
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"))
    way = Http1(site.address)
    ids = []
    for number in range(20):
        bare = Bare(way, site.project, headers={"Authorization": f"Bearer {unsigned('alice')}"})
        bare.begin(bare.added(2))
        ids.append(bare.session_id)
    assert len(set(ids)) == 20 and min(len(one) for one in ids) >= 20
    # No part of one tells of another.
    for place in range(min(len(one) for one in ids)):
        assert len({one[place] for one in ids}) > 3, ids
    known = ids[0]
    for guess in (known[:-1], known + "x", known[:-1] + ("a" if known[-1] != "a" else "b"), known.swapcase(), known[::-1]):
        target = f"{bare.path}?VER=8&database={bare.database}&SID={guess}&RID=rpc&AID=0&CI=1&TYPE=xmlhttp&t=1"
        answer = way.send("GET", target)
        assert answer.status == 400 and "Unknown SID" in answer.text
    way.close()


@pytest.mark.emulator_differs("its sessions are its own")
def test_a_session_stays_its_users(site: Site) -> None:
    """Later requests bring no rights, whatever they say, and neither do those of others."""
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"), rule("d/{x}", "read"))
    site.set("c/a", n=1)
    way = Http1(site.address)
    bob = Bare(way, site.project, headers={"Authorization": f"Bearer {unsigned('bob')}"})
    bob.begin(bob.added(2, "d"))
    bob.send(bob.added(4, "c"))
    owner = "headers=Authorization%3ABearer%20owner%0D%0A"
    message = json.dumps(bob.added(6, "c"))
    body = f"{owner}&count=1&ofs=2&req0___data__={quote(message)}".encode()
    answer = bob.post(body)
    assert answer.status in (200, 400)
    if answer.status == 200:
        bob._sent += 1
    # And as a header, and in the URL.
    text = json.dumps(bob.added(8, "c"))
    target = (
        f"{bob.path}?{bob.of_session()}&RID={bob._take_number()}&AID=0&t=1"
        f"&%24httpHeaders=Authorization%3ABearer%20owner%0D%0A"
    )
    form = f"count=1&ofs={bob._sent}&req0___data__={quote(text)}".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": "Bearer owner"}
    assert way.send("POST", target, form, headers).status == 200
    said = bob.get(0)
    refused = set()
    while len(refused) < (3 if answer.status == 200 else 2):
        for _, (content,) in said.told(1):
            assert "documentChange" not in content, content
            change = content.get("targetChange", {})
            if change.get("targetChangeType") == "REMOVE":
                assert change["cause"]["code"] == PERMISSION_DENIED
                refused |= set(change["targetIds"])
    assert 4 in refused and 8 in refused
    bob.leave()


@pytest.mark.emulator_differs("its sessions are its own")
def test_a_session_of_nobody_and_of_a_forger(site: Site) -> None:
    site.rules(rule("c/{x}", "read: if request.auth != null"))
    for headers in ({}, {"Authorization": ""}, {"authorization ": "Bearer owner"}, {"X-Authorization": "Bearer owner"}):
        stream = WebListen(site.address, site.project, headers=headers)
        stream.add_query(2, "c")
        assert told(refusal(stream, 2)) == []
        stream.cancel()
    for token in ("Basic b3duZXI=", "Bearer a.b.c", "owner"):
        stream = WebListen(site.address, site.project, headers={"Authorization": token})
        stream.add_query(2, "c")
        with pytest.raises(grpc.RpcError) as caught:
            stream.take()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        stream.cancel()


# Tokens


def broken_tokens() -> Iterator[tuple[str, str]]:
    head, payload = encoded({"alg": "none"}), encoded({"sub": "alice"})
    yield "two parts", f"{head}.{payload}"
    yield "four parts", f"{head}.{payload}..x"
    yield "dots", ".."
    yield "an empty payload", f"{head}.."
    yield "no base64", f"{head}.****."
    yield "a header that is none", f"{encoded(b'null')}.{payload}."
    contents = {
        "no JSON": b"hello",
        "an array": b"[]",
        "cut short": b'{"sub": "alice"',
        "more behind": b'{"sub": "alice"} x',
        "no UTF-8": b'{"sub": "\xff\xfe"}',
        "a lone surrogate": b'{"sub": "\\ud800"}',
        "nested deeply": b'{"sub":"alice","x":' + b"[" * 5000 + b"]" * 5000 + b"}",
        "no subject": b"{}",
        "an empty subject": b'{"sub": ""}',
        "a number as subject": b'{"sub": 5}',
        "null as subject": b'{"sub": null}',
    }
    for name, content in contents.items():
        yield name, f"{head}.{encoded(content)}."


def test_broken_tokens(site: Site, over_rest: bool, is_emulator: bool) -> None:
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"))
    site.set("c/a", n=1)
    assert site.person("alice", over_rest).get("c/a").good
    for name, token in broken_tokens():
        answer = Person(site, token, over_rest).get("c/a")
        assert not answer.good and not answer.body, name
        if not is_emulator and name != "nested deeply":
            assert answer.code == "UNAUTHENTICATED", (name, answer)
    assert site.person("alice", over_rest).get("c/a").good


@pytest.mark.emulator_differs("it takes what it likes")
def test_oversized_tokens(site: Site, over_rest: bool) -> None:
    """A token of a few kilobytes is none that is too large; one of a megabyte is refused without harm."""
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice' && request.auth.token.x.size() > 1"))
    site.set("c/a", n=1)
    assert site.person("alice", over_rest, x="y" * 4000).get("c/a").good
    for size in (100_000, 1_000_000):
        token = unsigned("alice", x="y" * size)
        if over_rest:
            host, port = site.address.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                head = f"GET /v1/{site.name('c/a')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
                try:
                    connection.sendall(head.encode())
                    status = connection.recv(100)
                except OSError:
                    status = b""
            assert b" 200 " not in status
        else:
            assert not Person(site, token).get("c/a").good
    assert site.person("alice", over_rest, x="yy").get("c/a").good


@pytest.mark.emulator_differs("it takes what it likes")
def test_two_authorizations(site: Site) -> None:
    """What a proxy in front has taken for the user's must not be another's."""
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"))
    site.set("c/a", n=1)
    host, port = site.address.rsplit(":", 1)
    bob, alice = (f"Authorization: Bearer {unsigned(uid)}\r\n" for uid in ("bob", "alice"))
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"GET /v1/{site.name('c/a')} HTTP/1.1\r\nHost: x\r\n{bob}{alice}\r\n".encode())
        assert b" 200 " not in connection.recv(100)


# A server that isn't for local development


SECRET = b"0123456789abcdef0123456789abcdef"
CREDENTIAL = "credential-of-the-backup-0123456789"
WRITER = "credential-of-the-writer-0123456789"

PRODUCTION = {
    "emulator": False,
    "rules": "firestore.rules",
    "auth": {
        "keys": [{"id": "1", "secretFile": "token.secret"}],
        "credentials": [
            {"name": "backup", "secretFile": "backup.secret", "scope": "read-only"},
            {"name": "writer", "secretFile": "writer.secret", "project": "demo-one"},
        ],
    },
}


def signed(claims: dict[str, Any], secret: bytes = SECRET, **head: Any) -> str:
    text = f"{encoded({'alg': 'HS256', 'kid': '1', **head})}.{encoded(claims)}"
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), hashlib.sha256))}"


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    made = {"iss": "hearth", "sub": "alice", "iat": now, "exp": now + 600, **changes}
    return {name: one for name, one in made.items() if one is not None}


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, Path]]:
    if not BINARY:
        pytest.skip("HEARTH_BINARY does not name the server's binary")
    folder = tmp_path_factory.mktemp("production")
    (folder / "hearth.json").write_text(json.dumps(PRODUCTION))
    (folder / "firestore.rules").write_text(
        "rules_version = '2';\nservice cloud.firestore { match /databases/{db}/documents {\n"
        "match /users/{user} { allow read, write: if request.auth.uid == user; } } }\n"
    )
    for name, secret in (("token", SECRET.decode()), ("backup", CREDENTIAL), ("writer", WRITER)):
        (folder / f"{name}.secret").write_text(secret)
        (folder / f"{name}.secret").chmod(0o600)
    with program(folder, "--memory") as running:
        yield running, folder


@pytest.fixture
def guarded(production: tuple[Program, Path]) -> Iterator[Site]:
    made = Site(production[0].address, "demo-one")
    yield made
    made.close()


def test_signed_tokens(guarded: Site, over_rest: bool) -> None:
    alice = Person(guarded, signed(claims()), over_rest)
    assert alice.update("users/alice", n=1).good and alice.get("users/alice").good
    denied = alice.get("users/bob")
    assert is_denied(denied) and denied.message == "Missing or insufficient permissions."
    for token in (None, signed(claims(sub="bob"))):
        denied = Person(guarded, token, over_rest).get("users/alice")
        assert is_denied(denied) and denied.message == "Missing or insufficient permissions."
    # No rules for this: closed.
    other = Person(Site(guarded.address, "demo-one"), signed(claims()), over_rest)
    other.site.database = "projects/demo-one/databases/other"
    assert is_denied(other.get("users/alice"))
    other.site.close()


def forged_tokens() -> Iterator[tuple[str, str]]:
    now = int(time.time())
    for name, token in broken_tokens():
        yield name, token
    yield "owner", "owner"
    yield "an access token", "ya29.abc"
    yield "nothing", "x"
    yield "unsigned", unsigned("alice", iss="hearth", exp=now + 600)
    for algorithm in ("none", "None", "NONE", "", "HS512", "RS256", "ES256"):
        yield f"algorithm {algorithm}", signed(claims(), alg=algorithm)
        yield f"unsigned, algorithm {algorithm}", signed(claims(), alg=algorithm).rsplit(".", 1)[0] + "."
    good = signed(claims())
    yield "another secret", signed(claims(), secret=b"x" * 32)
    yield "an empty secret", signed(claims(), secret=b"")
    yield "no signature", good.rsplit(".", 1)[0] + "."
    yield "a signature cut short", good[:-4]
    yield "a longer signature", good + "AAAA"
    head, _, signature = good.split(".")
    yield "other claims", f"{head}.{encoded(claims(sub='eve'))}.{signature}"
    yield "expired", signed(claims(exp=now - 120))
    yield "without expiry", signed(claims(exp=None))
    yield "an expiry that is no number", signed(claims(exp="never"))
    yield "of the future", signed(claims(iat=now + 900))
    yield "not yet", signed(claims(nbf=now + 900))
    yield "of another issuer", signed(claims(iss="somebody"))
    yield "of no issuer", signed(claims(iss=None))
    yield "of another key", signed(claims(), kid="2")
    yield "without subject", signed(claims(sub=None))
    yield "with an empty subject", signed(claims(sub=""))
    yield "critical extension", signed(claims(), crit=["exp"], b64=False)
    yield "a key of its own", signed(claims(), secret=b"k", jwk={"kty": "oct", "k": encoded(b"k")})


def test_forged_tokens(guarded: Site, over_rest: bool) -> None:
    for name, token in forged_tokens():
        answer = Person(guarded, token, over_rest).update("users/alice", n=666)
        assert answer.code in ("UNAUTHENTICATED", "PERMISSION_DENIED"), (name, answer)
        assert not answer.body
    seen = Person(guarded, signed(claims()), over_rest).get("users/alice").body
    assert seen is None or seen["fields"]["n"] != value(666)


def test_credentials_of_administrators(guarded: Site, over_rest: bool) -> None:
    reader, writer = Person(guarded, CREDENTIAL, over_rest), Person(guarded, WRITER, over_rest)
    assert writer.update("c/a", n=1).good
    assert reader.get("c/a").good and reader.run(query("c")).good
    assert reader.ask("ListCollectionIds", {"parent": guarded.name("")}).good
    for answer in (
        reader.update("c/a", n=2),
        reader.delete("c/a"),
        reader.commit(guarded.written("c/a", n=2)),
        reader.commit(),
        reader.ask("BatchWrite", {"database": guarded.database, "writes": [guarded.written("c/a", n=2)]}),
    ):
        assert is_denied(answer)
    elsewhere = Site(guarded.address, "demo-two")
    assert is_denied(Person(elsewhere, WRITER, over_rest).get("c/a"))
    assert is_denied(Person(elsewhere, WRITER, over_rest).update("c/a", n=1))
    assert is_denied(Person(elsewhere, WRITER, over_rest).ask("ListCollectionIds", {"parent": elsewhere.name("")}))
    for wrong in (WRITER[:-1], WRITER + "x", WRITER.upper(), CREDENTIAL[:-1]):
        assert Person(guarded, wrong, over_rest).get("c/a").code == "UNAUTHENTICATED"
    elsewhere.close()
    assert reader.get("c/a").body["fields"] == fields({"n": 1})


def test_what_is_for_local_development_is_not_there(guarded: Site) -> None:
    open_rules = {"rules": {"files": [{"content": "service cloud.firestore { match /{all=**} { allow read, write; } }"}]}}
    for headers in ({}, {"Authorization": f"Bearer {signed(claims())}"}, {"Authorization": "Bearer owner"}):
        for method, path, body in (
            ("PUT", "/emulator/v1/projects/demo-one:securityRules", open_rules),
            ("DELETE", "/emulator/v1/projects/demo-one/databases/(default)/documents", None),
            ("POST", "/shutdown", None),
        ):
            status, _ = guarded.send(method, path, body, headers)
            assert status in (401, 403, 404, 405), (method, path, status)
    assert is_denied(Person(guarded, None, True).get("users/alice"))


def test_rules_files_are_read_again(production: tuple[Program, Path], guarded: Site, channel: grpc.Channel) -> None:
    """Listeners lose their right by them, too; broken ones change nothing."""
    _, folder = production
    path = folder / "firestore.rules"
    before = path.read_text()
    alice = Person(guarded, signed(claims()))
    assert alice.update("users/alice", n=1).good
    with grpc.insecure_channel(guarded.address) as own:
        stream = Listen(own, guarded.project, authorization=f"Bearer {signed(claims())}")
        stream.add_documents(2, "users/alice")
        stream.snapshot()
        try:
            path.write_text(before.replace("allow read, write", "allow read, write, nothing:::"))
            time.sleep(2.5)
            assert alice.get("users/alice").good
            path.write_text(before.replace("allow read, write:", "allow write:"))
            assert told(refusal(stream, 2)) == []
            assert is_denied(alice.get("users/alice")) and alice.update("users/alice", n=2).good
        finally:
            path.write_text(before)
            stream.cancel()
    deadline = time.monotonic() + 10
    while not alice.get("users/alice").good:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_stream_ends_when_its_token_does(guarded: Site) -> None:
    token = signed(claims(exp=int(time.time()) + 2))
    with grpc.insecure_channel(guarded.address) as own:
        listener = Listen(own, guarded.project, authorization=f"Bearer {token}")
        listener.add_documents(2, "users/alice")
        listener.snapshot()
        writer = Stream(own, "Write", authorization=f"Bearer {token}")
        writer.send(WriteRequest(database=guarded.database))
        writer.take()
        for stream in (listener, writer):
            with pytest.raises(grpc.RpcError) as caught:
                while stream.take(10) is not None:
                    pass
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
