"""Queries through Google's client: every operator, nesting, order, windows, scopes."""

from __future__ import annotations

import time

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import And, FieldFilter, Or
from google.cloud.firestore_v1.field_path import FieldPath

from endtoend.values import in_order

NAN = float("nan")

# One document per line, so that the expectations below can be checked by reading.
DOCUMENTS: dict[str, dict[str, object]] = {
    "d1": {"a": 1, "b": 10, "t": [1, 2], "m": {"x": 1}},
    "d2": {"a": 2, "b": 9, "t": [2, 3], "m": {"x": 2}},
    "d3": {"a": 2.0, "b": 8, "t": ["x"], "m": {"x": 1, "y": 0}},
    "d4": {"a": 3, "b": 7, "t": []},
    "d5": {"a": None, "b": 6},
    "d6": {"a": NAN, "b": 5},
    "d7": {"a": "text", "b": 4, "t": [None, 1.0]},
    "d8": {"b": 3, "t": "no array"},
    "d9": {"a": True, "b": 2},
}


@pytest.fixture
def c(db: firestore.Client) -> firestore.CollectionReference:
    batch = db.batch()
    for document_id, data in DOCUMENTS.items():
        batch.set(db.document(f"c/{document_id}"), data)
    batch.commit()
    return db.collection("c")


def where(query: object, path: str, operator: str, value: object) -> firestore.Query:
    return query.where(filter=FieldFilter(path, operator, value))  # type: ignore[attr-defined]


def ids(query: firestore.Query) -> str:
    return " ".join(snapshot.id for snapshot in query.stream())


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("==", 2, "d2 d3"),
        ("==", 2.0, "d2 d3"),
        ("==", None, "d5"),
        ("==", NAN, "d6"),
        ("==", "text", "d7"),
        ("==", "none", ""),
        ("!=", 2, "d9 d6 d1 d4 d7"),
        ("!=", None, "d9 d6 d1 d2 d3 d4 d7"),
        ("!=", NAN, "d9 d1 d2 d3 d4 d7"),
        ("<", 2, "d1"),
        ("<=", 2, "d1 d2 d3"),
        (">", 2, "d4"),
        (">=", 2, "d2 d3 d4"),
        (">", "a", "d7"),
        (">=", False, "d9"),
        ("in", [3, 1], "d1 d4"),
        ("in", [2, "text", True], "d2 d3 d7 d9"),
        ("not-in", [2, "text"], "d9 d6 d1 d4"),
    ],
)
def test_operators_on_a_scalar(c: firestore.CollectionReference, operator: str, value: object, expected: str) -> None:
    assert ids(where(c, "a", operator, value)) == expected


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("array_contains", 2, "d1 d2"),
        ("array_contains", 1, "d1 d7"),
        ("array_contains", "x", "d3"),
        ("array_contains_any", [3, "x"], "d2 d3"),
        ("==", [1, 2], "d1"),
        ("==", [], "d4"),
        ("in", [["x"], []], "d3 d4"),
        (">", [1, 2], "d2 d3"),
    ],
)
def test_operators_on_an_array(c: firestore.CollectionReference, operator: str, value: object, expected: str) -> None:
    assert sorted(ids(where(c, "t", operator, value)).split()) == expected.split()


@pytest.mark.parametrize(
    ("path", "operator", "value", "expected"),
    [
        ("m.x", "==", 1, "d1 d3"),
        ("m.x", ">", 1, "d2"),
        ("m", "==", {"x": 1}, "d1"),
        ("m", ">", {"x": 1}, "d3 d2"),
        ("m", ">=", {"x": 1, "y": 0}, "d3 d2"),
    ],
)
def test_operators_on_maps(
    c: firestore.CollectionReference, path: str, operator: str, value: object, expected: str
) -> None:
    assert ids(where(c, path, operator, value)) == expected


class TestComposites:
    def test_and(self, c: firestore.CollectionReference) -> None:
        assert ids(where(where(c, "a", "==", 2), "b", ">", 8)) == "d2"

    def test_or_is_a_set(self, c: firestore.CollectionReference) -> None:
        either = Or([FieldFilter("a", "==", 2), FieldFilter("b", ">=", 8), FieldFilter("b", "==", 9)])
        assert ids(c.where(filter=either)) == "d3 d2 d1"

    def test_nesting(self, c: firestore.CollectionReference) -> None:
        inner = And([FieldFilter("a", "==", 2), Or([FieldFilter("b", "==", 9), FieldFilter("b", "==", 1)])])
        assert ids(c.where(filter=Or([inner, FieldFilter("a", "==", 3)]))) == "d2 d4"

    def test_contradiction_is_empty(self, c: firestore.CollectionReference) -> None:
        assert ids(where(where(c, "a", ">", 5), "a", "<", 3)) == ""

    def test_order_field_must_exist_in_every_branch(self, c: firestore.CollectionReference) -> None:
        either = Or([FieldFilter("b", "==", 3), FieldFilter("b", "==", 4)])
        assert ids(c.where(filter=either).order_by("a")) == "d7"

    def test_thirty_disjunctions_pass_and_thirty_one_do_not(self, c: firestore.CollectionReference) -> None:
        assert ids(where(c, "a", "in", list(range(30)))) == "d1 d2 d3 d4"
        with pytest.raises(exceptions.InvalidArgument):
            ids(where(c, "a", "in", list(range(31))))


