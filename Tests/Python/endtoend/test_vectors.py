"""Vector values and nearest-neighbour queries."""

from __future__ import annotations

import math

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.vector import Vector


@pytest.fixture
def c(db: firestore.Client) -> firestore.CollectionReference:
    vectors = {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.5], "c": [-1.0, 0.0, 0.0], "d": [1.0, 2.0], "e": [3.0, 4.0, 5.0]}
    batch = db.batch()
    for document_id, elements in vectors.items():
        batch.set(db.document(f"v/{document_id}"), {"v": Vector(elements), "odd": document_id in "ace"})
    batch.set(db.document("v/none"), {"odd": True})
    batch.set(db.document("v/text"), {"v": "text"})
    batch.commit()
    return db.collection("v")


def nearest(
    query: object, elements: list[float], measure: DistanceMeasure, **options: object
) -> list[tuple[str, float]]:
    found = query.find_nearest(  # type: ignore[attr-defined]
        vector_field="v",
        query_vector=Vector(elements),
        distance_measure=measure,
        distance_result_field="distance",
        **{"limit": 10, **options},
    )
    return [(snapshot.id, snapshot.get("distance")) for snapshot in found.stream()]


def test_a_vector_comes_back_as_a_vector(db: firestore.Client) -> None:
    db.document("v/x").set({"v": Vector([1.0, -0.0, 2.5])})
    assert db.document("v/x").get().get("v") == Vector([1.0, -0.0, 2.5])


def test_euclidean(c: firestore.CollectionReference) -> None:
    assert nearest(c, [1.0, 2.0, 3.0], DistanceMeasure.EUCLIDEAN) == [
        ("a", 0.0),
        ("b", 0.5),
        ("e", math.sqrt(12)),
        ("c", math.sqrt(17)),
    ]


def test_cosine_to_the_last_bit(c: firestore.CollectionReference) -> None:
    found = dict(nearest(c, [3.0, 4.0, 5.0], DistanceMeasure.COSINE))
    assert found["a"] == 0.017292370176009153
    assert found["e"] == 0.0


def test_dot_product_is_largest_first(c: firestore.CollectionReference) -> None:
    assert nearest(c, [1.0, 1.0, 1.0], DistanceMeasure.DOT_PRODUCT, limit=2) == [("e", 12.0), ("b", 6.5)]


def test_threshold_is_inclusive(c: firestore.CollectionReference) -> None:
    found = nearest(c, [1.0, 2.0, 3.0], DistanceMeasure.EUCLIDEAN, distance_threshold=0.5)
    assert [name for name, _ in found] == ["a", "b"]


def test_with_a_filter(c: firestore.CollectionReference) -> None:
    odd = c.where(filter=FieldFilter("odd", "==", True))
    assert [name for name, _ in nearest(odd, [1.0, 2.0, 3.0], DistanceMeasure.EUCLIDEAN)] == ["a", "e", "c"]


@pytest.mark.parametrize("limit", [0, 1001])
def test_limits(c: firestore.CollectionReference, limit: int) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        nearest(c, [1.0, 2.0, 3.0], DistanceMeasure.EUCLIDEAN, limit=limit)


def test_dimensions(db: firestore.Client) -> None:
    db.document("v/x").set({"v": Vector([0.5] * 2048)})
    with pytest.raises(exceptions.InvalidArgument, match="at most 2048 dimensions"):
        db.document("v/x").set({"v": Vector([0.5] * 2049)})
    with pytest.raises(exceptions.InvalidArgument, match="zero length"):
        db.document("v/x").set({"v": Vector([])})
