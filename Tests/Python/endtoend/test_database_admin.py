"""The Realtime Database through `firebase_admin.db`, as used by programs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import firebase_admin
import pytest
from firebase_admin import db, exceptions

from endtoend.trees import Tree


@pytest.fixture
def app(address: str, project: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[firebase_admin.App]:
    monkeypatch.setenv("FIREBASE_DATABASE_EMULATOR_HOST", address)
    yield from opened(project)


def opened(namespace: str, **options: Any) -> Iterator[firebase_admin.App]:
    settings = {"databaseURL": f"https://{namespace}.firebaseio.com", **options}
    made = firebase_admin.initialize_app(None, settings, name=uuid.uuid4().hex)
    yield made
    firebase_admin.delete_app(made)


@pytest.fixture
def root(app: firebase_admin.App) -> db.Reference:
    return db.reference("/", app)


def test_set_and_get(root: db.Reference) -> None:
    root.child("a").set({"b": 1, "list": ["x", "y"], "text": "ä😀"})
    assert root.child("a").get() == {"b": 1, "list": ["x", "y"], "text": "ä😀"}
    assert root.child("a/list/1").get() == "y"
    assert root.get(shallow=True) == {"a": True}
    assert root.child("none").get() is None


def test_push(root: db.Reference) -> None:
    made = [root.child("list").push(number) for number in range(3)]
    assert [one.key for one in made] == sorted(one.key for one in made)
    assert root.child("list").get() == {one.key: number for number, one in enumerate(made)}


def test_update(root: db.Reference) -> None:
    root.set({"a": {"x": 1, "y": 2}, "b": 3})
    root.update({"a/x": 10, "b": None, "c/d/e": True})
    assert root.get() == {"a": {"x": 10, "y": 2}, "c": {"d": {"e": True}}}


def test_delete(root: db.Reference) -> None:
    root.set({"a": 1, "b": 2})
    root.child("a").delete()
    assert root.get() == {"b": 2}
    root.delete()
    assert root.get() is None


def test_tags(root: db.Reference) -> None:
    root.set("one")
    value, tag = root.get(etag=True)
    assert value == "one" and root.get_if_changed(tag) == (False, None, None)
    root.set("two")
    changed, value, newer = root.get_if_changed(tag)
    assert (changed, value) == (True, "two") and newer != tag
    assert root.set_if_unchanged(tag, "three") == (False, "two", newer)
    success, value, newest = root.set_if_unchanged(newer, "three")
    assert (success, value) == (True, "three") and newest not in (tag, newer)


def test_transactions_of_many_add_up(root: db.Reference) -> None:
    def work() -> None:
        for _ in range(5):
            while True:
                try:
                    root.child("n").transaction(lambda now: (now or 0) + 1)
                    break
                except db.TransactionAbortedError:
                    pass

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert root.child("n").get() == 30


def test_a_transaction_that_gives_up(root: db.Reference) -> None:
    root.set({"n": 1})

    def refuse(_: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        root.transaction(refuse)
    assert root.get() == {"n": 1}


class TestQueries:
    SCORES = {"ann": 7, "bob": 9, "cy": 8, "dan": -1}

    @pytest.fixture(autouse=True)
    def scores(self, root: db.Reference, tree: Tree) -> None:
        tree.rules({".read": True, "scores": {".indexOn": ".value"}, "people": {".indexOn": ["score", "deep/er"]}})
        root.set({
            "scores": self.SCORES,
            "people": {name: {"score": score, "deep": {"er": -score}} for name, score in self.SCORES.items()},
        })

    def test_by_value(self, root: db.Reference) -> None:
        scores = root.child("scores")
        assert list(scores.order_by_value().get()) == ["dan", "ann", "cy", "bob"]
        assert list(scores.order_by_value().limit_to_last(2).get()) == ["cy", "bob"]
        assert list(scores.order_by_value().start_at(8).get()) == ["cy", "bob"]
        assert list(scores.order_by_value().equal_to(7).get()) == ["ann"]

    def test_by_child(self, root: db.Reference) -> None:
        people = root.child("people")
        assert list(people.order_by_child("score").limit_to_first(2).get()) == ["dan", "ann"]
        assert list(people.order_by_child("deep/er").get()) == ["bob", "cy", "ann", "dan"]
        assert list(people.order_by_child("score").start_at(7).end_at(8).get()) == ["ann", "cy"]

    def test_by_key(self, root: db.Reference) -> None:
        assert list(root.child("scores").order_by_key().start_at("b").limit_to_first(2).get()) == ["bob", "cy"]

    def test_without_an_index(self, root: db.Reference) -> None:
        with pytest.raises(exceptions.InvalidArgumentError) as refused:
            root.child("people").order_by_child("height").get()
        assert str(refused.value) == (
            'Index not defined, add ".indexOn": "height", for path "/people", to the rules'
        )


def test_somebody_else(app: firebase_admin.App, project: str, tree: Tree) -> None:
    tree.rules({"users": {"$uid": {".read": "auth != null", ".write": "auth.uid == $uid"}}})
    for options, may_read in (({"databaseAuthVariableOverride": {"uid": "ann"}}, True),
                              ({"databaseAuthVariableOverride": None}, False)):
        for other in opened(project, **options):
            place = db.reference("users/ann", other)
            if may_read:
                place.set("mine")
                assert place.get() == "mine"
            else:
                with pytest.raises(exceptions.UnauthenticatedError, match="Permission denied"):
                    place.get()
            with pytest.raises(exceptions.UnauthenticatedError, match="Permission denied"):
                db.reference("users/bob", other).set("not mine")
    assert db.reference("users", app).get() == {"ann": "mine"}


# `close` of firebase_admin takes the response away from the thread that reads it, which then may fail with an
# AttributeError. What the thread has to do is judged by the events.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_listen(root: db.Reference) -> None:
    events: list[tuple[str, str, Any]] = []
    changed = threading.Condition()

    def heard(event: db.Event) -> None:
        with changed:
            events.append((event.event_type, event.path, event.data))
            changed.notify_all()

    def until(count: int) -> None:
        with changed:
            assert changed.wait_for(lambda: len(events) >= count, 10), events

    root.set({"a": 1})
    registration = root.listen(heard)
    until(1)
    root.child("b/c").set("x")
    until(2)
    root.update({"a": None, "d": 2})
    until(3)
    # `close` waits for the thread, which waits for the next event of the server: a write, before one that keeps alive.
    closing = threading.Thread(target=registration.close)
    closing.start()
    number = 0
    while closing.is_alive():
        number += 1
        root.child("later").set(number)
        closing.join(0.05)
    assert events[:3] == [
        ("put", "/", {"a": 1}),
        ("put", "/b/c", "x"),
        ("patch", "/", {"a": None, "d": 2}),
    ]