class TestNames:
    def test_equality_and_range(self, c: firestore.CollectionReference) -> None:
        name = FieldPath.document_id()
        assert ids(where(c, name, "==", c.document("d3"))) == "d3"
        assert ids(where(where(c, name, ">=", c.document("d3")), name, "<", c.document("d5"))) == "d3 d4"
        assert ids(where(c, name, "in", [c.document("d9"), c.document("d1"), c.document("none")])) == "d1 d9"

    def test_order_of_ids_is_by_bytes_and_numeric_ids_come_first(self, db: firestore.Client) -> None:
        names = [
            "\U0001f600",
            "\uffff",
            "Z",
            "a",
            "aa",
            "a\u0000",
            "é",
            "__id7__",
            "__id-3__",
            "__id12__",
            "1",
            "10",
            "2",
        ]
        for name in names:
            db.document(f"n/{name}").set({})
        expected = [
            "__id-3__",
            "__id7__",
            "__id12__",
            "1",
            "10",
            "2",
            "Z",
            "a",
            "a\u0000",
            "aa",
            "é",
            "\uffff",
            "\U0001f600",
        ]
        assert [s.id for s in db.collection("n").stream()] == expected


class TestOrder:
    def test_all_types_in_order(self, db: firestore.Client) -> None:
        values = in_order(db)
        batch = db.batch()
        for place, value in enumerate(reversed(values)):
            batch.set(db.document(f"v/{place:03}"), {"v": value, "place": len(values) - place})
        batch.commit()
        places = [s.get("place") for s in db.collection("v").order_by("v").stream()]
        assert places == sorted(places)
        places = [s.get("place") for s in db.collection("v").order_by("v", direction="DESCENDING").stream()]
        assert places == sorted(places, reverse=True)

    def test_directions_and_ties(self, c: firestore.CollectionReference) -> None:
        assert ids(c.order_by("a")) == "d5 d9 d6 d1 d2 d3 d4 d7"
        assert ids(c.order_by("a", direction="DESCENDING")) == "d7 d4 d3 d2 d1 d6 d9 d5"
        assert ids(c.order_by("a").order_by("b")) == "d5 d9 d6 d1 d3 d2 d4 d7"
        assert ids(c.order_by("a").order_by("__name__", direction="DESCENDING")) == "d5 d9 d6 d1 d3 d2 d4 d7"

    def test_inequality_orders_by_its_field(self, c: firestore.CollectionReference) -> None:
        assert ids(where(c, "b", "<", 5)) == "d9 d8 d7"

    @pytest.mark.emulator_differs("it refuses descending key scans")
    def test_names_descending(self, c: firestore.CollectionReference) -> None:
        assert ids(c.order_by("__name__", direction="DESCENDING").limit(3)) == "d9 d8 d7"


class TestWindow:
    def test_limit_and_offset(self, c: firestore.CollectionReference) -> None:
        assert ids(c.order_by("b").limit(2)) == "d9 d8"
        assert ids(c.order_by("b").offset(7)) == "d2 d1"
        assert ids(c.order_by("b").offset(1).limit(2)) == "d8 d7"
        assert ids(c.order_by("b").offset(50)) == ""

    def test_limit_to_last(self, c: firestore.CollectionReference) -> None:
        assert [s.id for s in c.order_by("b").limit_to_last(2).get()] == ["d2", "d1"]

    def test_cursors(self, c: firestore.CollectionReference) -> None:
        ordered = c.order_by("b")
        assert ids(ordered.start_at({"b": 8})) == "d3 d2 d1"
        assert ids(ordered.start_after({"b": 8})) == "d2 d1"
        assert ids(ordered.end_at({"b": 3})) == "d9 d8"
        assert ids(ordered.end_before({"b": 3})) == "d9"
        assert ids(ordered.start_at({"b": 4}).end_before({"b": 7})) == "d7 d6 d5"

    def test_cursor_between_values_and_of_another_type(self, c: firestore.CollectionReference) -> None:
        ordered = c.order_by("a")
        assert ids(ordered.start_at({"a": 2.5})) == "d4 d7"
        assert ids(ordered.start_at({"a": ""})) == "d7"
        assert ids(ordered.end_before({"a": False})) == "d5"

    def test_cursor_on_a_prefix(self, c: firestore.CollectionReference) -> None:
        ordered = c.order_by("a").order_by("b")
        assert ids(ordered.start_after({"a": 2})) == "d4 d7"
        assert ids(ordered.start_after({"a": 2, "b": 8})) == "d2 d4 d7"

    def test_cursor_from_a_snapshot(self, c: firestore.CollectionReference) -> None:
        snapshot = c.document("d2").get()
        assert ids(c.order_by("a").start_at(snapshot)) == "d2 d3 d4 d7"
        assert ids(c.order_by("a", direction="DESCENDING").start_after(snapshot)) == "d1 d6 d9 d5"


