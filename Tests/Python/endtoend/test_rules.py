"""Security rules are enforced, for every transport and every kind of request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from endtoend.people import Person, Site, all_of, any_of, condition, is_denied, query, rule, service, value
from support.streams import Stream, WriteRequest
from support.webchannel import WebWrite
from support.wire import METHODS, parse

OWN = "request.auth != null && request.auth.uid == user"


@pytest.fixture
def alice(site: Site, over_rest: bool) -> Person:
    return site.person("alice", over_rest)


@pytest.fixture
def bob(site: Site, over_rest: bool) -> Person:
    return site.person("bob", over_rest)


@pytest.fixture
def nobody(site: Site, over_rest: bool) -> Person:
    return site.person(None, over_rest)


# Who asks


def test_a_project_without_rules_is_open(site: Site, alice: Person, nobody: Person) -> None:
    assert nobody.update("c/a", n=1).good and alice.get("c/a").good and nobody.run(query("c")).good


def test_each_to_his_own(site: Site, alice: Person, bob: Person, nobody: Person) -> None:
    site.rules(rule("users/{user}", f"read, write: if {OWN}"))
    assert alice.update("users/alice", n=1).good
    assert alice.get("users/alice").body["fields"] == {"n": {"integerValue": "1"}}
    for other in (bob, nobody):
        assert is_denied(other.get("users/alice"))
        assert is_denied(other.update("users/alice", n=2))
        assert is_denied(other.delete("users/alice"))
        # A missing document reveals no more.
        assert is_denied(other.get("users/eve"))
    assert alice.get("users/alice/more/x").code == "PERMISSION_DENIED"
    assert site.read("users/alice") == {"n": {"integerValue": "1"}}
    assert alice.delete("users/alice").good
    assert alice.get("users/alice").code == "NOT_FOUND"


def test_the_administrator_is_asked_for_nothing(site: Site) -> None:
    site.rules(rule("{all=**}", "read, write: if false"))
    site.set("c/a", n=1)
    for rest in (False, True):
        owner = Person(site, "owner", rest)
        assert owner.get("c/a").good and owner.run(query("c")).good and owner.update("c/b", n=1).good


def test_claims_of_the_token(site: Site, over_rest: bool) -> None:
    site.rules(
        rule("uid/{x}", "get: if request.auth.uid == 'alice' && request.auth.token.sub == 'alice'"),
        rule("claim/{x}", "get: if request.auth.token.admin == true && request.auth.token.level > 2"),
        rule("mail/{x}", "get: if request.auth.token.email_verified && request.auth.token.email.matches('.*@x[.]org')"),
        rule("provider/{x}", "get: if request.auth.token.firebase.sign_in_provider == 'password'"),
        rule("none/{x}", "get: if request.auth == null"),
    )
    firebase = {"sign_in_provider": "password", "identities": {}}
    full = {"admin": True, "level": 3, "email": "a@x.org", "email_verified": True, "firebase": firebase}
    alice = site.person("alice", over_rest, **full)
    for path in ("uid/x", "claim/x", "mail/x", "provider/x"):
        assert alice.get(path).code == "NOT_FOUND", path
        assert is_denied(site.person("bob", over_rest).get(path)), path
    assert is_denied(alice.get("none/x"))
    assert site.person(None, over_rest).get("none/x").code == "NOT_FOUND"
    assert is_denied(site.person("a", over_rest, admin="true", level=3).get("claim/x"))
    assert is_denied(site.person("a", over_rest, admin=True, level=2).get("claim/x"))


# Reading


def test_reading_several_documents(site: Site, alice: Person) -> None:
    site.rules(rule("c/{x}", "get: if resource == null || resource.data.open"))
    site.set("c/a", open=True)
    site.set("c/b", open=False)
    answer = alice.batch_get("c/a", "c/none")
    assert {("found" in one, "missing" in one) for one in answer.body} == {(True, False), (False, True)}
    assert is_denied(alice.batch_get("c/a", "c/b"))
    assert is_denied(alice.batch_get("c/b"))
    assert is_denied(alice.batch_get("c/a", "d/a"))


def looks_at(count: int, stem: str = "p") -> str:
    """A condition that reads this many documents."""
    return " && ".join(f"!exists(/databases/$(db)/documents/{stem}/x{number})" for number in range(count))


def looks_for_each(count: int) -> str:
    """A condition that reads different documents for each document."""
    return " && ".join(f"!exists(/databases/$(db)/documents/p/$(x + '{number}'))" for number in range(count))


def test_ten_documents_may_be_looked_at_for_one_document(site: Site, alice: Person, is_emulator: bool) -> None:
    site.rules(
        rule("ten/{x}", f"read, write: if {looks_at(10)}"),
        rule("eleven/{x}", f"read, write: if {looks_at(11)}"),
        rule("same/{x}", "read, write: if " + " && ".join([looks_at(4)] * 3)),
    )
    for path in ("ten/a", "same/a"):
        assert alice.get(path).code == "NOT_FOUND"
        assert alice.update(path, n=1).good and alice.commit(site.deleted(path)).good
        assert alice.run(query(path.split("/")[0])).good
    assert is_denied(alice.get("eleven/a"))
    assert is_denied(alice.update("eleven/a", n=1))
    for list_them in LISTING.values():
        # The emulator permits more document accesses in a query.
        assert is_emulator or is_denied(list_them(alice, "eleven"))


def test_a_request_of_several_documents_may_look_at_twenty(site: Site, alice: Person) -> None:
    site.rules(
        rule("shared/{x}", f"read, write: if {looks_at(10)}"),
        rule("seven/{x}", f"read, write: if {looks_for_each(7)}"),
        rule("six/{x}", f"read, write: if {looks_for_each(6)}"),
        rule("eleven/{x}", f"read, write: if {looks_for_each(11)}"),
    )
    for ask in (
        lambda *paths: alice.batch_get(*paths),
        lambda *paths: alice.commit(*(site.written(path, n=1) for path in paths)),
    ):
        assert ask(*(f"shared/{name}" for name in "abcde")).good
        assert ask("six/a", "six/b", "six/c").good
        assert ask("seven/a", "seven/b").good
        assert is_denied(ask("seven/a", "seven/b", "seven/c"))
        assert is_denied(ask("eleven/a", "shared/a"))
    assert site.read("seven/c") is None


LISTING: dict[str, Callable[[Person, str], Any]] = {
    "RunQuery": lambda person, collection: person.run(query(collection)),
    "RunAggregationQuery": lambda person, collection: person.count(query(collection)),
    "ListDocuments": lambda person, collection: person.list(collection),
}


@pytest.mark.parametrize("kind", LISTING)
def test_listing_needs_list(site: Site, alice: Person, kind: str) -> None:
    site.rules(rule("open/{x}", "list"), rule("shut/{x}", "get"), rule("read/{x}", "read: if request.auth != null"))
    for collection in ("open", "shut", "read"):
        site.set(f"{collection}/a", n=1)
    assert LISTING[kind](alice, "open").good
    assert LISTING[kind](alice, "read").good
    assert is_denied(LISTING[kind](alice, "shut"))
    assert is_denied(LISTING[kind](alice, "none"))
    assert is_denied(LISTING[kind](site.person(None, alice.rest), "read"))
    assert is_denied(alice.get("open/a")) and alice.get("shut/a").good


def test_a_query_is_judged_by_its_filter(site: Site, alice: Person) -> None:
    """Never by the results."""
    site.rules(rule("c/{x}", "list: if resource.data.owner == request.auth.uid || resource.data.n > 5"))
    site.set("c/a", owner="alice", n=1)
    assert is_denied(alice.run(query("c")))
    assert is_denied(alice.run(query("c", condition("owner", "EQUAL", "bob"))))
    assert is_denied(alice.run(query("c", condition("n", "GREATER_THAN", 4))))
    allowed = [
        condition("owner", "EQUAL", "alice"),
        condition("n", "GREATER_THAN", 5),
        condition("n", "EQUAL", 6),
        condition("n", "IN", [6, 42]),
        any_of(condition("owner", "EQUAL", "alice"), condition("n", "EQUAL", 6)),
        all_of(condition("owner", "EQUAL", "alice"), condition("n", "EQUAL", 1)),
    ]
    for one in allowed:
        assert alice.run(query("c", one)).good, one
        assert alice.count(query("c", one)).good, one
    denied = [
        condition("n", "IN", [1, 6]),
        any_of(condition("owner", "EQUAL", "alice"), condition("n", "EQUAL", 1)),
        all_of(condition("owner", "EQUAL", "bob"), condition("n", "LESS_THAN", 6)),
        condition("n", "NOT_EQUAL", 1),
    ]
    for one in denied:
        assert is_denied(alice.run(query("c", one))), one
        assert is_denied(alice.count(query("c", one))), one


def test_limit_and_order_of_a_query(site: Site, alice: Person) -> None:
    site.rules(
        rule("limit/{x}", "list: if request.query.limit <= 10"),
        rule("offset/{x}", "list: if request.query.offset == 0"),
        rule("order/{x}", "list: if request.query.orderBy.n == 'DESC'"),
    )
    assert is_denied(alice.run(query("limit")))
    assert is_denied(alice.run(query("limit", limit=11)))
    assert alice.run(query("limit", limit=10)).good
    assert alice.run(query("offset")).good
    assert is_denied(alice.run(query("offset", offset=1)))
    order = [{"field": {"fieldPath": "n"}, "direction": "DESCENDING"}]
    assert alice.run(query("order", orderBy=order)).good
    assert is_denied(alice.run(query("order", orderBy=[{"field": {"fieldPath": "n"}}])))
    assert is_denied(alice.run(query("order")))


def test_collection_groups(site: Site, alice: Person) -> None:
    site.rules(
        rule("{path=**}/posts/{post}", "read: if request.auth != null"),
        rule("forums/{f}/replies/{r}", "read"),
        rule("replies/{r}", "read"),
    )
    site.set("forums/a/posts/b", n=1)
    found = alice.run(query("posts", group=True))
    assert [one["document"]["fields"] for one in found.body if "document" in one] == [{"n": {"integerValue": "1"}}]
    assert alice.run(query("posts")).good and alice.run(query("posts"), "forums/a").good
    assert alice.run(query("posts", group=True), "forums/a").good
    assert is_denied(site.person(None, alice.rest).run(query("posts", group=True)))
    assert is_denied(alice.run(query("replies", group=True)))
    assert alice.run(query("replies")).good and alice.run(query("replies"), "forums/a").good


# Writing


def make(site: Site, person: Person, path: str, **content: Any) -> dict[str, Any]:
    return {
        "Commit": lambda: person.commit(site.written(path, **content)),
        "UpdateDocument": lambda: person.update(path, **content),
        "CreateDocument": lambda: person.create(path, **content),
    }


@pytest.mark.parametrize("way", ["Commit", "UpdateDocument", "CreateDocument"])
def test_creating(site: Site, alice: Person, way: str) -> None:
    site.rules(rule("c/{x}", "create: if request.resource.data.owner == request.auth.uid && resource == null"))
    assert make(site, alice, "c/a", owner="alice")[way]().good
    assert is_denied(make(site, alice, "c/b", owner="bob")[way]())
    assert is_denied(make(site, alice, "c/b")[way]())
    assert is_denied(make(site, alice, "d/b", owner="alice")[way]())
    assert site.read("c/b") is None
    # An existing document is updated, which no rule allows; CreateDocument requires that the document does not exist.
    again = make(site, alice, "c/a", owner="alice")[way]()
    assert is_denied(again)


@pytest.mark.parametrize("way", ["Commit", "UpdateDocument"])
def test_updating(site: Site, alice: Person, way: str) -> None:
    site.rules(rule("c/{x}", "update: if request.resource.data.n == resource.data.n + 1"))
    site.set("c/a", n=1)
    assert make(site, alice, "c/a", n=2)[way]().good
    assert is_denied(make(site, alice, "c/a", n=2)[way]())
    assert is_denied(make(site, alice, "c/new", n=1)[way]())
    assert site.read("c/a") == {"n": value(2)}


def test_deleting(site: Site, alice: Person) -> None:
    site.rules(
        rule("c/{x}", "delete: if resource.data.owner == request.auth.uid && request.resource == null"),
        rule("d/{x}", "delete: if resource == null"),
    )
    for name, owner in (("a", "alice"), ("a2", "alice"), ("b", "bob")):
        site.set(f"c/{name}", owner=owner)
    assert alice.delete("c/a").good and alice.commit(site.deleted("c/a2")).good
    assert is_denied(alice.delete("c/b")) and is_denied(alice.commit(site.deleted("c/b")))
    assert is_denied(alice.delete("c/none"))
    assert alice.delete("d/none").good
    assert site.read("c/a") is None and site.read("c/b") is not None


def test_a_mask_shows_the_whole_document_to_come(site: Site, alice: Person) -> None:
    fixed = "request.resource.data.diff(resource.data).affectedKeys().hasOnly(['n']) && request.resource.data.k == 'x'"
    site.rules(rule("c/{x}", f"update: if {fixed}"))
    site.set("c/a", n=1, k="x")
    assert alice.commit(site.written("c/a", mask=["n"], n=2)).good
    assert is_denied(alice.commit(site.written("c/a", mask=["k"], k="y")))
    assert is_denied(alice.commit(site.written("c/a", mask=["n", "other"], n=2, other=1)))
    # Without a mask the other fields are deleted.
    assert is_denied(alice.commit(site.written("c/a", n=2)))
    # A mask deletes its fields that are not in the document.
    assert is_denied(alice.commit(site.written("c/a", mask=["k"])))
    assert site.read("c/a") == {"n": value(2), "k": value("x")}


def test_transforms_are_seen_by_what_they_make(site: Site, alice: Person) -> None:
    after = "request.resource.data"
    site.rules(
        rule("time/{x}", f"write: if {after}.t == request.time"),
        rule("more/{x}", f"write: if {after}.n == 3 && {after}.n is int"),
        rule("list/{x}", f"write: if {after}.l == ['a', 'b'] && {after}.l.size() == 2"),
        rule("most/{x}", f"write: if {after}.n <= 5"),
    )

    def changed(path: str, **transform: Any) -> Any:
        write = site.written(path, mask=[], when=None)
        write["updateTransforms"] = [transform]
        return alice.commit(write)

    site.set("more/a", n=2)
    site.set("list/a", l=["a"])
    site.set("most/a", n=4)
    now = {"fieldPath": "t", "setToServerValue": "REQUEST_TIME"}
    assert changed("time/a", **now).good
    assert is_denied(alice.commit(site.written("time/a", t=1)))
    assert is_denied(changed("more/a", fieldPath="n", increment=value(2)))
    assert changed("more/a", fieldPath="n", increment=value(1)).good
    assert is_denied(changed("list/a", fieldPath="l", appendMissingElements={"values": [value("c")]}))
    assert changed("list/a", fieldPath="l", appendMissingElements={"values": [value("a"), value("b")]}).good
    assert is_denied(changed("list/a", fieldPath="l", removeAllFromArray={"values": [value("a")]}))
    assert is_denied(changed("most/a", fieldPath="n", maximum=value(6)))
    assert changed("most/a", fieldPath="n", minimum=value(1)).good
    # The old form, a write of its own.
    write = {"transform": {"document": site.name("time/b"), "fieldTransforms": [now]}}
    assert alice.commit(write).good
    assert is_denied(alice.commit({"transform": {**write["transform"], "document": site.name("most/b")}}))


def test_rules_come_before_preconditions(site: Site, alice: Person) -> None:
    site.rules(
        rule("shut/{x}", "write: if false"),
        rule("open/{x}", "write"),
        rule("data/{x}", "update: if resource.data.n == 1"),
        rule("make/{x}", "create"),
        rule("change/{x}", "update"),
        rule("gone/{x}", "delete: if resource.data.n == 1"),
    )
    for collection in ("shut", "open", "data", "make", "change", "gone"):
        site.set(f"{collection}/a", n=1)
    there, absent = {"exists": True}, {"exists": False}
    # A client that may not write cannot learn the stored data.
    for path in ("shut/a", "shut/none"):
        for when in (there, absent):
            assert is_denied(alice.commit(site.written(path, when=when)))
            assert is_denied(alice.commit(site.deleted(path, when=when)))
    assert alice.commit(site.written("open/none", when=there)).code == "NOT_FOUND"
    assert alice.commit(site.written("open/a", when=absent)).code == "ALREADY_EXISTS"
    assert is_denied(alice.commit(site.written("data/none", when=there)))
    # The condition determines how a write is judged, independent of the stored data.
    assert alice.commit(site.written("make/a", when=absent)).code == "ALREADY_EXISTS"
    assert is_denied(alice.commit(site.written("make/a", when=there)))
    assert alice.commit(site.written("change/none", when=there)).code == "NOT_FOUND"
    assert is_denied(alice.commit(site.written("change/none", when=absent)))
    assert is_denied(alice.commit(site.deleted("gone/none", when=there)))
    old = {"updateTime": "2020-01-01T00:00:00Z"}
    assert alice.commit(site.written("open/a", when=old)).code == "FAILED_PRECONDITION"
    assert is_denied(alice.commit(site.written("shut/a", when=old)))


def test_all_writes_of_a_batch_must_be_allowed(site: Site, alice: Person) -> None:
    site.rules(rule("open/{x}", "write"), rule("even/{x}", "write: if request.resource.data.n % 2 == 0"))
    writes = [site.written(f"open/{number}", n=number) for number in range(3)]
    assert is_denied(alice.commit(*writes, site.written("even/a", n=1)))
    assert is_denied(alice.commit(site.written("even/a", n=1), *writes))
    assert is_denied(alice.commit(*writes, site.deleted("even/a")))
    assert site.read("open/0") is None and site.read("even/a") is None
    assert alice.commit(*writes, site.written("even/a", n=2)).good
    assert site.read("open/2") is not None and site.read("even/a") is not None


def test_a_batch_is_judged_by_what_it_leaves(site: Site, alice: Person) -> None:
    """getAfter sees all writes of the batch, get none."""
    place = "/databases/$(db)/documents/totals/t"
    site.rules(
        rule("parts/{x}", f"create: if getAfter({place}).data.n == get({place}).data.n + request.resource.data.n"),
        rule("totals/{x}", "update: if request.resource.data.n > resource.data.n"),
        rule("pairs/{x}", "create: if existsAfter(/databases/$(db)/documents/pairs/$(request.resource.data.other))"),
        rule("leave/{x}", "delete: if !existsAfter(/databases/$(db)/documents/leave/$(resource.data.other))"),
    )
    site.set("totals/t", n=10)
    part, total = site.written("parts/a", n=5), site.written("totals/t", n=15)
    assert is_denied(alice.commit(part))
    assert is_denied(alice.commit(part, site.written("totals/t", n=14)))
    assert alice.commit(part, total).good
    assert is_denied(alice.commit(site.written("pairs/a", other="b")))
    assert alice.commit(site.written("pairs/a", other="b"), site.written("pairs/b", other="a")).good
    site.set("leave/a", other="b")
    site.set("leave/b", other="a")
    assert is_denied(alice.commit(site.deleted("leave/a")))
    assert alice.commit(site.deleted("leave/a"), site.deleted("leave/b")).good


def test_several_writes_of_one_document(site: Site, alice: Person) -> None:
    """Each is judged as the step from the stored state to the state after the commit."""
    site.rules(
        rule("step/{x}", "create: if request.resource.data.n == 1", "update: if request.resource.data.n == 1"),
        rule("one/{x}", "create: if request.resource.data.keys().hasAll(['a', 'b'])"),
    )
    assert alice.commit(site.written("step/a", n=7), site.written("step/a", n=1)).good
    assert site.read("step/a") == {"n": value(1)}
    assert is_denied(alice.commit(site.written("step/a", n=1), site.written("step/a", n=7)))
    assert is_denied(alice.commit(site.written("one/a", a=1)))
    assert alice.commit(site.written("one/a", a=1), site.written("one/a", mask=["b"], b=1)).good
    assert site.read("one/a") == {"a": value(1), "b": value(1)}


def test_a_document_that_is_written_and_deleted_is_one_step(site: Site, alice: Person) -> None:
    """The state afterwards determines how it is judged."""
    site.set("c/a", n=1)
    new, old = site.written("c/new", n=1), site.written("c/a", n=2)
    gone, no_more = site.deleted("c/new"), site.deleted("c/a")
    for method, writes in (
        ("delete", [new, gone]),
        ("delete", [old, no_more]),
        ("create", [gone, new]),
        ("update", [no_more, old]),
    ):
        for other in ("create", "update", "delete"):
            site.rules(rule("c/{x}", other))
            answer = alice.commit(*writes)
            assert answer.good == (other == method), (method, other, answer)
            site.set("c/a", n=1)
            site.remove("c/new")


def test_a_document_that_is_looked_at_before_and_after_counts_once(site: Site, alice: Person) -> None:
    after = looks_at(10).replace("exists(", "existsAfter(")
    site.rules(rule("c/{x}", f"write: if {looks_at(10)} && {after}"))
    assert alice.update("c/a", n=1).good


def test_verify_needs_reading(site: Site, over_rest: bool) -> None:
    alice = site.person("alice", over_rest)
    site.rules(rule("read/{x}", "get"), rule("write/{x}", "write"))
    site.set("read/a", n=1)
    site.set("write/a", n=1)

    def verify(path: str) -> Any:
        return {"verify": site.name(path), "currentDocument": {"exists": True}}

    if over_rest:
        return  # REST supports it, too, but no public client uses it.
    assert alice.commit(verify("read/a"), site.written("write/a", n=2)).good
    assert is_denied(alice.commit(verify("write/a")))
    assert is_denied(alice.commit(verify("write/a"), site.written("write/b", n=3)))
    assert is_denied(alice.commit(site.written("read/a", n=3)))
    assert site.read("write/a") == {"n": value(2)}


# Transactions


def test_transactions(site: Site, alice: Person) -> None:
    one_more = "update: if request.resource.data.n == resource.data.n + 1"
    site.rules(rule("c/{x}", "read", one_more), rule("d/{x}", "write"))
    site.set("c/a", n=1)
    site.set("d/a", n=1)
    begun = alice.ask("BeginTransaction", {"database": site.database})
    assert begun.good
    transaction = begun.body["transaction"]
    assert alice.batch_get("c/a", transaction=transaction).good
    assert alice.run(query("c"), transaction=transaction).good
    assert is_denied(alice.batch_get("d/a", transaction=transaction))
    assert alice.commit(site.written("c/a", n=2), transaction=transaction).good
    transaction = alice.ask("BeginTransaction", {"database": site.database}).body["transaction"]
    assert alice.batch_get("c/a", transaction=transaction).good
    assert is_denied(alice.commit(site.written("c/a", n=9), transaction=transaction))
    assert site.read("c/a") == {"n": value(2)}
    # The document isn't locked any more.
    assert alice.commit(site.written("c/a", n=3)).good
    # One that begins with a read.
    begun = alice.batch_get("c/a", newTransaction={"readWrite": {}})
    transaction = next(one["transaction"] for one in begun.body if "transaction" in one)
    assert alice.commit(site.written("c/a", n=4), transaction=transaction).good
    assert is_denied(alice.batch_get("d/a", newTransaction={"readWrite": {}}))
    assert is_denied(alice.run(query("d"), newTransaction={"readWrite": {}}))
    assert alice.commit().good


@pytest.mark.parametrize("mode", ["OPTIMISTIC", "PESSIMISTIC"])
def test_who_may_read_keeps_nobody_from_writing(site: Site, alice: Person, mode: str) -> None:
    site.rules(rule("c/{x}", "read, write"))
    site.set("c/a", n=1)
    options = {"readWrite": {"concurrencyMode": mode}}
    begun = alice.batch_get("c/a", newTransaction=options)
    transaction = next(one["transaction"] for one in begun.body if "transaction" in one)
    # While a lock is held this would fail.
    site.set("c/a", n=2)
    lost = alice.commit(site.written("c/a", n=3), transaction=transaction)
    assert lost.code == "ABORTED" and site.read("c/a") == {"n": value(2)}
    transaction = alice.ask("BeginTransaction", {"database": site.database, "options": options}).body["transaction"]
    assert alice.batch_get("c/a", transaction=transaction).good
    assert alice.commit(site.written("c/a", n=3), transaction=transaction).good


# Actions that no user may take


def test_what_is_for_administrators(site: Site, alice: Person, nobody: Person, is_emulator: bool) -> None:
    site.rules(rule("{all=**}", "read, write"))
    site.set("c/a", n=1)
    group = query("c", group=True, orderBy=[{"field": {"fieldPath": "__name__"}, "direction": "ASCENDING"}])
    partitions = {"parent": site.name(""), "structuredQuery": group, "partitionCount": "2"}
    writes = {"database": site.database, "writes": [site.written("c/b", n=1)]}
    for person in (alice, nobody):
        ids = person.ask("ListCollectionIds", {"parent": site.name("")})
        assert is_denied(ids) and ids.message == "Metadata operations require admin authentication."
        batch = person.ask("BatchWrite", writes)
        assert is_denied(batch) and batch.message == "Batch writes require admin authentication."
        assert is_emulator or is_denied(person.ask("PartitionQuery", partitions))
    assert site.read("c/b") is None
    assert site.owner.ask("ListCollectionIds", {"parent": site.name("")}).good
    assert site.owner.ask("BatchWrite", writes).good


@pytest.mark.emulator_differs("it has no admin service")
def test_the_admin_service_is_for_administrators(site: Site, channel: grpc.Channel) -> None:
    site.rules(rule("{all=**}", "read, write"))
    user = [("authorization", f"Bearer {site.person('alice').token}")]
    for method in ("ListDatabases", "GetDatabase", "ListIndexes", "CreateIndex"):
        call = channel.unary_unary(f"/google.firestore.admin.v1.FirestoreAdmin/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            call(b"", metadata=user)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED, method
    status, _ = site.send("GET", f"/v1/projects/{site.project}/databases", headers={"Authorization": user[0][1]})
    assert status == 403


# The form of a denial


@pytest.mark.emulator_differs("it tells twice of rules that it evaluates twice")
def test_texts_of_denials(site: Site, alice: Person) -> None:
    site.rules(
        "service cloud.firestore {\n"
        "  match /databases/{db}/documents {\n"
        "    match /no/{x} {\n"
        "      allow get: if 1 == 2;\n"
        "      allow list: if resource.data.n == 1;\n"
        "    }\n"
        "    match /two/{x} {\n"
        "      allow get: if false;\n"
        "      allow read: if resource.data.n > 1;\n"
        "      allow create: if resource.data.n > 1;\n"
        "    }\n"
        "  }\n"
        "}\n"
    )
    site.set("two/a", n=1)
    assert alice.get("none/a").message == "No matching allow statements"
    assert alice.get("no/a").message == "\nfalse for 'get' @ L4"
    assert alice.run(query("no")).message == "\nProperty n is undefined on object. for 'list' @ L5"
    assert alice.get("two/a").message == "\nfalse for 'get' @ L8, false for 'get' @ L9"
    assert alice.create("two/b").message == "\nNull value error. for 'create' @ L10"


# Rules that change


@pytest.mark.emulator_differs("broken rules that it refuses break its project")
def test_rules_are_replaced_while_the_server_runs(site: Site, alice: Person) -> None:
    site.set("c/a", n=1)
    assert alice.get("c/a").good
    site.rules(rule("c/{x}", "get"))
    assert alice.get("c/a").good and is_denied(alice.update("c/a", n=2))
    site.rules(rule("c/{x}", "write"))
    assert is_denied(alice.get("c/a")) and alice.update("c/a", n=2).good
    path = f"/emulator/v1/projects/{site.project}:securityRules"
    broken = service("match /c/{x} { allow read: if ; }")
    status, answer = site.send("PUT", path, {"rules": {"files": [{"content": broken}]}})
    assert status == 400 and answer["error"]["status"] == "INVALID_ARGUMENT"
    status, answer = site.send("PUT", path, {"rules": {"files": [{"content": broken}]}, "ignore_errors": True})
    assert status == 200 and {issue["severity"] for issue in answer["issues"]} == {"ERROR"}
    # Those before stay in force.
    assert is_denied(alice.get("c/a")) and alice.update("c/a", n=3).good


def test_rules_are_of_one_project(site: Site, alice: Person, address: str) -> None:
    site.rules(rule("{all=**}", "read, write: if false"))
    other = Site(address, site.project + "-x")
    assert other.person("alice").update("c/a", n=1).good
    assert is_denied(alice.update("c/a", n=1))
    other.close()


# Write streams


@pytest.fixture(params=["grpc", "webchannel", "polls"])
def write_stream(request: pytest.FixtureRequest, channel: grpc.Channel, site: Site) -> Any:
    authorization = f"Bearer {site.person('alice').token}"
    if request.param == "grpc":
        stream: Any = Stream(channel, "Write", site.database, authorization=authorization)
    else:
        headers = {"Authorization": authorization}
        stream = WebWrite(site.address, site.project, polls=request.param == "polls", headers=headers)
    yield stream
    stream.cancel()


class Writer:
    """A user's Write stream, commit by commit."""

    def __init__(self, site: Site, stream: Any) -> None:
        self.stream = stream
        stream.send(WriteRequest(database=site.database))
        self.token = stream.take().stream_token

    def commit(self, *writes: Any) -> Any:
        made = parse(METHODS["Commit"], {"writes": list(writes)})
        self.stream.send(WriteRequest(stream_token=self.token, writes=made.writes))
        answer = self.stream.take()
        self.token = answer.stream_token
        return answer


