"""Lists of documents and collections, and partitions of a collection group."""

from __future__ import annotations

import pytest
from google.cloud import firestore


def test_collections(db: firestore.Client) -> None:
    for path in ("b/1", "a/1", "c/x/deep/1", "é/1", "a/1/sub/1", "a/1/tub/1"):
        db.document(path).set({})
    assert [c.id for c in db.collections()] == ["a", "b", "c", "é"]
    assert [c.id for c in db.document("a/1").collections()] == ["sub", "tub"]
    assert [c.id for c in db.document("c/x").collections()] == ["deep"]
    assert list(db.document("a/none").collections()) == []


def test_list_documents_shows_missing_ones(db: firestore.Client) -> None:
    for path in ("c/a", "c/missing/s/1", "c/deep/s/1/t/2", "c/z", "d/a"):
        db.document(path).set({"n": 1})
    db.document("c/deep/s/1").delete()
    assert [r.id for r in db.collection("c").list_documents()] == ["a", "deep", "missing", "z"]
    assert [r.id for r in db.collection("c/deep/s").list_documents()] == ["1"]
    assert [s.id for s in db.collection("c").stream()] == ["a", "z"]
    assert not db.document("c/missing").get().exists


def test_list_documents_in_pages(db: firestore.Client) -> None:
    batch = db.batch()
    for n in range(400):
        batch.set(db.document(f"c/{n:03}"), {})
    batch.commit()
    assert [r.id for r in db.collection("c").list_documents()] == [f"{n:03}" for n in range(400)]
    assert len(list(db.collection("c").list_documents(page_size=7))) == 400


def test_partitions_join_to_the_whole(db: firestore.Client, is_emulator: bool) -> None:
    if is_emulator:
        pytest.skip("the emulator has no PartitionQuery")
    batch = db.batch()
    for n in range(600):
        parent = "" if n % 3 else f"x/{n % 7}/"
        batch.set(db.document(f"{parent}c/{n:03}"), {"n": n})
    batch.commit()
    group = db.collection_group("c")
    partitions = list(group.get_partitions(4))
    assert 1 <= len(partitions) <= 5
    found = [s.get("n") for partition in partitions for s in partition.query().stream()]
    assert found == [s.get("n") for s in group.order_by("__name__").stream()]
    assert len(found) == 600