class TestSelect:
    def test_fields(self, c: firestore.CollectionReference) -> None:
        data = {s.id: s.to_dict() for s in c.select(["a", "m.x"]).limit(3).stream()}
        assert data == {"d1": {"a": 1, "m": {"x": 1}}, "d2": {"a": 2, "m": {"x": 2}}, "d3": {"a": 2.0, "m": {"x": 1}}}

    def test_nothing_but_names(self, c: firestore.CollectionReference) -> None:
        snapshots = list(c.select([]).stream())
        assert len(snapshots) == 9
        assert all(s.to_dict() == {} and s.update_time is not None for s in snapshots)


class TestCollectionGroup:
    @pytest.fixture
    def group(self, db: firestore.Client) -> firestore.CollectionGroup:
        for path in ("g/1", "c/x/g/2", "c/y/g/1", "c/y/g/1/g/3", "other/g"):
            db.document(path).set({"n": len(path)})
        return db.collection_group("g")

    @staticmethod
    def paths(query: firestore.Query) -> list[str]:
        return [snapshot.reference.path for snapshot in query.stream()]

    def test_any_depth_in_order_of_names(self, group: firestore.CollectionGroup) -> None:
        assert self.paths(group) == ["c/x/g/2", "c/y/g/1", "c/y/g/1/g/3", "g/1"]

    def test_filter_and_order(self, group: firestore.CollectionGroup) -> None:
        assert self.paths(where(group, "n", ">", 4).order_by("n", direction="DESCENDING")) == [
            "c/y/g/1/g/3",
            "c/y/g/1",
            "c/x/g/2",
        ]

    def test_below_one_subtree(self, db: firestore.Client, group: firestore.CollectionGroup) -> None:
        name = FieldPath.document_id()
        below = where(where(group, name, ">=", db.document("c/y")), name, "<", db.document("c/y\u0000"))
        assert self.paths(below) == ["c/y/g/1", "c/y/g/1/g/3"]

    def test_subcollection_of_a_document(self, db: firestore.Client, group: firestore.CollectionGroup) -> None:
        assert self.paths(db.collection("c/y/g")) == ["c/y/g/1"]


class TestExplain:
    @pytest.mark.emulator_differs("it ignores explain options")
    def test_plan_only(self, c: firestore.CollectionReference) -> None:
        results = where(c, "a", "==", 2).get(explain_options=firestore.ExplainOptions(analyze=False))
        plan = results.get_explain_metrics().plan_summary
        assert len(plan.indexes_used) == 1
        assert plan.indexes_used[0]["properties"] == "(a ASC, __name__ ASC)"
        assert plan.indexes_used[0]["query_scope"] == "Collection"

    @pytest.mark.emulator_differs("it ignores explain options")
    def test_analyze(self, c: firestore.CollectionReference) -> None:
        results = where(c, "a", "==", 2).get(explain_options=firestore.ExplainOptions(analyze=True))
        assert len(list(results)) == 2
        stats = results.get_explain_metrics().execution_stats
        assert stats.results_returned == 2
        assert stats.read_operations == 2
        assert stats.execution_duration.total_seconds() > 0
        assert {"billing_details", "documents_scanned", "index_entries_scanned"} <= stats.debug_stats.keys()


def test_a_reader_that_pauses_gets_the_state_of_its_beginning(c: firestore.CollectionReference, db: firestore.Client) -> None:
    """After a second the server suspends a query whose client does not read, and continues it later."""
    count = 1500
    writer = db.bulk_writer()
    for number in range(count):
        writer.create(c.document(f"p{number:04}"), {"pause": number % 50, "text": "x" * 20_000})
    writer.close()
    expected = sorted(((number % 50, f"p{number:04}") for number in range(count)), reverse=True)
    seen = []
    for result in c.order_by("pause", direction="DESCENDING").stream():
        seen.append((result.get("pause"), result.id))
        if len(seen) == 5:
            c.document("p0000").update({"pause": 99})
            c.document("p0001").delete()
            time.sleep(2)
    assert seen == expected