def test_write_streams(site: Site, write_stream: Any) -> None:
    site.rules(rule("users/{user}", f"write: if {OWN}"))
    writer = Writer(site, write_stream)
    assert writer.commit(site.written("users/alice", n=1)).commit_time.seconds
    assert writer.commit(site.deleted("users/alice")).commit_time.seconds
    with pytest.raises(grpc.RpcError) as caught:
        writer.commit(site.written("users/bob", n=1))
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert "\nfalse for 'create' @ L4" in caught.value.details()
    assert site.read("users/bob") is None


def test_batches_of_write_streams(site: Site, write_stream: Any) -> None:
    site.rules(rule("a/{x}", "write: if existsAfter(/databases/$(db)/documents/b/b)"), rule("b/{x}", "write"))
    writer = Writer(site, write_stream)
    writer.commit(site.written("a/a", n=1), site.written("b/b", n=1))
    assert site.read("a/a") is not None
    site.remove("b/b")
    with pytest.raises(grpc.RpcError) as caught:
        writer.commit(site.written("a/c", n=1))
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert site.read("a/c") is None


# Google's sample rules: https://firebase.google.com/docs/firestore/manage-data/transactions

ATOMIC = """
service cloud.firestore {
  match /databases/{db}/documents {
    match /cities/{city} {
      // If you update a city doc, you must also
      // update the related country's last_updated field.
      allow write: if request.auth != null &&
        getAfter(
          /databases/$(db)/documents/countries/$(request.resource.data.country)
        ).data.last_updated == request.time;
    }

    match /countries/{country} {
      allow write: if request.auth != null;
    }
  }
}
"""


