"""Single documents through Google's client: create, read, merge, transform, delete."""

from __future__ import annotations

import datetime

import pytest
from google.api_core import exceptions
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.cloud import firestore
from google.cloud.firestore_v1 import GeoPoint
from google.cloud.firestore_v1.base_document import DocumentSnapshot
from google.cloud.firestore_v1.base_query import FieldFilter

UTC = datetime.UTC


def test_every_type_comes_back_as_it_went(db: firestore.Client) -> None:
    reference = db.document("c/all")
    data = {
        "null": None,
        "yes": True,
        "integer": 9007199254740993,
        "smallest": -(2**63),
        "largest": 2**63 - 1,
        "double": 3.5,
        "whole double": 3.0,
        "infinite": float("-inf"),
        "time": datetime.datetime(2020, 2, 29, 12, 0, 0, 123456, tzinfo=UTC),
        "text": "zażółć \U0001f600 e\u0301 \u0000 end",
        "bytes": b"\x00\xff\x80",
        "reference": db.document("d/other"),
        "point": GeoPoint(-90.0, 179.5),
        "array": [1, "a", {"k": [True]}],
        "map": {"a.b": 1, "`": {"deep": {}}},
        "empty array": [],
        "empty map": {},
    }
    reference.set(data)
    read = reference.get().to_dict()
    assert read == data
    assert isinstance(read["whole double"], float)
    assert isinstance(read["integer"], int)


def test_minus_zero_and_nan_survive(db: firestore.Client) -> None:
    reference = db.document("c/zero")
    reference.set({"minus": -0.0, "nan": float("nan")})
    read = reference.get().to_dict()
    assert str(read["minus"]) == "-0.0"
    assert read["nan"] != read["nan"]


def test_times_of_nanoseconds_are_cut_to_microseconds(db: firestore.Client) -> None:
    reference = db.document("c/time")
    reference.set({"t": DatetimeWithNanoseconds(2020, 12, 31, 23, 59, 59, nanosecond=999999999, tzinfo=UTC)})
    read = reference.get().get("t")
    # The client distinguishes nanoseconds from microseconds only when there are any.
    assert (read.microsecond, read.nanosecond % 1000) == (999999, 0)


def test_a_filter_with_nanoseconds_is_cut_as_a_value_is(db: firestore.Client) -> None:
    time = DatetimeWithNanoseconds(2020, 12, 31, 23, 59, 59, nanosecond=123456789, tzinfo=UTC)
    db.document("filtered/time").set({"t": time})
    collection = db.collection("filtered")
    found = {op: len(collection.where(filter=FieldFilter("t", op, time)).get()) for op in ("==", "<", "<=", ">", ">=")}
    assert found == {"==": 1, "<": 0, "<=": 1, ">": 0, ">=": 1}


def test_missing_document(db: firestore.Client) -> None:
    snapshot = db.document("c/missing").get()
    assert not snapshot.exists
    assert snapshot.to_dict() is None
    assert snapshot.read_time is not None


def test_create_then_create_again(db: firestore.Client) -> None:
    reference = db.document("c/once")
    result = reference.create({"n": 1})
    snapshot = reference.get()
    assert snapshot.create_time == snapshot.update_time == result.update_time
    with pytest.raises(exceptions.AlreadyExists):
        reference.create({"n": 2})
    assert reference.get().to_dict() == {"n": 1}


def test_add_makes_an_id_of_twenty_characters(db: firestore.Client) -> None:
    _, reference = db.collection("c").add({"n": 1})
    assert len(reference.id) == 20 and reference.id.isalnum()
    assert reference.get().to_dict() == {"n": 1}


def test_set_replaces_and_keeps_the_create_time(db: firestore.Client) -> None:
    reference = db.document("c/a")
    first = reference.set({"a": 1, "b": 2})
    second = reference.set({"a": 3})
    snapshot = reference.get()
    assert snapshot.to_dict() == {"a": 3}
    assert snapshot.create_time == first.update_time
    assert snapshot.update_time == second.update_time > first.update_time


