"""Errors as Google's clients see them: always the class, and the message where a client reads it."""

from __future__ import annotations

import datetime

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.protobuf.timestamp_pb2 import Timestamp

PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def name(db: firestore.Client, path: str) -> str:
    return f"projects/{db.project}/databases/(default)/documents/{path}"


@pytest.mark.emulator_differs("its texts dump Datastore entities")
class TestTexts:
    def test_update_of_a_missing_document(self, db: firestore.Client) -> None:
        with pytest.raises(exceptions.NotFound) as caught:
            db.document("c/none").update({"a": 1})
        assert caught.value.message == f"No document to update: {name(db, 'c/none')}"

    def test_create_over_a_document(self, db: firestore.Client) -> None:
        db.document("c/a").set({})
        with pytest.raises(exceptions.AlreadyExists) as caught:
            db.document("c/a").create({})
        assert caught.value.message == f"Document already exists: {name(db, 'c/a')}"

    def test_delete_of_a_missing_document(self, db: firestore.Client) -> None:
        with pytest.raises(exceptions.NotFound) as caught:
            db.document("c/none").delete(option=db.write_option(exists=True))
        assert caught.value.message == f"No document to update: {name(db, 'c/none')}"


def test_update_time_that_differs(db: firestore.Client) -> None:
    reference = db.document("c/a")
    first = reference.set({"n": 1})
    second = reference.set({"n": 2})
    with pytest.raises(exceptions.FailedPrecondition) as caught:
        reference.update({"n": 3}, option=db.write_option(last_update_time=first.update_time))
    stored, wanted = (_microseconds(time) for time in (second.update_time, first.update_time))
    text = f"the stored version ({stored}) does not match the required base version ({wanted})"
    assert caught.value.message == text


def test_update_time_of_a_missing_document(db: firestore.Client) -> None:
    with pytest.raises(exceptions.FailedPrecondition):
        option = db.write_option(last_update_time=Timestamp(seconds=int(PAST.timestamp())))
        db.document("c/none").delete(option=option)


def test_update_time_that_is_right(db: firestore.Client) -> None:
    reference = db.document("c/a")
    first = reference.set({"n": 1})
    reference.update({"n": 2}, option=db.write_option(last_update_time=first.update_time))
    assert reference.get().get("n") == 2


@pytest.mark.parametrize("document_id", [".", "..", "__x__", "x" * 1501])
def test_document_ids_that_are_refused(db: firestore.Client, document_id: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        db.collection("c").document(document_id).set({})


def test_reserved_collection_names_the_id(db: firestore.Client) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="__invalid__"):
        db.collection("__invalid__").count().get()


@pytest.mark.parametrize("field", ["__x__", "a.__x__"])
def test_reserved_fields(db: firestore.Client, field: str) -> None:
    data: object = 1
    for part in reversed(field.split(".")):
        data = {part: data}
    with pytest.raises(exceptions.InvalidArgument):
        db.document("c/a").set(data)


def test_nesting_of_21_levels(db: firestore.Client) -> None:
    data: object = 1
    for _ in range(20):
        data = {"k": data}
    db.document("c/a").set({"a": data})
    with pytest.raises(exceptions.InvalidArgument, match="Property a contains an invalid nested entity"):
        db.document("c/a").set({"a": {"k": data}})


def test_one_value_too_long(db: firestore.Client) -> None:
    db.document("c/a").set({"x": "y" * 1_048_487})
    with pytest.raises(exceptions.InvalidArgument, match='"x" is longer than 1048487 bytes'):
        db.document("c/a").set({"x": "y" * 1_048_488})


def test_document_too_large(db: firestore.Client) -> None:
    # Name c/a: 2 + 2 + 16; each field: 2 + (length + 1); 32 for the document.
    fits = 1_048_576 - 20 - 32 - 2 * 3
    db.document("c/a").set({"x": "y" * (fits // 2), "z": "y" * (fits - fits // 2)})
    with pytest.raises(exceptions.InvalidArgument):
        db.document("c/a").set({"x": "y" * (fits // 2), "z": "y" * (fits - fits // 2 + 1)})


class TestAggregation:
    def test_one_alias_twice(self, db: firestore.Client) -> None:
        query = db.collection("c").count(alias="x").sum("n", alias="x")
        with pytest.raises(exceptions.InvalidArgument, match="Aggregation aliases contain duplicate alias"):
            query.get()

    @pytest.mark.emulator_differs("it answers UNKNOWN")
    def test_more_than_five(self, db: firestore.Client) -> None:
        query = db.collection("c").count(alias="a")
        for alias in "bcdef":
            query = query.count(alias=alias)
        with pytest.raises(exceptions.InvalidArgument, match="maximum number of aggregations"):
            query.get()


@pytest.mark.emulator_differs("it has pipelines")
def test_pipelines_belong_to_another_edition(db: firestore.Client) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match="only allowed on ENTERPRISE mode"):
        list(db.pipeline().collection("c").stream())


def _microseconds(time: object) -> int:
    stamp = time.timestamp_pb()  # type: ignore[attr-defined]
    return stamp.seconds * 10**6 + stamp.nanos // 1000