def pass_a_millisecond() -> None:
    """Earlier writes have another time than the next request: these are rounded down to milliseconds."""
    time.sleep(0.002)


def test_cities_and_countries(site: Site, alice: Person, nobody: Person) -> None:
    site.rules(ATOMIC)
    now = [{"fieldPath": "last_updated", "setToServerValue": "REQUEST_TIME"}]
    city = site.written("cities/SF", country="USA", name="San Francisco")
    country = {**site.written("countries/USA", mask=[]), "updateTransforms": now}
    assert is_denied(alice.commit(city))
    assert is_denied(nobody.commit(city, country))
    assert is_denied(alice.commit(city, site.written("countries/USA", last_updated=1)))
    assert alice.commit(country).good
    # At that time, and not at an earlier one.
    pass_a_millisecond()
    assert is_denied(alice.commit(city))
    assert alice.commit(city, country).good
    assert alice.commit(country, city).good
    other = {**site.written("countries/France", mask=[]), "updateTransforms": now}
    pass_a_millisecond()
    assert is_denied(alice.commit(city, other))


def test_cities_and_countries_with_googles_client(site: Site) -> None:
    site.rules(ATOMIC)
    db = site.client("alice")

    def batch_of(client: firestore.Client, country: str | None) -> Any:
        batch = client.batch()
        batch.set(client.document("cities/SF"), {"country": "USA", "name": "San Francisco"})
        if country is not None:
            batch.set(client.document("countries", country), {"last_updated": firestore.SERVER_TIMESTAMP}, merge=True)
        return batch

    batch_of(db, "USA").commit()
    pass_a_millisecond()
    for client, country in ((db, None), (db, "France"), (site.client(None), "USA")):
        with pytest.raises(exceptions.PermissionDenied):
            batch_of(client, country).commit()

    @firestore.transactional
    def rename(transaction: firestore.Transaction, with_country: bool) -> None:
        transaction.update(db.document("cities/SF"), {"name": "Frisco"})
        if with_country:
            transaction.set(db.document("countries/USA"), {"last_updated": firestore.SERVER_TIMESTAMP})

    rename(db.transaction(), True)
    pass_a_millisecond()
    with pytest.raises(exceptions.PermissionDenied):
        rename(db.transaction(), False)
    with pytest.raises(exceptions.PermissionDenied):
        db.document("cities/SF").get()