def test_a_write_that_changes_nothing_keeps_the_update_time(db: firestore.Client) -> None:
    reference = db.document("c/a")
    first = reference.set({"a": 1})
    again = reference.set({"a": 1})
    assert again.update_time == first.update_time
    assert reference.get().update_time == first.update_time


def test_an_integer_over_an_equal_double_is_a_change(db: firestore.Client) -> None:
    reference = db.document("c/a")
    first = reference.set({"a": 3.0})
    again = reference.set({"a": 3})
    assert again.update_time > first.update_time
    assert isinstance(reference.get().get("a"), int)


class TestMerge:
    def test_merge_keeps_what_is_not_named(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"address": {"city": "Oslo", "state": "x"}, "n": 1})
        reference.set({"address": {"city": "Rome"}}, merge=True)
        assert reference.get().to_dict() == {"address": {"city": "Rome", "state": "x"}, "n": 1}

    def test_merge_of_named_fields_replaces_the_map(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"address": {"city": "Oslo", "state": "x"}, "n": 1})
        reference.set({"address": {"city": "Rome"}, "n": 2}, merge=["address"])
        assert reference.get().to_dict() == {"address": {"city": "Rome"}, "n": 1}

    def test_empty_merge_creates_an_empty_document(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({}, merge=True)
        snapshot = reference.get()
        assert snapshot.exists and snapshot.to_dict() == {}

    def test_merge_creates_the_document(self, db: firestore.Client) -> None:
        db.document("c/a").set({"a": {"b": 1}}, merge=True)
        assert db.document("c/a").get().to_dict() == {"a": {"b": 1}}


class TestUpdate:
    def test_dotted_paths(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"a": {"b": 1, "c": 2}, "n": 5})
        reference.update({"a.b": 7, "x.y.z": 1})
        assert reference.get().to_dict() == {"a": {"b": 7, "c": 2}, "n": 5, "x": {"y": {"z": 1}}}

    def test_a_path_through_a_number_makes_a_map(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"a": 1})
        reference.update({"a.b": 7})
        assert reference.get().to_dict() == {"a": {"b": 7}}

    def test_deleting_the_last_key_leaves_an_empty_map(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"a": {"b": 1}, "n": 1})
        reference.update({"a.b": firestore.DELETE_FIELD, "n": firestore.DELETE_FIELD})
        assert reference.get().to_dict() == {"a": {}}

    @pytest.mark.parametrize("field", ["1a", "a b", "é", "`", "\\", "a-b", "14", "!.\\`"])
    def test_names_that_need_quoting(self, db: firestore.Client, field: str) -> None:
        reference = db.document("c/a")
        reference.set({"other": 1})
        path = db.field_path(field)
        reference.update({path: {"inner": 1}})
        assert reference.get().to_dict() == {"other": 1, field: {"inner": 1}}
        reference.update({path: firestore.DELETE_FIELD})
        assert reference.get().to_dict() == {"other": 1}

    def test_missing_document(self, db: firestore.Client) -> None:
        with pytest.raises(exceptions.NotFound):
            db.document("c/none").update({"a": 1})


