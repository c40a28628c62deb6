"""Reads of the past, and databases that must be isolated from each other."""

from __future__ import annotations

import datetime

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore


class TestReadTime:
    def test_document_query_and_aggregation(self, db: firestore.Client) -> None:
        c = db.collection("c")
        first = c.document("a").set({"n": 1})
        c.document("a").set({"n": 2})
        c.document("b").set({"n": 3})
        c.document("a").delete()
        then = first.update_time
        assert c.document("a").get(read_time=then).to_dict() == {"n": 1}
        assert not c.document("b").get(read_time=then).exists
        assert [s.id for s in c.stream(read_time=then)] == ["a"]
        assert c.sum("n").get(read_time=then)[0][0].value == 1
        assert [s.id for s in c.stream()] == ["b"]

    def test_a_read_time_that_was_answered_stays_valid(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"n": 1})
        read = reference.get()
        write = reference.set({"n": 2})
        assert write.update_time > read.read_time
        again = reference.get(read_time=read.read_time)
        assert again.to_dict() == {"n": 1}
        assert again.read_time == read.read_time

    def test_a_document_before_its_creation_and_after_its_deletion(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        before = db.document("c/other").set({}).update_time
        created = reference.set({"n": 1}).update_time
        deleted = reference.delete()
        assert not reference.get(read_time=before).exists
        assert reference.get(read_time=created).exists
        assert not reference.get(read_time=deleted).exists

    def test_lists_of_the_past(self, db: firestore.Client) -> None:
        then = db.document("c/a").set({}).update_time
        db.document("d/b").set({})
        assert [collection.id for collection in db.collections(read_time=then)] == ["c"]
        assert list(db.collection("d").list_documents(read_time=then)) == []

    @pytest.mark.parametrize("offset", [datetime.timedelta(hours=1), datetime.timedelta(days=-30)])
    def test_future_and_distant_past(self, db: firestore.Client, offset: datetime.timedelta) -> None:
        db.document("c/a").set({})
        time = datetime.datetime.now(datetime.UTC) + offset
        with pytest.raises((exceptions.InvalidArgument, exceptions.FailedPrecondition)):
            db.document("c/a").get(read_time=time)


def test_commit_times_ascend(db: firestore.Client) -> None:
    times = [db.document("c/a").set({"n": n}).update_time for n in range(50)]
    assert times == sorted(set(times))


def test_databases_are_islands(db: firestore.Client, project: str) -> None:
    named = firestore.Client(project=project, database="named-db", credentials=AnonymousCredentials())
    elsewhere = firestore.Client(project=project + "x", credentials=AnonymousCredentials())
    db.document("c/a").set({"where": "default"})
    named.document("c/a").set({"where": "named"})
    named.document("c/b").set({})
    assert db.document("c/a").get().get("where") == "default"
    assert named.document("c/a").get().get("where") == "named"
    assert [s.id for s in db.collection("c").stream()] == ["a"]
    assert [s.id for s in named.collection_group("c").stream()] == ["a", "b"]
    assert list(elsewhere.collections()) == []
    named.document("c/a").delete()
    assert db.document("c/a").get().exists
    # A reference keeps the name of the database that it was made with.
    assert named.document("c/b").path == db.document("c/b").path