ROOMS = """
service cloud.firestore {
  match /databases/{db}/documents {
    function prefix() {
      return /databases/{db}/documents;
    }
    match /chatroom/{roomId} {
      allow read, write: if request.auth != null && roomId in get(/$(prefix())/users/$(request.auth.uid)).data.chats
                            || exists(/$(prefix())/admins/$(request.auth.uid));
    }
    match /users/{userId} {
      allow read, write: if request.auth != null && request.auth.uid == userId
                            || exists(/$(prefix())/admins/$(request.auth.uid));
    }
    match /admins/{userId} {
      allow read, write: if request.auth != null && exists(/$(prefix())/admins/$(request.auth.uid));
    }
  }
}
"""

# The guide's count: "The batch used a total of 2 + 1 + 1 = 4 document access calls, out of a total 20 allowed."


def rooms(site: Site, *, room: str = "", user: str = "", admin: str = "") -> str:
    """The rules, with conditions before those of a room, a user and an administrator."""
    text = ROOMS
    for block, more in (("chatroom/{roomId}", room), ("users/{userId}", user), ("admins/{userId}", admin)):
        opening = f"match /{block} {{\n      allow read, write: if "
        assert opening in text
        # Every document that these read is missing.
        text = text.replace(opening, opening + (f"{more} && (" if more else "("))
        end = text.index(";", text.index(opening))
        text = text[:end] + ")" + text[end:]
    site.rules(text)
    return text


