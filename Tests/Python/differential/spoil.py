"""Makes one part of a valid request invalid, so that the servers' errors can be compared.

A spoiler finds all positions of one kind in the body (names, values, field paths, numbers) and replaces one of them.
The request records the change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from .request import Json, Request
from .values import nested, vector

STRING_BYTES_MAX = 1_048_487


@dataclass(frozen=True)
class Place:
    """A member of a JSON object or an element of a list, which can be read and replaced."""

    holder: Any
    key: Any

    @property
    def value(self) -> Json:
        return self.holder[self.key]

    def put(self, value: Json) -> None:
        self.holder[self.key] = value


def spoil(rng: Random, request: Request) -> Request:
    """The request with one invalid part, or unchanged if it has no such position."""
    spoilers: list[tuple[str, Callable[[Random, Json], str | None]]] = [
        ("name", _spoil_name),
        ("value", _spoil_value),
        ("path", _spoil_path),
        ("number", _spoil_number),
        ("structure", _spoil_structure),
        ("member", _spoil_member),
    ]
    for what, spoiler in rng.sample(spoilers, len(spoilers)):
        body = copy.deepcopy(request.body)
        note = spoiler(rng, body)
        if note is not None:
            tags = {"rest only"} if what == "member" else {"grpc only"} if what == "name" else set()
            return replace(request, body=body, spoiled=f"{what}: {note}", tags=request.tags | tags)
    return request


# Names

NAME_KEYS = ("name", "delete", "verify", "document", "parent", "database", "referenceValue")


def _names(node: Json) -> Iterator[Place]:
    for place in _places(node):
        listed = isinstance(place.key, int) and str(place.value).startswith("projects/")
        if isinstance(place.value, str) and (place.key in NAME_KEYS or listed):
            yield place


def _spoil_name(rng: Random, body: Json) -> str | None:
    places = list(_names(body))
    if not places:
        return None
    place = rng.choice(places)
    kind, change = rng.choice(BAD_NAMES)
    place.put(change(place.value))
    return f"{kind} in {place.key}"


def _below_database(name: str, rest: str) -> str:
    return "/".join(name.split("/")[:4]) + rest


BAD_NAMES: list[tuple[str, Callable[[str], str]]] = [
    ("slash at the end", lambda name: name + "/"),
    ("slash at the start", lambda name: "/" + name),
    ("empty segment", lambda name: name.replace("documents/", "documents//", 1)),
    ("one segment more", lambda name: name + "/x"),
    ("one segment less", lambda name: name.rsplit("/", 1)[0]),
    ("empty", lambda name: ""),
    ("one word", lambda name: "foo"),
    ("projects missing", lambda name: name.removeprefix("projects/")),
    ("project id only", lambda name: "/".join(name.split("/")[:2])),
    ("no documents", lambda name: _below_database(name, "/c/a")),
    ("wrong word", lambda name: _below_database(name, "/documentz/c/a")),
    ("dot", lambda name: _below_database(name, "/documents/c/.")),
    ("two dots", lambda name: _below_database(name, "/documents/c/..")),
    ("reserved document id", lambda name: _below_database(name, "/documents/c/__x__")),
    ("reserved collection id", lambda name: _below_database(name, "/documents/__c__/x")),
    ("numeric collection id", lambda name: _below_database(name, "/documents/__id7__/x")),
    ("numeric id too large", lambda name: _below_database(name, "/documents/c/__id9223372036854775808__")),
    ("numeric id with zero in front", lambda name: _below_database(name, "/documents/c/__id07__")),
    ("document id of 1500 bytes", lambda name: _below_database(name, "/documents/c/" + "x" * 1500)),
    ("document id of 1501 bytes", lambda name: _below_database(name, "/documents/c/" + "x" * 1501)),
    ("document id of 1502 bytes in 751 letters", lambda name: _below_database(name, "/documents/c/" + "é" * 751)),
    ("collection id of 1501 bytes", lambda name: _below_database(name, f"/documents/{'x' * 1501}/a")),
    ("name past 6 KiB", lambda name: _below_database(name, "/documents" + f"/{'x' * 1000}" * 8)),
    ("100 levels", lambda name: _below_database(name, "/documents" + "/c/a" * 100)),
    ("101 levels", lambda name: _below_database(name, "/documents" + "/c/a" * 101)),
    (
        "other database",
        lambda name: name.replace("databases/", "databases/other-", 1).replace("other-(default)", "other"),
    ),
    ("other project", lambda name: name.replace("projects/", "projects/other-", 1)),
    ("upper-case word", lambda name: name.replace("projects/", "Projects/", 1)),
]

# Values


def _values(node: Json) -> Iterator[Place]:
    """Positions of a Value."""
    for place in _places(node):
        value = place.value
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)).endswith("Value"):
            yield place


def _spoil_value(rng: Random, body: Json) -> str | None:
    places = list(_values(body))
    if not places:
        return None
    kind, value = rng.choice(BAD_VALUES)
    place = rng.choice(places)
    holder = rng.random()
    if holder < 0.15:
        value = {"arrayValue": {"values": [value]}}
        kind += " in an array"
    elif holder < 0.3:
        value = {"mapValue": {"fields": {"k": value}}}
        kind += " in a map"
    place.put(copy.deepcopy(value))
    return kind


def _vector_with(**members: Json) -> Json:
    fields = {**vector([1.0])["mapValue"]["fields"], **members}
    return {"mapValue": {"fields": {key: value for key, value in fields.items() if value is not None}}}


_ONE: Json = {"integerValue": "1"}
BAD_VALUES: list[tuple[str, Json]] = [
    ("no type", {}),
    ("latitude above 90", {"geoPointValue": {"latitude": 90.5, "longitude": 0}}),
    ("longitude below -180", {"geoPointValue": {"latitude": 0, "longitude": -180.5}}),
    ("latitude NaN", {"geoPointValue": {"latitude": "NaN", "longitude": 0}}),
    ("longitude infinite", {"geoPointValue": {"latitude": 0, "longitude": "Infinity"}}),
    ("reference to a word", {"referenceValue": "foo"}),
    ("empty reference", {"referenceValue": ""}),
    ("array in array", {"arrayValue": {"values": [{"arrayValue": {"values": [_ONE]}}]}}),
    ("empty array in array", {"arrayValue": {"values": [{"arrayValue": {}}]}}),
    ("array in map in array", {"arrayValue": {"values": [{"mapValue": {"fields": {"k": {"arrayValue": {}}}}}]}}),
    ("20 levels of maps", nested(20)),
    ("19 levels of maps", nested(19)),
    ("21 levels of maps", nested(21)),
    ("20 levels of maps and arrays", nested(20, "mixed")),
    ("21 levels of maps and arrays", nested(21, "mixed")),
    ("vector with an integer", _vector_with(value={"arrayValue": {"values": [_ONE]}})),
    ("vector of nothing", _vector_with(value={"arrayValue": {}})),
    ("vector without values", _vector_with(value=None)),
    ("vector with more members", _vector_with(other=_ONE)),
    ("vector with a number for values", _vector_with(value=_ONE)),
    ("vector of 2048 dimensions", vector([1.0] * 2048)),
    ("vector of 2049 dimensions", vector([1.0] * 2049)),
    ("unknown __type__", _vector_with(__type__={"stringValue": "__other__"})),
    ("__type__ not a string", _vector_with(__type__=_ONE)),
    ("reserved key", {"mapValue": {"fields": {"__x__": _ONE}}}),
    ("empty key", {"mapValue": {"fields": {"": _ONE}}}),
    ("key of 1500 bytes", {"mapValue": {"fields": {"x" * 1500: _ONE}}}),
    ("key of 1501 bytes", {"mapValue": {"fields": {"x" * 1501: _ONE}}}),
    ("string at its limit", {"stringValue": "x" * STRING_BYTES_MAX}),
    ("string past its limit", {"stringValue": "x" * (STRING_BYTES_MAX + 1)}),
    ("field reference", {"fieldReferenceValue": "a"}),
    ("function", {"functionValue": {"name": "f"}}),
    ("pipeline", {"pipelineValue": {"stages": [{"name": "s"}]}}),
    ("null operand", {"nullValue": None}),
    ("NaN operand", {"doubleValue": "NaN"}),
    ("array operand", {"arrayValue": {"values": [_ONE]}}),
]

# Field paths


def _paths(node: Json) -> Iterator[Place]:
    for place in _places(node):
        if place.key in ("fieldPath", "distanceResultField") and isinstance(place.value, str):
            yield place
        elif place.key == "fieldPaths":
            yield from (Place(place.value, index) for index in range(len(place.value)))


def _spoil_path(rng: Random, body: Json) -> str | None:
    places = list(_paths(body))
    if not places:
        return None
    path = rng.choice(BAD_PATHS)
    rng.choice(places).put(path)
    return path if len(path) < 40 else f"{path[:5]}… of {len(path)} letters"


BAD_PATHS = [
    *("", ".", "a.", ".a", "a..b", "`a", "a`", "``", "a.``", "1x", "é", "a b", "a-b", "__x__", "a.__x__", "`__x__`"),
    *("__name__", "a.__name__", "`__name__`", "__", "`\\`", "`\\`b`", "*", "a/b", "a[0]", "~", "a.`b", "`a`b", "`a`.b"),
    *(
        "x" * 1500,
        "x" * 1501,
        "`" + "é" * 751 + "`",
        ".".join("x" * 20),
        ".".join(["m"] * 25),
        "__id7__",
        "___",
        "\u0000",
    ),
]

# Numbers


def _spoil_number(rng: Random, body: Json) -> str | None:
    query = body.get("structuredQuery") or body.get("structuredAggregationQuery", {}).get("structuredQuery")
    choices: list[tuple[Json, str, Json]] = []
    if query is not None:
        choices += [
            (query, "limit", -1),
            (query, "offset", -1),
            (query, "limit", 2**31 - 1),
            (query, "offset", 2**31 - 1),
        ]
        nearest = query.get("findNearest")
        if nearest is not None:
            choices += [(nearest, "limit", value) for value in (0, -1, 1000, 1001)]
            choices += [(nearest, "distanceThreshold", "NaN"), (nearest, "distanceMeasure", 0)]
            choices += [(query, "limit", 5), (query, "offset", 1)]
    for aggregation in body.get("structuredAggregationQuery", {}).get("aggregations", []):
        if "count" in aggregation:
            choices += [(aggregation["count"], "upTo", value) for value in ("0", "-1", "9223372036854775807")]
    if "collectionId" in body and "documentId" not in body:
        choices += [(body, "pageSize", value) for value in (-1, 1000, 2**31 - 1)]
    if "currentDocument" in body or "readTime" in body:
        if "currentDocument" in body:
            body["currentDocument"] = {}
            choices += [(body["currentDocument"], "updateTime", time) for time in BAD_TIMES]
        else:
            choices += [(body, "readTime", time) for time in BAD_TIMES]
    if not choices:
        return None
    holder, key, value = rng.choice(choices)
    holder[key] = value
    return f"{key} {value}"


BAD_TIMES = ["2020-01-01T00:00:00.000000001Z", "2150-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]

# Structure: members that are repeated, missing or at the wrong position.

# The changed member, and the change. Lambdas receive loop variables as defaults, hence the loose type.
Change = tuple[str, Callable[..., Any]]


def _spoil_structure(rng: Random, body: Json) -> str | None:
    changes = list(_structures(body))
    if not changes:
        return None
    note, change = rng.choice(changes)
    change()
    return note


def _structures(body: Json) -> Iterator[Change]:
    for write in body.get("writes", []):
        mask = {"fieldPaths": ["a"]}
        if "update" not in write:
            yield "mask without update", lambda write=write: write.update(updateMask=mask)
            transforms = [{"fieldPath": "n", "increment": _ONE}]
            yield "transforms without update", lambda write=write: write.update(updateTransforms=transforms)
        for transform in write.get("updateTransforms", []):
            yield "transform of nothing", lambda transform=transform: _keep_only(transform, "fieldPath")
            yield "increment by text", lambda t=transform: t.update(_transform(t, increment={"stringValue": "1"}))
            yield "unknown server value", lambda t=transform: t.update(_transform(t, setToServerValue=0))
            nested_array: Json = {"values": [{"arrayValue": {}}]}
            yield (
                "array in array operand",
                lambda t=transform: t.update(_transform(t, appendMissingElements=nested_array)),
            )
            yield (
                "transform of the member",
                lambda w=write, t=transform: w["updateTransforms"].append(
                    {"fieldPath": t["fieldPath"] + ".x", "increment": _ONE}
                ),
            )
        yield "no operation", lambda write=write: write.clear()
        yield "no condition", lambda write=write: write.pop("currentDocument", None)
    query = body.get("structuredQuery") or body.get("structuredAggregationQuery", {}).get("structuredQuery")
    if query is not None:
        yield from _query_structures(query)
    aggregation = body.get("structuredAggregationQuery")
    if aggregation is not None:
        entries = aggregation["aggregations"]
        yield "no aggregations", entries.clear
        yield "six aggregations", lambda: entries.extend([{"count": {}}] * 6)
        yield "aggregation of nothing", lambda: entries.append({"alias": "x"})
        yield "reserved alias", lambda: entries[0].update(alias="__x__")
        yield "sum of the name", lambda: entries.append({"sum": {"field": {"fieldPath": "__name__"}}})
    if "documents" in body:
        yield "names twice", lambda: body["documents"].extend(body["documents"])
    if "documentId" in body:
        for bad in ("a/b", ".", "..", "__x__", "x" * 1501, "__id5__"):
            yield f"document id {bad[:8]}", lambda bad=bad: body.update(documentId=bad)
        yield "name in the body", lambda: body["document"].update(name=body["parent"] + "/c/a")
    if "collectionId" in body:
        for bad in ("a/b", ".", "..", "__x__", "x" * 1501):
            yield f"collection id {bad[:8]}", lambda bad=bad: body.update(collectionId=bad)
    if "pageSize" in body:
        yield "page token of nobody", lambda: body.update(pageToken="Z2FyYmFnZQ")
    if "orderBy" in body:
        for bad in ("a b c", "a,", ",a", "a desc desc", "`a", "a; b", "a asc, a desc", "a descending"):
            yield f"order {bad}", lambda bad=bad: body.update(orderBy=bad)
    if body.get("showMissing"):
        yield "order and missing ones", lambda: body.update(orderBy="a")


def _query_structures(query: Json) -> Iterator[Change]:
    a: Json = {"fieldPath": "a"}
    equal = {"fieldFilter": {"field": a, "op": "EQUAL", "value": _ONE}}

    def both(*filters: Json, operator: str = "AND") -> Callable[[], Any]:
        present = [query["where"]] if "where" in query else []
        return lambda: query.update(where={"compositeFilter": {"op": operator, "filters": [*present, *filters]}})

    def compare(path: str, operator: str, value: Json) -> Json:
        return {"fieldFilter": {"field": {"fieldPath": path}, "op": operator, "value": value}}

    many = {"arrayValue": {"values": [{"integerValue": str(n)} for n in range(31)]}}
    some = {"arrayValue": {"values": [{"integerValue": str(n)} for n in range(6)]}}
    yield "two collections", lambda: query.update({"from": [{"collectionId": "c"}, {"collectionId": "d"}]})
    yield "collection id with slash", lambda: query.update({"from": [{"collectionId": "a/b"}]})
    yield "reserved collection", lambda: query.update({"from": [{"collectionId": "__c__"}]})
    yield "IN of 31", both(compare("a", "IN", many))
    yield "IN of no array", both(compare("a", "IN", _ONE))
    yield "IN of nothing", both(compare("a", "IN", {"arrayValue": {}}))
    yield "36 disjunctions", both(compare("a", "IN", some), compare("b", "IN", some))
    yield "11 inequalities", both(*[compare(f"f{n}", "GREATER_THAN", _ONE) for n in range(11)])
    yield "10 inequalities", both(*[compare(f"f{n}", "GREATER_THAN", _ONE) for n in range(10)])
    yield "101 filters", both(*[equal] * 101)
    yield "two array-contains", both(compare("t", "ARRAY_CONTAINS", _ONE), compare("a", "ARRAY_CONTAINS", _ONE))
    yield (
        "contains and contains any",
        both(compare("t", "ARRAY_CONTAINS", _ONE), compare("t", "ARRAY_CONTAINS_ANY", some)),
    )
    yield "two negations", both(compare("a", "NOT_EQUAL", _ONE), compare("b", "NOT_IN", some))
    yield "NOT_IN with IN", both(compare("a", "NOT_IN", some), compare("b", "IN", some))
    yield "NOT_IN with OR", both(compare("a", "NOT_IN", some), equal, operator="OR")
    yield "no operator", both(compare("a", "OPERATOR_UNSPECIFIED", _ONE))
    yield "no operator above", both(equal, operator="OPERATOR_UNSPECIFIED")
    yield "empty OR", both({"compositeFilter": {"op": "OR", "filters": []}})
    yield "empty AND", both({"compositeFilter": {"op": "AND", "filters": []}})
    yield "empty filter", both({})
    yield "unary without operator", both({"unaryFilter": {"field": a}})
    yield "name compared with text", both(compare("__name__", "EQUAL", {"stringValue": "a"}))
    yield "name in an array", both(compare("__name__", "ARRAY_CONTAINS", _ONE))
    yield "order twice", lambda: query.update(orderBy=[{"field": a}, {"field": a, "direction": "DESCENDING"}])
    yield "order after the name", lambda: query.update(orderBy=[{"field": {"fieldPath": "__name__"}}, {"field": a}])
    yield "cursor without order", lambda: query.update(startAt={"values": [_ONE]})
    yield "empty cursor", lambda: query.update(startAt={"before": True})
    yield "empty cursor after", lambda: query.update(startAt={})
    yield "empty end", lambda: query.update(endAt={"before": True})
    yield (
        "name cursor of text",
        lambda: query.update(
            orderBy=[{"field": {"fieldPath": "__name__"}}], startAt={"values": [{"stringValue": "a"}]}
        ),
    )
    yield "empty selection", lambda: query.update(select={})
    if "findNearest" in query:
        nearest = query["findNearest"]
        yield "nearest to a number", lambda: nearest.update(queryVector=_ONE)
        yield "nearest with order", lambda: query.update(orderBy=[{"field": a}])
        yield "nearest with cursor", lambda: query.update(startAt={"values": [_ONE]})
        yield "nearest without limit", lambda: nearest.pop("limit")


def _keep_only(node: Json, key: str) -> None:
    for other in [name for name in node if name != key]:
        del node[other]


def _transform(transform: Json, **operation: Json) -> Json:
    _keep_only(transform, "fieldPath")
    return operation


# Members: JSON that is not such a message. Only REST can send it.


def _spoil_member(rng: Random, body: Json) -> str | None:
    objects = [place.value for place in _places(body) if isinstance(place.value, dict) and "$from" not in place.value]
    if not objects:
        return None
    holder = rng.choice(objects)
    values = [place for place in _values(body)]
    match rng.randrange(4):
        case 0:
            holder["unknownMember"] = 1
            return "unknown member"
        case 1 if values:
            value = rng.choice(values)
            value.put(rng.choice(BAD_JSON_VALUES))
            return f"value {str(value.value)[:60]}"
        case 2 if values:
            rng.choice(values).value["booleanValue"] = True
            return "two kinds of value"
        case _:
            holder["unknownMember"] = {"x": [1]}
            return "unknown member"


BAD_JSON_VALUES: list[Json] = [
    {"integerValue": 5},
    {"integerValue": "9223372036854775808"},
    {"integerValue": "x"},
    {"integerValue": 1.5},
    {"integerValue": "1.0"},
    {"integerValue": True},
    {"doubleValue": "1.5"},
    {"doubleValue": "x"},
    {"doubleValue": "nan"},
    {"booleanValue": "true"},
    {"booleanValue": 1},
    {"nullValue": "NULL_VALUE"},
    {"nullValue": 0},
    {"nullValue": "x"},
    {"stringValue": 5},
    {"bytesValue": "*"},
    {"bytesValue": "_-8"},
    {"timestampValue": "2020-01-01"},
    {"timestampValue": "2020-01-01T00:00:00+01:00"},
    {"timestampValue": "2020-01-01T00:00:00.1234567891Z"},
    {"timestampValue": "10000-01-01T00:00:00Z"},
    {"timestampValue": "0000-12-31T23:59:59Z"},
    {"geoPointValue": {"latitude": "1", "longitude": 2}},
    {"arrayValue": []},
    {"arrayValue": None},
    {"mapValue": {"fields": []}},
    {"mapValue": None},
    {"string_value": "snake"},
    {"int_value": 1},
]


def _places(node: Json) -> Iterator[Place]:
    """Every member and element below `node`, outermost first, except what a reference consists of."""
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(members):
        yield Place(node, key)
        if not (isinstance(value, dict) and "$from" in value):
            yield from _places(value)
