"""Random values in proto3 JSON form, from pools small enough that requests meet the same value again."""

from __future__ import annotations

import base64
from random import Random

from .request import Json

NULL: Json = {"nullValue": None}

# Frequent values: few, close to each other, equal across types where Firestore treats them as equal.
DENSE: list[Json] = [
    NULL,
    {"booleanValue": False},
    {"booleanValue": True},
    {"integerValue": "0"},
    {"integerValue": "1"},
    {"integerValue": "2"},
    {"integerValue": "3"},
    {"doubleValue": 0.0},
    {"doubleValue": -0.0},
    {"doubleValue": 1.0},
    {"doubleValue": 1.5},
    {"doubleValue": "NaN"},
    {"stringValue": ""},
    {"stringValue": "a"},
    {"stringValue": "b"},
    {"arrayValue": {}},
    {"arrayValue": {"values": [{"integerValue": "1"}]}},
    {"mapValue": {}},
    {"mapValue": {"fields": {"x": {"integerValue": "1"}}}},
]

INTEGERS = [0, 1, -1, 2, 7, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), 10**15]
DOUBLES: list[float | str] = [
    *(0.0, -0.0, 1.0, -1.0, 1.5, 0.1, -2.5, 3.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    *(9007199254740992.0, 9007199254740994.0, -9007199254740992.0, 9.223372036854776e18, -9.223372036854776e18),
    *("NaN", "Infinity", "-Infinity"),
]
TIMES = [
    *("0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"),
    *("2020-02-29T12:00:00.123456789Z", "2020-02-29T12:00:00.123456Z", "2020-02-29T12:00:00.123457Z"),
    *("9999-12-31T23:59:59.999999999Z", "1582-10-04T00:00:00.5Z"),
]
STRINGS = [
    *("", "a", "A", "aa", "ab", "b", "é", "e\u0301", "\u0000", "a\u0000", "a\u0000b", "\ud7ff", "\ue000", "\uffff"),
    *("\U0001f600", "\U00010000", "zażółć", "Ω", "1", "10", "2", " ", "__x__", "a.b", "`"),
]
# An index may truncate a value at the 1500th byte; two of these differ only after it.
LONG_STRINGS = ["x" * 1499, "x" * 1500, "x" * 1501, "x" * 1600 + "a", "x" * 1600 + "b", "é" * 750 + "a", "é" * 751]
BYTES = [b"", b"\0", b"\0\xff", b"\xff", b"a", b"ab", b"\x80", b"b" * 1600, b"b" * 1600 + b"a"]
POINTS: list[tuple[float, float]] = [(0.0, 0.0), (0.0, 1.0), (90.0, 180.0), (-90.0, -180.0), (1.5, -2.25), (-0.0, 0.5)]
VECTORS: list[list[float | str]] = [
    *([1.0], [0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [-1.0, 0.5], [1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [0.0, 0.0, 0.0]),
    *([0.1, 0.2, 0.3], [1e200, 1e200, 0.0], [-1.0, -2.0, -3.0], [2.0, 4.0, 6.0]),
]
MAP_KEYS = ["x", "y", "z", "a.b", "é", "1", "`", "\\", " ", "X", "\U0001f600", "value", "type"]


class Values:
    """Draws values; `database` and `paths` make the references point at documents of the episode."""

    def __init__(self, rng: Random, database: str, paths: list[str]) -> None:
        self._rng = rng
        self._database = database
        self._paths = paths

    def dense(self) -> Json:
        """A value from the small pool, which filters usually search for."""
        return self._rng.choice(DENSE)

    def any(self, depth: int = 0) -> Json:
        roll = self._rng.random()
        if roll < 0.55:
            return self.dense()
        if roll < 0.85 or depth >= 3:
            return self.scalar()
        if roll < 0.92:
            return self.array(depth)
        if roll < 0.98 or depth > 0:
            return self.map(depth)
        return self.vector()

    def scalar(self) -> Json:
        rng = self._rng
        match rng.randrange(9):
            case 0:
                return {"integerValue": str(rng.choice(INTEGERS))}
            case 1:
                return {"doubleValue": rng.choice(DOUBLES)}
            case 2:
                return {"timestampValue": rng.choice(TIMES)}
            case 3:
                return {"bytesValue": base64.b64encode(rng.choice(BYTES)).decode()}
            case 4:
                return self.reference()
            case 5:
                latitude, longitude = rng.choice(POINTS)
                return {"geoPointValue": {"latitude": latitude, "longitude": longitude}}
            case 6:
                return {"stringValue": rng.choice(LONG_STRINGS)} if rng.random() < 0.1 else self.text()
            case _:
                return self.text()

    def text(self) -> Json:
        return {"stringValue": self._rng.choice(STRINGS)}

    def number(self) -> Json:
        roll = self._rng.random()
        if roll < 0.5:
            return {"integerValue": str(self._rng.choice([0, 1, 2, 3, 5, -4]))}
        if roll < 0.75:
            return {"integerValue": str(self._rng.choice(INTEGERS))}
        return {"doubleValue": self._rng.choice(DOUBLES)}

    def plain_number(self) -> Json:
        """A number whose sums are exact in any order of addition."""
        if self._rng.random() < 0.6:
            return {"integerValue": str(self._rng.randrange(-20, 20))}
        return {"doubleValue": self._rng.randrange(-40, 40) / 4}

    def reference(self) -> Json:
        database = self._database if self._rng.random() < 0.9 else "projects/elsewhere/databases/other"
        return {"referenceValue": f"{database}/documents/{self._rng.choice(self._paths)}"}

    def array(self, depth: int = 0, lengths: tuple[int, int] = (0, 4)) -> Json:
        """An array without a directly nested array or vector."""
        made = []
        for _ in range(self._rng.randint(*lengths)):
            value = self.any(depth + 1)
            while "arrayValue" in value or "__type__" in value.get("mapValue", {}).get("fields", {}):
                value = self.scalar()
            made.append(value)
        return {"arrayValue": {"values": made} if made else {}}

    def map(self, depth: int = 0) -> Json:
        keys = self._rng.sample(MAP_KEYS, self._rng.randint(0, 3))
        fields = {key: self.any(depth + 1) for key in keys}
        return {"mapValue": {"fields": fields} if fields else {}}

    def vector(self, dimension: int | None = None) -> Json:
        pool = [v for v in VECTORS if dimension is None or len(v) == dimension]
        return vector(self._rng.choice(pool))


def vector(elements: list[float | str]) -> Json:
    values = [{"doubleValue": element} for element in elements]
    return {
        "mapValue": {"fields": {"__type__": {"stringValue": "__vector__"}, "value": {"arrayValue": {"values": values}}}}
    }


def nested(depth: int, kind: str = "mapValue") -> Json:
    """A value of maps (or alternating maps and arrays) `depth` levels deep; level 1 is the outermost."""
    value: Json = {"integerValue": "1"}
    for level in range(depth):
        if kind == "mapValue" or level % 2 == 0:
            value = {"mapValue": {"fields": {"k": value}}}
        else:
            value = {"arrayValue": {"values": [value]}}
    return value