def batch_of_the_guide(site: Site) -> list[Any]:
    return [
        site.written("chatroom/group1", msg="Hello, from Admin!"),
        site.written("users/newuser", mask=["lastSignedIn"], lastSignedIn=1),
        site.deleted("admins/otheruser"),
    ]


@pytest.fixture
def administered(site: Site) -> None:
    site.set("users/alice", chats=["mygroup"])
    site.set("admins/alice", n=1)
    site.set("admins/otheruser", n=1)


@pytest.mark.emulator_differs("it takes no captures in path templates")
def test_chat_rooms(site: Site, administered: None, alice: Person, bob: Person, nobody: Person) -> None:
    rooms(site)
    site.set("users/bob", chats=["mygroup"])
    assert is_denied(nobody.get("chatroom/mygroup")) and is_denied(nobody.get("users/alice"))
    assert bob.get("chatroom/mygroup").code == "NOT_FOUND" and is_denied(bob.get("chatroom/group1"))
    assert bob.get("users/bob").good and is_denied(bob.get("users/alice")) and is_denied(bob.get("admins/alice"))
    assert is_denied(bob.commit(*batch_of_the_guide(site)))
    assert alice.commit(*batch_of_the_guide(site)).good
    assert site.read("admins/otheruser") is None and site.read("users/newuser") is not None
    # A former administrator has no rights any more.
    site.remove("admins/alice")
    assert is_denied(alice.commit(*batch_of_the_guide(site)))