class TestTransforms:
    def test_server_timestamp_is_one_instant_of_milliseconds(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        result = reference.set({"one": firestore.SERVER_TIMESTAMP, "m": {"two": firestore.SERVER_TIMESTAMP}, "n": 1})
        data = reference.get().to_dict()
        assert data["one"] == data["m"]["two"]
        assert data["one"].microsecond % 1000 == 0
        assert data["one"] <= result.update_time
        assert abs(data["one"] - datetime.datetime.now(UTC)) < datetime.timedelta(minutes=5)

    @pytest.mark.parametrize(
        ("stored", "operand", "result"),
        [
            (5, 3, 8),
            (5, 1.5, 6.5),
            (1.5, 1, 2.5),
            (2**63 - 1, 5, 2**63 - 1),
            (-(2**63), -5, -(2**63)),
            ("text", 4, 4),
            (float("inf"), 1, float("inf")),
        ],
    )
    def test_increment(self, db: firestore.Client, stored: object, operand: float, result: float) -> None:
        reference = db.document("c/a")
        reference.set({"n": stored})
        reference.update({"n": firestore.Increment(operand)})
        read = reference.get().get("n")
        assert read == result and type(read) is type(result)

    @pytest.mark.parametrize(
        ("stored", "transform", "result"),
        [
            (5, firestore.Maximum(3), 5),
            (5, firestore.Maximum(7.5), 7.5),
            (5, firestore.Minimum(3), 3),
            (5.0, firestore.Maximum(5), 5.0),
            (5, firestore.Minimum(5.0), 5),
            (None, firestore.Minimum(1), 1),
            ("x", firestore.Maximum(-1), -1),
        ],
    )
    def test_minimum_and_maximum(self, db: firestore.Client, stored: object, transform: object, result: float) -> None:
        reference = db.document("c/a")
        reference.set({"n": stored})
        reference.update({"n": transform})
        read = reference.get().get("n")
        assert read == result and type(read) is type(result)

    def test_array_union_and_remove(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"t": [1, 2, 2]})
        reference.update({"t": firestore.ArrayUnion([2.0, 3, 3, {"a": 1}])})
        assert reference.get().get("t") == [1, 2, 2, 3, {"a": 1}]
        reference.update({"t": firestore.ArrayRemove([2, {"a": 1.0}])})
        assert reference.get().get("t") == [1, 3]
        reference.update({"new": firestore.ArrayUnion(["x"]), "t": firestore.ArrayRemove([1, 3])})
        assert reference.get().to_dict() == {"t": [], "new": ["x"]}

    def test_a_transform_creates_the_document(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"n": firestore.Increment(2)}, merge=True)
        assert reference.get().to_dict() == {"n": 2}


class TestDelete:
    def test_delete_is_idempotent(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"a": 1})
        first = reference.delete()
        assert not reference.get().exists
        assert reference.delete() > first

    def test_subcollections_stay(self, db: firestore.Client) -> None:
        db.document("c/a").set({})
        db.document("c/a/s/x").set({"n": 1})
        db.document("c/a").delete()
        assert db.document("c/a/s/x").get().exists

    def test_recreation_has_a_new_create_time(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"a": 1})
        before = reference.get().create_time
        reference.delete()
        reference.set({"a": 1})
        assert reference.get().create_time > before


class TestGet:
    def test_projection(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"a": 1, "m": {"x": 1, "y": 2}, "n": 3})
        snapshot = reference.get(field_paths=["m.y", "a", "none"])
        assert snapshot.to_dict() == {"a": 1, "m": {"y": 2}}
        assert snapshot.update_time is not None

    def test_get_all(self, db: firestore.Client) -> None:
        db.document("c/a").set({"n": 1})
        db.document("c/b").set({"n": 2})
        wanted = [db.document(f"c/{name}") for name in ("b", "none", "a")]
        found: dict[str, DocumentSnapshot] = {s.id: s for s in db.get_all(wanted)}
        assert found.keys() == {"a", "b", "none"}
        assert found["a"].to_dict() == {"n": 1}
        assert not found["none"].exists
        assert len({s.read_time for s in found.values()}) == 1

    @pytest.mark.parametrize(
        "name", ["中餐-1", "a b", "a:b", "50%", "e\u0301", "..a", "__id7__", "x" * 1500, "\U0001f600"]
    )
    def test_unusual_ids(self, db: firestore.Client, name: str) -> None:
        reference = db.collection("c").document(name)
        reference.set({"n": 1})
        assert reference.get().exists
        assert [s.id for s in db.collection("c").stream()] == [name]
