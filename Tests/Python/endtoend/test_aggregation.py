"""Counts, sums and averages through Google's client."""

from __future__ import annotations

import math

import pytest
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

LARGEST = 2**63 - 1


def fill(db: firestore.Client, values: list[object], field: str = "n") -> firestore.CollectionReference:
    batch = db.batch()
    for place, value in enumerate(values):
        batch.set(db.document(f"c/{place:03}"), {field: value, "place": place})
    batch.commit()
    return db.collection("c")


def one(query: object) -> object:
    """The value of a query's only aggregation."""
    return query.get()[0][0].value  # type: ignore[attr-defined]


def test_count(db: firestore.Client) -> None:
    c = fill(db, [1, 2, "x", None])
    assert one(c.count()) == 4
    assert one(c.where(filter=FieldFilter("n", ">=", 2)).count()) == 1
    assert one(c.limit(3).count()) == 3
    assert one(c.offset(3).count()) == 1
    assert one(db.collection("none").count()) == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], 6),
        ([5, 4.5, 3.5], 13.0),
        ([1, "x", None, True, [5]], 1),
        ([], 0),
        (["x"], 0),
        ([LARGEST, 1, -101], LARGEST - 100),
        ([LARGEST, 1], float(2**63)),
        ([-(2**63), -1], float(-(2**63))),
        ([1.7976931348623157e308, 1.7976931348623157e308], math.inf),
        ([math.inf, 1], math.inf),
        ([0.1, 0.2], 0.30000000000000004),
    ],
)
def test_sum(db: firestore.Client, values: list[object], expected: float) -> None:
    result = one(fill(db, values).sum("n"))
    assert result == expected
    # The client shows an integer 0 as 0.0; the REST tests check that case.
    assert expected == 0 or type(result) is type(expected)


@pytest.mark.parametrize("values", [[1, math.nan], [math.inf, -math.inf]])
def test_sum_that_is_no_number(db: firestore.Client, values: list[object]) -> None:
    assert math.isnan(one(fill(db, values).sum("n")))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2, 3], 2.0), ([10, 9, 8.6], 27.6 / 3), ([1, "x"], 1.0), ([LARGEST, LARGEST], float(2**63)), ([2, 2.5], 2.25)],
)
def test_average(db: firestore.Client, values: list[object], expected: float) -> None:
    result = one(fill(db, values).avg("n"))
    assert result == expected and isinstance(result, float)


def test_several_look_only_at_documents_with_all_fields(db: firestore.Client) -> None:
    db.document("c/1").set({"a": 1, "b": 10})
    db.document("c/2").set({"a": 2})
    db.document("c/3").set({"a": 3, "b": "x"})
    query = db.collection("c").sum("a", alias="sum").avg("b", alias="average").count(alias="count")
    result = {entry.alias: entry.value for entry in query.get()[0]}
    assert result == {"sum": 4, "average": 10.0, "count": 2}


def test_limit_counts_in_the_order_of_the_aggregated_field(db: firestore.Client) -> None:
    c = fill(db, [9, 1, 5])
    assert one(c.limit(2).sum("n")) in (6, 10)
    assert one(c.order_by("n").limit(2).sum("n")) == 6


def test_names_of_unnamed_ones(db: firestore.Client) -> None:
    query = fill(db, [1]).count().sum("n", alias="total").avg("n")
    assert {entry.alias: entry.value for entry in query.get()[0]} == {"field_1": 1, "total": 1, "field_2": 1.0}


def test_in_a_collection_group_and_below_a_cursor(db: firestore.Client) -> None:
    for path in ("c/1", "x/1/c/2", "x/2/c/3"):
        db.document(path).set({"n": int(path[-1])})
    assert one(db.collection_group("c").sum("n")) == 6
    assert one(db.collection_group("c").order_by("n").start_at({"n": 2}).count()) == 2


@pytest.mark.emulator_differs("it ignores explain options")
def test_explain(db: firestore.Client) -> None:
    query = fill(db, [1, 2]).sum("n")
    results = query.get(explain_options=firestore.ExplainOptions(analyze=True))
    assert results[0][0].value == 3
    assert results.get_explain_metrics().execution_stats.results_returned == 1