@pytest.mark.emulator_differs("it takes no captures in path templates")
def test_access_calls_of_chat_rooms(site: Site, administered: None, alice: Person) -> None:
    """The number of further documents that each rule may read shows the number that it has read."""
    # None for the user's own document: all ten are left.
    rooms(site, user=looks_at(10))
    assert alice.get("users/alice").good
    rooms(site, user=looks_at(11))
    assert is_denied(alice.get("users/alice"))
    # One for a chat room of which the user is a member.
    rooms(site, room=looks_at(9))
    assert alice.get("chatroom/mygroup").code == "NOT_FOUND"
    rooms(site, room=looks_at(10))
    assert is_denied(alice.get("chatroom/mygroup"))
    # Two for another room, one for another user and one for another administrator, ten for each.
    for name, left, write in zip(("room", "user", "admin"), (8, 9, 9), batch_of_the_guide(site), strict=True):
        rooms(site, **{name: looks_at(left)})
        assert alice.commit(write).good, name
        rooms(site, **{name: looks_at(left + 1)})
        assert is_denied(alice.commit(write)), name


@pytest.mark.emulator_differs("it takes no captures in path templates")
def test_access_calls_of_a_batch_of_chat_rooms(site: Site, administered: None, alice: Person) -> None:
    """Of the four of the guide's batch, two are for a document that was read before: it counts once."""
    writes = batch_of_the_guide(site)
    # 2 + 8, and 1 + 8 and 1 + 1 of which one is cached.
    more = {"room": looks_at(8, "p"), "user": looks_at(8, "q")}
    rooms(site, **more, admin=looks_at(2, "r"))
    assert alice.commit(*writes).good
    rooms(site, **more, admin=looks_at(3, "r"))
    assert is_denied(alice.commit(*writes))
    # Each one alone is allowed.
    for write in writes:
        assert alice.commit(write).good


