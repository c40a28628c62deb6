"""Write batches, the bulk writer, recursive deletes and large requests."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.bulk_writer import BulkWriter, BulkWriterOptions, SendMode


def test_a_batch_is_all_or_nothing(db: firestore.Client) -> None:
    db.document("c/there").set({})
    batch = db.batch()
    batch.set(db.document("c/new"), {"n": 1})
    batch.create(db.document("c/there"), {"n": 2})
    with pytest.raises(exceptions.AlreadyExists):
        batch.commit()
    assert not db.document("c/new").get().exists
    assert db.document("c/there").get().to_dict() == {}


def test_a_batch_has_one_time(db: firestore.Client) -> None:
    batch = db.batch()
    batch.set(db.document("c/a"), {"t": firestore.SERVER_TIMESTAMP})
    batch.set(db.document("c/b"), {"t": firestore.SERVER_TIMESTAMP})
    batch.delete(db.document("c/none"))
    results = batch.commit()
    a, b = db.document("c/a").get(), db.document("c/b").get()
    assert a.update_time == b.update_time == results[0].update_time == batch.commit_time
    assert a.get("t") == b.get("t")
    # A delete has no update time of its own.
    assert not results[2]._pb.HasField("update_time")


def test_writes_to_one_document_apply_in_order(db: firestore.Client) -> None:
    reference = db.document("c/a")
    batch = db.batch()
    batch.set(reference, {"a": 1, "b": 1})
    batch.update(reference, {"b": 2})
    batch.update(reference, {"a": firestore.Increment(5), "c": firestore.ArrayUnion(["x"])})
    batch.commit()
    assert reference.get().to_dict() == {"a": 6, "b": 2, "c": ["x"]}


def test_create_then_update_and_delete_then_create(db: firestore.Client) -> None:
    reference = db.document("c/a")
    batch = db.batch()
    batch.create(reference, {"a": 1})
    batch.update(reference, {"b": 2})
    batch.commit()
    before = reference.get().create_time
    batch = db.batch()
    batch.delete(reference)
    batch.create(reference, {"c": 3})
    batch.commit()
    snapshot = reference.get()
    assert snapshot.to_dict() == {"c": 3}
    assert snapshot.create_time > before


def test_empty_batch(db: firestore.Client) -> None:
    assert list(db.batch().commit()) == []


def test_more_than_500_writes(db: firestore.Client) -> None:
    batch = db.batch()
    for n in range(600):
        batch.set(db.document(f"c/{n:04}"), {"n": n})
    assert len(batch.commit()) == 600
    assert db.collection("c").count().get()[0][0].value == 600


@pytest.mark.emulator_differs("its gRPC takes no message over 4 MiB")
def test_a_batch_of_nearly_10_mebibytes(db: firestore.Client) -> None:
    batch = db.batch()
    for n in range(10):
        batch.set(db.document(f"c/{n}"), {"text": chr(ord("a") + n) * 1_040_000})
    batch.commit()
    read = {s.id: s.get("text")[0] for s in db.collection("c").stream()}
    assert read == {str(n): chr(ord("a") + n) for n in range(10)}


@pytest.mark.emulator_differs("its gRPC takes no message over 4 MiB")
def test_a_batch_past_the_limit(db: firestore.Client) -> None:
    batch = db.batch()
    for n in range(13):
        batch.set(db.document(f"c/{n}"), {"text": "x" * 1_040_000})
    with pytest.raises((exceptions.InvalidArgument, exceptions.ResourceExhausted)):
        batch.commit(retry=None)
    assert list(db.collection("c").list_documents()) == []


@pytest.mark.emulator_differs("it does not enforce the 500 transforms")
def test_500_transforms_on_one_document(db: firestore.Client) -> None:
    reference = db.document("c/a")
    reference.set({f"f{n}": firestore.Increment(1) for n in range(500)})
    with pytest.raises(exceptions.InvalidArgument, match="more than 500 field transforms"):
        reference.set({f"f{n}": firestore.Increment(1) for n in range(501)})


class TestBulkWriter:
    def test_many_writes(self, db: firestore.Client) -> None:
        writer = BulkWriter(db, options=BulkWriterOptions(mode=SendMode.serial))
        for n in range(100):
            writer.create(db.document(f"c/{n}"), {"n": n})
        writer.close()
        assert db.collection("c").count().get()[0][0].value == 100

    def test_one_failure_does_not_stop_the_rest(self, db: firestore.Client) -> None:
        db.document("c/there").set({"old": True})
        writer = BulkWriter(db, options=BulkWriterOptions(mode=SendMode.serial))
        failed: list[tuple[str, int]] = []
        done: list[str] = []
        # The client retries a failed write unless it is configured otherwise.
        writer.on_write_error(lambda failure, _: failed.append((failure.operation.reference.id, failure.code)) or False)
        writer.on_write_result(lambda reference, result, _: done.append(reference.id))
        writer.create(db.document("c/there"), {})
        writer.create(db.document("c/new"), {"n": 1})
        writer.update(db.document("c/none"), {"n": 1})
        writer.close()
        assert sorted(failed) == [("none", 5), ("there", 6)]
        assert done == ["new"]
        assert db.document("c/there").get().to_dict() == {"old": True}

    def test_recursive_delete(self, db: firestore.Client) -> None:
        for path in ("c/a", "c/a/s/1", "c/a/s/1/u/2", "c/b/s/3", "d/keep", "d/keep/c/a", "c-/keep"):
            db.document(path).set({})
        assert db.recursive_delete(db.collection("c")) == 4
        assert [s.id for s in db.collection("c").list_documents()] == []
        assert db.document("d/keep/c/a").get().exists and db.document("c-/keep").get().exists

    def test_recursive_delete_of_a_document(self, db: firestore.Client) -> None:
        for path in ("c/a", "c/a/s/1", "c/ab", "c/a/s/1/u/2"):
            db.document(path).set({})
        assert db.recursive_delete(db.document("c/a")) == 3
        assert [s.id for s in db.collection("c").list_documents()] == ["ab"]
