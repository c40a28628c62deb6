"""Attempts to read or write more than the rules allow. None of them may succeed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from endtoend.people import Person, Site, all_of, any_of, condition, fields, is_denied, query, rule, value
from endtoend.user_streams import MEMBERS


@pytest.fixture
def alice(site: Site, over_rest: bool) -> Person:
    return site.person("alice", over_rest)


# Batches


def test_a_batch_whose_help_is_itself_denied(site: Site, alice: Person) -> None:
    """A write that getAfter reads must be allowed, too."""
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
    # A request that fails for another reason has no effect, either.
    failing = site.deleted("b/b", when={"updateTime": "2020-01-01T00:00:00Z"})
    assert not alice.commit(failing, site.written("c/a", n=1)).good
    assert site.read("b/b") == fields({"role": "guest"})
    assert site.read("a/a") is None and site.read("c/a") is None
    # It is allowed only together.
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


@pytest.mark.emulator_differs("it judges such a document without a name")
def test_a_name_that_the_server_gives_is_judged(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", "create: if x.size() < 5"), rule("d/{x}", "create: if x.size() == 20"))
    for collection, is_allowed in (("c", False), ("d", True)):
        made = alice.ask("CreateDocument", {"parent": site.name(""), "collectionId": collection, "document": {}})
        assert made.good == is_allowed, made
        assert len(site.owner.list(collection).body.get("documents", [])) == int(is_allowed)


@pytest.mark.emulator_differs("it trims segments of paths over REST")
def test_names_that_look_like_others(site: Site, alice: Person) -> None:
    """A rule applies to whole segments, exactly; a path in a request cannot leave it."""
    site.rules(
        rule("open/{x}", "read, write"),
        rule("by/{x}", "get: if exists(/databases/$(db)/documents/flags/$(request.auth.token.flag))"),
    )
    site.set("shut/a", n=1)
    site.set("flags/f/deep/g", n=1)
    for path in ("Open/a", "open /a", "open/a/b/c", "ope/a", "openx/a", "open\u200b/a", "ｏpen/a"):
        assert is_denied(alice.get(path)), path
        assert is_denied(alice.update(path, n=1)), path
    targets = ["open/..%2Fshut/a", "open/../shut/a", "open/a/../../shut/a", "open%2F..%2Fshut/a"]
    targets += ["shut/a%00", "//shut/a"]
    for target in targets:
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
            # The emulator does not support it at all.
            assert not alice.run(query(collection, where, group=True), "users/bob").good, collection
    for collection in ("notes", "tags", "other"):
        assert alice.run(query(collection), "users/alice").good, collection
        assert is_denied(alice.run(query(collection), "users/bob")), collection


# Transactions and the past


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


@pytest.mark.emulator_differs("it locks what the rules of a transaction read")
def test_rights_are_lost_within_a_transaction(site: Site, alice: Person) -> None:
    """Its reads are of one state, but its commit is judged when it is made."""
    site.rules(rule("c/{x}", f"read, write: if {MEMBERS}"))
    site.set("c/a", n=1)
    site.set("members/alice", n=1)
    transaction = alice.ask("BeginTransaction", {"database": site.database}).body["transaction"]
    assert alice.batch_get("c/a", transaction=transaction).good
    # No data that the transaction has read.
    site.remove("members/alice")
    assert is_denied(alice.commit(site.written("c/a", n=2), transaction=transaction))
    assert site.read("c/a") == fields({"n": 1})


@pytest.mark.emulator_differs("it lets clients read the past")
def test_the_past_is_not_for_clients_with_rules(site: Site, alice: Person) -> None:
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
    assert is_denied(alice.ask("BeginTransaction", options))


def test_a_page_token_is_no_right(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", "list: if request.auth.uid == 'alice'"))
    for number in range(4):
        site.set(f"c/{number}", n=number)
    token = alice.list("c", pageSize=2).body["nextPageToken"]
    assert is_denied(site.person("bob", alice.rest).list("c", pageSize=2, pageToken=token))
    site.rules(rule("c/{x}", "list: if false"))
    assert is_denied(alice.list("c", pageSize=2, pageToken=token))