@pytest.mark.emulator_differs("it takes no captures in path templates")
def test_chat_rooms_with_googles_client(site: Site, administered: None) -> None:
    rooms(site)

    def batch_of(db: firestore.Client) -> Any:
        batch = db.batch()
        batch.set(db.document("chatroom/group1"), {"msg": "Hello, from Admin!"})
        batch.set(db.document("users/newuser"), {"lastSignedIn": firestore.SERVER_TIMESTAMP}, merge=True)
        batch.delete(db.document("admins/otheruser"))
        return batch

    db = site.client("alice")
    batch_of(db).commit()
    assert db.document("chatroom/group1").get().get("msg") == "Hello, from Admin!"
    bob = site.client("bob")
    with pytest.raises(exceptions.PermissionDenied):
        batch_of(bob).commit()
    rooms(site, room=looks_at(8, "p"), user=looks_at(8, "q"), admin=looks_at(2, "r"))
    batch_of(db).commit()
    rooms(site, room=looks_at(8, "p"), user=looks_at(8, "q"), admin=looks_at(3, "r"))
    with pytest.raises(exceptions.PermissionDenied):
        batch_of(db).commit()


def test_googles_client_as_a_user(site: Site) -> None:
    site.rules(rule("users/{user}", f"read, write: if {OWN}"), rule("c/{x}", "list: if resource.data.n > 1"))
    db = site.client("alice")
    own = db.document("users/alice")
    own.set({"n": 1})
    own.update({"n": firestore.Increment(2)})
    assert own.get().to_dict() == {"n": 3}
    for number in range(4):
        site.set(f"c/{number}", n=number)
    found = db.collection("c").where(filter=FieldFilter("n", ">", 2)).stream()
    assert [one.id for one in found] == ["3"]
    counted = db.collection("c").where(filter=FieldFilter("n", ">", 1)).count().get()
    assert counted[0][0].value == 2
    denied: list[Callable[[], Any]] = [
        lambda: db.document("users/bob").get(),
        lambda: db.document("users/bob").set({"n": 1}),
        lambda: db.document("users/bob").delete(),
        lambda: list(db.collection("c").stream()),
        lambda: db.collection("c").count().get(),
        lambda: list(db.get_all([own, db.document("users/bob")])),
        lambda: list(db.collections()),
        lambda: list(db.collection("c").list_documents()),
        lambda: list(site.client(None).collection("users").stream()),
    ]
    for ask in denied:
        with pytest.raises(exceptions.PermissionDenied):
            ask()
    own.delete()
    assert not own.get().exists
