"""Values of every type in Firestore's order: each is smaller than the next."""

from __future__ import annotations

import datetime

from google.cloud import firestore
from google.cloud.firestore_v1 import GeoPoint
from google.cloud.firestore_v1.vector import Vector

_UTC = datetime.UTC


def in_order(db: firestore.Client) -> list[object]:
    return [
        None,
        False,
        True,
        float("nan"),
        float("-inf"),
        -1.7976931348623157e308,
        -(2**63),
        -9007199254740993,
        -9007199254740992.0,
        -1.5,
        -1,
        -5e-324,
        0,
        5e-324,
        1,
        1.5,
        9007199254740992.0,
        9007199254740993,
        2**63 - 1,
        9223372036854775808.0,
        float("inf"),
        datetime.datetime(1, 1, 1, tzinfo=_UTC),
        datetime.datetime(1970, 1, 1, tzinfo=_UTC),
        datetime.datetime(1970, 1, 1, microsecond=1, tzinfo=_UTC),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=_UTC),
        "",
        "\u0000",
        "A",
        "a",
        "a\u0000",
        "aa",
        "e\u0301",
        "é",
        "\uffff",
        "\U00010000",
        b"",
        b"\x00",
        b"a",
        b"a\x00",
        b"\xff",
        db.document("c/a"),
        db.document("c/a/x/1"),
        db.document("c/a-"),
        db.document("c/b"),
        GeoPoint(-90, -180),
        GeoPoint(0, -1),
        GeoPoint(0, 0),
        GeoPoint(1, -180),
        [],
        [None],
        [1],
        [1, "a"],
        ["a"],
        Vector([5.0]),
        Vector([1.0, 2.0]),
        Vector([1.0, 3.0]),
        {},
        {"a": 1},
        {"a": 1, "b": 0},
        {"a": 2},
        {"b": 0},
    ]
